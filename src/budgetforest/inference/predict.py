"""What rows get from a forest and what they pay for it.

To know every score a row meets all trees and pays for all it meets there; to know its label it stops as soon
as no further feature can change it (``early_exit``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from budgetforest.data.table import Numbers
from budgetforest.inference.batch_walk import signposts, visit_alike, votes_of
from budgetforest.inference.early_exit import BLOCK, Exits, ends_in, exits_for, exits_in, settle_rows
from budgetforest.inference.exit_forest import walked_for
from budgetforest.inference.exit_state import state_for
from budgetforest.inference.ledger import Ledger, charge_all, charge_rows, open_ledger, part_of
from budgetforest.runtime.arrays import Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.simd import LANES
from budgetforest.runtime.threads import leave_if_alone, number_of
from budgetforest.trees.forest import BELIEF, Answer, Context, Forest, odds_for, shares, vote_pull_of
from budgetforest.trees.tree import MISSING_LEFT, UNSEEN
from budgetforest.trees.walk import sides_for, visit_all_sides, visit_leaves

NEAR = 2**20
"""Bytes of nodes that stay near the processor."""

ALIKE = 2**21
"""Bytes of rows that are put beside their like; eight times as many where nodes must be brought from afar."""

WORTH_PACKING = 4
"""So many times ``LANES`` rows are worth packing a forest for."""

Visit: TypeAlias = Callable[[Matrix, Floats, Keys], None]
"""Takes rows, adds to their scores, and notes what they meet."""


def scores(forest: Forest, X: Numbers, pool: Executor | None = None) -> Floats:
    """(n, k) summed votes of every row; the prior where there are no trees."""
    total = np.zeros((len(X), len(forest.prior)))
    if forest.n_trees == 0:
        return total + forest.prior
    visit = visitor(forest, len(X))

    def block(rows: slice, part: Matrix) -> None:
        visit(part, total[rows], nothing_met(len(part)))

    for_blocks(block, X, pool, at_once(forest, X, pool))
    return total


def visitor(forest: Forest, n_rows: int) -> Visit:
    """A function that adds to rows' scores what all trees give, and notes the features they meet."""
    nodes, roots = forest.nodes, forest.roots
    if n_rows < WORTH_PACKING * LANES or len(nodes.branches):
        return partial(_visit_one_by_one, forest, cache(partial(means_of, forest)))
    votes, packed = votes_of(nodes, forest.least), cache(partial(signposts, nodes, roots))
    any_left = bool((nodes.route & MISSING_LEFT).any())
    unseen = np.unique(nodes.feature[nodes.route >= UNSEEN])
    means = cache(partial(means_of, forest))

    def visit(part: Matrix, total: Floats, met: Keys) -> None:
        gaps = has_gaps(part)
        if gaps and len(unseen):
            lost: Any = np.isnan(part[:, unseen]).any(axis=1)
            if lost.any():
                _visit_apart(partial(_visit_one_by_one, forest, means), part, total, met, lost)
                _visit_apart(visit, part, total, met, ~lost)
                return
        posts = packed(part.shape[1], any_left and gaps, part.dtype)
        visit_alike(posts, roots, votes, part, total, met)

    return visit


