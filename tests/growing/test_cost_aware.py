"""Growth that knows what is already paid, against the same in plain Python."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetforest.growing.cost_aware import LEAST_GAIN, Growth, grow_cost_aware
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.tree import BY_CATEGORY, next_node
from samples import parts_of, priced, sample_of
from trees import labelled_rows


def growth_for(m, k, **others):
    return Growth(np.ones(m, bool), 0.0, 1.0, False, 1, k)._replace(**others)


def entropy(labels, weight):
    shares = np.bincount(labels, weight)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares / shares.sum())).sum())


def best_saving(X, y, weight, rows, owned, opened, costs, rate, nominal):
    """The largest gain that any split of these rows has, with the price of each feature."""
    best = 0.0
    for j in range(X.shape[1]):
        lacking = rows[~owned[j, rows]]
        each = np.where(opened[costs.group[j], lacking], costs.discount[j], costs.cost[j])
        price = rate * float((weight[lacking] * each).sum())
        for masks in parts_of(X[rows, j], j in nominal):
            if len(masks) > 1:
                left = sum(entropy(y[rows[mask]], weight[rows[mask]]) for mask in masks)
                best = max(best, entropy(y[rows], weight[rows]) - left - price)
    return best


@settings(max_examples=60)
@given(
    labelled_rows(missing=True, max_rows=20),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=5, max_size=5),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.booleans(),
    st.booleans(),
)
def test_every_split_has_the_largest_saving(data, prices, rate, grouped, with_nominal):
    X, y = data
    m = X.shape[1]
    nominal = {0} if with_nominal else set()
    if with_nominal:
        X = X.copy()
        X[:, 0] = np.abs(np.nan_to_num(X[:, 0], nan=0.0)).astype(int) % 4
    groups = [0, 0, *range(1, m - 1)][:m] if grouped else None
    costs = priced(prices[:m], groups, [p / 2 for p in prices[:m]])
    k = int(y.max()) + 1
    sample = sample_of(X, y, nominal=nominal)
    trees = islice(grow_cost_aware(sample, growth_for(m, k, rate=rate), costs, 0, False), 3)
    weight = np.ones(len(y))
    owned = np.zeros((m, len(y)), bool)
    opened = np.zeros((len(costs.group_names), len(y)), bool)
    for tree in trees:
        waiting = [(0, np.arange(len(y)))]
        while waiting:
            node, rows = waiting.pop()
            np.testing.assert_array_equal(tree.counts[node], np.bincount(y[rows], minlength=k))
            best = best_saving(X, y, weight, rows, owned, opened, costs, rate, nominal)
            j = int(tree.feature[node])
            if j == LEAF:
                assert best <= LEAST_GAIN + 1e-9
                continue
            assert (tree.route[node] == BY_CATEGORY) == (j in nominal)
            lacking = rows[~owned[j, rows]]
            each = np.where(opened[costs.group[j], lacking], costs.discount[j], costs.cost[j])
            children = np.array([next_node(tree, node, X[i, j]) for i in rows])
            masks = [children == child for child in np.unique(children)]
            left = sum(entropy(y[rows[mask]], weight[rows[mask]]) for mask in masks)
            saving = entropy(y[rows], weight[rows]) - left - rate * each.sum()
            assert saving == pytest.approx(best, abs=1e-9)
            owned[j, rows] = opened[costs.group[j], rows] = True
            # the left child is grown first: what it acquires no other row does, but order must match
            waiting += [(int(c), rows[children == c]) for c in sorted(np.unique(children), reverse=True)]


@given(labelled_rows(missing=True), st.integers(0, 4))
def test_only_the_pool_is_used(data, left_out):
    X, y = data
    pool = np.arange(X.shape[1]) != left_out
    growth = growth_for(X.shape[1], int(y.max()) + 1, pool=pool, random_cuts=True)
    for tree in islice(grow_cost_aware(sample_of(X, y), growth, priced(np.ones(X.shape[1])), 1, False), 3):
        assert left_out not in tree.feature


@given(labelled_rows())
def test_at_a_high_rate_only_free_features_are_used(data):
    X, y = data
    cost = np.ones(X.shape[1])
    cost[0] = 0
    growth = growth_for(X.shape[1], int(y.max()) + 1, rate=1e6)
    for tree in islice(grow_cost_aware(sample_of(X, y), growth, priced(cost), 1, True), 3):
        assert set(tree.feature.tolist()) <= {LEAF, 0}


def met(tree, row):
    """Features that a row meets in a tree."""
    node, found = 0, set()
    while tree.feature[node] != LEAF:
        found.add(int(tree.feature[node]))
        node = next_node(tree, node, row[tree.feature[node]])
    return found


def test_later_trees_ride_on_what_is_paid():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    y = (X[:, :6].sum(axis=1) > 0).astype(int)
    used = {}
    for rate in (0.0, 0.1):
        growth = growth_for(12, 2, rate=rate, tries=0.5)
        trees = list(islice(grow_cost_aware(sample_of(X, y), growth, priced(np.ones(12)), 0, True), 10))
        used[rate] = np.mean([len(set().union(*(met(tree, row) for tree in trees))) for row in X])
    assert used[0.1] < 0.85 * used[0.0]


def test_free_riders_acquire_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    growth = growth_for(8, 2, rate=0.05, tries=0.5)
    grown = grow_cost_aware(sample_of(X, y), growth, priced(np.ones(8)), 0, bootstrap=False, payers=2)
    payers, riders = list(islice(grown, 2)), list(islice(grown, 4))
    assert all(tree.feature[0] != LEAF for tree in riders)
    for row in X:
        paid = set().union(*(met(tree, row) for tree in payers))
        assert all(met(tree, row) <= paid for tree in riders)


@given(labelled_rows(missing=True), st.booleans())
def test_row_order_changes_nothing(data, bootstrap):
    X, y = data
    growth = growth_for(X.shape[1], int(y.max()) + 1, rate=0.01, tries=0.6, random_cuts=True)
    turned = np.random.default_rng(0).permutation(len(y))
    costs = priced(np.ones(X.shape[1]))
    one = islice(grow_cost_aware(sample_of(X, y), growth, costs, 3, bootstrap), 2)
    two = islice(grow_cost_aware(sample_of(X[turned], y[turned]), growth, costs, 3, bootstrap), 2)
    for a, b in zip(one, two, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


@given(labelled_rows(missing=True), st.booleans())
def test_a_weight_of_two_is_the_row_twice(data, bootstrap):
    X, y = data
    times = 1 + np.arange(len(y)) % 3
    growth = growth_for(X.shape[1], int(y.max()) + 1, rate=0.01, tries=0.6)
    costs = priced(np.ones(X.shape[1]))
    one = islice(grow_cost_aware(sample_of(X, y, times), growth, costs, 3, bootstrap), 1)
    many = sample_of(X.repeat(times, 0), y.repeat(times))
    two = islice(grow_cost_aware(many, growth, costs, 3, bootstrap), 1)
    for a, b in zip(one, two, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


@given(labelled_rows(max_rows=30), st.integers(2, 5))
def test_children_have_enough_rows(data, least):
    X, y = data
    growth = growth_for(X.shape[1], int(y.max()) + 1, least_rows=least)
    for tree in islice(grow_cost_aware(sample_of(X, y), growth, priced(np.ones(X.shape[1])), 0, False), 2):
        assert (tree.counts.sum(axis=1)[1:] >= least).all()
