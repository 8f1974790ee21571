"""Certain and probable exit, compiled: the twin of ``acquisition`` for many rows whose values are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import Counts, Flags, Floats, Ids, Matrix
from budgetforest.forest import Answer, Forest, belief_for
from budgetforest.jit import inner, kernel
from budgetforest.ledger import Ledger, Prices
from budgetforest.waiting import (
    Queues,
    Walked,
    acquire_next,
    belief_in,
    certain_label,
    copy_state,
    final_label,
    leader_of,
    next_feature,
    queues,
    start_row,
)

BLOCK = 2048
"""Rows evaluated at a time; results do not depend on it."""


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
    forest: Forest,
    walked: Walked,
    values: Floats,
    ledger: Ledger,
    rows: Ids,
    answer: Answer,
    limit: float,
    pool: Executor,
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
    prices = Prices(*forest.costs[:3])

    def block(start: int) -> None:
        part = slice(start, start + BLOCK)
        label = answer == Answer.LABEL
        out = Look._make(column[part] for column in look)
        look_rows(
            walked, values, rows[part], prices, ledger, label, limit, forest.enough, queues(forest), out
        )

    list(pool.map(block, range(0, n, BLOCK)))
    return look


class Exits(NamedTuple):
    """Where rows exit at each of a ladder of thresholds."""

    enough: Counts
    """(l) sums of beliefs, ascending; ``NEVER`` is certain exit."""
    spent: Floats
    """(n, l) what each row has paid by then."""
    labels: Ids
    """(n, l) its label."""
    belief: Floats
    """(n, k) the sum of the trees' beliefs at the last exit, if they matter."""


def exits_for(n_rows: int, thresholds: Sequence[float], forest: Forest) -> Exits:
    """Room for the exits of some rows."""
    enough = np.array([belief_for(threshold, forest) for threshold in thresholds], np.int64)
    shape = n_rows, len(enough)
    belief = np.zeros((n_rows, len(forest.prior)))
    return Exits(enough, np.zeros(shape), np.zeros(shape, np.int32), belief)


def exits_in(exits: Exits, rows: slice) -> Exits:
    """The exits of some rows."""
    return Exits._make([exits.enough, *(column[rows] for column in exits[1:])])


@kernel
def settle_rows(
    forest: Walked, X: Matrix, prices: Prices, ledger: Ledger, start: Queues, q: Queues, exits: Exits
) -> None:
    """Acquire for each row, one by one, the feature that most trees wait for per cost, until it exits.

    The rows know nothing yet: all of them ``start`` alike.
    """
    for i in range(len(X)):
        if i == 0:
            start_row(forest, X, i, ledger, start)
        copy_state(forest, start, q)
        settle_row(forest, X, i, prices, ledger, q, exits)
        for c in range(exits.belief.shape[1]):
            exits.belief[i, c] = belief_in(q.sums, c)


@inner
def settle_row(
    forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, q: Queues, exits: Exits
) -> None:
    """One row, to its exit at every threshold."""
    level = 0
    while True:
        label = certain_label(q.sums, forest.slack)
        j = -1
        if label < 0:
            j = next_feature(forest, q, prices, ledger, i, np.inf)
            if j < 0:  # all is known: no belief is asked
                label = final_label(forest, q)
        if label < 0:
            leader = leader_of(q.sums)
            while level < len(exits.enough) and belief_in(q.sums, leader) >= exits.enough[level]:
                exits.spent[i, level] = ledger.spent[i]
                exits.labels[i, level] = leader
                level += 1
            if level == len(exits.enough):
                return
        if label >= 0:
            for at in range(level, len(exits.enough)):
                exits.spent[i, at] = ledger.spent[i]
                exits.labels[i, at] = label
            return
        acquire_next(forest, X, i, j, prices, ledger, q)


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
        i = int(np.int64(rows[r]))
        start_row(forest, X, i, ledger, q)
        k = look.least.shape[1]
        for c in range(k):
            look.least[r, c] = q.sums[c]
            look.most[r, c] = q.sums[k + c]
        look.needs[r], look.labels[r], look.certain[r] = look_row(
            forest, i, prices, ledger, labels_only, limit, enough, q
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
    label = certain_label(q.sums, forest.slack)
    waits = False
    for j in forest.asked:
        waits |= q.waiting[j] > 0
    if not waits:
        return -1, final_label(forest, q), True
    if labels_only and label >= 0:
        return -1, label, True
    leader = leader_of(q.sums)
    if labels_only and belief_in(q.sums, leader) >= enough:
        return -1, leader, False
    need = -1
    if labels_only:
        need = next_feature(forest, q, prices, ledger, i, limit)
    else:
        for t in range(len(q.at)):  # one tree after the other
            j = forest.feature[q.at[t]]
            if j >= 0:
                opened = ledger.opened[i, prices.group[j]]
                if ledger.spent[i] + (prices.discount[j] if opened else prices.cost[j]) <= limit:
                    need = int(j)
                    break
    if need < 0 and label < 0:
        return -1, leader, False
    return need, label, label >= 0
