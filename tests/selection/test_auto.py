"""The best forest at every budget: probable exit, its bound, and the path over all methods."""

import asyncio
import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_breast_cancer, make_classification

from budgetforest import (
    BudgetForestClassifier,
    BudgetTooSmall,
    InvalidParameter,
    Need,
    UnusualData,
    acquire,
    step,
)
from budgetforest.data.costs import read_costs
from budgetforest.data.rows import Rows, totals_of
from budgetforest.data.validation import training_rows, validation_rows
from budgetforest.inference.predict import charge, labels, ladder
from budgetforest.selection import recipes
from budgetforest.selection.auto import (
    STEPS,
    Allowed,
    first_allowed,
    most_likely_share,
    n_pools,
    smaller_pool,
)
from budgetforest.selection.candidates import PLAIN, THRESHOLDS, Candidate, Point, Recipe, thresholds
from budgetforest.selection.crossfit import ENOUGH, Record, turns
from budgetforest.selection.path import careful_path, path_of, surest, within, without_hopeless
from budgetforest.selection.recipes import rate_for
from budgetforest.selection.settings import n_rows
from budgetforest.trees.forest import BELIEF, Answer
from budgetforest.trees.tree import next_node
from trees import labelled_rows

pytestmark = pytest.mark.usefixtures("quiet")

VOTING = st.sampled_from(["majority", "soft", "counts"])


def fitted(X, y, **parameters):
    common = {"method": "paper", "alpha": 0, "max_trees": 5, "random_state": 0}
    return BudgetForestClassifier(**common | parameters).fit(X, y)


def value_of(row, feature):
    return float(row[int(feature[1:])])


def told(decision):
    return decision.label, decision.spent, decision.acquired, decision.certain, decision.belief


# Probable exit ---------------------------------------------------------------------------------


# after the last feature two classes are level by belief, and one is ahead by votes
LEVEL = (
    np.array([[3, 1, 2, 2, 1, 0, 1, 3, 4, 1, 3, 4, 4, 1.0]]).T,
    np.array([0, 0, 6, 1, 3, 1, 5, 2, 9, 2, 8, 3, 7, 4]),
)


@example(LEVEL, "soft", 0.3)
@settings(max_examples=15)
@given(labelled_rows(missing=True, max_rows=15), VOTING, st.sampled_from([0.3, 0.5, 0.6, 0.75, 0.9, 1.0]))
def test_all_drivers_agree_on_probable_exit(data, voting, threshold):
    X, y = data
    model = fitted(X, y, voting=voting, costs=[1.0, 2.0, 0.5, 3.0, 1.0][: X.shape[1]])
    model.forest_ = forest = model.forest_._replace(threshold=threshold)
    found, costs, acquired = model.predict(X), model.acquisition_cost(X), model.acquired_features(X)
    bulk = model.predict_from(lambda feature, rows: [value_of(X[i], feature) for i in rows], range(len(X)))
    np.testing.assert_array_equal(bulk.labels, found)
    np.testing.assert_allclose(bulk.spent, costs)
    np.testing.assert_array_equal(bulk.acquired, acquired)
    for i, row in enumerate(X):

        async def source(feature, row=row):
            return value_of(row, feature)

        decision = model.predict_one(lambda f, row=row: value_of(row, f))
        assert decision.label == found[i]
        assert decision.spent == pytest.approx(costs[i])
        assert {f"x{j}" for j in np.flatnonzero(acquired[i])} == set(decision.acquired)
        assert decision.certain == bulk.certain[i]
        lost = np.isnan(row).any()  # no more may be asked then, though nothing is certain
        assert decision.certain or lost or max(decision.belief) >= threshold - 1e-6
        assert told(asyncio.run(model.predict_one_async(source))) == told(decision)
        known, paid = {}, []
        while isinstance(need := step(forest, known, paid), Need):
            known[need.feature] = value_of(row, need.feature)
            paid.append(need.feature)
        assert told(need) == told(decision)


