"""A forest: the nodes of its trees end to end, and what rows get from it and pay for it.

A row pays for each feature it meets in any tree, once for the whole forest, in the order it meets them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Flags, Floats, Ids, Matrix
from budgetforest.costs import Costs
from budgetforest.jit import kernel
from budgetforest.tree import BY_CATEGORY, Tree, child_of, empty_tree, leaf_of, parents

BLOCK = 4096
"""Rows evaluated at a time; results do not depend on it."""


class Voting(IntEnum):
    """How leaves become scores."""

    MAJORITY = 0
    """One vote per tree, for the majority of its leaf."""
    SOFT = 1
    """The leaf's class frequencies."""
    COUNTS = 2
    """The leaf's class counts (the paper's confidence for ranking)."""


MAJORITY, SOFT, COUNTS = (int(voting) for voting in Voting)


class Forest(NamedTuple):
    """Trees ready to predict; child numbers refer to all nodes."""

    nodes: Tree
    roots: Ids
    """(t + 1) the first node of each tree, and the number of nodes."""
    prior: Counts
    """(k) class counts of all training rows: the answer of a forest without trees."""
    costs: Costs
    unit: float
    """Weight of one count."""

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots) - 1


class Ledger(NamedTuple):
    """What rows have paid so far."""

    acquired: Flags
    """(n, m) which features."""
    opened: Flags
    """(n, groups) which groups."""
    spent: Floats
    """(n) how much in all."""


