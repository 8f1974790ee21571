"""ASTC keeps the promises of its publication: greedy R^2, a budget per path, features paid once."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification

from benchmarks.baselines.astc import ASTC, Path, halving_threshold, moments_of, select
from budgetforest.data.costs import read_costs


@pytest.fixture
def rows():
    """Correlated features, three classes, prices from 0 to 3."""
    X, y = make_classification(
        600, 12, n_informative=6, n_redundant=2, n_classes=3, flip_y=0.1, random_state=3
    )
    return X, y, np.random.default_rng(3).uniform(0, 3, 12).round(1)


def one_hot(y):
    return (y[:, None] == np.unique(y)).astype(float)


def squared_loss(model, X, y):
    return ((model.class_scores(X) - one_hot(y)) ** 2).sum()


def nodes_of(node):
    return [node] + [below for child in node.children for below in nodes_of(child)]


def choose(X, y, costs, budget, ridge=0.0):
    names = [f"x{j}" for j in range(X.shape[1])]
    return select(moments_of(X, one_hot(y), ridge), read_costs(costs, None, names), Path(), budget)


def explained(X, y, features, ridge=0.0):
    """R^2 by a solver that knows nothing of the greedy one, the ridge as extra rows."""
    Y, A = one_hot(y) - one_hot(y).mean(axis=0), X[:, features] - X[:, features].mean(axis=0)
    extra = np.sqrt(ridge * len(X)) * np.eye(len(features))
    A, B = np.vstack([A, extra]), np.vstack([Y, np.zeros((len(features), Y.shape[1]))])
    return 1 - ((B - A @ np.linalg.lstsq(A, B, rcond=None)[0]) ** 2).sum() / (Y**2).sum()


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_r2_never_falls_and_is_that_of_least_squares(rows, ridge):
    X, y, costs = rows
    choice = choose(X, y, costs, 12.0, ridge=ridge)
    assert len(choice.used) > 4
    assert (np.diff(choice.r2) >= 0).all()
    for size, r2 in enumerate(choice.r2, 1):
        assert r2 == pytest.approx(explained(X, y, choice.used[:size], ridge), abs=1e-9)


def test_every_step_has_the_best_gain_per_price(rows):
    X, y, costs = rows
    costs = costs + 0.1
    bought, before = [], 0.0
    for j in choose(X, y, costs, 8.0).used:
        afford = [i for i in range(12) if i not in bought and costs[[*bought, i]].sum() <= 8.0]
        ratio = {i: (explained(X, y, [*bought, i]) - before) / costs[i] for i in afford}
        assert ratio[j] == pytest.approx(max(ratio.values()), abs=1e-9)
        bought.append(j)
        before = explained(X, y, bought)


@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0, 2.5, 7.0, 100.0])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_no_row_pays_more_than_the_budget(rows, budget, depth):
    X, y, costs = rows
    model = ASTC(budget, depth, costs=costs).fit(X, y)
    assert model.acquisition_cost(X).max() <= budget + 1e-9
    assert (np.array([node.path.cost for node in nodes_of(model.root_)]) <= budget + 1e-9).all()


def test_a_budget_for_one_feature_buys_one(rows):
    X, y, _ = rows
    assert (ASTC(budget=1, depth=3).fit(X, y).acquisition_cost(X) == 1).all()


def test_larger_budget_never_raises_the_training_loss_of_a_classifier(rows):
    """A law for one node at equal prices, where a larger budget only adds features."""
    X, y, _ = rows
    losses = [squared_loss(ASTC(budget, 1, ridge=0).fit(X, y), X, y) for budget in range(13)]
    assert (np.diff(losses) <= 1e-9).all()
    assert losses[-1] < 0.8 * losses[0]


def test_children_never_fit_worse_than_their_parent(rows):
    """They hold all features of the parent, so a deeper tree with the same root fits no worse."""
    X, y, costs = rows
    for budget in (2.0, 4.0, 8.0):
        losses = [
            squared_loss(ASTC(budget * d, d, costs=costs, ridge=0).fit(X, y), X, y) for d in (1, 2, 3, 4)
        ]
        assert (np.diff(losses) <= 1e-9).all()


def test_a_feature_is_charged_once_along_a_path(rows):
    X, y, costs = rows
    model = ASTC(9.0, 4, costs=costs).fit(X, y)
    nodes = nodes_of(model.root_)
    assert len(nodes) == 15
    for node in nodes:
        assert len(set(node.path.features)) == len(node.path.features)
        assert node.path.cost == pytest.approx(costs[list(node.path.features)].sum())
        assert set(node.used) <= set(node.path.features)
        for child in node.children:
            assert child.path.features[: len(node.path.features)] == node.path.features


def test_cost_is_the_prices_of_the_acquired_features(rows):
    X, y, costs = rows
    model = ASTC(6.0, 3, costs=costs).fit(X[:400], y[:400])
    acquired = model.acquired_features(X[400:])
    assert len(np.unique(acquired, axis=0)) > 1
    np.testing.assert_allclose(model.acquisition_cost(X[400:]), acquired @ costs)


def test_cost_by_hand():
    """The label is b where a is positive, c elsewhere: a for all, then one of the two for each half."""
    rng = np.random.default_rng(0)
    a, b, c = rng.choice([-1.0, 1.0], (3, 4000))
    y = np.where(a > 0, b > 0, c > 0) ^ (rng.random(4000) < 0.02)
    y = np.where(rng.random(4000) < 0.5, a > 0, y)  # so that a alone tells something
    X = np.column_stack([a, b, c])
    model = ASTC(budget=6.0, depth=2, costs=[1.0, 5.0, 3.0]).fit(X, y)
    np.testing.assert_array_equal(model.acquisition_cost(X), np.where(a > 0, 6.0, 4.0))
    np.testing.assert_array_equal(
        model.acquired_features(X), np.column_stack([np.ones(4000), a > 0, a < 0]) > 0
    )


def test_a_group_is_opened_once(rows):
    X, y, _ = rows
    model = ASTC(4.0, 2, groups=["one", "two", "three"] * 4).fit(X, y)
    acquired = model.acquired_features(X)
    opened = np.column_stack([acquired[:, g::3].any(axis=1) for g in range(3)])
    np.testing.assert_array_equal(model.acquisition_cost(X), opened.sum(axis=1))


def test_of_two_equal_features_the_cheap_one_is_bought(rows):
    X, y, _ = rows
    twice = np.hstack([X, X])
    costs = np.r_[np.full(12, 1.0), np.full(12, 0.9)]
    bought = choose(twice, y, costs, 100.0).used
    assert min(bought) >= 12


def test_an_expensive_noise_feature_is_not_bought():
    X, y = make_classification(800, 5, n_informative=5, n_redundant=0, n_clusters_per_class=1, random_state=1)
    X = np.column_stack([np.random.default_rng(1).normal(size=800), X])
    costs = [4.0, 1, 1, 1, 1, 1]
    assert not ASTC(5.0, 1, costs=costs).fit(X, y).acquired_features(X)[:, 0].any()
    assert not ASTC(100.0, 1, costs=costs, min_gain=0.01).fit(X, y).acquired_features(X)[:, 0].any()


def test_constant_and_repeated_columns_are_not_bought(rows):
    X, y, _ = rows
    X = np.column_stack([np.full(600, 0.1), X, X[:, 3]])
    acquired = ASTC(100.0, 3, ridge=0).fit(X, y).acquired_features(X)
    assert not acquired[:, 0].any()
    assert not (acquired[:, 4] & acquired[:, 13]).any()


def test_separable_classes_are_told_apart():
    for X, y in (load_iris(return_X_y=True), load_wine(return_X_y=True)):
        assert ASTC(X.shape[1], 2).fit(X, y).score(X, y) > 0.95
    X, y = make_classification(2000, 10, class_sep=3, n_clusters_per_class=1, flip_y=0, random_state=0)
    assert ASTC(4.0, 2).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.99


def test_a_tree_solves_what_one_classifier_cannot():
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    y = np.abs(X[:, 0] + 0.1) > 0.5
    assert ASTC(3.0, 1).fit(X, y).score(X, y) < 0.75
    assert ASTC(3.0, 3).fit(X, y).score(X, y) > 0.9


def test_units_and_names_of_classes_change_nothing(rows):
    X, y, costs = rows
    plain = ASTC(6.0, 3, costs=costs).fit(X, y)
    other = ASTC(6.0, 3, costs=costs).fit(X * 4.0 + 2.0, np.array(["p", "q", "r"])[y])
    np.testing.assert_array_equal(other.predict(X * 4.0 + 2.0), np.array(["p", "q", "r"])[plain.predict(X)])
    np.testing.assert_array_equal(other.acquisition_cost(X * 4.0 + 2.0), plain.acquisition_cost(X))


def test_two_fits_are_equal(rows):
    X, y, costs = rows
    model = ASTC(6.0, 4, costs=costs).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.class_scores(X), model.class_scores(X))
    np.testing.assert_array_equal(again.acquired_features(X), model.acquired_features(X))


def test_a_threshold_halves_the_rows():
    assert halving_threshold(np.arange(10.0)) == 4.5
    assert halving_threshold(np.array([0.0, 1, 1, 1])) == 0.5
    assert np.isnan(halving_threshold(np.ones(5)))


def test_one_class_costs_nothing(rows):
    X, _, _ = rows
    model = ASTC().fit(X, np.ones(600))
    assert (model.predict(X) == 1).all()
    assert (model.acquisition_cost(X) == 0).all()
