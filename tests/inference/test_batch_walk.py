"""Many rows in bundles get what single rows get, whatever their values and however many there are."""

import numpy as np
import pytest

from budgetforest.inference.batch_walk import IN_TURNS, signposts, visit_alike, votes_of, workspace_for
from budgetforest.runtime.simd import LANES, OCTET
from budgetforest.trees.tree import MISSING_LEFT, MISSING_RIGHT, Tree, empty_tree
from budgetforest.trees.walk import visit_leaves

THRESHOLDS = [0.0, -0.0, 0.1, -1.5, 1e-40, -1e30, 1e300, np.inf]
"""A chain of nodes asks for each: right goes on, left is a leaf."""
FEATURES = 70
"""More than fit the bits of one word."""


def chain(route, first):
    tree = empty_tree(2 * len(THRESHOLDS) + 1, 3)
    for place, threshold in enumerate(THRESHOLDS):
        node = 2 * place
        feature = (first + 67 * place) % FEATURES
        tree.feature[node], tree.threshold[node], tree.route[node] = feature, threshold, route
        tree.left[node], tree.right[node] = node + 1, node + 2
    return tree


def forest(route, n_trees):
    """Every third tree is a single leaf."""
    trees = [empty_tree(1, 3) if t % 3 == 1 else chain(route, t) for t in range(n_trees)]
    roots = np.cumsum([0] + [len(tree.feature) for tree in trees]).astype(np.int32)
    shifted = [
        tree._replace(left=tree.left + root, right=tree.right + root)
        for tree, root in zip(trees, roots[:-1], strict=True)
    ]
    return Tree._make(np.concatenate(parts) for parts in zip(*shifted, strict=True)), roots


def extremes(dtype, rng, n_rows):
    with np.errstate(over="ignore"):
        around = [np.nextafter(dtype(t), dtype(to)) for t in THRESHOLDS[:-1] for to in (-np.inf, t, np.inf)]
    return rng.choice(np.array([*around, np.nan, np.inf, -np.inf, 7.0], dtype), (n_rows, FEATURES))


def visited(visit, n_rows, votes, words):
    total, met = np.full((n_rows, votes.shape[1]), 0.1), np.zeros((n_rows, words), np.uint64)
    visit(total, met)
    return total, met


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("route", [MISSING_LEFT, MISSING_RIGHT])
@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize("n_rows", [1, LANES - 1, 3 * LANES + 5])
@pytest.mark.parametrize("n_trees", [1, 2, IN_TURNS + 4])
def test_rows_in_bundles_get_what_single_rows_get(route, dtype, gaps, n_rows, n_trees):
    rng = np.random.default_rng(0)
    X = extremes(dtype, rng, n_rows)
    if not gaps:
        X = np.nan_to_num(X, posinf=np.inf, neginf=-np.inf)
    nodes, roots = forest(route, n_trees)
    votes = rng.choice([0.0, 0.1, 0.7], (len(nodes.feature), 3))
    posts = signposts(nodes, roots, FEATURES, gaps, X.dtype)
    for words in (0, 2):
        alone = visited(
            lambda *out: visit_leaves(nodes, roots, votes, X, *out, np.zeros(n_rows, bool)),
            n_rows,
            votes,
            words,
        )
        in_bundles = visited(
            lambda *out: visit_alike(posts, roots, votes_of(nodes, votes), X, *out), n_rows, votes, words
        )
        for one, other in zip(alone, in_bundles, strict=True):
            np.testing.assert_array_equal(one, other)
    assert n_rows < LANES or len(np.unique(alone[0], axis=0)) > 3
    assert alone[1].any(axis=0).sum() == 2 or n_trees < 3


def test_sums_beside_the_classes_begin_at_zero(monkeypatch):
    """Eight are added at once whatever the classes; with what memory held before, the rest could overflow."""
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 99, dtype))
    assert not workspace_for(FEATURES, np.dtype(np.float32), OCTET).sums.any()