def join(trees: Sequence[Tree], prior: Counts, costs: Costs, unit: float = 1.0) -> Forest:
    """A forest of these trees, in this order."""
    sizes = [len(tree.feature) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    starts = np.cumsum([0] + [len(tree.branches) for tree in trees]).astype(np.int32)
    moved = [
        _moved(tree, int(root), int(start))
        for tree, root, start in zip(trees, roots[:-1], starts[:-1], strict=True)
    ]
    nodes = Tree(*map(np.concatenate, zip(*moved, strict=True))) if moved else empty_tree(0, len(prior))
    return Forest(nodes, roots, prior, costs, unit)


def _moved(tree: Tree, root: int, start: int) -> Tree:
    """A tree whose numbers refer to the nodes and branches of the whole forest."""
    inner = tree.feature != LEAF
    nominal = tree.route == BY_CATEGORY
    left = tree.left + np.where(nominal, start, np.where(inner, root, 0))
    right = tree.right + np.where(inner & ~nominal, root, 0)
    return tree._replace(
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        branches=_shifted(tree.branches, root),
    )


def _shifted(branches: Ids, by: int) -> Ids:
    return np.where(branches >= 0, branches + by, branches - by).astype(np.int32)


def open_ledger(n_rows: int, costs: Costs) -> Ledger:
    """A ledger of rows that have paid nothing."""
    return Ledger(
        np.zeros((n_rows, len(costs.cost)), bool),
        np.zeros((n_rows, len(costs.group_names)), bool),
        np.zeros(n_rows),
    )


def scores(forest: Forest, X: Matrix, voting: Voting, pool: Executor | None = None) -> Floats:
    """(n, k) summed votes of every row; the prior where there are no trees."""
    total = np.zeros((len(X), len(forest.prior)))
    if forest.n_trees == 0:
        return total + forest.prior

    def block(start: int) -> None:
        part = np.require(X[start : start + BLOCK], requirements=["C", "W"])
        leaves = np.empty((forest.n_trees, len(part)), np.int32)
        leaves_of(forest.nodes, forest.roots, part, leaves)
        add_scores(forest.nodes.counts, leaves, int(voting), total[start : start + BLOCK])

    _for_blocks(block, len(X), pool)
    return total


def charge(forest: Forest, X: Matrix, pool: Executor | None = None) -> Ledger:
    """What every row acquires and pays."""
    ledger = open_ledger(len(X), forest.costs)

    def block(start: int) -> None:
        part = np.require(X[start : start + BLOCK], requirements=["C", "W"])
        rows = Ledger._make(part[start : start + BLOCK] for part in ledger)
        leaves = np.empty((forest.n_trees, len(part)), np.int32)
        charge_rows(forest.nodes, forest.roots, part, *forest.costs[:3], rows, leaves)

    _for_blocks(block, len(X), pool)
    return ledger


def _for_blocks(block: Callable[[int], None], n_rows: int, pool: Executor | None) -> None:
    starts = range(0, n_rows, BLOCK)
    list(pool.map(block, starts) if pool else map(block, starts))


class Meter:
    """Adds trees to a forest one by one and tells its mean cost and error on validation rows."""

    def __init__(self, X: Matrix, label: Ids, weight: Floats, costs: Costs, n_classes: int) -> None:
        self.X = np.require(X, requirements=["C", "W"])
        self.label, self.costs = label, costs
        self.share = weight / math.fsum(weight)
        self.ledger = open_ledger(len(X), costs)
        self.scores = np.zeros((len(X), n_classes))

    def add(self, tree: Tree, voting: Voting) -> tuple[float, float]:
        """Mean cost and error of the forest with one more tree."""
        leaves = np.empty((1, len(self.X)), np.int32)
        roots = np.array([0, len(tree.feature)], np.int32)
        charge_rows(tree, roots, self.X, *self.costs[:3], self.ledger, leaves)
        add_scores(tree.counts, leaves, int(voting), self.scores)
        wrong = self.scores.argmax(axis=1) != self.label
        # fsum: the same mean whatever the order of the rows
        return math.fsum(self.share * self.ledger.spent), math.fsum(self.share[wrong])


@kernel
def leaves_of(nodes: Tree, roots: Ids, X: Matrix, leaves: Ids) -> None:
    """``leaves[t, i]`` = the leaf of row i in tree t."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            leaves[t, i] = leaf_of(nodes, roots[t], X[i])


@kernel
def charge_rows(
    nodes: Tree,
    roots: Ids,
    X: Matrix,
    cost: Floats,
    discount: Floats,
    group: Ids,
    ledger: Ledger,
    leaves: Ids,
) -> None:
    """The same walk, paying for what was not acquired before."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            node = roots[t]
            while nodes.feature[node] != LEAF:
                j = nodes.feature[node]
                if not ledger.acquired[i, j]:
                    ledger.acquired[i, j] = True
                    opened = ledger.opened[i, group[j]]
                    ledger.spent[i] += discount[j] if opened else cost[j]
                    ledger.opened[i, group[j]] = True
                node = child_of(nodes, node, X[i, j])
            leaves[t, i] = node


@kernel
def add_scores(counts: Counts, leaves: Ids, voting: int, scores: Floats) -> None:
    """Add every tree's vote to the scores; class ties in a leaf go to the lowest class."""
    k = scores.shape[1]
    for t in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            leaf = counts[leaves[t, i]]
            size = 0
            top = 0
            for c in range(k):
                size += leaf[c]
                if leaf[c] > leaf[top]:
                    top = c
            if voting == MAJORITY:
                scores[i, top] += 1.0
            elif voting == SOFT:
                for c in range(k):
                    scores[i, c] += leaf[c] / size
            else:
                for c in range(k):
                    scores[i, c] += leaf[c]


def tree_of(forest: Forest, number: int) -> Tree:
    """One tree of a forest, its numbers its own again."""
    first, last = int(forest.roots[number]), int(forest.roots[number + 1])
    parts = [part[first:last] for part in forest.nodes[:-2]]
    nodes = Tree._make([*parts, forest.nodes.branches, forest.nodes.floor[number : number + 1]])
    inner, nominal = nodes.feature != LEAF, nodes.route == BY_CATEGORY
    starts = nodes.left[nominal]
    start = int(starts.min()) if len(starts) else 0
    stop = int((starts + nodes.right[nominal] + 1).max()) if len(starts) else 0
    return nodes._replace(
        left=nodes.left - np.where(nominal, start, np.where(inner, first, 0)).astype(np.int32),
        right=nodes.right - np.where(inner & ~nominal, first, 0).astype(np.int32),
        branches=_shifted(nodes.branches[start:stop], -first),
    )


def importances(forest: Forest) -> Floats:
    """(m) each feature's share in the drop of Gini impurity, weighted by rows."""
    nodes = forest.nodes
    size = nodes.counts.sum(axis=1)
    mixed = size - (nodes.counts.astype(np.float64) ** 2).sum(axis=1) / np.maximum(size, 1)
    parent = parents(nodes)
    inner, child = nodes.feature != LEAF, parent >= 0
    m = len(forest.costs.cost)
    drop: Floats = np.bincount(nodes.feature[inner], mixed[inner], m).astype(np.float64)
    drop -= np.bincount(nodes.feature[parent[child]], mixed[child], m)
    total = drop.sum()
    return drop / total if total > 0 else drop
