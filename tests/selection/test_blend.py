"""Blends: the sum of their members, weights of least log loss, and how the path prefers them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine, make_classification

from budgetforest import BudgetForestClassifier
from budgetforest.data.holdout import some_of
from budgetforest.data.rows import Rows
from budgetforest.inference.predict import scores
from budgetforest.selection import settings as settings_module
from budgetforest.selection.blend import (
    WEIGHTS,
    Member,
    MemberScores,
    blended,
    scale_of,
    scores_of,
    weights_for,
)
from budgetforest.selection.candidates import Candidate, Point, Recipe
from budgetforest.selection.path import careful_path
from budgetforest.trees.forest import BELIEF, Voting, importances, join

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(scope="module")
def wine():
    """Rows, and a forest and boosted trees that know them."""
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=6, random_state=0).fit(X, y)
    context = model._trained.context
    members = [
        Member(model._trained.candidates[0].trees, context._replace(voting=Voting.SOFT)),
        Member(_boosted(X, y), context._replace(voting=Voting.SCORES, unit=1.0)),
    ]
    hashes = np.arange(len(y), dtype=np.uint64)
    return Rows(X, y.astype(np.int32), np.ones(len(y), np.int32), hashes), members


def _boosted(X, y):
    model = BudgetForestClassifier(max_trees=4, random_state=1).fit(X, y)
    blend = next(c for c in model._trained.candidates if c.recipe.cuts == "blend" and c.trees)
    return blend.trees


def said(rng, n=300, members=2, k=3):
    score = rng.normal(size=(n, members, k))
    score -= score.mean(axis=2, keepdims=True)
    label = rng.integers(k, size=n).astype(np.int32)
    score[np.arange(n), 0, label] += 1.0  # the first member knows something
    return MemberScores(score, label, np.ones(n, np.int32), rng.integers(2**60, size=n).astype(np.uint64))


def loss(found, weights):
    total = np.einsum("nmk,m->nk", found.score, weights)
    return np.log(np.exp(total).sum(axis=1)).mean() - total[np.arange(len(total)), found.label].mean()


def test_a_blend_scores_the_weighted_sum_of_its_members(wine):
    rows, members = wine
    weights = np.array([2.5, 0.75])
    blend = blended(members, weights)
    found = scores(join(blend, members[1].context), rows.X)
    asked = np.einsum("nmk,m->nk", scores_of(rows, members).score, weights)
    np.testing.assert_allclose(found, asked, atol=len(blend) / BELIEF)


def test_members_without_weight_are_left_out(wine):
    _, members = wine
    blend = blended(members, np.array([0.0, 1.0]))
    assert len(blend) == len(members[1].trees)
    assert blended(members, np.array([1.0, 1.0]))[0].counts.sum(axis=1) == pytest.approx(0, abs=3)


def test_a_forest_takes_means_and_boosted_trees_sums(wine):
    _, (forest, boosted) = wine
    assert scale_of(forest) == len(forest.trees) > 1
    assert scale_of(boosted) == 1


def test_importances_of_a_blend_are_shares_of_what_it_asks(wine):
    _, members = wine
    found = importances(join(blended(members, np.ones(2)), members[1].context))
    assert found.sum() == pytest.approx(1)
    assert (found >= -1e-9).all()


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_weights_have_less_log_loss_than_their_neighbours(seed):
    found = said(np.random.default_rng(seed))
    weights = weights_for([found], 1.0)
    assert (weights >= 0).all()
    assert (weights * WEIGHTS == np.rint(weights * WEIGHTS)).all()
    for member in range(2):
        for step in (-0.2, 0.2):
            other = weights.copy()
            other[member] = max(0.0, other[member] + step)
            assert loss(found, weights) <= loss(found, other) + 1e-3  # drawn to 1 a little


def test_a_member_that_knows_nothing_gets_almost_no_weight():
    found = said(np.random.default_rng(0), n=2_000)
    found.score[:, 1] = -found.score[:, 0]
    useful, misleading = weights_for([found], 1.0)
    assert useful - misleading == pytest.approx(1, abs=0.2)  # what was added to the first
    found.score[:, 1] = np.random.default_rng(1).normal(size=(2_000, 3))
    assert weights_for([found], 1.0)[1] < 0.05


def test_if_no_member_helps_they_are_added_up_as_they_are():
    found = said(np.random.default_rng(0), n=2_000)
    harmful = found._replace(score=-np.abs(found.score[:, :1]) * np.array([1.0, 0.5])[:, None])
    harmful.score[np.arange(2_000), :, found.label] -= 5
    assert weights_for([harmful], 1.0).tolist() == [1.0, 1.0]


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=15)
def test_weights_depend_neither_on_blocks_nor_on_the_order_of_rows(seed, blocks):
    rng = np.random.default_rng(seed)
    found = said(rng)
    order = rng.permutation(len(found.label))
    mixed = MemberScores._make(column[order] for column in found)
    cuts = np.sort(rng.integers(len(order), size=blocks - 1))
    parts = [MemberScores._make(part) for part in zip(*(np.split(c, cuts) for c in mixed), strict=True)]
    assert weights_for(parts, 1.0).tolist() == weights_for([found], 1.0).tolist()


def test_a_row_of_weight_two_counts_twice():
    found = said(np.random.default_rng(3))
    weight = np.random.default_rng(4).integers(1, 4, len(found.label)).astype(np.int32)
    twice = MemberScores._make(np.repeat(column, weight, axis=0) for column in found)
    assert weights_for([found._replace(weight=weight)], 1.0).tolist() == weights_for([twice], 1.0).tolist()
    halved = weights_for([found._replace(weight=2 * weight)], 0.5).tolist()
    assert halved == weights_for([found._replace(weight=weight)], 1.0).tolist()


def offer(cuts, *points):
    recipe = Recipe(features=3, cuts=cuts)
    return Candidate(recipe, [], [Point(recipe, 9, cost, error, 0.5) for cost, error in points], 1)


def test_within_the_noise_a_blend_is_taken_before_small_forests():
    blend, lucky = offer("blend", (2.0, 0.1003)), offer("best", (2.5, 0.1), (3.0, 0.09))
    path = careful_path([blend, lucky], 1_000)
    assert [(p.recipe.cuts, p.cost) for p in path] == [("blend", 2.0), ("best", 3.0)]
    assert [p.recipe.cuts for p in careful_path([lucky], 1_000)] == ["best", "best"]


def test_the_path_of_the_default_has_blends_that_explain_themselves():
    X, y = make_classification(900, 10, n_informative=6, random_state=0)
    model = BudgetForestClassifier(max_trees=10, random_state=0).fit(X, y)
    blends = [point for point in model.path_ if point.recipe.cuts == "blend"]
    assert blends
    assert str(blends[-1]).startswith(f"pool of {blends[-1].recipe.features}, blend")
    assert model.at_budget(blends[-1].cost).forest_.voting == Voting.SCORES


def test_at_most_so_many_validation_rows_measure_the_default(monkeypatch):
    monkeypatch.setattr(settings_module, "ENOUGH_MEASURED", 200)
    X, y = make_classification(2_000, 6, random_state=0)
    common = {"max_trees": 2, "random_state": 0}
    held = BudgetForestClassifier(**common).fit(X, y).training_
    assert held["validation_rows"] == pytest.approx(200, abs=2)
    assert held["rows"] == 2_000 - held["validation_rows"]  # the others are for training
    given_rows = (
        BudgetForestClassifier(**common).fit(X[:800], y[:800], validation=(X[800:], y[800:])).training_
    )
    assert given_rows["validation_rows"] == pytest.approx(200, abs=50)
    paper = BudgetForestClassifier(3, method="paper", alpha=0, **common)
    assert paper.fit(X[:800], y[:800], validation=(X[800:], y[800:])).training_["validation_rows"] == 1_200


def test_equal_rows_are_measured_together():
    hashes = np.repeat(np.random.default_rng(0).integers(2**63, size=500).astype(np.uint64), 2)
    rows = Rows(np.zeros((1000, 1)), np.zeros(1000, np.int32), np.ones(1000, np.int32), hashes)
    some = some_of(rows, 0.3)
    assert 200 < len(some.label) < 400
    assert (np.unique(some.hashes, return_counts=True)[1] == 2).all()
    assert some_of(rows, 1.0) is rows
