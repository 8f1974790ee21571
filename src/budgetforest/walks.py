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
    """Numeric trees packed for walking many rows in step, 24 bytes a node, seen as doubles and integers.

    A node is known by the place of its threshold, so nothing is multiplied. A leaf leads to itself, so no row
    need stop. Which child comes next is where it is read from: LLVM would make a branch of a choice.
    """

    threshold: Floats
    """(3 d) at the place of a node; NaN at leaves, so that every value goes right."""
    jump: NDArray[np.int32]
    """(6 d) at twice its place: after the threshold the right child, the left one, and the feature, of which
    the lowest bit says whether missing values go left."""


SIZE, RIGHT, FEATURE = 3, np.uintp(2), np.uintp(4)
"""Doubles of a node; where these integers stand in it, the left child after the right one."""

TILE = 64
"""Rows that walk in step; their places stay in the nearest cache."""

PACES = 4
"""Steps between looks at who has arrived."""


def paces(tree: Tree) -> Paces | None:
    """Pack trees; None if some have nominal nodes."""
    if len(tree.branches):
        return None
    leaf, itself = tree.feature == LEAF, np.arange(len(tree.feature))
    packed = np.zeros((len(leaf), SIZE))
    packed[:, 0] = np.where(leaf, np.nan, tree.threshold)
    jump = packed.view(np.int32)
    jump[:, RIGHT] = SIZE * np.where(leaf, itself, tree.right)
    jump[:, RIGHT + 1] = SIZE * np.where(leaf, itself, tree.left)
    jump[:, FEATURE] = np.where(leaf, 0, 2 * tree.feature + (tree.route == MISSING_LEFT))
    return Paces(packed.reshape(-1), jump.reshape(-1))


@kernel
def leaves_in_step(walk: Paces, roots: Ids, X: Matrix, at: Ids, leaves: Ids) -> None:
    """The same as ``leaves_of`` for many rows: independent steps, no branch to mispredict.

    Trees one after the other: of a deep one the caches hold the nodes, but not of all. ``at`` (2, ``TILE``)
    is room for rows on their way and where they are.
    """
    for t in range(len(roots) - 1):
        for start in range(0, len(X), TILE):
            walk_tile(walk, roots[t], X, start, min(TILE, len(X) - start), at[0], at[1], leaves[t])


@inner
def walk_tile(
    walk: Paces, root: int, X: Matrix, start: int, size: int, rows: Ids, at: Ids, leaves: Ids
) -> None:
    """One tree for one tile of rows; those that have arrived leave the list."""
    for i in range(size):
        rows[i] = start + i
        at[i] = SIZE * root
    while size > 0:
        for _ in range(PACES):
            for i in range(size):
                node = np.uintp(at[i])
                feature = walk.jump[node + node + FEATURE]
                x = X[np.uintp(rows[i]), np.uintp(feature >> 1)]
                left = (x <= walk.threshold[node]) | ((x != x) & (feature & 1 != 0))
                at[i] = walk.jump[node + node + RIGHT + np.uintp(left)]
        walking = 0
        for i in range(size):
            node = np.uintp(at[i])
            leaves[np.uintp(rows[i])] = node // np.uintp(SIZE)
            rows[walking] = rows[i]
            at[walking] = node
            walking += walk.jump[node + node + RIGHT] != at[walking]
        size = walking


def met_before(tree: Tree, roots: Ids, n_features: int) -> Keys:
    """(d, words) the features above each node, a bit each."""
    masks = np.zeros((len(tree.feature), -(-n_features // 64)), np.uint64)
    hand_down(tree, family(tree, roots).parent, masks)
    return masks


@kernel
def hand_down(tree: Tree, parent: Ids, masks: Keys) -> None:
    """Every node has met what its parent has, and the parent's feature; parents come first."""
    for node in range(len(parent)):
        above = parent[node]
        if above >= 0:
            for word in range(masks.shape[1]):
                masks[node, word] = masks[above, word]
            feature = np.uint64(tree.feature[above])
            masks[node, feature >> np.uint64(6)] |= np.uint64(1) << (feature & np.uint64(63))
