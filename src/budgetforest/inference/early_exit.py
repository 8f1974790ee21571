"""Certain and probable exit, compiled: the twin of ``acquisition`` for many rows whose values are at hand.

They stand apart because ``acquisition`` asks for values one at a time, in plain Python that reads like the
rule and needs no compiler; here the trees of several rows walk together. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Prices
from budgetforest.data.price_kernel import price
from budgetforest.inference.exit_state import (
    Queues,
    Walked,
    call_trees,
    certain_label,
    copy_state,
    final_label,
    leader_of,
    let_wait,
    next_feature,
    queues,
    start_row,
    sum_beliefs,
    walk_called,
)
from budgetforest.inference.ledger import Ledger
from budgetforest.runtime.arrays import Counts, Flags, Floats, Ids, Matrix
from budgetforest.runtime.jit import inlined, inner, kernel
from budgetforest.trees.forest import Answer, Forest, belief_for

BLOCK = 2048
"""Rows evaluated at a time; results do not depend on it."""

SIDE_BY_SIDE = 16
"""Of these so many take their steps together, so that the processor need not wait for one of them."""


class Look(NamedTuple):
    """What some rows need next."""

    needs: Ids
    """(n) a feature, -1 where nothing is needed."""
    labels: Ids
    """(n) the label where nothing is needed."""
    certain: Flags
    """(n) whether that label is certain."""
    complete: Flags
    """(n) whether every tree has said all, so that scores are known."""
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
        np.ones(n, bool),
        np.zeros((n, k)),
        np.zeros((n, k)),
    )
    if forest.n_trees == 0:
        return look
    prices = forest.costs.bare

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

    The rows know nothing yet: all of them ``start`` alike. As many rows as ``q`` has room for take a step
    each; where one has exited, the next one comes.
    """
    nought = int(np.int64(0))  # numba compiles functions of a literal 0 twice
    if len(X) > 0:
        start_row(forest, X, nought, ledger, start)
    # called trees: | those of slot 0 | those of slot 1 | ... |, slot s up to end[s]
    level, end = np.zeros(len(q.row), np.int64), np.zeros(len(q.row), np.int64)
    # slots hold rows on their way; a slot whose row has left takes the next row that comes
    came, size = nought, nought + 1
    for s in range(len(q.row)):
        q.row[s] = -1
    while size > 0:
        size = nought
        for s in range(len(q.row)):
            j = -1
            # until the slot holds a row that needs a feature, or no row is left
            while j < 0 and (q.row[s] >= 0 or came < len(X)):
                if q.row[s] < 0:
                    copy_state(forest, start, came, q, s)
                    level[s] = 0
                    came += 1
                j = settle_step(forest, prices, ledger, q, s, exits, level)
            if j >= 0:
                size = call_trees(forest, X, j, prices, ledger, q, s, size)
            end[s] = size
        # the trees of all slots walk together: memory latency of one hides behind the others
        walk_called(forest, X, q, size)
        # bounds change once a walk, from where a tree stood to where it stops, not at every step
        begin = nought
        for s in range(len(q.row)):
            let_wait(forest, q, s, begin, end[s])
            begin = end[s]


@inlined
def settle_step(
    forest: Walked, prices: Prices, ledger: Ledger, q: Queues, s: int, exits: Exits, level: Counts
) -> int:
    """What a row needs next, -1 if it has left by its last exit; ``level``: by how many it has so far."""
    i = q.row[s]
    label = certain_label(q.sums[s], forest.n_classes, forest.slack)
    j = -1
    if label < 0:
        j = next_feature(q, s, prices, ledger, np.inf)
        if j < 0:  # all is known: no belief is asked
            label = final_label(forest, q, s)
    # one pass serves a whole ladder of thresholds: a row notes every one it reaches
    if label < 0 and forest.tracks:
        leader = leader_of(q.belief[s])
        # thresholds ascend, so a row reaches them in order
        while level[s] < len(exits.enough) and q.belief[s, leader] >= exits.enough[level[s]]:
            exits.spent[i, level[s]] = ledger.spent[i]
            exits.labels[i, level[s]] = leader
            level[s] += 1
    # certain: no later threshold can say anything else
    if label >= 0:
        for at in range(level[s], len(exits.enough)):
            exits.spent[i, at] = ledger.spent[i]
            exits.labels[i, at] = label
    if label < 0 and level[s] < len(exits.enough):
        return j
    # not tracked on the way where all exits are certain: summed where the row ends
    if forest.belief.shape[1] > 0:
        sum_beliefs(forest, q, s)
        for c in range(exits.belief.shape[1]):
            exits.belief[i, c] = q.belief[s, c]
    # frees the slot for the next row
    q.row[s] = -1
    return -1


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
        # nothing is kept between calls: a look depends on the known values alone
        start_row(forest, X, i, ledger, q)
        for c in range(forest.n_classes):
            look.least[r, c] = q.sums[0, c]
            look.most[r, c] = q.sums[0, forest.n_classes + c]
        look.complete[r] = none_waits(q)
        look.needs[r], look.labels[r], look.certain[r] = look_row(
            forest, i, prices, ledger, labels_only, limit, enough, q
        )


@inner
def none_waits(q: Queues) -> bool:
    """Whether every tree of the first row has said all it can."""
    waits = np.uint64(0)
    for word in q.waits[0]:
        waits |= word
    return bool(waits == np.uint64(0))


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
    s = int(np.int64(0))
    label = certain_label(q.sums[s], forest.n_classes, forest.slack)
    # for probabilities nothing else ends the questions, but a limit
    if none_waits(q):
        return -1, final_label(forest, q, s), True
    if labels_only and label >= 0:
        return -1, label, True
    leader = leader_of(q.belief[s])
    if labels_only and q.belief[s, leader] >= enough:
        return -1, leader, False
    need = -1
    if labels_only:
        need = next_feature(q, s, prices, ledger, limit)
    else:
        for t in range(q.at.shape[1]):  # one tree after the other
            j = forest.feature[q.at[s, t]]
            if j < 0:
                continue
            if ledger.spent[i] + price(prices, j, ledger.opened[i, prices.group[j]]) <= limit:
                need = int(j)
                break
    # trees wait, but for nothing that the row may still pay
    if need < 0 and label < 0:
        return -1, leader, False
    return need, label, label >= 0
