"""A forest: the nodes of its trees end to end, with all that a decision needs, and no compiled code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.costs import Costs
from budgetforest.data.table import Schema
from budgetforest.runtime.arrays import LEAF, Counts, Flags, Floats, Ids
from budgetforest.trees.odds import Odds, odds_of, votes_expected
from budgetforest.trees.tree import BY_CATEGORY, Tree, empty_tree, family, levels

Votes = NDArray[np.int8] | NDArray[np.float64]
"""What leaves add to each class: single votes are a byte, frequencies and counts doubles."""


BELIEF = 2**24
"""Beliefs are whole numbers of 1 / BELIEF: their sums are exact in any order, here and compiled."""

PORTION = 4096
"""Beliefs are computed for so many nodes at a time, which stay near the processor."""

NEVER = 2**62
"""More belief than there can be."""


class Voting(IntEnum):
    """How leaves become scores."""

    MAJORITY = 0
    """One vote per tree, for the majority of its leaf."""
    SOFT = 1
    """The leaf's class frequencies."""
    COUNTS = 2
    """The leaf's class counts (the paper's confidence for ranking)."""
    SCORES = 3
    """Scores of boosted trees, which stand in place of class counts, in units of 1 / ``BELIEF``."""


CHOICES = (Voting.MAJORITY, Voting.SOFT, Voting.COUNTS)
"""What the trees of the paper's method can do."""


class Answer(IntEnum):
    """What a row pays for."""

    LABEL = 0
    """Its label: it stops as soon as no further feature can change it."""
    PROBA = 1
    """Every score: all trees are evaluated (the paper's accounting)."""


class Forest(NamedTuple):
    """Trees ready to predict; child numbers refer to all nodes."""

    nodes: Tree
    roots: Ids
    """(t + 1) the first node of each tree, and the number of nodes."""
    least: Votes
    """(d, k) the least that the leaves below a node add to each class."""
    most: Votes
    """(d, k) the most that they add."""
    open: Flags
    """(d) whether leaves below still differ in what they add; never at a leaf."""
    prior: Counts
    """(k) class counts of all training rows: the answer of a forest without trees."""
    costs: Costs
    schema: Schema
    classes: tuple[Any, ...]
    """(k) the labels."""
    voting: Voting
    unit: float
    """Weight of one count."""
    threshold: float
    """Probable exit: a label is taken when the mean belief in it reaches this; infinite: when certain."""

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots) - 1

    @property
    def enough(self) -> int:
        """The sum of beliefs at which a label is taken."""
        return belief_for(self.threshold, self)


class Context(NamedTuple):
    """What the forests of one training share: everything but the trees."""

    prior: Counts
    costs: Costs
    schema: Schema
    classes: tuple[Any, ...]
    voting: Voting
    unit: float
    threshold: float = math.inf


def belief_for(threshold: float, forest: Forest) -> int:
    """The sum of beliefs, in units of 1 / ``BELIEF``, at which a class is believed to this share.

    Scores of boosted trees add up to 0 over the classes: a share is the leader's if the others are level.
    """
    if (threshold >= 1 and forest.voting == Voting.SCORES) or threshold == math.inf:
        return NEVER
    if forest.voting != Voting.SCORES:
        return math.ceil(threshold * forest.n_trees * BELIEF)
    k = len(forest.classes)
    ahead = math.log(threshold / (1 - threshold) * (k - 1))
    return math.ceil(ahead * (k - 1) / k * BELIEF)


def join(trees: Sequence[Tree], context: Context) -> Forest:
    """A forest of these trees, in this order."""
    nodes, roots = end_to_end(trees, len(context.prior))
    least, most = outlook(nodes, roots[:-1], context.voting)
    still_open = np.einsum(
        "dk->d", least != most
    )  # the sum of flags is their "or": any(axis=1), twice as fast
    return Forest(nodes, roots, least, most, still_open, *context)


