"""Every method of the comparison keeps the rules of the frame."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.methods import Part, Task, feature_pools, measure, methods
from budgetforest.data.costs import read_costs
from budgetforest.inference.predict import charge, scores
from budgetforest.trees.forest import Answer

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


def task_of(load, queries=0):
    """A tiny task: uneven prices, a panel, some missing values."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    X, y = X[order].astype(np.float32), y[order]
    X[rng.random(X.shape) < 0.02] = np.nan
    query = np.arange(len(y)) % queries if queries else None
    turns = np.arange(len(y)) % 3
    parts = [
        Part(X[turns == t], y[turns == t], None if query is None else query[turns == t]) for t in range(3)
    ]
    return Task(load.__name__, *parts, priced(X.shape[1]), quick=True)


def priced(m):
    prices = {
        "feature": [f"x{j}" for j in range(m)],
        "cost": np.arange(m) % 5 + 1.0,
        "group": ["panel" if j < 4 else None for j in range(m)],
        "discount_cost": [0.5 if j < 4 else None for j in range(m)],
    }
    return read_costs(pd.DataFrame(prices), None, prices["feature"])


@pytest.mark.parametrize("title", methods())
def test_a_method_gives_a_curve_from_nothing_on_within_the_price_of_everything(title):
    for load in (load_wine, load_breast_cancer):
        task = task_of(load)
        curve = measure(title, methods()[title], task)
        assert curve.budget[0] == 0
        assert not curve.spent[0].any()
        assert curve.spent.min() >= 0
        assert curve.spent.max() <= task.costs.cost.sum()
        assert curve.spent.shape == curve.loss.shape == (len(curve.budget), len(task.test.y))
        assert curve.error[-1] < curve.error[0]


@pytest.mark.parametrize("title", methods())
def test_a_method_gives_the_same_curve_again(title):
    task = task_of(load_wine)
    once, again = (measure(title, methods()[title], task) for _ in range(2))
    assert once.what == again.what
    for a, b in zip(
        (once.budget, once.spent, once.loss), (again.budget, again.spent, again.loss), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("title", methods())
def test_a_method_ranks_documents_and_is_judged_by_query(title):
    task = task_of(load_breast_cancer, queries=10)
    curve = measure(title, methods()[title], task)
    assert curve.loss.shape[1] == curve.spent.shape[1] == 10
    assert curve.error[-1] < curve.error[0]


def test_pools_of_equal_prices_are_nested_down_to_one_feature():
    task = task_of(load_wine)
    pools = feature_pools.pools(replace(task, costs=read_costs(None, None, [f"x{j}" for j in range(13)])))
    assert [len(pool) for pool in pools] == [13, 10, 8, 6, 5, 4, 3, 2, 1]
    assert all(set(small) < set(large) for large, small in pairwise(pools))


def test_uneven_prices_give_more_pools_and_dear_features_stay_longer_by_the_root():
    pools = feature_pools.pools(task_of(load_wine))
    assert len(set(pools)) == len(pools) > 9
    gain, price = np.array([4.0, 30.0, 50.0, 1.0]), np.array([1.0, 9.0, 25.0, 0.0])
    assert feature_pools.without_least((2, 3, 5, 8), gain, price) == (2, 3, 8)
    assert feature_pools.without_least((2, 3, 5, 8), gain, price**0.5) == (3, 5, 8)


def test_a_forest_of_a_pool_votes_and_pays_as_on_its_own_columns():
    task, pool = task_of(load_wine), (1, 4, 9)
    model = ExtraTreesClassifier(5, random_state=0).fit(task.train.X[:, pool], task.train.y)
    forest = feature_pools.on_all_features(model, pool, task)
    np.testing.assert_allclose(scores(forest, task.test.X) / 5, model.predict_proba(task.test.X[:, pool]))
    assert set(np.flatnonzero(charge(forest, task.test.X, Answer.PROBA).acquired.any(axis=0))) <= set(pool)
