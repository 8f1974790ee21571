"""A grown tree: flat arrays in preorder, and its walk.

Node 0 is the root; the left child of a node follows it. ``x <= threshold`` goes left. A nominal node has
one child per category present in training: its ``left`` is a position in ``branches`` and its ``right``
the number of categories; the branch after the last category serves missing and unseen ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from budgetforest.runtime.arrays import LEAF, Floats, Ids

MISSING_RIGHT, MISSING_LEFT, BY_CATEGORY = 0, 1, 2
UNSEEN = 4
"""Added to a side: training had no missing value at the node, and that side is only the larger one."""


class Tree(NamedTuple):
    """Nodes of one tree; also, end to end, of all trees of a forest."""

    feature: Ids
    """(d) the feature asked for, ``LEAF`` (-1) at a leaf."""
    threshold: Floats
    """(d) NaN at leaves and nominal nodes; +inf sends every value left and only missing right."""
    left: Ids
    """(d) child of values at or below the threshold; for a nominal node, a position in ``branches``."""
    right: Ids
    """(d) child of values above the threshold; for a nominal node, its number of categories."""
    route: np.ndarray[tuple[int], np.dtype[np.uint8]]
    """(d) where missing values go: ``MISSING_RIGHT``, ``MISSING_LEFT`` or ``BY_CATEGORY``; with ``UNSEEN``
    added where training had none, so that they are averaged over."""
    counts: Ids
    """(d, k) class counts of the training rows, in units of weight; all rows weigh at most 2**30."""
    impurity: Floats
    """(d) F of the counts."""
    weight: Ids
    """(d) training rows, in units of weight; of boosted trees those that were drawn."""
    branches: Ids
    """Children of the nominal nodes, one after the other; ``~child`` where training had no row."""
    floor: Floats
    """(1, or one per tree) least cost per drop of impurity at the root, see ``certificate``."""


def empty_tree(n_nodes: int, n_classes: int) -> Tree:
    """Room for so many nodes, all of them leaves without rows."""
    return Tree(
        feature=np.full(n_nodes, LEAF, np.int32),
        threshold=np.full(n_nodes, np.nan),
        left=np.full(n_nodes, -1, np.int32),
        right=np.full(n_nodes, -1, np.int32),
        route=np.zeros(n_nodes, np.uint8),
        counts=np.zeros((n_nodes, n_classes), np.int32),
        impurity=np.zeros(n_nodes),
        weight=np.zeros(n_nodes, np.int32),
        branches=np.empty(0, np.int32),
        floor=np.full(1, np.inf),
    )


def room_for_nodes(most: int, n_classes: int) -> Tree:
    """Room for at most so many nodes; a node that is never written takes no memory."""
    return Tree(
        feature=np.empty(most, np.int32),
        threshold=np.empty(most),
        left=np.empty(most, np.int32),
        right=np.empty(most, np.int32),
        route=np.empty(most, np.uint8),
        counts=np.empty((most, n_classes), np.int32),
        impurity=np.empty(most),
        weight=np.empty(most, np.int32),
        branches=np.empty(0, np.int32),
        floor=np.full(1, np.inf),
    )


def only_first(tree: Tree, size: int) -> Tree:
    """A tree of which so many nodes were used, in place: the rest of its memory is given back."""
    for part in tree[:-2]:
        part.resize((size, *part.shape[1:]), refcheck=False)
    return tree


def weighed(tree: Tree) -> Tree:
    """A tree whose class counts tell what its nodes weigh."""
    return tree._replace(weight=np.einsum("dk->d", tree.counts))


def next_node(tree: Tree, node: int, value: float) -> int:
    """The child that a value leads to; one that training did not have goes to the larger child."""
    route = tree.route[node]
    if route == BY_CATEGORY:
        categories = tree.right[node]
        at = categories
        if 0 <= value < categories:  # False for NaN
            at = int(value)
        child = tree.branches[tree.left[node] + at]
        return int(child if child >= 0 else ~child)
    if value != value:  # NaN
        return int(tree.left[node] if route & MISSING_LEFT else tree.right[node])
    return int(tree.left[node] if value <= tree.threshold[node] else tree.right[node])


class Level(NamedTuple):
    """Nodes of the same depth that split."""

    numeric: Ids
    nominal: Ids
    slots: Ids
    """Positions in ``branches`` of the nominal nodes' children, node after node."""
    sizes: Ids
    """How many each nominal node has."""


def levels(tree: Tree, roots: Ids) -> Iterator[Level]:
    """The nodes below ``roots`` that split, level by level."""
    level = roots
    while len(level):
        level = level[tree.feature.take(level) != LEAF]
        by_category = tree.route.take(level) == BY_CATEGORY
        numeric, nominal = level[~by_category], level[by_category]
        sizes = tree.right.take(nominal) + 1
        slots = np.repeat(tree.left.take(nominal) - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        yield Level(numeric, nominal, slots, sizes)
        branches = tree.branches[slots]
        level = np.concatenate([tree.left.take(numeric), tree.right.take(numeric), branches[branches >= 0]])


class Family(NamedTuple):
    """How nodes hang together."""

    parent: Ids
    """(d) the parent of each node, -1 at roots."""
    depth: Ids
    """(d) the number of nodes above each node."""


def family(tree: Tree, roots: Ids) -> Family:
    """Parents and depths of all nodes below ``roots``."""
    parent = np.full(len(tree.feature), -1, np.int32)
    depth = np.zeros(len(tree.feature), np.int32)
    for deeper, (numeric, nominal, slots, sizes) in enumerate(levels(tree, roots), 1):
        branches = tree.branches[slots]
        own = branches >= 0
        for children, above in (
            (tree.left[numeric], numeric),
            (tree.right[numeric], numeric),
            (branches[own], np.repeat(nominal, sizes)[own]),
        ):
            parent[children], depth[children] = above, deeper
    return Family(parent, depth)