@pytest.mark.parametrize("voting", ["majority", "soft"])
def test_a_belief_that_just_reaches_the_threshold_is_enough(voting):
    """The mean belief of four trees is an exact share: a threshold can be met to the last bit."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (60, 4)).astype(float)
    model = fitted(X, (X[:, 0] + X[:, 1] > X[:, 2]).astype(int), max_trees=4, voting=voting)
    forest, met = model.forest_, 0
    for i, row in enumerate(X[:20]):
        flow = acquire(forest)
        before = max(flow._state.belief)
        flow.send(value_of(row, flow.need.feature))
        reached = max(flow._state.belief)
        if flow.need is None or reached <= before:
            continue
        met += 1
        for more in (0, 1):
            model.forest_ = forest._replace(threshold=(reached + more) / (4 * BELIEF))
            assert model.forest_.enough == reached + more
            one = model.predict_one(lambda f, row=row: value_of(row, f))
            bulk = model.predict_from(lambda f, rows, row=row: [value_of(row, f)], [i])
            assert (one.spent > flow.spent) == bool(more)
            assert one.spent == bulk.spent[0] == charge(model.forest_, X[i : i + 1], Answer.LABEL).spent[0]
    assert met > 5


def test_thresholds_begin_where_no_leader_is_and_end_with_certainty():
    for k in (2, 3, 10):
        *beliefs, certain = thresholds(k)
        assert beliefs[0] == 1 / k
        assert beliefs[-1] < 1
        np.testing.assert_allclose(np.diff([*beliefs, 1.0]), (1 - 1 / k) / THRESHOLDS)
        assert certain == math.inf


@given(labelled_rows(missing=True), VOTING)
def test_one_pass_gives_the_exits_of_every_threshold(data, voting):
    X, y = data
    model = fitted(X, y, voting=voting)
    ends = thresholds(len(model.classes_))
    exits = ladder(model.forest_, X, ends)
    for at, threshold in enumerate(ends):
        forest = model.forest_._replace(threshold=threshold)
        np.testing.assert_array_equal(exits.labels[:, at], labels(forest, X))
        np.testing.assert_array_equal(exits.spent[:, at], charge(forest, X, Answer.LABEL).spent)
    assert (np.diff(exits.spent, axis=1) >= 0).all()


@given(labelled_rows(missing=True), VOTING)
def test_certain_exit_is_the_lossless_limit(data, voting):
    X, y = data
    model = fitted(X, y, voting=voting)
    exits = ladder(model.forest_, X, [math.inf])
    np.testing.assert_array_equal(exits.labels[:, 0], model.predict_proba(X).argmax(axis=1))


def test_belief_is_what_trees_expect_of_all_that_is_unknown():
    X, y = load_breast_cancer(return_X_y=True)
    forest = fitted(X, y, max_trees=7).forest_
    flow = acquire(forest)
    need, known = next(flow), {}
    for _ in range(3):
        known[need.feature] = value_of(X[5], need.feature)
        need = flow.send(known[need.feature])
    nodes = forest.nodes

    def expected(node):
        if not forest.open[node]:
            return nodes.counts[node] / nodes.counts[node].sum()
        if (name := f"x{nodes.feature[node]}") in known:
            return expected(next_node(nodes, node, known[name]))
        children = [int(nodes.left[node]), int(nodes.right[node])]
        return np.average(list(map(expected, children)), axis=0, weights=nodes.counts[children].sum(axis=1))

    mean = np.mean([expected(root) for root in forest.roots[:-1]], axis=0)
    # drawn to the base rate as far as trees may still move
    prior, at_roots = forest.prior / forest.prior.sum(), nodes.counts[forest.roots[:-1]]
    pull = prior - (at_roots / at_roots.sum(axis=1, keepdims=True)).mean(axis=0)
    left = sum(flow._state.scores.values()) / sum(acquire(forest)._state.scores.values())
    assert 0 < left < 1
    np.testing.assert_allclose(flow.decide().belief, mean + left * pull, atol=1e-4)


# The bound -------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.integers(1, 400), st.floats(0.001, 0.4))
def test_bound_is_that_of_clopper_and_pearson(found, more, risk):
    n = found + more
    bound = most_likely_share(found, n, risk)
    assert stats.binom.cdf(found, n, bound) == pytest.approx(risk, abs=1e-6)
    assert most_likely_share(n, n, risk) == 1.0


def test_thresholds_are_tested_from_certainty_downwards():
    full = np.zeros(1000, np.int32)
    few, many = full.copy(), full.copy()
    few[:2], many[:50] = 1, 1
    exits = np.column_stack([full, many, few, full])
    differ = (exits != exits[:, -1:]).sum(axis=0)
    assert first_allowed(differ, 1000, None) == 0
    assert first_allowed(differ, 1000, Allowed(0.01, 0.95, 1)) == 2  # beyond a failure nothing is tried
    assert first_allowed(differ, 1000, Allowed(0.01, 0.95, 10**6)) == 3
    assert first_allowed(differ, 1000, Allowed(0.0, 0.95, 1)) == 3
    assert first_allowed(differ, 1000, Allowed(0.1, 0.95, 1)) == 0


@pytest.mark.slow
def test_disagreement_with_the_full_forest_keeps_its_bound():
    """Over 200 draws of validation rows the chosen exit differs too often in at most 5 % of them."""
    X, y = make_classification(12_000, 12, n_informative=6, flip_y=0.1, random_state=0)
    model = fitted(X[:1000], y[:1000], alpha=4, max_trees=15)
    ends = thresholds(2)
    exits = ladder(model.forest_, X[1000:], ends).labels
    truth = (exits != exits[:, -1:]).mean(axis=0)
    draws = np.random.default_rng(0)
    broken = used = 0
    for _ in range(200):
        rows = draws.integers(len(exits), size=600)
        differ = (exits[rows] != exits[rows, -1:]).sum(axis=0)
        first = first_allowed(differ, len(exits[rows]), Allowed(0.02, 0.95, 1))
        broken += truth[first] > 0.02
        used += first < len(ends) - 1
    assert broken <= 0.05 * 200
    assert used > 150  # and the bound is of use


# The path --------------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1)), min_size=1, max_size=40)


@given(POINTS)
def test_the_path_is_the_lower_envelope(points):
    recipe = Recipe(alpha=0.0)
    offer = Candidate(recipe, [], [Point(recipe, 1, *point) for point in points], len(points) + 1)
    path = path_of([offer], math.inf)
    assert all(a.cost < b.cost and a.error > b.error for a, b in pairwise(path))
    for point in offer.points:
        assert any(p.cost <= point.cost and p.error <= point.error for p in path)


def test_a_smaller_budget_ends_growing_after_as_many_misses():
    points = [Point(PLAIN, at, cost, 0.1) for at, cost in enumerate([1.0, 5.0, 1.0, 5.0, 5.0, 1.0], 1)]
    for patience, trees in ((1, [1]), (2, [1, 3]), (3, [1, 3, 6])):
        assert [p.trees for p in within(Candidate(PLAIN, [], points, patience), 2.0)] == trees


def test_of_equals_the_careful_path_takes_the_dearest():
    recipe = Recipe(features=3)
    for errors in ([0.2, 0.2, 0.2], [0.2, 0.203, 0.201]):
        points = [Point(recipe, 1, cost, error) for cost, error in zip([1.0, 2.0, 3.0], errors, strict=True)]
        assert careful_path([Candidate(recipe, [], points, 1)], 1_000) == points


@given(POINTS, st.integers(10, 5000))
def test_careful_path_is_near_the_best_at_every_budget(points, n_rows):
    recipe = Recipe(features=3)
    offer = Candidate(recipe, [], [Point(recipe, 1, *point, 0.5) for point in points], 1)
    path = careful_path([offer], n_rows)
    assert [p.cost for p in path] == sorted({p.cost for p in path})
    for cost in {p.cost for p in offer.points}:
        best = min(p.error for p in offer.points if p.cost <= cost)
        taken = [p.error for p in path if p.cost <= cost][-1]
        assert taken <= best + math.sqrt(best * (1 - best) / n_rows) / 3


@given(st.lists(POINTS, min_size=1, max_size=6), st.integers(10, 5000))
def test_trees_that_are_let_go_are_on_no_path(drawn, n_rows):
    offers, kept = [], []
    for size, points in enumerate(drawn):
        recipe = Recipe(features=size)
        exits = [Point(recipe, 1, *point, 0.5) for point in points]
        offer = Candidate(recipe, ["a tree"], [*exits, Point(recipe, 1, 60.0, 0.5)], 1)
        offers.append(offer)
        kept = without_hopeless([*kept, offer], n_rows)
    there = {offer.recipe for offer in kept if offer.trees}
    path = careful_path(offers, n_rows)
    assert path == careful_path(kept, n_rows)
    assert {point.recipe for point in [*path, surest(offers)]} <= there


def pools_from(saved, costs):
    """Every pool, by backward elimination with the same savings."""
    pool, found = np.ones(len(saved), bool), []
    while pool.any():
        found.append(np.flatnonzero(pool).tolist())
        pool = smaller_pool(pool, np.where(pool, saved, 0.0), costs)
    return found


def test_pools_are_nested_down_to_one_feature():
    found = pools_from(np.arange(50.0), read_costs([0] + [1] * 49, None, [f"x{j}" for j in range(50)]))
    assert all(set(less) < set(more) for more, less in pairwise(found))
    assert len(found[0]) == 50
    assert found[-1] == [0]  # free, though it saves least
    assert len(found) == n_pools(50)


def test_the_columns_of_a_sensor_leave_together():
    names = ["a1", "lamp", "a2", "b1", "b2", "a3"]
    costs = read_costs([4, 1, 4, 9, 9, 4], {n: n[0] for n in names if n != "lamp"}, names)
    assert costs.bundle.tolist() == [0, 1, 0, 2, 2, 0]
    a, lamp, b = [0, 2, 5], [1], [3, 4]
    saved = np.array([1.0, 0.2, 1.0, 1.4, 0.0, 1.0])  # per root of its price: 3 / 2, 0.2 / 1, 1.4 / 3
    assert pools_from(saved, costs) == [sorted(a + lamp + b), sorted(a + b), a]
    assert costs.prices(np.isin(np.arange(6), a)).tolist() == [4, 0, 0]


def test_a_test_of_a_panel_is_worth_what_it_saves_at_the_reduced_price():
    prices = pd.DataFrame(
        {
            "feature": ["t3", "t4", "age", "free"],
            "cost": [11.0, 14.0, 2.0, 0.0],
            "group": ["blood", "blood", None, None],
            "discount_cost": [1.0, 4.0, None, None],
        }
    )
    costs = read_costs(prices, None, list(prices.feature))
    assert costs.bundle.tolist() == [0, 1, 2, 3]
    assert costs.prices(np.array([True, True, True, False])).tolist() == [15, 2, 0]
    assert costs.prices(np.array([False, True, False, False])).tolist() == [14, 0, 0]
    # t4 is worth 1 / 2 beside t3, which is worth as much as its panel, 4 / sqrt(15); age 0.8 / sqrt(2)
    assert pools_from(np.array([3.0, 1.0, 0.8, 0.0]), costs) == [[0, 1, 2, 3], [0, 2, 3], [0, 3], [3]]


def test_one_sensor_is_as_good_as_one_feature_where_no_more_is_affordable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 9))
    y = (X[:, 3] * X[:, 4] > 0).astype(int) ^ (rng.random(900) < 0.05)  # only both columns tell
    model = BudgetForestClassifier(
        2, costs=[2] * 9, groups=[0, 0, 0, 1, 1, 1, 2, 2, 2], max_trees=20, refit=False, random_state=0
    ).fit(X[:600], y[:600], validation=(X[600:], y[600:]))
    best = model.path_[-1]
    acquired = set(np.flatnonzero(model.acquired_features(X[600:]).any(axis=0)).tolist())
    assert {3, 4} <= acquired <= {3, 4, 5}  # one sensor
    assert best.cost == pytest.approx(2)
    assert best.error < 0.2


def test_what_a_pool_of_sensors_costs_has_a_rate():
    costs = read_costs([2, 2, 3], ["a", "a", None], ["x", "y", "z"])
    settings, train = SimpleNamespace(costs=costs, rate=None), SimpleNamespace(counts=np.array([1, 1]))
    assert rate_for(np.ones(3, bool), settings, train) == pytest.approx(math.log(2) / (2 * 5))
    assert rate_for(np.array([True, True, False]), settings, train) == 0  # one price, nothing to weigh


# The estimator ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(900, 12, n_informative=6, n_classes=3, flip_y=0.05, random_state=3)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.fixture(scope="module")
def model(rows):
    return BudgetForestClassifier(8, max_trees=20, refit=False, random_state=0).fit(
        *rows[:2], validation=rows[2:]
    )


def test_mean_validation_cost_never_exceeds_budget(model, rows):
    for budget in (1, 2, 4, 8):
        at = model.at_budget(budget)
        assert at.acquisition_cost(rows[2]).mean() <= budget
        point = at.path_[-1]
        assert at.acquisition_cost(rows[2]).mean() == pytest.approx(point.cost)


def test_errors_of_the_path_are_those_of_many_validation_rows(rows):
    X, y = np.tile(rows[2], (4, 1)), np.tile(rows[3], 4)
    model = BudgetForestClassifier(8, max_trees=10, refit=False, random_state=0).fit(
        *rows[:2], validation=(X, y)
    )
    for budget in (1, 2, 4, 8):
        at = model.at_budget(budget)
        chosen = [point for point in model._trained.path if point.cost <= budget][-1]
        assert 1 - at.score(X, y) == pytest.approx(chosen.error)


def test_training_rows_take_their_turn_once_each():
    rng = np.random.default_rng(1)
    hashes = rng.permutation(np.repeat(np.arange(70, dtype=np.uint64), 2))
    many = Rows(hashes[:, None].astype(float), (hashes % 3).astype(np.int32), np.ones(140, np.int64), hashes)
    few = many.take(np.arange(50, dtype=np.int32))
    parts = list(turns(many, few, SimpleNamespace(unit=1.0, n_classes=3)))
    assert len(parts) == 3
    assert sorted(np.concatenate([judged.hashes for _, judged in parts])) == sorted(hashes)
    for rest, judged in parts:
        assert len(rest.label) + len(judged.label) == 190
        assert not set(judged.hashes) & set(rest.hashes[: 140 - len(judged.label)])
        assert np.ptp(np.bincount(judged.label)) <= 2
    assert not list(turns(many, many, SimpleNamespace(unit=ENOUGH / 140, n_classes=3)))


def test_errors_of_forests_grown_alike_are_added():
    offer = Candidate(
        Recipe(features=3, rate=0.2), [], [judged(10, Recipe(features=3, rate=0.2), 4, 1.0, 0.5, 0.7)], 1
    )
    other = judged(30, Recipe(features=3, rate=0.3), 9, 1.2, 0.1, 0.7)
    record = Record()
    record.add(0, [Candidate(other.recipe, [], [other], 1)])
    record.add(0, [Candidate(PLAIN, [], [judged(30, PLAIN, 9, 2.0, 0.9, 0.7)], 1)])
    (found,) = record.corrected(0, [offer])
    assert found.points == [offer.points[0]._replace(error=(5 + 3) / 40, folds=((8, 40),))]


def test_weights_of_blends_grown_alike_are_averaged():
    record = Record()
    blends = [Recipe(features=3, cuts="blend", weights=weights) for weights in ((1.0, 0.5), (0.0, 2.0))]
    for recipe in blends:
        record.add(1, [Candidate(recipe, [], [judged(30, recipe, 9, 1.2, 0.1, 0.7)], 1)])
    assert record.weights_with(1, np.array([0.5, 0.5])).tolist() == [0.5, 1.0]
    assert record.weights_with(0, np.array([0.5, 0.25])).tolist() == [
        0.5,
        0.25,
    ]  # no other blend of this pool


def judged(rows, recipe, trees, cost, error, threshold):
    """A point whose error is that of so many rows, all in one fold."""
    return Point(recipe, trees, cost, error, threshold, folds=((error * rows, rows),))


def test_few_validation_rows_are_judged_beside_all_others(rows):
    X, y = rows[0][:150], rows[1][:150]
    model = BudgetForestClassifier(12, max_trees=20, random_state=0)
    model.fit(X[:100], y[:100], validation=(X[100:], y[100:]))
    wrong = np.array([point.error for point in model._trained.path]) * 150
    np.testing.assert_allclose(wrong, np.rint(wrong))
    assert (np.rint(wrong) % 3).any()  # so not of the 50 validation rows alone


def test_a_smaller_budget_is_as_if_trained_for_it(model, rows):
    less = BudgetForestClassifier(3, max_trees=20, refit=False, random_state=0)
    less.fit(*rows[:2], validation=rows[2:])
    at = model.at_budget(3)
    assert less.path_ == at.path_
    np.testing.assert_array_equal(less.predict(rows[2]), at.predict(rows[2]))


def test_threads_change_nothing(model, rows):
    other = BudgetForestClassifier(8, max_trees=20, refit=False, random_state=0, n_jobs=3)
    other.fit(*rows[:2], validation=rows[2:])
    assert other.path_ == model.path_
    for one, two in zip(model.forest_[:6], other.forest_[:6], strict=True):
        for a, b in zip(*(part if isinstance(part, tuple) else (part,) for part in (one, two)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_best_found_is_better_than_the_paper(model, rows):
    paper = BudgetForestClassifier(8, method="paper", max_trees=20, random_state=0)
    paper.fit(*rows[:2], validation=rows[2:])
    for budget in (2, 4, 8):
        assert model.at_budget(budget).path_[-1].error <= paper.at_budget(budget).path_[-1].error + 0.02


def test_every_point_says_what_it_is(model):
    assert "pool of" in str(model.path_[-1])
    assert "trees" in str(model.path_[-1])
    assert math.isnan(model.alpha_)


def test_boosting_goes_on_while_it_helps(monkeypatch):
    grow, rounds = recipes.while_better, []
    monkeypatch.setattr(recipes, "while_better", lambda *given: rounds.append(grow(*given)) or rounds[-1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = (np.sin(3 * X).sum(axis=1) > 0).astype(int)
    BudgetForestClassifier(6, max_trees=4, random_state=0).fit(X, y)
    sizes = {len(trees) for trees in rounds}
    assert {4, 12} < sizes <= {4, 8, 12, 16, 20}


def test_max_disagreement_of_zero_is_certain_exit(rows):
    sure = BudgetForestClassifier(8, max_trees=10, max_disagreement=0, random_state=0)
    sure.fit(*rows[:2], validation=rows[2:])
    assert {point.threshold for point in sure.path_} == {math.inf}
    np.testing.assert_array_equal(sure.predict(rows[2]), sure.predict_proba(rows[2]).argmax(axis=1))


TRAININGS = 200 if "FULL" in os.environ else 3


def test_disagreement_of_whole_trainings_keeps_its_bound():
    """As above, from the rows to the chosen forest: pools and boosting look at validation rows, too."""
    X, y = make_classification(12_000, 6, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    draws = np.random.default_rng(0)
    broken = used = 0
    for seed in range(TRAININGS):
        taken = draws.permutation(4_000)[:700]
        held = X[taken[300:]], y[taken[300:]]
        model = BudgetForestClassifier(4, max_trees=8, max_disagreement=0.05, random_state=seed)
        model = model.fit(X[taken[:300]], y[taken[:300]], validation=held)
        exits = ladder(model.forest_, X[4_000:], [model.forest_.threshold, math.inf]).labels
        broken += (exits[:, 0] != exits[:, 1]).mean() > 0.05
        used += model.forest_.threshold < math.inf
    assert broken <= 0.05 * TRAININGS
    assert used > TRAININGS / 2


def test_a_bound_that_cannot_be_shown_on_few_rows_is_pointed_out(rows):
    X, y, *held = rows
    strict = BudgetForestClassifier(8, max_trees=3, max_disagreement=0.01, random_state=0)
    with pytest.warns(UnusualData, match=r"max_disagreement=0.01 .* on 300 validation rows, it takes 652:"):
        strict.fit(X, y, validation=held)
    assert {point.threshold for point in strict.path_} == {math.inf}


def test_rate_and_features_tried_are_parameters(rows):
    X, y, *held = rows
    costly = BudgetForestClassifier(12, max_trees=4, rate=0.02, random_state=0).fit(X, y, validation=held)
    rates = {p.recipe.rate for p in costly.path_ if p.recipe.rate}
    assert rates <= {0.02, 0.005}  # that of gentle boosting is a quarter
    assert rates
    free = BudgetForestClassifier(12, max_trees=4, rate=0, random_state=0).fit(X, y, validation=held)
    assert not any(point.recipe.rate for point in free.path_)
    whole = BudgetForestClassifier(12, max_trees=4, max_features=1.0, random_state=0).fit(
        X, y, validation=held
    )
    some = BudgetForestClassifier(12, max_trees=4, max_features=0.1, random_state=0).fit(
        X, y, validation=held
    )
    assert whole.path_ != some.path_


@pytest.mark.parametrize(
    "wrong",
    [{"rate": -1}, {"rate": math.nan}, {"max_features": 0}, {"max_features": 3}, {"max_features": "sqrt"}],
)
def test_what_cannot_be_a_rate_or_a_share_is_refused(wrong, rows):
    (name,) = wrong
    with pytest.raises(InvalidParameter, match=name):
        BudgetForestClassifier(3, **wrong).fit(*rows[:2])


def test_parameters_without_effect_on_the_papers_method_are_pointed_out(rows):
    with pytest.warns(
        UnusualData, match="max_disagreement=0.1, max_features=0.5: without effect on method='paper'"
    ):
        fitted(*rows[:2], max_disagreement=0.1, max_features=0.5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"confidence": 0.9}, "^confidence=0.9: without effect unless max_disagreement is given, above 0$"),
        ({"confidence": 0.9, "max_disagreement": 0}, "^confidence=0.9: without effect unless"),
        (
            {"max_disagreement": 0.2, "answer": "proba"},
            "^max_disagreement=0.2: without effect on answer='proba'; take answer='label'$",
        ),
    ],
)
def test_parameters_of_exits_that_no_row_takes_are_pointed_out(rows, parameters, message):
    few = slice(0, 120)
    with pytest.warns(UnusualData) as told:
        BudgetForestClassifier(4, max_trees=2, random_state=0, **parameters).fit(rows[0][few], rows[1][few])
    assert any(re.search(message, str(warning.message)) for warning in told)


def test_confidence_in_a_disagreement_is_silent(rows, recwarn):
    BudgetForestClassifier(4, max_trees=2, confidence=0.5, max_disagreement=0.3).fit(*rows[:2])
    assert not [w for w in recwarn if "without effect" in str(w.message)]


def test_progress_is_one_bar_over_all_pools(rows, capsys):
    few = slice(0, 120)
    BudgetForestClassifier(8, max_trees=2, random_state=0, verbose=1).fit(rows[0][few], rows[1][few])
    shown = capsys.readouterr().err
    n = STEPS * 3 * n_pools(12)  # the training rows take two turns before
    assert f"{n}/{n}" in shown
    assert shown.count("steps") == 1


def test_without_a_budget_nothing_exits_before_it_is_certain(rows):
    full = BudgetForestClassifier(max_trees=10, random_state=0).fit(*rows[:2])
    assert full.forest_.threshold == math.inf
    assert full.at_budget(3).acquisition_cost(rows[2]).mean() < 5


def test_scores_pay_for_every_tree(rows):
    scored = BudgetForestClassifier(6, answer="proba", max_trees=10, random_state=0)
    scored.fit(*rows[:2], validation=rows[2:])
    assert scored.forest_.threshold == math.inf
    assert scored.acquisition_cost(rows[2]).mean() <= 6


def test_scores_are_chosen_by_their_brier_score():
    X, y = make_classification(900, 8, n_informative=5, n_classes=3, random_state=0)
    scored = BudgetForestClassifier(6, answer="proba", max_trees=8, refit=False, random_state=0)
    scored.fit(X[400:], y[400:], validation=(X[:400], y[:400]))
    assert len(scored.path_) > 2
    for point in scored._trained.path[1:]:  # the first costs nothing
        share = scored.at_budget(point.cost).predict_proba(X[:400])
        assert point.error == pytest.approx(np.square(share - np.eye(3)[y[:400]]).sum(axis=1).mean() / 2)


def test_missing_nominal_and_panels_work(rows):
    X, y = rows[:2]
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    frame.iloc[::7, 0] = np.nan
    frame["f1"] = pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))
    prices = pd.DataFrame(
        {
            "feature": frame.columns,
            "cost": [0, 1, 5, 2, 8, 1, 1, 3, 1, 1, 40, 1],
            "group": ["", "", "blood", "blood", "blood", *[""] * 7],
            "discount_cost": [np.nan, np.nan, 2, 1, 3, *[np.nan] * 7],
        }
    )
    model = BudgetForestClassifier(6, costs=prices, max_trees=10, random_state=0).fit(frame, y)
    records = frame.to_dict("records")
    spent = model.acquisition_cost(frame)
    for i in range(0, 60, 7):
        decision = model.predict_one(records[i].__getitem__)
        assert decision.spent == pytest.approx(spent[i])
        assert decision.label == model.predict(frame.iloc[i : i + 1])[0]


def test_skewed_prices_do_not_stop_it(rows):
    X, y = rows[:2]
    prices = [1, 2, 4, 8, 16, 32, 64, 100, 3, 5, 7, 9]
    model = BudgetForestClassifier(60, costs=prices, max_trees=20, random_state=0).fit(X, y)
    error = 1 - model.score(rows[2], rows[3])
    assert error < 0.75 * np.mean(rows[3] != np.bincount(y).argmax())


def test_too_small_a_budget_says_so(rows):
    with pytest.warns(BudgetTooSmall, match="the cheapest costs"):
        model = BudgetForestClassifier(0.001, max_trees=5, random_state=0).fit(*rows[:2])
    assert model.acquisition_cost(rows[2]).sum() == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "best"}, "method='best' is unknown; take 'auto' or 'paper'"),
        ({"max_disagreement": 1.5}, "max_disagreement is 1.5"),
        ({"max_disagreement": math.nan}, "max_disagreement is nan"),
        ({"confidence": 1}, "confidence is 1; it must lie between 0 and 1"),
    ],
)
def test_bad_parameters_are_named(rows, parameters, message):
    with pytest.raises(InvalidParameter, match=message):
        BudgetForestClassifier(**parameters).fit(*rows[:2])


def test_parameters_of_the_paper_are_pointed_out(rows):
    idle = {"alpha": 3, "splitter": "exact", "bootstrap": False}
    with pytest.warns(
        UnusualData, match="alpha=3, splitter='exact', bootstrap=False: without effect on method='auto'"
    ):
        model = BudgetForestClassifier(4, max_trees=2, random_state=0, **idle).fit(*rows[:2])
    plain = BudgetForestClassifier(4, max_trees=2, random_state=0).fit(*rows[:2])
    assert model.path_ == plain.path_


def test_weights_that_are_not_whole_are_counted(rows):
    weight = np.random.default_rng(0).random(600) + 0.5
    model = BudgetForestClassifier(6, max_trees=8, random_state=0)
    model.fit(*rows[:2], sample_weight=weight)
    assert model.score(rows[2], rows[3]) > 0.5
    assert model.forest_.nodes.counts[0].sum() * model.forest_.unit < 700


def test_pool_of_threads_is_not_needed():
    X, y = load_breast_cancer(return_X_y=True)
    forest = fitted(X, y).forest_._replace(threshold=0.9)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(labels(forest, X, pool), labels(forest, X))


def test_features_that_are_all_free_are_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = BudgetForestClassifier(1, costs=[0, 0, 0], max_trees=5, random_state=0).fit(X, X[:, 0] > 0)
    assert model.score(X, X[:, 0] > 0) > 0.9
    assert not model.acquisition_cost(X).any()


def test_a_forest_that_asks_for_nothing_has_not_the_error_of_those_that_ask():
    """A threshold next to the prior lets one training ask and another not: only alike ones share an error."""
    recipe = Recipe(features=1)

    def offer(*points):
        return [Candidate(recipe, [], [judged(100, recipe, 1, *point) for point in points], 1)]

    record = Record()
    record.add(0, offer((2.0, 0.1, 0.5), (2.0, 0.1, 0.9)))
    idle, asking = record.corrected(0, offer((0.0, 0.5, 0.5), (2.1, 0.3, 0.9)))[0].points
    assert (idle.cost, idle.error) == (0.0, 0.5)
    assert asking.cost == 2.1
    assert asking.error == pytest.approx(0.2)


@pytest.mark.parametrize("times", [1.5, 5.0])
def test_a_lucky_exit_has_the_error_of_those_that_cost_no_more(times):
    """Its threshold costs others so many times as much: what they get for its price counts as well."""
    recipe = Recipe(features=1)

    def offer(rows, *points):
        return [Candidate(recipe, [], [judged(rows, recipe, 1, *point) for point in points], 1)]

    record = Record()
    record.add(0, offer(90, (0.0, 0.5, 0.5), (0.9, 0.4, 0.6), (times, 0.1, 0.7)))
    (lucky,) = record.corrected(0, offer(10, (1.0, 0.1, 0.7)))[0].points
    assert lucky.error == pytest.approx((1 + 36) / 100)


def test_rows_of_weight_two_disagree_twice(rows):
    """``max_disagreement`` counts a row of weight 2 as the row twice, as all else does."""
    X, y = rows[0][:700], rows[1][:700]
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    common = {"max_disagreement": 0.05, "confidence": 0.8, "max_trees": 8, "random_state": 3}
    weighed = BudgetForestClassifier(3, **common).fit(X, y, sample_weight=weight)
    again = BudgetForestClassifier(3, **common).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for one, other in zip(weighed.path_, again.path_, strict=True):  # 3 / n rounds otherwise than 3 * (1 / n)
        assert one._replace(cost=0) == other._replace(cost=0)
        assert one.cost == pytest.approx(other.cost, rel=1e-15)
    assert any(point.threshold < math.inf for point in weighed.path_)


def test_validation_rows_of_ones_own_count_as_rows_whatever_training_weighs(rows):
    """Training weights that are not whole are counted in small units; so are validation rows then."""
    X, y = rows[0], rows[1]
    for weight in (None, np.full(len(y), 3.0), np.full(len(y), 0.7)):
        model = BudgetForestClassifier()
        intake = training_rows(model, X, y, weight)
        own = totals_of(validation_rows(model, rows[2:], intake), 3)
        assert n_rows(own, SimpleNamespace(unit=intake.unit)) == len(rows[3])
