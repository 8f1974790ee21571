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
    """Numeric trees packed for walking many rows in step, 16 bytes a node, seen as doubles and integers.

    The left child is the next node. A leaf leads to itself, so no row need stop.
    """

    threshold: Floats
    """(d, 2) in the first half of a node; NaN at leaves, so that every value goes right."""
    jump: NDArray[np.int32]
    """(d, 4) in the second: the right child, and the feature, of which the lowest bit says whether missing
    values go left."""


TILE = 64
"""Rows that walk in step; their places stay in the nearest cache."""

PACES = 4
"""Steps between looks at who has arrived."""


def paces(tree: Tree) -> Paces | None:
    """Pack trees; None if some have nominal nodes, or left children that do not follow their parents."""
    leaf, itself = tree.feature == LEAF, np.arange(len(tree.feature), dtype=np.int32)
    if len(tree.branches) or not (leaf | (tree.left == itself + 1)).all():
        return None
    packed = np.empty((len(leaf), 2))
    packed[:, 0] = np.where(leaf, np.nan, tree.threshold)
    jump = packed.view(np.int32)
    jump[:, 2] = np.where(leaf, itself, tree.right)
    jump[:, 3] = np.where(leaf, 0, 2 * tree.feature + (tree.route == MISSING_LEFT))
    return Paces(packed, jump)


@kernel
def leaves_in_step(walk: Paces, roots: Ids, X: Matrix, at: Ids, leaves: Ids) -> None:
    """The same as ``leaves_of`` for many rows: independent steps, no branch to mispredict.

    ``at`` (2, ``TILE``) is room for rows on their way and where they are.
    """
    for start in range(0, len(X), TILE):
        for t in range(len(roots) - 1):
            walk_tile(walk, roots[t], X, start, min(TILE, len(X) - start), at[0], at[1], leaves[t])


@inner
def walk_tile(
    walk: Paces, root: int, X: Matrix, start: int, size: int, rows: Ids, at: Ids, leaves: Ids
) -> None:
    """One tree for one tile of rows; those that have arrived leave the list."""
    for i in range(size):
        rows[i] = start + i
        at[i] = root
    while size > 0:
        for _ in range(PACES):
            for i in range(size):
                node = np.uintp(at[i])
                feature = walk.jump[node, 3]
                x = X[np.uintp(rows[i]), np.uintp(feature >> 1)]
                left = (x <= walk.threshold[node, 0]) | ((x != x) & (feature & 1 != 0))
                at[i] = at[i] + 1 if left else walk.jump[node, 2]
        walking = 0
        for i in range(size):
            node = at[i]
            leaves[np.uintp(rows[i])] = node
            rows[walking] = rows[i]
            at[walking] = node
            walking += walk.jump[np.uintp(node), 2] != node
        size = walking


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
