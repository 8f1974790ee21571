"""Compiled walks of single rows to their leaves: few rows, trees with nominal nodes, or values that are lost.

A value is *lost* at a node if it is missing, or a category, and training had no such row there. The tree then
gives the mean of both sides, each by its training weight, and so on below. The more trees lose the value that
they ask for first, the more their sum is drawn to the base rate, as far as their leaves allow.
``inference.batch_walk`` stands apart: it packs numeric trees first, which only many rows are worth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import LEAF, Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.odds import WHOLE
from budgetforest.trees.tree import BY_CATEGORY, UNSEEN, Tree, next_node

child_of = inner(next_node)
"""Compiled for 64-bit nodes: who starts from a 32-bit one widens it, or numba compiles all twice."""


@inner
def is_lost(tree: Tree, node: int, value: float) -> bool:
    """Whether training had no such value at a node, so that nothing tells where it belongs."""
    if tree.route[node] != BY_CATEGORY:
        return bool((value != value) & (tree.route[node] >= UNSEEN))
    categories = tree.right[node]
    at = int(value) if 0 <= value < categories else int(np.int64(categories))
    return bool(tree.branches[tree.left[node] + at] < 0)


@kernel
def visit_leaves(
    tree: Tree, roots: Ids, votes: Any, X: Matrix, total: Floats, met: Keys, lost: Flags
) -> None:
    """Add to each row's scores what its leaves give, (d, k) ``votes``, tree after tree.

    The features it meets on its way become bits of ``met`` (n, words), if that has room for them. A row that
    loses its way is only noted in ``lost`` (n).
    """
    before = np.empty(votes.shape[1])
    for i in range(len(X)):
        before[:] = total[i]
        for t in range(len(roots) - 1):
            node = int(np.int64(roots[t]))
            while tree.feature[node] != LEAF and not lost[i]:
                feature = tree.feature[node]
                # no words where nobody asks what rows pay
                if met.shape[1] > 0:
                    met[i, feature >> 6] |= np.uint64(1) << np.uint64(feature & 63)
                lost[i] = is_lost(tree, node, X[i, feature])
                node = child_of(tree, node, X[i, feature])
            for c in range(votes.shape[1]):
                total[i, c] += votes[node, c]
        if lost[i]:
            total[i] = before


class Sides(NamedTuple):
    """Room for the nodes of a tree on all sides of lost values, parents first."""

    node: Ids
    """Which nodes."""
    parent: Ids
    """The place of each one's parent in this list."""
    share: Floats
    """Its share in what the parent gives."""
    gives: Floats
    """(nodes, k) what it gives to each class."""
    ends: Floats
    """(2, k) the least and the most that all trees of a row may give."""


def sides_for(n_nodes: int, n_classes: int) -> Sides:
    """What is never written takes no memory."""
    return Sides(
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes),
        np.empty((n_nodes, n_classes)),
        np.zeros((2, n_classes)),
    )


@kernel
def visit_all_sides(
    tree: Tree,
    roots: Ids,
    until: Any,
    votes: Floats,
    X: Matrix,
    total: Floats,
    met: Keys,
    pull: Floats,
    n_open: int,
    room: Sides,
) -> None:
    """The same as ``visit_leaves`` for rows that have lost their way, on all sides of what is lost.

    ``pull`` (k) is what takes the votes to the base rate when all of the ``n_open`` trees know nothing.
    """
    for i in range(len(X)):
        room.ends[:], lost = 0.0, 0
        for t in range(len(roots) - 1):
            root = int(np.int64(roots[t]))
            size = list_sides(tree, root, until, X, i, room)
            if met.shape[1] > 0:
                for place in range(size):
                    feature = tree.feature[room.node[place]]
                    if feature != LEAF:
                        met[i, feature >> 6] |= np.uint64(1) << np.uint64(feature & 63)
            add_mean(tree, votes, size, room, total[i])
            if add_ends(tree, votes, size, room) and is_lost(tree, root, X[i, tree.feature[root]]):
                lost += 1
        draw_to_base_rate(total[i], pull, lost, n_open, room)


@inner
def add_ends(tree: Tree, votes: Floats, size: int, room: Sides) -> bool:
    """Add to the ends of a row the least and the most that the listed leaves give; whether these differ."""
    differ = False
    for c in range(votes.shape[1]):
        least, most = np.inf, -np.inf
        for place in range(size):
            node = room.node[place]
            if tree.feature[node] == LEAF:
                least, most = min(least, votes[node, c]), max(most, votes[node, c])
        room.ends[0, c] += least
        room.ends[1, c] += most
        differ = differ or least != most
    return differ


@inner
def draw_to_base_rate(total: Floats, pull: Floats, lost: int, n_open: int, room: Sides) -> None:
    """Draw what all trees give to the base rate by the share of them that know nothing."""
    if lost > 0:
        for c in range(len(total)):
            drawn = total[c] + pull[c] * (lost / n_open)
            total[c] = min(max(drawn, room.ends[0, c]), room.ends[1, c])


@inner
def list_sides(tree: Tree, root: int, until: Any, X: Matrix, i: int, room: Sides) -> int:
    """List the nodes of a tree that a row comes to, parents first; how many."""
    room.node[0], room.parent[0], room.share[0] = root, -1, 1.0
    size, place = 1, 0
    while place < size:
        node = int(np.int64(room.node[place]))
        feature = tree.feature[node]
        if feature == LEAF:
            pass
        elif not is_lost(tree, node, X[i, feature]):
            size = put_side(child_of(tree, node, X[i, feature]), place, 1.0, size, room)
        elif tree.route[node] != BY_CATEGORY:
            share = until[tree.left[node]] * (1.0 / WHOLE)
            size = put_side(int(np.int64(tree.left[node])), place, share, size, room)
            size = put_side(int(np.int64(tree.right[node])), place, 1.0 - share, size, room)
        else:
            first, before = int(np.int64(tree.left[node])), 0.0
            for branch in range(first, first + int(np.int64(tree.right[node])) + 1):
                child = int(np.int64(tree.branches[branch]))
                if child >= 0:
                    upto = until[child] * (1.0 / WHOLE)
                    size = put_side(child, place, upto - before, size, room)
                    before = upto
        place += 1
    return size


@inner
def put_side(node: int, parent: int, share: float, size: int, room: Sides) -> int:
    """Add a node to the list."""
    room.node[size], room.parent[size], room.share[size] = node, parent, share
    return size + 1


@inner
def add_mean(tree: Tree, votes: Floats, size: int, room: Sides, total: Floats) -> None:
    """Add to the scores of a row what the listed nodes of a tree give, from the leaves up."""
    k = votes.shape[1]
    for place in range(size - 1, -1, -1):
        node, up = room.node[place], room.parent[place]
        if tree.feature[node] == LEAF:
            for c in range(k):
                room.gives[place, c] = votes[node, c]
        # siblings stand side by side: all of them are known when the first one is
        if place > 0 and room.parent[place - 1] != up:
            for c in range(k):
                room.gives[up, c] = mean_of_siblings(place, size, c, room)
    for c in range(k):
        total[c] += room.gives[0, c]


@inner
def mean_of_siblings(first: int, size: int, c: int, room: Sides) -> float:
    """What siblings give to a class; where they agree no mean is taken, which might round."""
    total, same, place = 0.0, True, first
    while place < size and room.parent[place] == room.parent[first]:
        total += room.share[place] * room.gives[place, c]
        same = same and room.gives[place, c] == room.gives[first, c]
        place += 1
    return float(room.gives[first, c]) if same else total
