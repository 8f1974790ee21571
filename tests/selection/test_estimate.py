"""Errors that hold on new rows: chosen by some rows, judged by others."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification

from budgetforest import BudgetForestClassifier
from budgetforest.selection import training
from budgetforest.selection.candidates import Candidate, Point, Recipe
from budgetforest.selection.estimate import (
    N_FOLDS,
    Estimate,
    choices_without,
    error_in,
    errors_without,
    estimate_at,
    estimates,
    interval,
)
from budgetforest.selection.evaluation import folds_of
from budgetforest.selection.path import best_at, careful_path, only_near, surest
from budgetforest.selection.result import best_within
from budgetforest.selection.training import choice_of
from budgetforest.selection.verdict import by_class, verdict_on


def candidates_of(wrong, costs):
    """A candidate for each line of wrong rows (by row, in ten folds)."""
    fold = np.arange(wrong.shape[1]) % N_FOLDS
    found = []
    for at, (line, cost) in enumerate(zip(wrong, costs, strict=True)):
        folds = tuple((float(line[fold == f].sum()), float((fold == f).sum())) for f in range(N_FOLDS))
        point = Point(Recipe(features=at + 1), 1, cost, float(line.mean()), folds=folds)
        found.append(Candidate(point.recipe, [], [point], 1))
    return found


def paper(candidates, n):
    return lambda budget: best_at(candidates, budget)


def test_the_luckiest_of_many_coins_is_expected_to_be_wrong_half_the_time():
    rng = np.random.default_rng(0)
    found, naive = [], []
    for _ in range(60):
        candidates = candidates_of(rng.random((200, 100)) < 0.5, np.ones(200))
        (told,) = estimates([1.0], choices_without(candidates, [1.0], paper, 100), 100, smooth=True)
        found.append(told.error)
        naive.append(min(c.points[0].error for c in candidates))
    assert np.mean(naive) < 0.4
    assert np.mean(found) == pytest.approx(0.5, abs=0.02)


def test_without_a_choice_the_estimate_is_the_error():
    wrong = np.random.default_rng(1).random((1, 50)) < 0.3
    (told,) = estimates(
        [2.0], choices_without(candidates_of(wrong, [2.0]), [2.0], paper, 50), 50, smooth=False
    )
    assert told.error == pytest.approx(wrong.mean())
    assert told.low < told.error < told.high


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(5, 9)), min_size=N_FOLDS, max_size=N_FOLDS))
def test_a_fold_has_no_part_in_the_choice(folds):
    folds = tuple((float(wrong), float(weight)) for wrong, weight in folds)
    (rest,) = errors_without([folds])
    for fold in range(N_FOLDS):
        others = folds[:fold] + folds[fold + 1 :]
        assert rest[fold] == pytest.approx(error_in(others))


def test_the_choice_without_a_fold_knows_how_many_rows_are_left():
    told = []

    def choice(candidates, n):
        told.append(n)
        return paper(candidates, n)

    choices_without(candidates_of(np.zeros((2, 50), bool), [1.0, 2.0]), [2.0], choice, 50)
    assert told == [45] * N_FOLDS


def test_a_budget_at_which_some_fold_chooses_nothing_has_no_estimate():
    point = candidates_of(np.zeros((1, 50), bool), [1.0])[0].points[0]
    chosen = [[None, point], *[[point, point]] * (N_FOLDS - 1)]
    assert [each.budget for each in estimates([1.0, 2.0], chosen, 50, smooth=False)] == [2.0]


def test_far_from_the_best_only_the_surest_forest_is_kept():
    """At 100 rows an error of .2 has a standard error of .04: .25 is near, .3 is far."""
    recipe = Recipe(features=1)
    measured = [
        (1.0, 0.2, 0.5),
        (1.0, 0.25, 0.6),
        (2.0, 0.3, 0.7),
        (3.0, 0.4, math.inf),
        (4.0, 0.5, math.inf),
    ]
    points = [Point(recipe, 1, *each) for each in measured]
    offer = Candidate(recipe, [], points, 1)
    assert only_near([offer], 100)[0].points == [points[0], points[1], points[3]]
    assert surest([offer]) == points[3]


def test_all_rows_in_one_fold_judge_themselves():
    folds = ((3.0, 10.0), *((0.0, 0.0),) * (N_FOLDS - 1))
    assert errors_without([folds])[0, 0] == pytest.approx(0.3)


def test_equal_rows_are_in_the_same_fold_and_folds_are_even():
    hashes = np.random.default_rng(0).integers(0, 2**63, 20_000).astype(np.uint64)
    assert (folds_of(hashes) == folds_of(hashes.copy())).all()
    assert np.bincount(folds_of(hashes), minlength=N_FOLDS) == pytest.approx(2_000, rel=0.1)


def test_larger_budgets_are_never_expected_to_err_more():
    rng = np.random.default_rng(3)
    candidates = candidates_of(rng.random((30, 80)) < 0.4, np.arange(1.0, 31.0))
    budgets = [c.points[0].cost for c in candidates]
    told = estimates(budgets, choices_without(candidates, budgets, paper, 80), 80, smooth=True)
    errors = [each.error for each in told]
    assert errors == sorted(errors, reverse=True)
    assert estimate_at(told, 0.5) is None
    assert estimate_at(told, 1e9) == told[-1]
    assert estimate_at(told, 2.5) == told[1]


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_an_interval_holds_its_share(share, n):
    low, high = interval(share, n)
    assert 0 <= low <= share <= high <= 1


def test_intervals_cover_the_share_they_are_of():
    rng = np.random.default_rng(0)
    for share, n in ((0.02, 150), (0.1, 80), (0.4, 300)):
        seen = rng.binomial(n, share, 4_000) / n
        ends = np.array([interval(each, n) for each in seen])
        assert 0.9 <= np.mean((ends[:, 0] <= share) & (share <= ends[:, 1])) <= 0.99


def noise_rows():
    """Labels that no feature tells: every error below a half is luck."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(700, 6)), rng.integers(0, 2, 700)