def join_forests(forests: Sequence[Forest], context: Context) -> Forest:
    """The same of the trees of some forests, of each of which all is known."""
    nodes, firsts = end_to_end([forest.nodes for forest in forests], len(context.prior))
    roots = [forest.roots[:-1] + first for forest, first in zip(forests, firsts[:-1], strict=True)]
    least = np.concatenate([forest.least for forest in forests])
    most = np.concatenate([forest.most for forest in forests])
    still_open = np.concatenate([forest.open for forest in forests])
    return Forest(
        nodes, np.concatenate([*roots, firsts[-1:]]).astype(np.int32), least, most, still_open, *context
    )


def end_to_end(parts: Sequence[Tree], n_classes: int) -> tuple[Tree, Ids]:
    """The nodes of some trees or forests as one, and the first node of each, and the number of nodes."""
    firsts = np.cumsum([0] + [len(part.feature) for part in parts])
    starts = np.cumsum([0] + [len(part.branches) for part in parts])
    nodes = empty_tree(0, n_classes)
    if parts:
        nodes = Tree._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        root, start = (np.repeat(each[:-1], np.diff(firsts)) for each in (firsts, starts))
        nodes = _renumbered(nodes, root, start, np.repeat(firsts[:-1], np.diff(starts)))
    return nodes, firsts.astype(np.int32)


def beliefs(forest: Forest) -> Ids:
    """(d, k) class frequencies of the training rows at every node, or scores, in units of 1 / ``BELIEF``."""
    counts = forest.nodes.counts
    if forest.voting == Voting.SCORES:
        return counts
    found = np.empty(counts.shape, np.int32)
    for start in range(0, len(counts), PORTION):
        part = counts[start : start + PORTION]
        share: Floats = part / np.maximum(np.einsum("dk->d", part), 1)[:, None]
        share *= BELIEF
        np.rint(share, out=found[start : start + PORTION], casting="unsafe")
    return found


def odds_for(forest: Forest) -> Odds:
    """What the trees expect; computed where rows exit, for forests that score all rows do without."""
    by_level = list(levels(forest.nodes, forest.roots[:-1]))
    return odds_of(forest.nodes, beliefs(forest), forest.open, by_level)


