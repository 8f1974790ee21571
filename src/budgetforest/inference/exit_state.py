"""The trees of a row, compiled: which wait for which feature, and what all of them can still say.

Trees that wait for the same feature form a list. When the feature comes only they move, all in step, and with
them those of other rows: no branch of the program depends on where a value leads, so the processor is at many
trees at a time and need not wait for the memory. Values are compared by rank among all thresholds of their
feature; an unknown value has none, so one look tells whether a tree can move and where to. The bounds on
every class are updated, not summed again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Prices
from budgetforest.data.price_kernel import price
from budgetforest.inference.ledger import Ledger, pay
from budgetforest.runtime.arrays import LEAF, Counts, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import inlined
from budgetforest.runtime.random import ONE
from budgetforest.runtime.simd import QUARTET, bring, exchange_quartet, first_of
from budgetforest.trees.forest import Answer, Forest, beliefs, slack_of
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, Tree
from budgetforest.trees.walk import child_of

SLOT, RANK, LEFT, RIGHT = range(4)
"""What a step from a node takes: where the rank of the value stands, the largest that goes left, children."""
UNKNOWN, NOMINAL, ABOVE_ALL = -1, -1, 2**31 - 1
"""Ranks of a value that is not there yet, of a nominal node, and of a value that always goes right."""


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    steps: Ids
    """(d, 4) what a step from every node takes, side by side."""
    feature: Ids
    """(d) what every node asks for, -1 where no step can change the answer."""
    cuts: Floats
    """The different thresholds of each feature, ascending, and infinities up to a power of two less one."""
    begin: Ids
    """(m) where those of each feature begin."""
    halvings: Ids
    """(m) which power that is."""
    nodes: Tree
    """The same nodes, for nominal ones."""
    roots: Ids
    outlook: Floats
    """(d, width) the least and the most that the leaves below a node add to each class, side by side and
    filled up with zeros, to be summed in one go."""
    belief: Ids
    """(d, k) its beliefs; (d, 0) if they do not matter."""
    tracks: bool
    """Whether beliefs are summed at every step; if not, where a row ends."""
    n_classes: int
    slack: float
    asked: Ids
    """The features that some node asks for, ascending."""


def walked_for(forest: Forest, answer: Answer, *, believes: bool = True, tracks: bool = True) -> Walked:
    """A forest without its names; for probabilities no tree has said all before its leaf."""
    asks = forest.open if answer == Answer.LABEL else forest.nodes.feature != LEAF
    nodes, m, k = forest.nodes, len(forest.costs.cost), len(forest.prior)
    feature = np.where(asks, nodes.feature, np.int32(LEAF))
    slot = np.where(asks, 2 * feature + (nodes.route == MISSING_LEFT), 2 * m)
    rank, cuts, begin, halvings = ranked(
        nodes.threshold, np.where(nodes.route == BY_CATEGORY, LEAF, feature), m
    )
    steps = np.empty((len(asks), 4), np.int32)
    for place, column in enumerate((slot, rank, nodes.left, nodes.right)):
        steps[:, place] = column
    outlook = np.zeros((len(asks), width_of(forest)))
    outlook[:, :k], outlook[:, k : 2 * k] = forest.least, forest.most
    belief = beliefs(forest) if believes else np.empty((len(asks), 0), np.int32)
    return Walked(
        steps=steps,
        feature=feature,
        cuts=cuts,
        begin=begin,
        halvings=halvings,
        nodes=nodes,
        roots=forest.roots,
        outlook=outlook,
        belief=belief,
        tracks=believes and tracks,
        n_classes=k,
        slack=slack_of(forest),
        asked=np.flatnonzero(np.bincount(feature[asks], minlength=m)).astype(np.int32),
    )


def width_of(forest: Forest) -> int:
    """Room for two numbers a class, in whole quartets."""
    return -(-2 * len(forest.prior) // QUARTET) * QUARTET


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


class Queues(NamedTuple):
    """The trees of some rows, s of them; those that wait for the same feature form a list."""

    row: Ids
    """(s) which rows."""
    at: Ids
    """(s, t) where each tree stands."""
    following: Ids
    """(s, t) the next tree that waits for the same feature."""
    first: Ids
    """(s, m) the first tree that waits for a feature, -1 if none does."""
    waiting: Ids
    """(s, m) how many wait."""
    waits: Keys
    """(s, words) which features any tree waits for, a bit each."""
    sums: Floats
    """(s, width) the least and the most that all trees can still give to each class."""
    belief: Counts
    """(s, k) what they believe."""
    rank: Ids
    """(s, 2m + 1) for each feature how many of its thresholds lie below the row's value: where missing values
    go right, and where they go left. The last is never known: leaves ask for it."""
    begin: Ids
    """(s t) where the ranks of each tree's row begin."""
    called: Ids
    """(s t) the trees that move on, counted through all rows, in the order of their lists."""
    before: Ids
    """(s t) where each of these stood."""
    moving: Ids
    """(s t) those that can take another step."""


