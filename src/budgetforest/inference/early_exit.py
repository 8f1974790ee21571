"""Certain and probable exit, compiled: the twin of ``acquisition`` for many rows whose values are at hand.

They stand apart because ``acquisition`` asks for values one at a time, in plain Python that reads like the
rule and needs no compiler. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Prices
from budgetforest.data.price_kernel import price
from budgetforest.inference.exit_forest import Walked
from budgetforest.inference.exit_state import (
    State,
    acquire,
    all_settled,
    certain_label,
    copy_state,
    final_label,
    leader_of,
    least_of,
    next_feature,
    questions_below,
    start_row,
    state_for,
)
from budgetforest.inference.ledger import Ledger
from budgetforest.runtime.arrays import LEAF, Counts, Flags, Floats, Ids, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.forest import Answer, Forest, belief_for
from budgetforest.trees.tree import Tree
from budgetforest.trees.walk import child_of

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
    complete: Flags
    """(n) whether all was asked that trees ask for, so that scores are known."""
    limited: Flags
    """(n) whether trees ask for more than the row may pay."""
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
        np.zeros(n, bool),
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
        room = state_for(forest)
        look_rows(walked, values, rows[part], prices, ledger, label, limit, forest.enough, room, out)

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
    """(n, k) the sum of the trees' beliefs at the last exit."""


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
def ends_in(tree: Tree, root: int, X: Matrix, end: Ids) -> None:
    """(n) the leaf of every row in one tree, missing values as its nodes send them."""
    for i in range(len(X)):
        node = int(np.int64(root))
        while tree.feature[node] != LEAF:
            node = child_of(tree, node, X[i, tree.feature[node]])
        end[i] = node


@kernel
def settle_rows(
    forest: Walked, X: Matrix, rows: Ids, prices: Prices, ledger: Ledger, start: State, q: State, exits: Exits
) -> None:
    """Acquire for some rows, one by one, the feature that may move the belief most per price, to their exits.

    The rows know nothing yet: all of them ``start`` alike.
    """
    if len(rows) > 0:
        start_row(forest, X, int(np.int64(rows[0])), ledger, start)
    for place in range(len(rows)):
        copy_state(forest, start, q)
        settle_row(forest, X, int(np.int64(rows[place])), prices, ledger, q, exits)


@inner
def settle_row(
    forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, q: State, exits: Exits
) -> None:
    """One row, from its first question to its last exit."""
    level = 0
    while True:
        label, leader = certain_label(q, forest.slack), leader_of(q.believed)
        j = -1
        if label < 0:
            j = next_feature(forest, X, i, prices, ledger, np.inf, q)
            if j < 0:  # no more can be asked
                label = final_label(forest, X, i, q)
        # one pass serves a whole ladder of thresholds: a row notes every one it reaches, in order
        while level < len(exits.enough) and (label >= 0 or q.believed[leader] >= exits.enough[level]):
            exits.spent[i, level] = ledger.spent[i]
            # certain: no later threshold can say anything else
            exits.labels[i, level] = label if label >= 0 else leader
            level += 1
        if level == len(exits.enough):
            break
        acquire(forest, X, i, j, prices, ledger, q)
    for c in range(len(q.believed)):
        exits.belief[i, c] = q.believed[c]


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
    q: State,
    look: Look,
) -> None:
    """Fill ``look`` for some rows."""
    k = len(q.believed)
    for r in range(len(rows)):
        i = int(np.int64(rows[r]))
        # nothing is kept between calls: a look depends on the known values alone
        start_row(forest, X, i, ledger, q)
        for c in range(k):
            look.least[r, c], look.most[r, c] = least_of(q, c), q.sums[2 * k + c]
        look.needs[r], look.labels[r], look.certain[r], look.limited[r] = look_row(
            forest, X, i, prices, ledger, labels_only, limit, enough, q
        )
        # also if the rest cannot be had
        look.complete[r] = next_in_turn(forest, X, i, prices, ledger, np.inf, q) < 0


@inner
def look_row(
    forest: Walked,
    X: Matrix,
    i: int,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    limit: float,
    enough: int,
    q: State,
) -> tuple[int, int, bool, bool]:
    """One row, given what its trees say: (need, label, certain, limited)."""
    label, leader = certain_label(q, forest.slack), leader_of(q.believed)
    # for probabilities nothing else ends the questions, but a limit
    if all_settled(q):
        return -1, final_label(forest, X, i, q), True, False
    if labels_only and label >= 0:
        return -1, label, True, False
    # trees ask only for what cannot be had
    if next_in_turn(forest, X, i, prices, ledger, np.inf, q) < 0:
        return -1, final_label(forest, X, i, q) if label < 0 else label, label >= 0, False
    if labels_only and q.believed[leader] >= enough:
        return -1, leader, False, False
    if labels_only:
        need = next_feature(forest, X, i, prices, ledger, limit, q)
    else:
        need = next_in_turn(forest, X, i, prices, ledger, limit, q)
    # trees ask for what the row may not pay
    if need < 0 and label < 0:
        return -1, leader, False, True
    return need, label, label >= 0, need < 0


@inner
def next_in_turn(
    forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, limit: float, q: State
) -> int:
    """The first affordable feature that a tree asks for, one tree after the other; -1 if there is none."""
    for t in range(len(q.at)):
        for place in range(questions_below(forest, X, i, t, q)):
            j = int(np.int64(q.found[place]))
            if ledger.spent[i] + price(prices, j, ledger.opened[i, prices.group[j]]) <= limit:
                return j
    return -1
