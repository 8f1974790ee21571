"""The trees of one row, compiled: which wait for which feature, and what all of them can still say.

Trees that wait for the same feature form a list. When the feature comes only they move, all in step: no
branch of the program depends on where a value leads, so the processor is at several trees at a time. Values
are compared by rank among all thresholds of their feature; an unknown value has none, so one look tells
whether a tree can move and where to. The bounds on every class are updated, not summed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Floats, Ids, Matrix
from budgetforest.forest import Answer, Forest, beliefs, slack_of
from budgetforest.jit import inner
from budgetforest.ledger import Ledger, Prices, pay
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, Tree
from budgetforest.walks import child_of

SLOT, RANK, LEFT, RIGHT = range(4)
"""What a step from a node takes: where the rank of the value stands, the largest that goes left, children."""
UNKNOWN, BY_NUMBER, ABOVE_ALL = -1, -1, 2**31 - 1
"""Ranks of a value that is not there yet, of a nominal node, and of a value that always goes right."""


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    steps: Ids
    """(d, 4) what a step from every node takes, side by side."""
    feature: Ids
    """(d) what every node asks for, -1 where no step can change the answer."""
    cuts: Floats
    """The different thresholds of each feature, ascending."""
    begin: Ids
    """(m + 1) where those of each feature begin."""
    nodes: Tree
    """The same nodes, for nominal ones."""
    roots: Ids
    outlook: Floats
    """(d, 3k) the least and the most that the leaves below a node add to each class, and its beliefs, side by
    side to be summed in one go; (d, 2k) if beliefs do not matter. Whole numbers are exact as doubles."""
    slack: float
    asked: Ids
    """The features that some node asks for, ascending."""


def walked_for(forest: Forest, answer: Answer, *, believes: bool = True) -> Walked:
    """A forest without its names; for probabilities no tree has said all before its leaf."""
    asks = forest.open if answer == Answer.LABEL else forest.nodes.feature != LEAF
    nodes, m = forest.nodes, len(forest.costs.cost)
    feature = np.where(asks, nodes.feature, np.int32(LEAF))
    slot = np.where(asks, 2 * feature + (nodes.route == MISSING_LEFT), 2 * m)
    rank, cuts, begin = ranked(nodes.threshold, np.where(nodes.route == BY_CATEGORY, LEAF, feature), m)
    steps = np.empty((len(asks), 4), np.int32)
    for place, column in enumerate((slot, rank, nodes.left, nodes.right)):
        steps[:, place] = column
    parts: list[Any] = [forest.least, forest.most]
    if believes:
        parts.append(beliefs(forest))
    outlook = np.concatenate(parts, axis=1, dtype=np.float64)
    asked = np.unique(feature[asks])
    return Walked(steps, feature, cuts, begin, nodes, forest.roots, outlook, slack_of(forest), asked)


def ranked(threshold: Floats, feature: Ids, m: int) -> tuple[Ids, Floats, Ids]:
    """The rank of each threshold among those of its feature; these, and where those of each feature begin."""
    order = np.flatnonzero(feature != LEAF)
    order = order[np.lexsort((threshold[order], feature[order]))]
    owner, cut = feature[order], threshold[order]
    new = np.ones(len(order), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (cut[1:] != cut[:-1])
    begin = np.searchsorted(owner[new], np.arange(m + 1)).astype(np.int32)
    rank = np.full(len(feature), BY_NUMBER, np.int32)
    rank[order] = np.cumsum(new) - 1 - begin[owner]
    return rank, cut[new], begin


class Queues(NamedTuple):
    """Trees that wait for the same feature form a list: ``first[j]``, ``following[...]``."""

    at: Ids
    """(t) where each tree stands."""
    following: Ids
    """(t) the next tree that waits for the same feature."""
    first: Ids
    """(m) the first tree that waits for a feature, -1 if none does."""
    waiting: Ids
    """(m) how many wait."""
    sums: Floats
    """(3k) the least and the most that all trees can still give to each class, and what they believe."""
    called: Ids
    """(t) the trees that move on, in the order of their list."""
    before: Ids
    """(t) where each of these stood."""
    moving: Ids
    """(t) those that can take another step."""
    rank: Ids
    """(2m + 1) for each feature how many of its thresholds lie below the row's value: where missing values go
    right, and where they go left. The last is never known: leaves ask for it."""


def queues(forest: Forest) -> Queues:
    """Room for the state of one row."""
    ids = np.int32
    t, m, k = forest.n_trees, len(forest.costs.cost), len(forest.prior)
    return Queues(
        np.empty(t, ids),
        np.empty(t, ids),
        np.full(m, -1, ids),
        np.zeros(m, ids),
        np.zeros(3 * k),
        np.empty(t, ids),
        np.empty(t, ids),
        np.empty(t, ids),
        np.full(2 * m + 1, UNKNOWN, ids),
    )


@inner
def start_row(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """All trees from their roots through what is known."""
    for j in forest.asked:
        q.first[j] = -1
        q.waiting[j] = 0
        q.rank[2 * j] = q.rank[2 * j + 1] = UNKNOWN
        if ledger.acquired[i, j]:
            _know(forest, int(np.int64(j)), X[i, j], q)
    for c in range(len(q.sums)):
        q.sums[c] = 0.0
    for t in range(len(q.at)):
        q.at[t] = forest.roots[t]
        q.called[t] = t
    _walk(forest, X, i, q, len(q.at))
    for t in range(len(q.at)):
        for c in range(forest.outlook.shape[1]):
            q.sums[c] += forest.outlook[q.at[t], c]
        _wait(t, forest, q)


@inner
def copy_state(forest: Walked, start: Queues, q: Queues) -> None:
    """Put the trees of a row where those of another one stand."""
    for t in range(len(q.at)):
        q.at[t] = start.at[t]
        q.following[t] = start.following[t]
    for j in forest.asked:
        q.first[j] = start.first[j]
        q.waiting[j] = start.waiting[j]
        q.rank[2 * j], q.rank[2 * j + 1] = start.rank[2 * j], start.rank[2 * j + 1]
    for c in range(len(q.sums)):
        q.sums[c] = start.sums[c]


@inner
def acquire_next(
    forest: Walked, X: Matrix, i: int, j: int, prices: Prices, ledger: Ledger, q: Queues
) -> None:
    """Row ``i`` pays for feature ``j``, and the trees that waited for it move on."""
    pay(i, j, prices, ledger)
    size = 0
    t = q.first[j]
    while t >= 0:
        q.called[size] = t
        q.before[size] = q.at[t]
        size += 1
        t = q.following[t]
    q.first[j] = -1
    q.waiting[j] = 0
    _know(forest, j, X[i, j], q)
    _walk(forest, X, i, q, size)
    for place in range(size):  # apart from the loop below, whose branch would hold up the memory
        old, new = np.uint64(q.before[place]), np.uint64(q.at[np.uint64(q.called[place])])
        for c in range(forest.outlook.shape[1]):
            q.sums[c] = q.sums[c] - forest.outlook[old, c] + forest.outlook[new, c]
    for place in range(size):
        _wait(int(np.int64(q.called[place])), forest, q)  # as wide as a loop's, or numba compiles it twice


@inner
def _know(forest: Walked, j: int, x: float, q: Queues) -> None:
    """The value of feature ``j`` as a rank."""
    first, stop = int(np.int64(forest.begin[j])), int(np.int64(forest.begin[j + 1]))
    low = first
    while low < stop:
        middle = (low + stop) >> 1
        if forest.cuts[middle] < x:
            low = middle + 1
        else:
            stop = middle
    missing = x != x
    q.rank[2 * j] = ABOVE_ALL if missing else low - first
    q.rank[2 * j + 1] = 0 if missing else low - first


@inner
def _walk(forest: Walked, X: Matrix, i: int, q: Queues, size: int) -> None:
    """The first ``size`` trees that are called go on through all that is known.

    Numbers without a sign spare the check for those that count from the end.
    """
    for place in range(size):
        q.moving[place] = q.called[place]
    while size > 0:
        more = 0
        for place in range(size):
            t = np.uint64(q.moving[place])
            node = np.uint64(q.at[t])
            known = q.rank[np.uint64(forest.steps[node, SLOT])]
            rank = forest.steps[node, RANK]
            left, right = (
                forest.steps[node, LEFT],
                forest.steps[node, RIGHT],
            )  # both, so the choice is no branch
            moves = known != UNKNOWN
            if moves & (rank == BY_NUMBER):
                left = right = np.int32(
                    child_of(forest.nodes, int(np.int64(node)), X[i, forest.feature[node]])
                )
            child = left if known <= rank else right
            q.at[t] = child if moves else np.int32(node)
            q.moving[more] = np.int32(t)
            more += moves
        size = more


@inner
def _wait(t: int, forest: Walked, q: Queues) -> None:
    """Let a tree wait if it has more to say."""
    j = forest.feature[q.at[t]]
    if j >= 0:
        q.following[t] = q.first[j]
        q.first[j] = t
        q.waiting[j] += 1


@inner
def leader_of(sums: Floats) -> int:
    """The class of most belief, the lowest among equals."""
    k = len(sums) // 3
    best = 0
    for c in range(k):
        if sums[2 * k + c] > sums[2 * k + best]:
            best = c
    return best


@inner
def belief_in(sums: Floats, label: int) -> float:
    """The sum of the trees' beliefs in a class, a whole number."""
    return float(sums[2 * (len(sums) // 3) + label])


@inner
def certain_label(sums: Floats, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    k = len(sums) // 3
    leader = 0
    for c in range(k):
        if sums[c] > sums[leader]:
            leader = c
    for c in range(k):
        lead = sums[leader] - sums[k + c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inner
def next_feature(forest: Walked, q: Queues, prices: Prices, ledger: Ledger, i: int, limit: float) -> int:
    """The affordable feature that most trees wait for per cost, the lowest column among equals; else -1."""
    best = -1
    most = 0.0
    for j in forest.asked:
        if q.waiting[j] > 0:
            opened = ledger.opened[i, prices.group[j]]
            price = prices.discount[j] if opened else prices.cost[j]
            if price == 0.0:
                return int(j)
            if q.waiting[j] / price > most and ledger.spent[i] + price <= limit:
                best = int(j)
                most = q.waiting[j] / price
    return best


@inner
def final_label(forest: Walked, q: Queues) -> int:
    """The label when every tree has spoken, summed in the order of the trees."""
    best = 0
    for c in range(len(q.sums) // 3):
        q.sums[c] = 0.0
        for t in range(len(q.at)):
            q.sums[c] += forest.outlook[q.at[t], c]
        if q.sums[c] > q.sums[best]:
            best = c
    return best
