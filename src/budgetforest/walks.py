"""Compiled walks to the leaf of a row, and the features above each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.arrays import LEAF, Floats, Ids, Keys, Matrix
from budgetforest.jit import inner, kernel
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, Tree, next_node

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
    """Numeric trees packed for walking many rows in step, 24 bytes a node, seen as doubles, integers, floats.

    A node is known by the place of its threshold, so nothing is multiplied. A leaf leads to itself, so no row
    need stop. Which child comes next is where it is read from: LLVM would make a branch of a choice. One
    comparison decides, false for missing values: where these go left, all is mirrored, and -x <= -t' asked.
    """

    threshold: Floats
    """(3 d) at the place of a node; NaN at leaves, so that no value passes."""
    jump: NDArray[np.int32]
    """(6 d) at twice its place: after the threshold the child of values that do not pass, of those that do,
    and the feature."""
    sign: NDArray[np.float32]
    """(6 d) and at last -1 where the node is mirrored, else 1."""


SIZE, FAILS, PASSES, FEATURE, SIGN = 3, np.uintp(2), np.uintp(3), np.uintp(4), np.uintp(5)
"""Doubles of a node; where the other parts stand in it."""

TILE = 128
"""Rows that walk in step; they and their places stay in the nearest cache."""

PACES = 4
"""Steps between looks at who has arrived."""


def paces(tree: Tree) -> Paces | None:
    """Pack trees; None if some have nominal nodes."""
    if len(tree.branches):
        return None
    packed = np.empty(SIZE * len(tree.feature))
    walk = Paces(packed, packed.view(np.int32), packed.view(np.float32))
    pack_nodes(tree, walk)
    return walk


@kernel
def pack_nodes(tree: Tree, walk: Paces) -> None:
    """Fill ``walk``, node after node."""
    for node in range(len(tree.feature)):
        place = SIZE * node
        at = np.uintp(2 * place)
        leaf, mirrored = tree.feature[node] == LEAF, tree.route[node] == MISSING_LEFT
        left, right = (node, node) if leaf else (int(tree.left[node]), int(tree.right[node]))
        threshold = tree.threshold[node]
        if mirrored:  # x > t is -x <= the number below -t
            left, right = right, left
            threshold = np.nextafter(-threshold, -np.inf)
        never = leaf or (mirrored and threshold == -np.inf)
        walk.threshold[place] = np.nan if never else threshold
        walk.jump[at + FAILS] = SIZE * right
        walk.jump[at + PASSES] = SIZE * left
        walk.jump[at + FEATURE] = 0 if leaf else tree.feature[node]
        walk.sign[at + SIGN] = -1.0 if mirrored else 1.0


@kernel
def leaves_in_step(walk: Paces, roots: Ids, X: Matrix, room: Ids, leaves: Ids) -> None:
    """The same as ``leaves_of`` for many rows: independent steps, no branch to mispredict.

    Trees one after the other: of a deep one the caches hold the nodes, but not of all. ``room`` (3, ``TILE``)
    is for rows on their way, where their values begin, and where they are.
    """
    cells = X.reshape(-1)
    for t in range(len(roots) - 1):
        for start in range(0, len(X), TILE):
            stop = min(start + TILE, len(X))
            walk_tile(walk, roots[t], cells, X.shape[1], start, stop, room[0], room[1], room[2], leaves[t])


@inner
def walk_tile(
    walk: Paces,
    root: int,
    cells: Matrix,
    m: int,
    start: int,
    stop: int,
    rows: Ids,
    begin: Ids,
    at: Ids,
    leaves: Ids,
) -> None:
    """One tree for one tile of rows; those that have arrived leave the list."""
    size = stop - start
    for i in range(size):
        rows[i] = start + i
        begin[i] = (start + i) * m
        at[i] = SIZE * root
    while size > 0:
        for _ in range(PACES):
            for i in range(size):
                node = np.uintp(at[i])
                x = cells[np.uintp(begin[i]) + np.uintp(walk.jump[node + node + FEATURE])]
                passes = x * walk.sign[node + node + SIGN] <= walk.threshold[node]
                at[i] = walk.jump[node + node + FAILS + np.uintp(passes)]
        walking = 0
        for i in range(size):
            node = np.uintp(at[i])
            leaves[np.uintp(rows[i])] = node // np.uintp(SIZE)
            rows[walking], begin[walking], at[walking] = rows[i], begin[i], node
            walking += walk.jump[node + node + FAILS] != at[walking]
        size = walking


def met_before(tree: Tree, n_features: int) -> Keys:
    """(d, words) the features above each node, a bit each."""
    masks = np.zeros((len(tree.feature), -(-n_features // 64)), np.uint64)
    hand_down(tree, masks)
    return masks


@kernel
def hand_down(tree: Tree, masks: Keys) -> None:
    """Every child has met what its parent has, and the parent's feature; parents come first."""
    for node in range(len(tree.feature)):
        if tree.feature[node] == LEAF:
            continue
        if tree.route[node] == BY_CATEGORY:
            first = int(tree.left[node])
            for slot in range(first, first + tree.right[node] + 1):
                if tree.branches[slot] >= 0:
                    meet(node, int(tree.branches[slot]), int(tree.feature[node]), masks)
        else:
            meet(node, int(tree.left[node]), int(tree.feature[node]), masks)
            meet(node, int(tree.right[node]), int(tree.feature[node]), masks)


@inner
def meet(parent: int, child: int, feature: int, masks: Keys) -> None:
    """What one child has met."""
    for word in range(masks.shape[1]):
        masks[child, word] = masks[parent, word]
    masks[child, feature >> 6] |= np.uint64(1) << np.uint64(feature & 63)
