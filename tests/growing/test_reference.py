"""The fast path against the paper's procedures in plain Python, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from budgetforest import Powers
from budgetforest.growing.split import stumps_for
from budgetforest.selection.backend import Measured
from budgetforest.selection.paper import budget_rf
from trees import as_rows, labelled_rows, nested, one_tree

pytestmark = pytest.mark.usefixtures("quiet")

KINDS = {
    "pairs 0": ({"alpha": 0}, reference.pairs(0), reference.minimax),
    "pairs 2": ({"alpha": 2}, reference.pairs(2), reference.minimax),
    "pairs 0.5": ({"alpha": 0.5}, reference.pairs(0.5), reference.minimax),
    "powers 2": ({"impurity": "powers"}, reference.powers(2), reference.minimax),
    "powers 3": ({"impurity": Powers(3)}, reference.powers(3), reference.minimax),
    "entropy": (
        {"impurity": "entropy", "criterion": "expected"},
        reference.entropy,
        reference.expected,
    ),
    "expected pairs": ({"criterion": "expected"}, reference.pairs(0), reference.expected),
}
COSTS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0, 7.0]), min_size=5, max_size=5)
EXTREMES = st.sampled_from([1e-100, 1.5e-100, 1e-99, 1e-50, 1e50, 9e99, 1e100])


@pytest.mark.parametrize("kind", KINDS)
@given(data=labelled_rows(), costs=COSTS | st.just([1.0] * 5))
def test_tree_equals_the_papers(kind, data, costs):
    parameters, impurity, judge = KINDS[kind]
    X, y = data
    costs = costs[: X.shape[1]]
    model = one_tree(X, y, costs=costs, **parameters)
    expected = reference.greedy_tree(as_rows(X), y.tolist(), y.max() + 1, costs, impurity, judge)
    assert nested(model) == expected


@given(data=labelled_rows(), costs=st.lists(EXTREMES, min_size=5, max_size=5))
def test_costs_that_rounding_destroys_change_nothing(data, costs):
    X, y = data
    costs = costs[: X.shape[1]]
    expected = reference.greedy_tree(as_rows(X), y.tolist(), y.max() + 1, costs, reference.pairs(0))
    assert nested(one_tree(X, y, costs=costs, alpha=0)) == expected


@pytest.mark.parametrize("kind", ["pairs 0", "powers 2", "entropy"])
@given(data=labelled_rows(missing=True), costs=COSTS, flags=st.lists(st.booleans(), min_size=5, max_size=5))
def test_tree_equals_the_papers_with_missing_and_nominal(kind, data, costs, flags):
    parameters, impurity, judge = KINDS[kind]
    X, y = data
    m = X.shape[1]
    nominal = [j for j in range(m) if flags[j]]
    model = one_tree(X, y, costs=costs[:m], categorical_features=nominal, **parameters)
    rows = as_rows(X, nominal)
    args = (rows, y.tolist(), y.max() + 1, costs[:m], impurity, judge, nominal)
    assert nested(model) == reference.greedy_tree(*args)


@given(data=labelled_rows(missing=True))
def test_few_distinct_values_make_binned_search_exact_at_the_root(data):
    X, y = data
    exact, binned = one_tree(X, y), one_tree(X, y, splitter="binned")
    assert nested(exact)[:4] == nested(binned)[:4]


@given(data=labelled_rows(max_classes=3), budget=st.floats(0.1, 5))
def test_forest_keeps_the_trees_that_budget_rf_keeps(data, budget):
    X, y = data
    costs = [1.0] * X.shape[1]
    trees = [
        reference.greedy_tree(as_rows(X[s:]), y[s:].tolist(), y.max() + 1, costs, reference.pairs(0))
        for s in range(3)
    ]
    rows = as_rows(X)
    kept = reference.budget_rf(trees, rows, costs, budget)
    met = [set() for _ in rows]

    def meter(tree):
        for have, row in zip(met, rows, strict=True):
            have.update(reference.walk(tree, row)[0])
        return Measured(np.mean([len(have) for have in met]), 0.0, ())

    assert budget_rf(trees, meter, budget, most=10).trees == kept


def test_stumps_are_as_many_as_the_paper_says():
    number = getattr(stumps_for, "py_func", stumps_for)  # compiled, it is for kernels alone
    assert [number(rows) for rows in (2, 500, 501, 2000, 2001)] == [20, 20, 40, 40, 80]


@pytest.mark.parametrize("rows", [9, 300])
def test_of_thresholds_that_leave_the_same_the_smallest_is_taken(rows):
    """Alike from both ends: what is worst on the right of one cut is worst on the left of the next."""
    x = np.repeat([0.0, 1.0, 2.0], rows // 3)
    y = (x == 1).astype(int)
    expected = reference.greedy_tree(as_rows(x[:, None]), y.tolist(), 2, [1.0], reference.pairs(0))
    tree = nested(one_tree(x[:, None], y))
    assert tree == expected
    assert tree[2] == 0.5


@pytest.mark.parametrize("alpha", [0, 1])
@pytest.mark.parametrize("rows", [200, 2500])
def test_tree_of_many_rows_equals_the_papers(rows, alpha):
    """Large enough for every way of counting: by code, by sorting, near and far rows."""
    rng = np.random.default_rng(rows)
    X = np.column_stack(
        [rng.integers(0, 8, (rows, 3)), rng.permutation(rows) if rows < 1000 else np.zeros(rows)]
    )
    y = (X[:, 0] * X[:, 1] + rng.integers(0, 3, rows)).astype(int) % 3
    costs = [1.0, 1.0, 2.0, 9.0]
    expected = reference.greedy_tree(as_rows(X), y.tolist(), 3, costs, reference.pairs(alpha))
    assert nested(one_tree(X.astype(float), y, costs=costs, alpha=alpha)) == expected
