"""Many rows in step reach the leaves that single rows reach, whatever their values."""

import numpy as np
import pytest

from budgetforest.tree import MISSING_LEFT, MISSING_RIGHT, empty_tree
from budgetforest.walks import TILE, leaves_in_step, leaves_of, paces, with_copies

THRESHOLDS = [0.0, -0.0, 0.1, -1.5, 1e-40, -1e30, np.inf]
"""A chain of nodes asks for each: right goes on, left is a leaf."""


def chain(route):
    tree = empty_tree(2 * len(THRESHOLDS) + 1, 2)
    for place, threshold in enumerate(THRESHOLDS):
        node = 2 * place
        tree.feature[node], tree.threshold[node], tree.route[node] = place % 2, threshold, route
        tree.left[node], tree.right[node] = node + 1, node + 2
    return tree


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("route", [MISSING_LEFT, MISSING_RIGHT])
def test_rows_in_step_reach_the_leaves_of_single_rows(route, dtype):
    around = [np.nextafter(dtype(t), dtype(to)) for t in THRESHOLDS[:-1] for to in (-np.inf, t, np.inf)]
    values = np.array([*around, np.nan, np.inf, -np.inf, 7.0], dtype)
    X = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
    assert len(X) > TILE
    tree = chain(route)
    roots = np.array([0, len(tree.feature)], np.int32)
    alone, in_step = np.empty((2, 1, len(X)), np.int32)
    leaves_of(tree, roots, X, alone)
    walk = paces(tree, roots, 2, gaps=True)
    leaves_in_step(walk, roots, with_copies(walk, X), np.empty((2, TILE), np.int32), in_step)
    np.testing.assert_array_equal(in_step, alone)
    assert len(np.unique(alone)) > 3
    whole = ~np.isnan(X).any(axis=1)
    walk, in_step = paces(tree, roots, 2, gaps=False), in_step[:, whole]
    assert with_copies(walk, X) is X
    leaves_in_step(walk, roots, X[whole], np.empty((2, TILE), np.int32), in_step)
    np.testing.assert_array_equal(in_step, alone[:, whole])
