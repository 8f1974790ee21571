"""A forest as the kernels of exits take it: numbers side by side, and what each feature may move.

Values are compared by rank among all thresholds of their feature; an unknown value has none, so one look
tells whether it is known and where it leads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import LEAF, Counts, Floats, Ids, Keys, in_lines
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import ONE
from budgetforest.runtime.simd import OCTET
from budgetforest.trees.forest import Answer, Forest, Voting, odds_for, pull_of, slack_of, vote_pull_of
from budgetforest.trees.odds import SHIFT, WHOLE
from budgetforest.trees.tree import BY_CATEGORY, UNSEEN, Tree

SLOT, RANK, LEFT, RIGHT, UNTIL, START, STOP, BELOW = range(8)
OWN = BELOW + 4
"""What is read of a node in one go: where the rank of the value stands, the largest that goes left, children,
the share of the left one, where its moves are listed; then what is asked for at and below the left and the
right child and at the node itself, a bit for each feature modulo 64, in two halves each."""
LINE = 16
"""It fills a line of the cache."""
SLOTS = 3
"""For each feature: its rank where missing values go right, where they go left, where training had none."""
UNKNOWN, NOMINAL, ABOVE_ALL = -1, -1, 2**31 - 1
"""Ranks of a value that is not there yet, of a nominal node, and of a value that always goes right."""


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    steps: Ids
    """(d, 16) what is read of every node, side by side."""
    feature: Ids
    """(d) what every node asks for, -1 where no step can change the answer."""
    below: Keys
    """(d) the features asked for at and below it, a bit each, modulo 64."""
    cuts: Floats
    """The different thresholds of each feature, ascending, and infinities up to a power of two less one."""
    begin: Ids
    """(m) where those of each feature begin."""
    halvings: Ids
    """(m) which power that is."""
    nodes: Tree
    """The same nodes, for nominal ones."""
    until: np.ndarray[tuple[int], np.dtype[np.uint16]]
    """(d) the share of its parent up to this child."""
    roots: Ids
    said: Floats
    """(d, width) what every node says with nothing known below it: what it expects, k whole numbers in
    units of 1 / ``BELIEF``; the least, negated, and the most that its leaves add to each class."""
    votes: Floats
    """(d, k) what every node would add as a leaf."""
    mover: Ids
    """Features that may move what a node expects, node after node."""
    moves: Ids
    """How far each of them may."""
    pull: Floats
    """(k) what brings the belief of all trees to the base rate when nothing is known."""
    vote_pull: Floats
    """(k) the same of their votes."""
    n_open: int
    """How many trees are open at their root."""
    scored: bool
    """Whether trees add scores; then belief stays within what they can still say."""
    for_labels: bool
    """Whether a tree has said all as soon as its leaves that may still be reached agree."""
    slack: float
    asked: Ids
    """The features that some node asks for, ascending."""
    sensors: bool
    """Whether some price buys several features."""


def walked_for(forest: Forest, answer: Answer) -> Walked:
    """A forest without its names; for probabilities no tree has said all before its leaf."""
    nodes, odds, m, k = forest.nodes, odds_for(forest), len(forest.costs.cost), len(forest.prior)
    asks = forest.open if answer == Answer.LABEL else nodes.feature != LEAF
    feature = np.where(asks, nodes.feature, np.int32(LEAF))
    nominal = nodes.route == BY_CATEGORY
    slot = SLOTS * feature + np.where(nodes.route & UNSEEN, 2, nodes.route & 1)
    rank, cuts, begin, halvings = ranked(nodes.threshold, np.where(nominal, LEAF, feature), m)
    left, right = (np.where(asks & ~nominal, child, 0) for child in (nodes.left, nodes.right))
    steps = in_lines((len(asks), LINE), np.int32)
    for place, column in enumerate((np.where(asks, slot, SLOTS * m), rank, left, right, odds.until[left])):
        steps[:, place] = column
    below = np.zeros(len(asks), np.uint64)
    mover, moves = list_moves(nodes, feature, odds.until, odds.gain, steps, below, np.zeros(m, np.int64))
    own = np.where(asks, np.uint64(1) << (feature & 63).astype(np.uint64), np.uint64(0))
    steps[:, BELOW : OWN + 2] = np.stack([below[left], below[right], own], axis=1).view(np.int32)
    said = in_lines((len(asks), width_of(k)), np.float64)
    said[:, :k] = odds.expected
    said[:, k : 2 * k], said[:, 2 * k : 3 * k] = -forest.least.astype(np.float64), forest.most
    costs = forest.costs
    return Walked(
        steps=steps,
        feature=feature,
        below=below,
        cuts=cuts,
        begin=begin,
        halvings=halvings,
        nodes=nodes,
        until=odds.until,
        roots=forest.roots,
        said=said,
        votes=forest.least.astype(np.float64),
        mover=mover,
        moves=moves,
        pull=pull_of(forest, odds).astype(np.float64),
        vote_pull=vote_pull_of(forest, odds),
        n_open=int(forest.open[forest.roots[:-1]].sum()),
        scored=forest.voting == Voting.SCORES,
        for_labels=answer == Answer.LABEL,
        slack=slack_of(forest),
        asked=np.flatnonzero(np.bincount(feature[asks], minlength=m)).astype(np.int32),
        sensors=bool((costs.shared & (costs.discount == 0)).any()),
    )


def width_of(k: int) -> int:
    """Room for three numbers a class, in whole lines of the cache."""
    return -(-3 * k // OCTET) * OCTET


@kernel
def list_moves(
    nodes: Tree, feature: Ids, until: Any, gain: Ids, steps: Ids, below: Keys, total: Counts
) -> tuple[Ids, Ids]:
    """List for every node how far each feature may move what it believes: (features, how far).

    That is the sum of what the questions at and below the node gain, by the share of rows that reach them.
    ``total`` (m) is room for these sums, all zero.
    """
    mover, moves = np.empty(4 * len(feature) + 64, np.int32), np.empty(4 * len(feature) + 64, np.int32)
    touched, size = np.empty(len(total), np.int32), 0
    # children come after their parents
    for node in range(len(feature) - 1, -1, -1):
        steps[node, START] = steps[node, STOP] = size
        j = feature[node]
        if j < 0:
            continue
        below[node] = ONE << np.uint64(j & 63)
        n = 0
        if steps[node, RANK] != NOMINAL:
            left, right, part = steps[node, LEFT], steps[node, RIGHT], steps[node, UNTIL]
            n = add_moves(left, part, steps, mover, moves, total, touched, n)
            n = add_moves(right, WHOLE - part, steps, mover, moves, total, touched, n)
            below[node] |= below[left] | below[right]
        else:
            before = 0
            for place in range(nodes.left[node], nodes.left[node] + nodes.right[node] + 1):
                child = nodes.branches[place]
                if child >= 0:  # a child of its own
                    upto = int(until[child])
                    n = add_moves(child, upto - before, steps, mover, moves, total, touched, n)
                    below[node] |= below[child]
                    before = upto
        if size + n + 1 > len(mover):
            mover, moves = np.append(mover, np.empty_like(mover)), np.append(moves, np.empty_like(moves))
        own = np.int64(gain[node])
        for place in range(n):
            other = touched[place]
            moved = total[other] >> SHIFT
            total[other] = 0
            if other == j:
                own += moved
            elif moved > 0:
                mover[size], moves[size] = other, min(int(moved), ABOVE_ALL)
                size += 1
        if own > 0:
            mover[size], moves[size] = j, min(int(own), ABOVE_ALL)
            size += 1
        steps[node, STOP] = size
    return mover[:size].copy(), moves[:size].copy()


@inner
def add_moves(
    child: int, part: int, steps: Ids, mover: Ids, moves: Ids, total: Counts, touched: Ids, n: int
) -> int:
    """Add a part of a child's moves to ``total``; ``n`` features of it were touched before."""
    for place in range(steps[child, START], steps[child, STOP]):
        j = mover[place]
        moved = np.int64(part) * moves[place]
        if total[j] == 0 and moved > 0:
            touched[n] = j
            n += 1
        total[j] += moved
    return n