@pytest.fixture(scope="module")
def noise():
    X, y = noise_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may be worse than the most common class
        return BudgetForestClassifier(4, max_trees=12, random_state=0).fit(X, y)


def test_noise_is_not_called_knowledge(noise):
    chosen, told = noise._trained.path[-1], noise.path_[-1]
    assert chosen.error < 0.47
    assert told.error > 0.47
    assert told.low < 0.5 < told.high
    assert noise.summary().verdict.better is not True


def test_path_and_summary_tell_the_same_error():
    X, y = make_classification(1_200, 8, n_informative=5, random_state=0)
    model = BudgetForestClassifier(4, max_trees=12, random_state=0).fit(X[:800], y[:800])
    told = model.summary()
    assert told.verdict.error == model.path_[-1].error
    assert told.verdict.better is True
    assert (told.verdict.low, told.verdict.high) == (model.path_[-1].low, model.path_[-1].high)
    assert sum(each.rows for each in told.classes) == model.training_["validation_rows"]
    new = 1 - model.score(X[800:], y[800:])
    assert told.verdict.low - 0.05 <= new <= told.verdict.high + 0.05
    smaller = model.at_budget(model.path_[1].cost).summary()
    assert smaller.verdict.error == model.path_[1].error
    assert smaller.classes == ()


