"""Compiled walks to the leaf of a row, and the features above each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    """Numeric trees packed for walking many rows in step, 16 bytes a node.

    Siblings stand side by side, the right one first: the next place is where they begin, plus 1 for a value
    that passes, so there is no choice that LLVM could make a branch of. A leaf, where no value passes, leads
    to itself, so no row need stop. Missing values pass nowhere; where they go left, the node asks for a copy
    of its column in which they are lower than any number. Rows without gaps need no copies.
    """

    threshold: Floats
    """(2 d) at twice the place of a node; NaN at leaves."""
    word: Keys
    """(2 d) the same memory; after the threshold the place of the children, in the lower half the column."""
    node: Ids
    """(d) which node stands at each place; roots stand where they were."""
    copied: Ids
    """The features of second columns, which come after all first ones."""


TILE = 64
"""Rows that walk in step; they and their places stay in the nearest cache."""

PACES = 4
"""Steps between looks at who has arrived."""

HALF, LOWER, ONE = np.uint64(32), np.uint64(2**32 - 1), np.uintp(1)


def paces(tree: Tree, roots: Ids, n_features: int, gaps: bool) -> Paces:
    """Pack trees, none of them nominal, for rows with ``gaps`` or without."""
    goes_left = (tree.route == MISSING_LEFT) & (tree.feature != LEAF)
    copied = np.unique(tree.feature[goes_left]) if gaps else np.empty(0, np.int32)
    column = np.arange(2 * n_features, dtype=np.int32) % n_features
    column[n_features + copied] = n_features + np.arange(len(copied))
    packed = np.empty(2 * len(tree.feature))
    walk = Paces(packed, packed.view(np.uint64), np.empty_like(tree.feature), copied)
    pack_nodes(tree, roots, column, walk, np.empty_like(tree.feature))
    return walk


@kernel
def pack_nodes(tree: Tree, roots: Ids, column: Ids, walk: Paces, place: Ids) -> None:
    """Fill ``walk``, node after node, parents first; ``place`` (d) is room for where each one stands.

    ``column`` (2 m) is the column of each feature where missing values go right, and where they go left.
    """
    m = len(column) // 2
    for t in range(len(roots) - 1):
        root = int(np.int64(roots[t]))
        place[root] = root
        free = root + 1
        for node in range(root, int(np.int64(roots[t + 1]))):
            at = int(np.int64(place[node]))
            walk.node[at] = node
            if tree.feature[node] == LEAF:
                walk.threshold[2 * at] = np.nan
                walk.word[2 * at + 1] = np.uint64(at) << HALF
            else:
                asked = column[tree.feature[node] + m * (tree.route[node] == MISSING_LEFT)]
                walk.threshold[2 * at] = tree.threshold[node]
                walk.word[2 * at + 1] = (np.uint64(free) << HALF) | np.uint64(asked)
                place[tree.right[node]] = free
                place[tree.left[node]] = free + 1
                free += 2


def with_copies(walk: Paces, X: Matrix) -> Matrix:
    """The rows, and the second columns behind."""
    if not len(walk.copied):
        return X
    copies = X[:, walk.copied]
    copies[np.isnan(copies)] = -np.inf
    return np.concatenate([X, copies], axis=1)


@kernel
def leaves_in_step(walk: Paces, roots: Ids, X: Matrix, room: Ids, leaves: Ids) -> None:
    """The same as ``leaves_of`` for many rows: independent steps, no branch to mispredict.

    Trees one after the other: of a deep one the caches hold the nodes, but not of all. ``X`` has second
    columns; ``room`` (2, ``TILE``) is for rows on their way and where they are.
    """
    cells = X.reshape(-1)
    for t in range(len(roots) - 1):
        for start in range(0, len(X), TILE):
            stop = min(start + TILE, len(X))
            walk_tile(walk, roots[t], cells, X.shape[1], start, stop, room[0], room[1], leaves[t])


@inner
def walk_tile(
    walk: Paces, root: int, cells: Matrix, m: int, start: int, stop: int, rows: Ids, at: Ids, leaves: Ids
) -> None:
    """One tree for one tile of rows; those that have arrived leave the list."""
    size = stop - start
    for i in range(size):
        rows[i] = start + i
        at[i] = root
    while size > 0:
        for i in range(size):
            place = np.uintp(at[i])
            begin = np.uintp(rows[i]) * np.uintp(m)
            for _ in range(PACES):
                word = walk.word[place + place + ONE]
                passes = cells[begin + np.uintp(word & LOWER)] <= walk.threshold[place + place]
                place = np.uintp(word >> HALF) + np.uintp(passes)
            at[i] = place
        walking = 0
        for i in range(size):
            place = np.uintp(at[i])
            leaves[np.uintp(rows[i])] = at[i]
            rows[walking], at[walking] = rows[i], at[i]
            walking += walk.threshold[place + place] == walk.threshold[place + place]
        size = walking
    for i in range(start, stop):
        leaves[i] = walk.node[np.uintp(leaves[i])]


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
