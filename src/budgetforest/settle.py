"""Certain and probable exit, compiled: the twin of ``acquisition`` for many rows whose values are at hand.

Trees that wait for the same feature form a list. When the feature comes only they move, through all that is
known, and the bounds on every class are updated, not summed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Flags, Floats, Ids, Matrix
from budgetforest.forest import Answer, Forest, Votes, belief_for, slack_of
from budgetforest.jit import inner, kernel
from budgetforest.ledger import Ledger, Prices, pay
from budgetforest.tree import Tree
from budgetforest.walks import child_of

BLOCK = 4096
"""Rows evaluated at a time; results do not depend on it."""


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    nodes: Tree
    roots: Ids
    least: Votes
    most: Votes
    open: Flags
    slack: float
    belief: Ids
    believes: bool
    """Whether beliefs matter; keeping their sums takes time."""


def walked_of(forest: Forest) -> Walked:
    """A forest without its names."""
    return Walked(
        forest.nodes,
        forest.roots,
        forest.least,
        forest.most,
        forest.open,
        slack_of(forest),
        forest.belief,
        believes=True,
    )


class Look(NamedTuple):
    """What some rows need next."""

    needs: Ids
    """(n) a feature, -1 where nothing is needed."""
    labels: Ids
    """(n) the label where nothing is needed."""
    certain: Flags
    """(n) whether that label is certain."""
    least: Floats
    """(n, k) what is certain for each class."""
    most: Floats
    """(n, k) what is possible for each class."""


def look_at(
    forest: Forest, values: Floats, ledger: Ledger, rows: Ids, answer: Answer, limit: float, pool: Executor
) -> Look:
    """What ``rows`` need next, from the roots of all trees through what is known."""
    n, k = len(rows), len(forest.prior)
    look = Look(
        np.full(n, -1, np.int32),
        np.full(n, forest.prior.argmax(), np.int32),
        np.ones(n, bool),
        np.zeros((n, k)),
        np.zeros((n, k)),
    )
    if forest.n_trees == 0:
        return look
    walked = walked_of(forest)
    if answer == Answer.PROBA:
        walked = walked._replace(open=forest.nodes.feature != LEAF)
    prices = Prices(*forest.costs[:3])

    def block(start: int) -> None:
        part = slice(start, start + BLOCK)
        room = queues(forest.n_trees, len(prices.cost), k)
        label = answer == Answer.LABEL
        out = Look._make(column[part] for column in look)
        look_rows(walked, values, rows[part], prices, ledger, label, limit, forest.enough, room, out)

    list(pool.map(block, range(0, n, BLOCK)))
    return look


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
    wanted: Ids
    """(m) the features that trees wait for, in any order, and some that were acquired since."""
    n_wanted: Ids
    """(1) how many these are: never more than trees have been."""
    low: Floats
    """(k) the least that all trees together can still give to each class."""
    high: Floats
    """(k) the most."""
    belief: Counts
    """(k) the sum of the beliefs of all trees."""


def queues(n_trees: int, n_features: int, n_classes: int) -> Queues:
    """Room for the state of one row."""
    ids, votes = np.int32, np.float64
    return Queues(
        np.empty(n_trees, ids),
        np.empty(n_trees, ids),
        np.full(n_features, -1, ids),
        np.zeros(n_features, ids),
        np.empty(n_features, ids),
        np.zeros(1, ids),
        np.empty(n_classes, votes),
        np.empty(n_classes, votes),
        np.empty(n_classes, np.int64),
    )


class Exits(NamedTuple):
    """Where rows exit at each of a ladder of thresholds."""

    enough: Counts
    """(l) sums of beliefs, ascending; ``NEVER`` is certain exit."""
    spent: Floats
    """(n, l) what each row has paid by then."""
    labels: Ids
    """(n, l) its label."""


def exits_for(n_rows: int, thresholds: Sequence[float], forest: Forest) -> Exits:
    """Room for the exits of some rows."""
    enough = np.array([belief_for(threshold, forest) for threshold in thresholds], np.int64)
    shape = n_rows, len(enough)
    return Exits(enough, np.zeros(shape), np.zeros(shape, np.int32))


@kernel
def settle_rows(forest: Walked, X: Matrix, prices: Prices, ledger: Ledger, q: Queues, exits: Exits) -> None:
    """Acquire for each row, one by one, the feature that most trees wait for per cost, until it exits."""
    for i in range(len(X)):
        settle_row(forest, X, i, prices, ledger, q, exits)


@inner
def settle_row(
    forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, q: Queues, exits: Exits
) -> None:
    """One row, to its exit at every threshold."""
    level = 0
    start_row(forest, X, i, ledger, q)
    while True:
        label = certain_label(q.low, q.high, forest.slack)
        j = -1
        if label < 0:
            leader = leader_of(q.belief)
            while level < len(exits.enough) and q.belief[leader] >= exits.enough[level]:
                exits.spent[i, level] = ledger.spent[i]
                exits.labels[i, level] = leader
                level += 1
            if level == len(exits.enough):
                return
            j = next_feature(q, prices, ledger, i, np.inf)
            if j < 0:
                label = _final_label(q.at, forest.least, q.low)
        if label >= 0:
            for at in range(level, len(exits.enough)):
                exits.spent[i, at] = ledger.spent[i]
                exits.labels[i, at] = label
            return
        acquire_next(forest, X, i, j, prices, ledger, q)


@inner
def acquire_next(
    forest: Walked, X: Matrix, i: int, j: int, prices: Prices, ledger: Ledger, q: Queues
) -> None:
    """Row ``i`` pays for feature ``j``, and the trees that waited for it move on."""
    pay(i, j, prices, ledger)
    t = int(np.int64(q.first[j]))  # as wide as a loop's, or numba compiles functions twice
    q.first[j] = -1
    q.waiting[j] = 0
    while t >= 0:
        after = int(np.int64(q.following[t]))
        before = q.at[t]
        node = _walk_on(int(np.int64(before)), forest, X, i, ledger)
        for c in range(len(q.low)):
            q.low[c] = q.low[c] - forest.least[before, c] + forest.least[node, c]
            q.high[c] = q.high[c] - forest.most[before, c] + forest.most[node, c]
        if forest.believes:
            for c in range(len(q.low)):
                q.belief[c] += np.int64(forest.belief[node, c]) - forest.belief[before, c]
        _wait(t, node, forest, q)
        t = after


@inner
def leader_of(belief: Counts) -> int:
    """The class of most belief, the lowest among equals."""
    best = 0
    for c in range(len(belief)):
        if belief[c] > belief[best]:
            best = c
    return best


@inner
def start_row(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """All trees from their roots through what is known."""
    for at in range(q.n_wanted[0]):
        q.first[q.wanted[at]] = -1
        q.waiting[q.wanted[at]] = 0
    q.n_wanted[0] = 0
    for c in range(len(q.low)):
        q.low[c] = 0.0
        q.high[c] = 0.0
        q.belief[c] = 0
    for t in range(len(q.at)):
        node = _walk_on(int(np.int64(forest.roots[t])), forest, X, i, ledger)
        for c in range(len(q.low)):
            q.low[c] += forest.least[node, c]
            q.high[c] += forest.most[node, c]
        if forest.believes:
            for c in range(len(q.low)):
                q.belief[c] += forest.belief[node, c]
        _wait(t, node, forest, q)


@inner
def _walk_on(node: int, forest: Walked, X: Matrix, i: int, ledger: Ledger) -> int:
    """Where a tree stands, through what is known."""
    while forest.open[node] and ledger.acquired[i, forest.nodes.feature[node]]:
        node = child_of(forest.nodes, node, X[i, forest.nodes.feature[node]])
    return node


@inner
def _wait(t: int, node: int, forest: Walked, q: Queues) -> None:
    """Let a tree stand at a node, and wait if it is open."""
    q.at[t] = node
    if forest.open[node]:
        j = forest.nodes.feature[node]
        if q.waiting[j] == 0:
            q.wanted[q.n_wanted[0]] = j
            q.n_wanted[0] += 1
        q.following[t] = q.first[j]
        q.first[j] = t
        q.waiting[j] += 1


@kernel
def look_rows(
    forest: Walked,
    X: Floats,
    rows: Ids,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    limit: float,
    enough: int,
    q: Queues,
    look: Look,
) -> None:
    """Fill ``look`` for some rows."""
    for r in range(len(rows)):
        start_row(forest, X, rows[r], ledger, q)
        for c in range(len(q.low)):
            look.least[r, c] = q.low[c]
            look.most[r, c] = q.high[c]
        look.needs[r], look.labels[r], look.certain[r] = look_row(
            forest, rows[r], prices, ledger, labels_only, limit, enough, q
        )


@inner
def look_row(
    forest: Walked,
    i: int,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    limit: float,
    enough: int,
    q: Queues,
) -> tuple[int, int, bool]:
    """One row whose trees stand where they wait: (need, label, certain)."""
    label = certain_label(q.low, q.high, forest.slack)
    waits = False
    for at in range(q.n_wanted[0]):
        waits |= q.waiting[q.wanted[at]] > 0
    if not waits:
        return -1, _final_label(q.at, forest.least, q.low), True
    if labels_only and label >= 0:
        return -1, label, True
    leader = leader_of(q.belief)
    if labels_only and q.belief[leader] >= enough:
        return -1, leader, False
    need = -1
    if labels_only:
        need = next_feature(q, prices, ledger, i, limit)
    else:
        for t in range(len(q.at)):  # one tree after the other
            if forest.open[q.at[t]]:
                j = forest.nodes.feature[q.at[t]]
                opened = ledger.opened[i, prices.group[j]]
                if ledger.spent[i] + (prices.discount[j] if opened else prices.cost[j]) <= limit:
                    need = j
                    break
    if need < 0 and label < 0:
        return -1, leader, False
    return need, label, label >= 0


@inner
def certain_label(low: Floats, high: Floats, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    leader = 0
    for c in range(len(low)):
        if low[c] > low[leader]:
            leader = c
    for c in range(len(low)):
        lead = low[leader] - high[c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inner
def next_feature(q: Queues, prices: Prices, ledger: Ledger, i: int, limit: float) -> int:
    """The affordable feature that most trees wait for per cost, the lowest column among equals; else -1.

    What costs nothing comes first. Features acquired since the last time leave the list.
    """
    best = -1
    most = 0.0
    free = False
    kept = 0
    for at in range(q.n_wanted[0]):
        j = int(np.int64(q.wanted[at]))
        if q.waiting[j] == 0:
            continue
        q.wanted[kept] = j
        kept += 1
        opened = ledger.opened[i, prices.group[j]]
        price = prices.discount[j] if opened else prices.cost[j]
        if price == 0.0:
            best = min(best, j) if free else j
            free = True
        elif not free and ledger.spent[i] + price <= limit:
            worth = q.waiting[j] / price
            if worth > most or (worth == most and j < best):
                best = j
                most = worth
    q.n_wanted[0] = kept
    return best


@inner
def _final_label(at: Ids, least: Votes, low: Floats) -> int:
    """The label when every tree has spoken, summed in the order of the trees."""
    best = 0
    for c in range(len(low)):
        low[c] = 0.0
        for t in range(len(at)):
            low[c] += least[at[t], c]
        if low[c] > low[best]:
            best = c
    return best