@pytest.fixture
def coins():
    """Labels that nothing tells, and enough of them to hold 450 out."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(1_500, 4)), rng.integers(0, 2, 1_500)


@pytest.mark.filterwarnings("ignore:.*expected to be wrong:budgetforest.UnusualData")
def test_rows_are_counted_by_what_is_chosen_without_them(coins, monkeypatch):
    found = []

    def spy(*given):
        found.append(choices_without(*given))
        return found[-1]

    monkeypatch.setattr(training, "choices_without", spy)
    model = BudgetForestClassifier(4, method="paper", alpha=[50, 100, 200, 400], max_trees=20, random_state=0)
    trained = model.fit(*coins)._trained
    own = tuple(forests[-1].folds[fold] for fold, forests in enumerate(found[0]))  # the last is the budget
    told = 1 - np.trace(trained.confusion) / trained.confusion.sum()
    assert told == pytest.approx(error_in(own))
    assert told > best_within(trained, 4).error + 0.02


@pytest.mark.filterwarnings("ignore:.*expected to be wrong:budgetforest.UnusualData")
def test_a_smaller_budget_is_estimated_beside_the_same_path(noise, monkeypatch):
    """Smoothing looks at neighbours: those past the budget are among them."""
    asked = []

    def spy(candidates, budgets, *given):
        asked.append({*budgets})
        return choices_without(candidates, budgets, *given)

    monkeypatch.setattr(training, "choices_without", spy)
    X, y = noise_rows()
    BudgetForestClassifier(1.5, max_trees=12, random_state=0).fit(X, y)
    assert {point.cost for point in noise.path_} <= asked[0]
    assert max(point.cost for point in noise.path_) > 1.5


@pytest.mark.filterwarnings("ignore:.*expected to be wrong:budgetforest.UnusualData")
def test_of_a_single_alpha_nothing_is_chosen_and_nothing_smoothed(coins):
    model = BudgetForestClassifier(4, method="paper", alpha=100, max_trees=20, random_state=0).fit(*coins)
    told = model._trained.estimates
    errors = [each.error for each in told]
    assert errors == pytest.approx([best_at(model._trained.candidates, each.budget).error for each in told])
    assert errors != sorted(errors, reverse=True)


def test_the_choice_of_a_fold_is_that_of_a_training():
    rng = np.random.default_rng(0)
    candidates = candidates_of(rng.random((20, 400)) < 0.3, np.linspace(1, 5, 20))
    settings = type("Settings", (), {"auto": True})
    at = choice_of(settings)(candidates, 400)
    assert at(3.0) == [p for p in careful_path(candidates, 400) if p.cost <= 3.0][-1]
    assert at(math.inf).error == min(c.points[0].error for c in candidates)
    assert at(0.1) is None


def test_a_verdict_counts_the_rows_that_tell_two_answers_apart():
    good = verdict_on(np.array([[50, 5], [5, 40]]), ["a", "b"], 0, 100)
    assert good.better is True
    assert good.error == pytest.approx(0.1)
    assert good.common_error == pytest.approx(0.45)
    assert str(good).startswith("Better than always answering 'a' (45.0% wrong): 10.0% of labels are wrong")
    few = verdict_on(np.array([[5, 1], [2, 2]]), ["a", "b"], 0, 10)
    assert few.better is None
    assert "Not shown to be better" in str(few)
    bad = verdict_on(np.array([[20, 80], [0, 5]]), ["a", "b"], 0, 105)
    assert bad.better is False
    assert str(bad).startswith("Worse")


def test_the_margin_is_that_of_a_difference_in_pairs():
    confusion = np.array([[50, 10, 5], [2, 20, 3], [4, 0, 6]])
    truth, label = (np.repeat(side.ravel(), confusion.ravel()) for side in np.indices((3, 3)))
    gain = (truth != 0).astype(float) - (truth != label)
    told = verdict_on(confusion, ["a", "b", "c"], 0, 100)
    assert told.common_error - told.error == pytest.approx(gain.mean())
    assert told.margin == pytest.approx(1.96 * gain.std() / 10 + 0.015, rel=1e-4)


def test_recall_and_precision_are_those_of_scikit_learn():
    from sklearn.metrics import confusion_matrix, precision_score, recall_score

    rng = np.random.default_rng(0)
    truth, label = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    found = by_class(confusion_matrix(truth, label), ["x", "y", "z"])
    assert [f.recall for f in found] == pytest.approx(recall_score(truth, label, average=None))
    assert [f.precision for f in found] == pytest.approx(precision_score(truth, label, average=None))
    assert math.isnan(by_class(np.array([[0, 0], [0, 3]]), ["x", "y"])[0].recall)


def test_a_smaller_budget_is_told_the_same_error_whatever_it_was_trained_for(noise):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(700, 6)), rng.integers(0, 2, 700)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        less = BudgetForestClassifier(2, max_trees=12, random_state=0).fit(X, y)
        at = noise.at_budget(2)
    assert less.path_ == at.path_
    assert less.summary().verdict.error == at.summary().verdict.error


def test_a_single_alpha_is_told_the_error_of_its_own_forest():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BudgetForestClassifier(
            3.5, method="paper", alpha=0, max_trees=20, validation_fraction=0.4, random_state=0
        ).fit(X, y)
    (candidate,) = model._trained.candidates
    own = [point.error for point in candidate.points if point.trees == model.n_trees_]
    assert model.summary().verdict.error == own[0]


def test_a_budget_has_its_own_estimate():
    found = [Estimate(budget, error, 0.0, 1.0) for budget, error in ((1.0, 0.3), (2.0, 0.2))]
    assert estimate_at(found, 2.0) is found[1]
    assert estimate_at(found, 1.9) is found[0]
    assert estimate_at(found, 0.9) is None
