"""Trees of largest entropy drop, against the same in plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetforest.growing.entropy_trees import LEAST_GAIN, Growth, grow_one
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.tree import BY_CATEGORY, next_node
from samples import parts_of, sample_of
from trees import labelled_rows


def growth_for(m, k, **others):
    return Growth(np.ones(m, bool), 1.0, False, 1, k)._replace(**others)


def forest(sample, growth, number, bootstrap):
    return [grow_one(sample, growth, 3, at, bootstrap) for at in range(number)]


def entropy(labels):
    shares = np.bincount(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares / shares.sum())).sum())


def best_drop(X, y, rows, nominal):
    """The largest drop of entropy that any split of these rows has."""
    best = 0.0
    for j in range(X.shape[1]):
        for masks in parts_of(X[rows, j], j in nominal):
            if len(masks) > 1:
                best = max(best, entropy(y[rows]) - sum(entropy(y[rows[mask]]) for mask in masks))
    return best


@settings(max_examples=60)
@given(labelled_rows(missing=True, max_rows=20), st.booleans())
def test_every_split_has_the_largest_drop(data, with_nominal):
    X, y = data
    m, k = X.shape[1], int(y.max()) + 1
    nominal = {0} if with_nominal else set()
    if with_nominal:
        X = X.copy()
        X[:, 0] = np.abs(np.nan_to_num(X[:, 0], nan=0.0)).astype(int) % 4
    (tree,) = forest(sample_of(X, y, nominal=nominal), growth_for(m, k), 1, bootstrap=False)
    waiting = [(0, np.arange(len(y)))]
    while waiting:
        node, rows = waiting.pop()
        np.testing.assert_array_equal(tree.counts[node], np.bincount(y[rows], minlength=k))
        best = best_drop(X, y, rows, nominal)
        j = int(tree.feature[node])
        if j == LEAF:
            assert best <= LEAST_GAIN + 1e-9
            continue
        assert (tree.route[node] == BY_CATEGORY) == (j in nominal)
        children = np.array([next_node(tree, node, X[i, j]) for i in rows])
        parts = [rows[children == child] for child in np.unique(children)]
        drop = entropy(y[rows]) - sum(entropy(y[part]) for part in parts)
        assert drop == pytest.approx(best, abs=1e-9)
        waiting += [(int(child), rows[children == child]) for child in np.unique(children)]


@given(labelled_rows(missing=True), st.integers(0, 4))
def test_only_the_pool_is_used(data, left_out):
    X, y = data
    pool = np.arange(X.shape[1]) != left_out
    growth = growth_for(X.shape[1], int(y.max()) + 1, pool=pool, random_cuts=True)
    for tree in forest(sample_of(X, y), growth, 3, bootstrap=False):
        assert left_out not in tree.feature


@given(labelled_rows(missing=True), st.booleans())
def test_row_order_changes_nothing(data, bootstrap):
    X, y = data
    growth = growth_for(X.shape[1], int(y.max()) + 1, tries=0.6, random_cuts=True)
    turned = np.random.default_rng(0).permutation(len(y))
    one = forest(sample_of(X, y), growth, 2, bootstrap)
    two = forest(sample_of(X[turned], y[turned]), growth, 2, bootstrap)
    for a, b in zip(one, two, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


@given(labelled_rows(missing=True), st.booleans())
def test_a_weight_of_two_is_the_row_twice(data, bootstrap):
    X, y = data
    times = 1 + np.arange(len(y)) % 3
    growth = growth_for(X.shape[1], int(y.max()) + 1, tries=0.6)
    one = forest(sample_of(X, y, times), growth, 1, bootstrap)
    two = forest(sample_of(X.repeat(times, 0), y.repeat(times)), growth, 1, bootstrap)
    for a, b in zip(one, two, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


@given(labelled_rows(max_rows=30), st.integers(2, 5))
def test_children_have_enough_rows(data, least):
    X, y = data
    growth = growth_for(X.shape[1], int(y.max()) + 1, least_rows=least)
    for tree in forest(sample_of(X, y), growth, 2, bootstrap=False):
        assert (tree.counts.sum(axis=1)[1:] >= least).all()