def has_gaps(part: Matrix) -> bool:
    """Whether a value is missing; only if their sum is NaN all are looked at."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(part.sum())) and bool(np.isnan(part).any())


class Means(NamedTuple):
    """What it takes to average over lost values."""

    until: np.ndarray[tuple[int], np.dtype[np.uint16]]
    """(d) the share of its parent up to this child."""
    votes: Floats
    """(d, k) what every node would add as a leaf."""
    pull: Floats
    """(k) what takes the votes to the base rate when nothing is known."""
    n_open: int
    """How many trees are open at their root."""


def means_of(forest: Forest) -> Means:
    """Computed once, and only where values are lost."""
    odds = odds_for(forest)
    n_open = int(forest.open[forest.roots[:-1]].sum())
    return Means(odds.until, forest.least.astype(np.float64), vote_pull_of(forest, odds), n_open)


def _visit_one_by_one(
    forest: Forest, means: Callable[[], Means], part: Matrix, total: Floats, met: Keys
) -> None:
    """Row after row; those that lose their way go on all sides of what is lost."""
    lost = np.zeros(len(part), bool)
    visit_leaves(forest.nodes, forest.roots, forest.least, part, total, met, lost)
    if lost.any():
        until, votes, pull, n_open = means()
        nodes, room = forest.nodes, sides_for(len(votes), total.shape[1])
        _visit_apart(
            lambda X, scored, noted: visit_all_sides(
                nodes, forest.roots, until, votes, X, scored, noted, pull, n_open, room
            ),
            part,
            total,
            met,
            lost,
        )


def _visit_apart(visit: Visit, part: Matrix, total: Floats, met: Keys, chosen: Flags) -> None:
    """Visit some of the rows alone."""
    scored, noted = np.zeros((int(chosen.sum()), total.shape[1])), np.zeros_like(met[chosen])
    visit(np.require(part[chosen], requirements=["C", "W"]), scored, noted)
    total[chosen] += scored
    met[chosen] |= noted


def at_once(forest: Forest, X: Numbers, pool: Executor | None) -> int:
    """How many rows a thread is given at a time: enough to put them beside their like."""
    alike = ALIKE if 16 * len(forest.nodes.feature) <= NEAR else 8 * ALIKE
    most = max(BLOCK, alike // (4 * max(1, len(forest.costs.cost))))
    threads = number_of(pool) if pool else 1
    blocks = threads * max(1, math.ceil(len(X) / (threads * most)))
    return max(BLOCK, math.ceil(len(X) / blocks))


def charge(forest: Forest, X: Numbers, answer: Answer, pool: Executor | None = None) -> Ledger:
    """What every row acquires and pays for its label, or for every score."""
    ledger = open_ledger(len(X), forest.costs)
    charge_part = charger(forest, len(X), answer)

    def block(rows: slice, part: Matrix) -> None:
        charge_part(part, part_of(ledger, rows))

    for_blocks(block, X, pool, at_once(forest, X, pool))
    return ledger


def spent(forest: Forest, X: Numbers, answer: Answer, pool: Executor | None = None) -> Floats:
    """(n) the same, but only how much: what was acquired is forgotten block by block."""
    total = np.zeros(len(X))
    charge_part = charger(forest, len(X), answer)

    def block(rows: slice, part: Matrix) -> None:
        ledger = open_ledger(len(part), forest.costs)
        charge_part(part, ledger)
        total[rows] = ledger.spent

    for_blocks(block, X, pool, at_once(forest, X, pool))
    return total


def charger(forest: Forest, n_rows: int, answer: Answer) -> Callable[[Matrix, Ledger], object]:
    """A function that charges some of so many rows for an answer."""
    if forest.n_trees == 0:
        return lambda part, ledger: None
    if answer == Answer.LABEL:
        ends = [forest.threshold]
        settle = settler(forest)
        return lambda part, ledger: settle(part, ledger, exits_for(len(part), ends, forest))
    visit, pay_for = visitor(forest, n_rows), payer(forest)

    def charge_part(part: Matrix, ledger: Ledger) -> None:
        met = nothing_met(len(part), forest)
        visit(part, np.zeros((len(part), len(forest.prior))), met)
        pay_for(part, met, ledger)

    return charge_part


def payer(forest: Forest) -> Callable[[Matrix, Keys, Ledger], None]:
    """A function that charges rows for all they have met; where the order matters, for all they meet now."""
    prices = forest.costs.bare
    if forest.costs.order_matters:
        nodes, roots = forest.nodes, forest.roots
        room = len(nodes.feature) + 1
        return lambda part, met, paid: charge_rows(nodes, roots, part, prices, paid, np.empty(room, np.int32))
    return lambda part, met, paid: charge_all(met, prices, paid)


def nothing_met(n_rows: int, forest: Forest | Context | None = None) -> Keys:
    """Room for the features that rows meet, a bit each; without a forest for none."""
    return np.zeros((n_rows, -(-len(forest.costs.cost) // 64) if forest else 0), np.uint64)


def labels(forest: Forest, X: Numbers, pool: Executor | None = None) -> Ids:
    """(n) the class of every row: that of most votes, or the one at which it exits."""
    # certain exit never changes a label, so labels alone need no exits
    if forest.threshold == math.inf or forest.n_trees == 0:
        best: Ids = scores(forest, X, pool).argmax(axis=1).astype(np.int32)
        return best
    return ladder(forest, X, [forest.threshold], pool).labels[:, 0]


def ladder(forest: Forest, X: Numbers, thresholds: Sequence[float], pool: Executor | None = None) -> Exits:
    """Where every row exits at each of some ascending thresholds, in one pass."""
    return ladder_for(forest, thresholds)(X, pool)


def ladder_for(forest: Forest, thresholds: Sequence[float]) -> Callable[[Numbers, Executor | None], Exits]:
    """The same as a function of rows, for those that come in parts."""
    settle = settler(forest)

    def exits_of(X: Numbers, pool: Executor | None) -> Exits:
        exits = exits_for(len(X), thresholds, forest)

        def block(rows: slice, part: Matrix) -> None:
            settle(part, open_ledger(len(part), forest.costs), exits_in(exits, rows))

        for_blocks(block, X, pool, at_once(forest, X, pool))
        return exits

    return exits_of


def settler(forest: Forest) -> Callable[[Matrix, Ledger, Exits], None]:
    """A function that walks rows to their exits."""
    prices, walked = forest.costs.bare, walked_for(forest, Answer.LABEL)

    def settle(part: Matrix, ledger: Ledger, exits: Exits) -> None:
        start, room = state_for(forest), state_for(forest)
        end = np.zeros(len(part), np.int32)
        # rows of the same leaf in the first tree often go alike in the others: these nodes are near then
        if forest.n_trees:
            ends_in(forest.nodes, int(forest.roots[0]), part, end)
        order = np.argsort(end, kind="stable").astype(np.int32)
        for first in range(0, len(part), BLOCK):
            leave_if_alone()
            settle_rows(walked, part, order[first : first + BLOCK], prices, ledger, start, room, exits)

    return settle


def for_blocks(
    block: Callable[[slice, Matrix], object], X: Numbers, pool: Executor | None = None, size: int = BLOCK
) -> None:
    """Do something for all rows, some of them at a time, by threads if there are any."""

    def at(start: int) -> None:
        leave_if_alone()
        rows = slice(start, start + size)
        block(rows, np.require(X[rows], requirements=["C", "W"]))

    starts = range(0, len(X), size)
    list(pool.map(at, starts) if pool else map(at, starts))


class Answers(NamedTuple):
    """All that rows get and pay."""

    label: Ids
    """(n) the class."""
    share: Floats
    """(n, k) how likely each class is, by what was paid for: shares of all votes, or for a label alone the
    mean belief of the trees where they stand."""
    ledger: Ledger


def answerer(forest: Forest, answer: Answer) -> Callable[[Numbers, Executor | None], Answers]:
    """A function from rows to what they get and pay, as ``labels`` and ``predict`` tell it."""
    if forest.n_trees == 0:
        return partial(_prior_for, forest)
    if answer == Answer.PROBA:
        return partial(_from_all_trees, forest, visitor(forest, BLOCK), payer(forest))
    return partial(_to_the_exit, forest, settler(forest))


def _prior_for(forest: Forest, X: Numbers, pool: Executor | None) -> Answers:
    share = shares(scores(forest, X), forest.voting)
    return Answers(labels(forest, X), share, open_ledger(len(X), forest.costs))


def _from_all_trees(
    forest: Forest,
    visit: Visit,
    pay_for: Callable[[Matrix, Keys, Ledger], None],
    X: Numbers,
    pool: Executor | None,
) -> Answers:
    share, ledger = np.zeros((len(X), len(forest.prior))), open_ledger(len(X), forest.costs)
    label = np.empty(len(X), np.int32)

    def block(rows: slice, part: Matrix) -> None:
        met = nothing_met(len(part), forest)
        visit(part, share[rows], met)
        pay_for(part, met, part_of(ledger, rows))
        label[rows] = share[rows].argmax(axis=1)
        share[rows] = shares(share[rows], forest.voting)

    for_blocks(block, X, pool, at_once(forest, X, pool))
    # scores ask every tree; a label may still be that of an earlier exit
    sure = forest.threshold == math.inf
    return Answers(label if sure else labels(forest, X, pool), share, ledger)


def _to_the_exit(
    forest: Forest, settle: Callable[[Matrix, Ledger, Exits], None], X: Numbers, pool: Executor | None
) -> Answers:
    ledger, exits = open_ledger(len(X), forest.costs), exits_for(len(X), [forest.threshold], forest)

    def block(rows: slice, part: Matrix) -> None:
        settle(part, part_of(ledger, rows), exits_in(exits, rows))

    for_blocks(block, X, pool, at_once(forest, X, pool))
    return Answers(exits.labels[:, 0], shares(exits.belief / BELIEF, forest.voting), ledger)
