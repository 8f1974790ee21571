"""What a tree expects of values that it does not know: how likely each child is, and what hangs on it.

A node whose feature is unknown answers with the mean of its children, each by its training weight. All of it
is in whole numbers, so that the plain and the compiled walk agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import LEAF, Counts, Flags, Floats, Ids
from budgetforest.trees.tree import Level, Tree, levels

WHOLE = 2**15
"""Shares of children are whole numbers of 1 / WHOLE."""
SHIFT = 15
"""A product of a share is divided by ``WHOLE`` by a shift, which rounds down."""
REACH = 2**20
"""A tree shares out so many parts of itself among its leaves, in whole numbers,"""
FOLLOWED = REACH // 16
"""and is followed into nodes that get so many of them or more."""


class Odds(NamedTuple):
    """Of every node, in whole numbers."""

    until: np.ndarray[tuple[int], np.dtype[np.uint16]]
    """(d) the share of its parent up to this child, the children before it included."""
    expected: Ids
    """(d, k) what it believes with nothing known below: the mean of its leaves by their training weight."""
    gain: Ids
    """(d) how far its question moves that: a standard deviation, 1 or more; 0 where no vote can change."""


def odds_of(nodes: Tree, belief: Ids, is_open: Flags, by_level: Sequence[Level]) -> Odds:
    """The odds of trees end to end, deepest level first; ``belief`` (d, k) is that of leaves."""
    until, expected = np.full(len(belief), WHOLE, np.uint16), belief.astype(np.int64)
    explained = np.zeros(len(belief))
    for level in reversed(by_level):
        parents, starts, children = children_of(nodes, level)
        if not len(parents):
            continue
        upto = _shares_up_to(nodes.weight.take(children).astype(np.int64), starts)
        until[children] = upto
        part = np.diff(upto, prepend=0)
        part[starts] = upto[starts]
        owner = np.repeat(np.arange(len(parents)), np.diff([*starts, len(children)]))
        # class by class: sums of a row may round otherwise on other machines
        for c in range(belief.shape[1]):
            below = expected[:, c].take(children)
            mean = np.add.reduceat(part * below, starts) >> SHIFT
            expected[parents, c] = mean
            apart = (below - mean[owner]).astype(np.float64)
            explained[parents] += np.bincount(owner, part * np.square(apart))
    moved = np.maximum(np.rint(np.sqrt(explained / WHOLE)), 1)
    return Odds(until, expected.astype(np.int32), np.where(is_open, moved, 0).astype(np.int32))


def votes_expected(nodes: Tree, roots: Ids, votes: Any, until: Any, by_level: Sequence[Level]) -> Floats:
    """(k) what trees end to end give with nothing known: the mean of their leaves by training weight."""
    gives: Floats = votes.astype(np.float64)
    for level in reversed(by_level):
        parents, starts, children = children_of(nodes, level)
        if not len(parents):
            continue
        part = np.diff(until[children].astype(np.int64), prepend=0)
        part[starts] = until[children[starts]]
        for c in range(gives.shape[1]):
            gives[parents, c] = np.add.reduceat(part * gives[children, c], starts) / WHOLE
    total: Floats = gives[roots].sum(axis=0)
    return total


def children_of(nodes: Tree, level: Level) -> tuple[Ids, Counts, Ids]:
    """The nodes of a level, where the children of each begin, and these, node after node."""
    both = np.stack([nodes.left.take(level.numeric), nodes.right.take(level.numeric)], axis=1).ravel()
    branches = nodes.branches[level.slots]
    own = branches >= 0
    n = len(level.sizes)
    of_nominal = np.bincount(np.repeat(np.arange(n), level.sizes)[own], minlength=n)
    sizes = np.concatenate([np.full(len(level.numeric), 2), of_nominal]).astype(np.int64)
    parents = np.concatenate([level.numeric, level.nominal])
    return parents, np.cumsum(sizes) - sizes, np.concatenate([both, branches[own]])


def _shares_up_to(weight: Counts, starts: Counts) -> Counts:
    """The share of each child and those before it in the weight of all; alike where there is none."""
    sizes = np.diff([*starts, len(weight)])
    weight = np.where(np.repeat(np.add.reduceat(weight, starts) > 0, sizes), weight, 1)
    total, running = np.add.reduceat(weight, starts), np.cumsum(weight)
    before = running[starts] - weight[starts]
    share: Floats = (running - np.repeat(before, sizes)) / np.repeat(total, sizes)
    return np.rint(share * WHOLE).astype(np.int64)


def leaves_alike(tree: Tree) -> Tree:
    """A tree whose weights are not told: every leaf counts alike."""
    weight = (tree.feature == LEAF).astype(np.int32)
    for numeric, nominal, slots, sizes in reversed(list(levels(tree, np.zeros(1, np.int32)))):
        weight[numeric] = weight[tree.left[numeric]] + weight[tree.right[numeric]]
        branches = tree.branches[slots]
        owner = np.repeat(nominal, sizes)
        np.add.at(weight, owner[branches >= 0], weight[branches[branches >= 0]])
    return tree._replace(weight=weight)