def ranked(threshold: Floats, feature: Ids, m: int) -> tuple[Ids, Floats, Ids, Ids]:
    """The rank of each threshold among those of its feature, and these (``Walked``)."""
    narrow = np.uint16 if m < 2**16 else np.uint32  # 16 bits are sorted fastest; LEAF becomes the largest
    ends = np.cumsum(np.bincount(feature[feature != LEAF], minlength=m))
    order = np.argsort(feature.astype(narrow), kind="stable")[: ends[-1]]
    for start, stop in pairwise([0, *ends]):  # feature by feature is faster than all at once
        order[start:stop] = order[start:stop][np.argsort(threshold[order[start:stop]])]
    owner, cut = feature[order], threshold[order]
    new = np.ones(len(order), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (cut[1:] != cut[:-1])
    number = np.bincount(owner[new], minlength=m)
    halvings = np.frexp(number)[1].astype(np.int32)
    begin = np.cumsum(2**halvings - 1) - (2**halvings - 1)
    below = np.cumsum(new) - 1 - (np.cumsum(number) - number)[owner]
    rank = np.full(len(feature), NOMINAL, np.int32)
    rank[order] = below
    cuts = np.full((2**halvings - 1).sum(), np.inf)
    cuts[begin[owner] + below] = cut
    return rank, cuts, begin.astype(np.int32), halvings
