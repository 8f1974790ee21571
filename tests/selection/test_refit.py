"""Refit: the chosen forests grown again on all rows, at exits where they cost as much."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine

from budgetforest import BudgetForestClassifier, InvalidParameter, load, save
from budgetforest.data.rows import Rows, joined
from budgetforest.data.table import Picked
from budgetforest.selection import recipes
from budgetforest.selection.candidates import Point, Recipe
from budgetforest.selection.estimate import Estimate, interval
from budgetforest.selection.refit import NEAR, foreseen, learnt, nearest

pytestmark = pytest.mark.usefixtures("quiet")

ROWS = load_breast_cancer(return_X_y=True)


def fitted(**parameters):
    return BudgetForestClassifier(max_trees=20, random_state=0, n_jobs=1, **parameters).fit(*ROWS)


@pytest.fixture(scope="module")
def pair():
    """One training, with its forests as they were measured and grown again."""
    return fitted(refit=False), fitted()


def test_cost_stays_that_measured_and_the_error_is_told_a_little_lower(pair):
    measured, again = pair
    told = {point.cost: point for point in measured.path_}
    assert len(again.path_) > len(told) / 2  # thresholds that differed may be the same now
    held_out = again._trained.summary["validation_rows"]
    share = learnt(len(ROWS[0]) - held_out, len(ROWS[0]))
    assert 0.95 < share < 1
    for point in again.path_:
        before = told[point.cost]
        assert point.trees == before.trees
        assert point.error == pytest.approx(before.error * share if point.recipe.refit else before.error)
        assert point.low < before.low < before.high
        assert point.low <= point.error <= point.high
    errors = [point.error for point in again.path_]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(("many", "least"), [(450, recipes.LEAST_ROWS), (300, 1)])
def test_leaves_are_as_small_as_in_the_measured_forest(many, least, monkeypatch):
    """398 rows train, 569 grow the forests again: the former say how small a leaf may be."""
    monkeypatch.setattr(recipes, "MANY_ROWS", many)
    for model in (fitted(refit=False), fitted()):
        found = [
            candidate
            for candidate in model._trained.candidates
            if candidate.recipe.cuts == "blend" and candidate.recipe.weights[0] and candidate.trees
        ]
        assert found
        leaves = [tree.weight[tree.feature < 0].min() for each in found for tree in each.trees[:20]]
        assert min(leaves) == least


def test_the_error_told_falls_only_where_a_forest_was_grown_again():
    grown = Recipe(cuts="blend", refit=True)
    path = [
        Point(grown._replace(refit=refit), 9, cost, 0.0)
        for cost, refit in ((1.0, False), (2.0, True), (3.0, False))
    ]
    before = [
        Estimate(budget, error, 0.0, 1.0)
        for budget, error in ((1.0, 0.3), (2.0, 0.2), (3.0, 0.19), (math.inf, 0.1))
    ]
    after = foreseen(before, path, path[1], 0.9, 400)
    assert [each.budget for each in after] == [1.0, 2.0, 3.0, math.inf]
    # at a budget of 3 the measured forest stayed: it is told no worse than one that costs less
    assert [each.error for each in after] == pytest.approx([0.3, 0.18, 0.18, 0.09])
    assert after[1][2:] == pytest.approx(interval(0.18, 400))


def test_training_rows_pay_as_much_as_before(pair):
    for point in pair[1].path_[1:]:
        before, after = (model.at_budget(point.cost) for model in pair)
        paid = before.acquisition_cost(ROWS[0]).mean()
        assert after.acquisition_cost(ROWS[0]).mean() == pytest.approx(paid, rel=0.15)


def test_forests_know_the_validation_rows(pair):
    measured, again = pair
    before = {c.recipe: c.trees for c in measured._trained.candidates if c.trees}
    grown = {c.recipe: c.trees for c in again._trained.candidates if c.recipe.refit}
    # where no exit costs as much, the measured forest stays
    assert len(before) / 2 < len(grown) <= len(before)
    n, held_out = len(ROWS[0]), again._trained.summary["validation_rows"]
    for recipe, trees in grown.items():
        old = before[recipe._replace(refit=False)]
        assert len(trees) == len(old)
        if recipe.cuts == "blend":
            assert (old[0].weight[0], trees[0].weight[0]) == (n - held_out, n)


def test_a_smaller_budget_is_as_if_trained_for_it():
    whole, part = fitted(), fitted(budget=2)
    assert whole.at_budget(2).path_ == part.path_
    for one, other in zip(whole.at_budget(2).forest_.nodes, part.forest_.nodes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_new_rows_cost_what_was_measured():
    X, y = ROWS
    ratios = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        fit, new = order[:380], order[380:]
        model = BudgetForestClassifier(max_trees=20, random_state=seed, n_jobs=1).fit(X[fit], y[fit])
        for budget in (2, 4, 8):
            at = model.at_budget(budget)
            ratios.append(at.acquisition_cost(X[new]).mean() / at.path_[-1].cost)
    assert 0.9 < np.mean(ratios) < 1.1


def test_without_effect_where_disagreement_is_bounded():
    one, other = fitted(max_disagreement=0.2), fitted(max_disagreement=0.2, refit=False)
    assert one.path_ == other.path_
    np.testing.assert_array_equal(one.forest_.nodes.threshold, other.forest_.nodes.threshold)


def test_files_keep_the_weights_of_a_blend(pair, tmp_path):
    model = pair[1]
    save(model, tmp_path / "m.safetensors")
    kept = load(tmp_path / "m.safetensors")._trained.candidates
    assert [c.recipe for c in kept] == [c.recipe for c in model._trained.candidates]
    assert any(sum(c.recipe.weights) > 0 for c in kept)


def test_a_flag_must_be_a_flag():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(InvalidParameter, match="refit is 'no'; it must be True or False"):
        BudgetForestClassifier(refit="no").fit(X, y)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.floats(0, 100))
def test_the_threshold_that_costs_most_nearly_as_much(costs, aim):
    costs = sorted(costs)
    thresholds = [*np.linspace(0.5, 0.9, len(costs) - 1), math.inf]
    found = nearest(aim, costs, thresholds)
    off = [abs(cost - aim) for cost in costs]
    if min(off) > NEAR * aim:
        assert found is None
    else:
        assert abs(costs[thresholds.index(found)] - aim) == min(off)
        assert all(each > min(off) for each, t in zip(off, thresholds, strict=True) if t > found)


def test_all_rows_of_two_parts():
    matrix = np.arange(12.0).reshape(6, 2)
    hashes = np.arange(6, dtype=np.uint64)
    whole = Rows(matrix, np.arange(6, dtype=np.int32), np.ones(6, np.int32), hashes)
    first, last = whole.pick(np.array([0, 2])), whole.pick(np.array([1, 5]))
    both = joined(first, last)
    assert isinstance(both.X, Picked)
    np.testing.assert_array_equal(both.X[:], matrix[[0, 2, 1, 5]])
    np.testing.assert_array_equal(both.label, [0, 2, 1, 5])
    other = last._replace(X=last.X[:])
    np.testing.assert_array_equal(joined(first, other).X, matrix[[0, 2, 1, 5]])


def test_a_checkpoint_serves_both(pair, tmp_path):
    kept = [
        BudgetForestClassifier(max_trees=20, random_state=0, n_jobs=1, refit=refit).fit(
            *ROWS, checkpoint=tmp_path
        )
        for refit in (False, True)
    ]
    # what was grown again has files of its own; the search is found there
    names = [path.name for path in tmp_path.iterdir()]
    assert any(name.startswith("again") for name in names)
    for model, alone in zip(kept, pair, strict=True):
        assert model.path_ == alone.path_
        np.testing.assert_array_equal(model.forest_.nodes.threshold, alone.forest_.nodes.threshold)