def pull_of(forest: Forest, odds: Odds) -> Counts:
    """(k) what takes the belief of all roots to the base rate, in units of 1 / ``BELIEF``."""
    at_roots: Counts = odds.expected[forest.roots[:-1]].sum(axis=0, dtype=np.int64)
    if forest.voting == Voting.SCORES:
        return log_odds(forest.prior) - at_roots
    total = int(forest.prior.sum())
    base = [int(count) * forest.n_trees * BELIEF // total for count in forest.prior]
    return np.array(base, np.int64) - at_roots


def vote_pull_of(forest: Forest, odds: Odds) -> Floats:
    """(k) what takes the votes of all trees to the base rate when nothing is known."""
    roots = forest.roots[:-1]
    by_level = list(levels(forest.nodes, roots))
    given = votes_expected(forest.nodes, roots, forest.least, odds.until, by_level)
    if forest.voting == Voting.SCORES:
        return log_odds(forest.prior) / BELIEF - given
    base: Floats = forest.prior / forest.prior.sum() * given.sum() - given
    return base


def log_odds(counts: Counts) -> Counts:
    """(k) what classes of these weights score before there are trees."""
    prior = np.log(np.maximum(counts, 0.5) / counts.sum())
    start: Counts = np.rint((prior - prior.mean()) * BELIEF).astype(np.int64)
    return start


def moved(tree: Tree, root: int, start: int) -> Tree:
    """A tree whose numbers refer to the nodes and branches of the whole forest."""
    return _renumbered(tree, root, start, root)


def _renumbered(tree: Tree, root: Any, start: Any, root_of_branch: Any) -> Tree:
    inner = tree.feature != LEAF
    nominal = tree.route == BY_CATEGORY
    left = tree.left + np.where(nominal, start, np.where(inner, root, 0))
    right = tree.right + np.where(inner & ~nominal, root, 0)
    return tree._replace(
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        branches=_shifted(tree.branches, root_of_branch),
    )


def _shifted(branches: Ids, by: Any) -> Ids:
    shifted: Ids = np.where(branches >= 0, branches + by, branches - by).astype(np.int32)
    return shifted


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


def first_trees(forest: Forest, number: int) -> Forest:
    """The forest of the first so many trees, without a copy."""
    stop = int(forest.roots[number])
    parts = [part[:stop] for part in forest.nodes[:-2]]
    return forest._replace(
        nodes=Tree._make([*parts, forest.nodes.branches, forest.nodes.floor[:number]]),
        roots=forest.roots[: number + 1],
        least=forest.least[:stop],
        most=forest.most[:stop],
        open=forest.open[:stop],
    )


def outlook(nodes: Tree, roots: Ids, voting: Voting) -> tuple[Votes, Votes]:
    """The least and the most that the leaves below every node add to each class."""
    least = leaf_votes(nodes.counts, voting)
    most = least.copy()
    # deepest first, so that a node is complete before its parent asks
    for numeric, nominal, slots, sizes in reversed(list(levels(nodes, roots))):
        left, right = nodes.left.take(numeric), nodes.right.take(numeric)
        least[numeric] = np.minimum(least.take(left, 0), least.take(right, 0))
        most[numeric] = np.maximum(most.take(left, 0), most.take(right, 0))
        if len(nominal):
            branches, first = nodes.branches[slots], np.cumsum(sizes) - sizes
            children = np.where(branches >= 0, branches, ~branches)
            least[nominal] = np.minimum.reduceat(least[children], first)
            most[nominal] = np.maximum.reduceat(most[children], first)
    return least, most


def leaf_votes(counts: Ids, voting: Voting) -> Votes:
    """(d, k) what each node would add as a leaf; class ties go to the lowest class."""
    if voting == Voting.COUNTS:
        return counts.astype(np.float64)
    if voting == Voting.SCORES:
        scores: Floats = counts / BELIEF  # exact, as are their sums: BELIEF is a power of two
        return scores
    if voting == Voting.SOFT:
        frequencies: Floats = counts / np.einsum("dk->d", counts)[:, None]
        return frequencies
    votes = np.zeros(counts.shape, np.int8)
    votes[np.arange(len(counts)), counts.argmax(axis=1)] = 1
    return votes


def shares(total: Floats, voting: Voting) -> Floats:
    """(n, k) what all trees give to each class as shares of 1: of boosted trees, probabilities."""
    if voting == Voting.SCORES:
        total = np.exp(total - total.max(axis=1, keepdims=True))
    part: Floats = total / total.sum(axis=1, keepdims=True)
    return part


def slack_of(forest: Forest) -> float:
    """How far a leader must be ahead to be certain: sums of frequencies round, others are exact."""
    return 1e-9 * forest.n_trees if forest.voting == Voting.SOFT else 0.0


def importances(forest: Forest) -> Floats:
    """(m) each feature's share in the drop of Gini impurity, weighted by rows; boosted, of the loss."""
    nodes = forest.nodes
    size = nodes.counts.sum(axis=1)
    mixed = size - (nodes.counts.astype(np.float64) ** 2).sum(axis=1) / np.maximum(size, 1)
    if forest.voting == Voting.SCORES:
        mixed = nodes.impurity
    parent = family(nodes, forest.roots[:-1]).parent
    inner, child = nodes.feature != LEAF, parent >= 0
    m = len(forest.costs.cost)
    drop: Floats = np.bincount(nodes.feature[inner], mixed[inner], m).astype(np.float64)
    drop -= np.bincount(nodes.feature[parent[child]], mixed[child], m)
    total = drop.sum()
    return drop / total if total > 0 else drop