def queues(forest: Forest, s: int = 1) -> Queues:
    """Room for the state of some rows."""
    t, m, k = forest.n_trees, len(forest.costs.cost), len(forest.prior)
    return Queues(
        np.empty(s, np.int32),
        np.empty((s, t), np.int32),
        np.empty((s, t), np.int32),
        np.full((s, m), -1, np.int32),
        np.zeros((s, m), np.int32),
        np.zeros((s, -(-m // 64)), np.uint64),
        np.zeros((s, width_of(forest))),
        np.zeros((s, k), np.int64),
        np.full((s, 2 * m + 1), UNKNOWN, np.int32),
        np.repeat(np.arange(s, dtype=np.int32) * (2 * m + 1), t),
        *np.empty((3, s * t), np.int32),
    )


@inlined
def start_row(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """All trees of a row from their roots through what is known."""
    s = int(np.int64(0))  # as wide as a loop's, for numba compiles functions of a literal 0 twice
    q.row[s] = i
    # entries of features that no node asks for are never read
    for j in forest.asked:
        q.first[s, j] = -1
        q.waiting[s, j] = 0
        q.rank[s, 2 * j] = q.rank[s, 2 * j + 1] = UNKNOWN
        if ledger.acquired[i, j]:
            _know(forest, int(np.int64(j)), X[i, j], q.rank[s])
    for word in range(q.waits.shape[1]):
        q.waits[s, word] = 0
    for c in range(q.sums.shape[1]):
        q.sums[s, c] = 0.0
    for t in range(q.at.shape[1]):
        q.at[s, t] = forest.roots[t]
        q.called[t] = t
    # all trees are called once; at the first unknown feature each stops
    walk_called(forest, X, q, q.at.shape[1])
    for t in range(q.at.shape[1]):
        # summed once; from now on terms are exchanged when trees move (``let_wait``)
        for c in range(forest.outlook.shape[1]):
            q.sums[s, c] += forest.outlook[q.at[s, t], c]
        _wait(t, forest, q, s)
    if forest.tracks:
        sum_beliefs(forest, q, s)


@inlined
def copy_state(forest: Walked, start: Queues, i: int, q: Queues, s: int) -> None:
    """Put the trees of row ``i`` where those of another one stand."""
    q.row[s] = i
    for t in range(q.at.shape[1]):
        q.at[s, t] = start.at[0, t]
        q.following[s, t] = start.following[0, t]
    # lists are linked by tree numbers, so copies of first and following are lists of their own
    for j in forest.asked:
        q.first[s, j] = start.first[0, j]
        q.waiting[s, j] = start.waiting[0, j]
        q.rank[s, 2 * j], q.rank[s, 2 * j + 1] = start.rank[0, 2 * j], start.rank[0, 2 * j + 1]
    for word in range(q.waits.shape[1]):
        q.waits[s, word] = start.waits[0, word]
    for c in range(q.sums.shape[1]):
        q.sums[s, c] = start.sums[0, c]
    for c in range(q.belief.shape[1]):
        q.belief[s, c] = start.belief[0, c]


@inlined
def sum_beliefs(forest: Walked, q: Queues, s: int) -> None:
    """What all trees of a row believe where they stand."""
    for c in range(q.belief.shape[1]):
        q.belief[s, c] = 0
    for t in range(q.at.shape[1]):
        node = np.uint64(q.at[s, t])
        for c in range(forest.belief.shape[1]):
            q.belief[s, c] += forest.belief[node, c]


@inlined
def acquire_next(forest: Walked, X: Matrix, j: int, prices: Prices, ledger: Ledger, q: Queues) -> None:
    """The first row pays for feature ``j``, and the trees that waited for it move on."""
    s = int(np.int64(0))
    size = call_trees(forest, X, j, prices, ledger, q, s, s)
    walk_called(forest, X, q, size)
    let_wait(forest, q, s, s, size)


@inlined
def call_trees(
    forest: Walked, X: Matrix, j: int, prices: Prices, ledger: Ledger, q: Queues, s: int, size: int
) -> int:
    """A row pays for feature ``j``; the trees that waited for it are added to ``size`` others."""
    i = int(np.int64(q.row[s]))
    pay(i, j, prices, ledger)
    # first[j] -> following -> ... -> -1, each noted with the node that it leaves
    t = q.first[s, j]
    while t >= 0:
        q.called[size] = s * q.at.shape[1] + t
        q.before[size] = q.at[s, t]
        size += 1
        t = q.following[s, t]
    q.first[s, j] = -1
    q.waiting[s, j] = 0
    # the bit is set, for a tree waited
    q.waits[s, j >> 6] ^= ONE << np.uint64(j & 63)
    _know(forest, j, X[i, j], q.rank[s])
    return size


@inlined
def let_wait(forest: Walked, q: Queues, s: int, begin: int, end: int) -> None:
    """Some called trees of a row have moved: what they can still say, and what they wait for."""
    outlook, at, sums = forest.outlook.reshape(-1), q.at.reshape(-1), q.sums[s]
    width = np.uint64(forest.outlook.shape[1])
    for place in range(begin, end):  # apart from the loop below, whose branch would hold up the memory
        old, new = np.uint64(q.before[place]), np.uint64(at[np.uint64(q.called[place])])
        # minus the old term, plus the new one: exact but for soft votes, whose rounding ``slack_of`` covers
        for c in range(np.uint64(0), width, np.uint64(QUARTET)):
            exchange_quartet(sums, c, outlook, old * width + c, new * width + c)
        if forest.tracks:
            for c in range(forest.belief.shape[1]):
                q.belief[s, c] += forest.belief[new, c] - forest.belief[old, c]
    for place in range(begin, end):
        _wait(int(np.int64(q.called[place])) - s * q.at.shape[1], forest, q, s)


@inlined
def _know(forest: Walked, j: int, x: float, rank: Ids) -> None:
    """The value of feature ``j`` as a rank."""
    # how many thresholds lie below the value: binary search among a power of two less one
    first, low = np.uint64(forest.begin[j]), np.uint64(0)
    for halving in range(forest.halvings[j] - 1, -1, -1):  # written with shifts: a branch would be a toss-up
        middle = first + low + (ONE << np.uint64(halving)) - ONE
        low += np.uint64(forest.cuts[middle] < x) << np.uint64(halving)
    below = np.int32(low)
    missing = x != x
    # x <= cuts[r] if and only if at most r thresholds lie below x; 0 is at most r, ABOVE_ALL never is
    rank[2 * j] = np.int32(ABOVE_ALL) if missing else below
    rank[2 * j + 1] = np.int32(0) if missing else below


@inlined
def walk_called(forest: Walked, X: Matrix, q: Queues, called: int) -> None:
    """The first so many trees that are called go on through all that is known, of whichever row.

    Numbers without a sign spare the check for those that count from the end.
    """
    at, ranks, steps = q.at.reshape(-1), q.rank.reshape(-1), forest.steps.reshape(-1)
    for place in range(called):
        q.moving[place] = q.called[place]
    size = called
    # all trees that can move take one step, again and again; no branch depends on where
    while size > 0:
        more = 0
        for place in range(size):
            t = np.uint64(q.moving[place])
            node = np.uint64(at[t])
            # a node is 16 bytes, | slot | rank | left | right |, in one line of the cache
            known = ranks[np.uint64(q.begin[t]) + np.uint64(forest.steps[node, SLOT])]
            rank = forest.steps[node, RANK]
            left, right = forest.steps[node, LEFT], forest.steps[node, RIGHT]  # both: the choice is no branch
            # a leaf asks for the slot that is never known, so it stays
            moves = known != UNKNOWN
            # a nominal node takes the raw value, not its rank
            if moves & (rank == NOMINAL):
                i = q.row[int(np.int64(t)) // q.at.shape[1]]
                left = right = np.int32(
                    child_of(forest.nodes, int(np.int64(node)), X[i, forest.feature[node]])
                )
            child = left if known <= rank else right
            child = child if moves else np.int32(node)
            bring(steps, np.uint64(child) * np.uint64(4))
            at[t] = child
            # always written, counted if it moved: the list shrinks without a branch
            q.moving[more] = np.int32(t)
            more += moves
        size = more


@inlined
def _wait(t: int, forest: Walked, q: Queues, s: int) -> None:
    """Let a tree wait if it has more to say."""
    j = forest.feature[q.at[s, t]]
    if j >= 0:
        # pushed in front: a list is called as a whole, so its order does not matter
        q.following[s, t] = q.first[s, j]
        q.first[s, j] = t
        q.waiting[s, j] += 1
        q.waits[s, j >> 6] |= ONE << np.uint64(j & 63)


@inlined
def leader_of(belief: Counts) -> int:
    """The class of most belief, the lowest among equals."""
    best = 0
    for c in range(len(belief)):
        if belief[c] > belief[best]:
            best = c
    return best


@inlined
def certain_label(sums: Floats, k: int, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    # sums: what is certain for each class, then what is possible
    leader = 0
    for c in range(k):
        if sums[c] > sums[leader]:
            leader = c
    for c in range(k):
        # certain: least(leader) > most(c), or equal and the tie is the leader's; never within slack
        lead = sums[leader] - sums[k + c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inlined
def next_feature(q: Queues, s: int, prices: Prices, ledger: Ledger, limit: float) -> int:
    """The affordable feature that most trees wait for per cost, the lowest column among equals; else -1."""
    opened, spent = ledger.opened[q.row[s]], ledger.spent[q.row[s]]
    waiting, best, most = q.waiting[s], -1, 0.0
    for word in range(q.waits.shape[1]):
        # the features that trees wait for, a bit each, from the lowest column up
        features = q.waits[s, word]
        while features != 0:
            j = np.uint64(64 * word) + first_of(features)
            features &= features - ONE
            cost = price(prices, j, opened[np.uint64(prices.group[j])])
            per_cost = waiting[j] / cost  # infinite where it is free
            # strictly: columns ascend, so the lowest wins ties, also among those that are free
            if per_cost > most and spent + cost <= limit:
                best, most = int(np.int64(j)), per_cost
    return best


@inlined
def final_label(forest: Walked, q: Queues, s: int) -> int:
    """The label when every tree has spoken, summed in the order of the trees."""
    # summed afresh, as ``scores`` and the plain walk do: exchanged sums of soft votes round otherwise
    best, sums = 0, q.sums[s]
    for c in range(forest.n_classes):
        sums[c] = 0.0
        for t in range(q.at.shape[1]):
            sums[c] += forest.outlook[q.at[s, t], c]
        if sums[c] > sums[best]:
            best = c
    return best
