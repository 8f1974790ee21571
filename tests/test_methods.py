"""Every method of the comparison keeps the rules of the frame."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.methods import Part, Task, measure, methods
from sklearn.datasets import load_breast_cancer, load_wine

from budgetforest.costs import read_costs

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
