"""Compiled walks to the leaf of a row, and the features above each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.arrays import LEAF, Floats, Ids, Keys, Matrix
from budgetforest.jit import inner, kernel
from budgetforest.tree import MISSING_LEFT, Tree, family, next_node

child_of = inner(next_node)
"""Compiled for 64-bit nodes: who starts from a 32-bit one widens it, or numba compiles all twice."""


@inner
def leaf_of(tree: Tree, node: int, row: Floats) -> int:
    """The leaf that a row reaches from ``node``."""
    while tree.feature[node] != LEAF:
        node = child_of(tree, node, row[tree.feature[node]])
    return node


@kernel
def leaves_of(tree: Tree, roots: Ids, X: Matrix, leaves: Ids) -> None:
    """``leaves[t, i]`` = the leaf of row i in tree t."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            leaves[t, i] = leaf_of(tree, int(np.int64(roots[t])), X[i])


class Paces(NamedTuple):
    """Numeric trees packed for walking many rows in step: a leaf leads to itself, so no row need stop."""

    jump: NDArray[np.int32]
    """(d, 4) feature, left, right, and whether missing values go left, side by side."""
    threshold: Floats
    """(d) +inf at leaves."""
    depth: Ids
    """(t) how many paces take every row to its leaf."""


TILE = 64
"""Rows that walk in step; their places stay in the nearest cache."""


def paces(tree: Tree, roots: Ids) -> Paces:
    """Pack trees without nominal nodes."""
    leaf, itself = tree.feature == LEAF, np.arange(len(tree.feature))
    jump = np.stack(
        [
            np.where(leaf, 0, tree.feature),
            np.where(leaf, itself, tree.left),
            np.where(leaf, itself, tree.right),
            tree.route == MISSING_LEFT,
        ],
        axis=1,
    ).astype(np.int32)
    depth = family(tree, roots[:-1]).depth
    deepest = np.maximum.reduceat(depth, roots[:-1])
    return Paces(jump, np.where(leaf, np.inf, tree.threshold), deepest)


@kernel
def leaves_in_step(walk: Paces, roots: Ids, X: Matrix, at: Ids, leaves: Ids) -> None:
    """The same as ``leaves_of`` for many rows: independent steps, no branch to mispredict."""
    for start in range(0, len(X), TILE):
        step_tile(walk, roots, X, start, min(TILE, len(X) - start), at, leaves)


@inner
def step_tile(walk: Paces, roots: Ids, X: Matrix, start: int, size: int, at: Ids, leaves: Ids) -> None:
    """All trees for one tile of rows."""
    jump = walk.jump
    for t in range(len(roots) - 1):
        for i in range(size):
            at[i] = roots[t]
        for _ in range(walk.depth[t]):
            for i in range(size):
                node = at[i]
                x = X[start + i, jump[node, 0]]
                left = (x <= walk.threshold[node]) | ((x != x) & (jump[node, 3] != 0))
                at[i] = jump[node, 1] if left else jump[node, 2]
        for i in range(size):
            leaves[t, start + i] = at[i]


def met_before(tree: Tree, roots: Ids, n_features: int) -> Keys:
    """(d, words) the features above each node, a bit each."""
    masks = np.zeros((len(tree.feature), -(-n_features // 64)), np.uint64)
    parent, depth = family(tree, roots)
    order = np.argsort(depth, kind="stable")
    order = order[parent[order] >= 0]
    for level in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1):
        above = parent[level]
        feature = tree.feature[above].astype(np.uint64)
        masks[level] = masks[above]
        masks[level, feature >> np.uint64(6)] |= np.uint64(1) << (feature & np.uint64(63))
    return masks
