"""What rows get from a forest and what they pay for it.

To know every score a row meets all trees and pays for all it meets there; to know its label it stops as soon
as no further feature can change it (``settle``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import Floats, Ids, Matrix
from budgetforest.forest import BELIEF, NEVER, Answer, Context, Forest, Votes, join, shares
from budgetforest.jit import kernel
from budgetforest.ledger import Ledger, Prices, charge_leaves, charge_rows, open_ledger
from budgetforest.settle import BLOCK, Exits, exits_for, settle_rows
from budgetforest.tree import Tree
from budgetforest.waiting import queues, walked_for
from budgetforest.walks import TILE, leaves_in_step, leaves_of, met_before, paces


def scores(forest: Forest, X: Matrix, pool: Executor | None = None) -> Floats:
    """(n, k) summed votes of every row; the prior where there are no trees."""
    total = np.zeros((len(X), len(forest.prior)))
    if forest.n_trees == 0:
        return total + forest.prior
    find_leaves = walker(forest, len(X))

    def block(rows: slice, part: Matrix) -> None:
        add_votes(forest.least, find_leaves(part), total[rows])

    _for_blocks(block, X, pool)
    return total


def walker(forest: Forest, n_rows: int) -> Callable[[Matrix], Ids]:
    """A function from rows to their leaves, (t, n); packing the nodes pays for many rows."""
    if n_rows < TILE or len(forest.nodes.branches):

        def one_by_one(part: Matrix) -> Ids:
            leaves = np.empty((forest.n_trees, len(part)), np.int32)
            leaves_of(forest.nodes, forest.roots, part, leaves)
            return leaves

        return one_by_one
    packed = paces(forest.nodes, forest.roots)

    def in_step(part: Matrix) -> Ids:
        leaves = np.empty((forest.n_trees, len(part)), np.int32)
        leaves_in_step(packed, forest.roots, part, np.empty(TILE, np.int32), leaves)
        return leaves

    return in_step


def charge(forest: Forest, X: Matrix, answer: Answer, pool: Executor | None = None) -> Ledger:
    """What every row acquires and pays for its label, or for every score."""
    if forest.n_trees and answer == Answer.LABEL:
        return settler(forest, [forest.threshold])(X, pool).ledger
    ledger = open_ledger(len(X), forest.costs)
    if forest.n_trees:
        find_leaves, pay_for = walker(forest, len(X)), payer(forest)

        def block(rows: slice, part: Matrix) -> None:
            pay_for(part, find_leaves(part), Ledger._make(column[rows] for column in ledger))

        _for_blocks(block, X, pool)
    return ledger


def payer(forest: Forest) -> Callable[[Matrix, Ids, Ledger], None]:
    """A function that charges rows for all they meet on the way to their leaves."""
    prices = Prices(*forest.costs[:3])
    if forest.costs.order_matters:

        def in_order(part: Matrix, leaves: Ids, paid: Ledger) -> None:
            charge_rows(forest.nodes, forest.roots, part, prices, paid)

        return in_order
    masks = met_before(forest.nodes, forest.roots[:-1], len(prices.cost))

    def at_once(part: Matrix, leaves: Ids, paid: Ledger) -> None:
        charge_leaves(masks, leaves, prices, np.zeros((len(part), masks.shape[1]), np.uint64), paid)

    return at_once


def labels(forest: Forest, X: Matrix, pool: Executor | None = None) -> Ids:
    """(n) the class of every row: that of most votes, or the one at which it exits."""
    if forest.threshold == math.inf or forest.n_trees == 0:
        best: Ids = scores(forest, X, pool).argmax(axis=1).astype(np.int32)
        return best
    return ladder(forest, X, [forest.threshold], pool).labels[:, 0]


def ladder(forest: Forest, X: Matrix, thresholds: Sequence[float], pool: Executor | None = None) -> Exits:
    """Where every row exits at each of some ascending thresholds, in one pass."""
    return settler(forest, thresholds)(X, pool).exits


class Settled(NamedTuple):
    """Rows after their last exit."""

    ledger: Ledger
    exits: Exits


def settler(
    forest: Forest, thresholds: Sequence[float], *, believes: bool = False
) -> Callable[[Matrix, Executor | None], Settled]:
    """A function from rows to their exits at some thresholds; ``believes``: and to what is believed there."""
    prices = Prices(*forest.costs[:3])
    exit_at = exits_for(0, thresholds, forest).enough
    walked = walked_for(forest, Answer.LABEL, believes=believes or bool((exit_at < NEVER).any()))

    def settle(X: Matrix, pool: Executor | None) -> Settled:
        ledger, exits = open_ledger(len(X), forest.costs), exits_for(len(X), thresholds, forest)

        def block(rows: slice, part: Matrix) -> None:
            paid = Ledger._make(column[rows] for column in ledger)
            here = Exits._make([exits.enough, *(column[rows] for column in exits[1:])])
            settle_rows(walked, part, prices, paid, queues(forest), queues(forest), here)

        _for_blocks(block, X, pool)
        return Settled(ledger, exits)

    return settle


def _for_blocks(block: Callable[[slice, Matrix], None], X: Matrix, pool: Executor | None = None) -> None:
    def at(start: int) -> None:
        rows = slice(start, start + BLOCK)
        block(rows, np.require(X[rows], requirements=["C", "W"]))

    starts = range(0, len(X), BLOCK)
    list(pool.map(at, starts) if pool else map(at, starts))


class Answers(NamedTuple):
    """All that rows get and pay."""

    label: Ids
    """(n) the class."""
    share: Floats
    """(n, k) how likely each class is, by what was paid for: shares of all votes, or for a label alone the
    mean belief of the trees where they stand."""
    ledger: Ledger


def answerer(forest: Forest, answer: Answer) -> Callable[[Matrix, Executor | None], Answers]:
    """A function from rows to what they get and pay, as ``labels`` and ``charge`` tell it."""
    if forest.n_trees == 0:
        return partial(_prior_for, forest)
    if answer == Answer.PROBA:
        return partial(_from_all_trees, forest, walker(forest, BLOCK), payer(forest))
    return partial(_to_the_exit, forest, settler(forest, [forest.threshold], believes=True))


def _prior_for(forest: Forest, X: Matrix, pool: Executor | None) -> Answers:
    share = shares(scores(forest, X), forest.voting)
    return Answers(labels(forest, X), share, open_ledger(len(X), forest.costs))


def _from_all_trees(
    forest: Forest,
    find_leaves: Callable[[Matrix], Ids],
    pay_for: Callable[[Matrix, Ids, Ledger], None],
    X: Matrix,
    pool: Executor | None,
) -> Answers:
    total, ledger = np.zeros((len(X), len(forest.prior))), open_ledger(len(X), forest.costs)

    def block(rows: slice, part: Matrix) -> None:
        leaves = find_leaves(part)
        add_votes(forest.least, leaves, total[rows])
        pay_for(part, leaves, Ledger._make(column[rows] for column in ledger))

    _for_blocks(block, X, pool)
    sure = forest.threshold == math.inf
    label = total.argmax(axis=1).astype(np.int32) if sure else labels(forest, X, pool)
    return Answers(label, shares(total, forest.voting), ledger)


def _to_the_exit(
    forest: Forest, settle: Callable[[Matrix, Executor | None], Settled], X: Matrix, pool: Executor | None
) -> Answers:
    ledger, exits = settle(X, pool)
    return Answers(exits.labels[:, 0], shares(exits.belief / BELIEF, forest.voting), ledger)


class Meter:
    """Adds trees to a forest one by one and tells its mean cost and error on validation rows.

    The cost of all scores only grows with each tree and is known after each. The cost of labels is that of
    the whole forest anew, so it is measured at growing distances: after 1, 2, ... 16, 18, ... trees.
    """

    def __init__(
        self,
        X: Matrix,
        label: Ids,
        share: Floats,
        context: Context,
        answer: Answer,
        most: int,
        pool: Executor | None,
    ) -> None:
        self.X = np.require(X, requirements=["C", "W"])
        self.label, self.context, self.answer, self.most, self.pool = label, context, answer, most, pool
        self.share = share
        self.ledger = open_ledger(len(X), context.costs)
        self.scores = np.zeros((len(X), len(context.prior)))
        self.met = np.zeros((len(X), -(-X.shape[1] // 64)), np.uint64)
        self.trees: list[Tree] = []

    def add(self, tree: Tree) -> tuple[float, float] | None:
        """Mean cost and error of the forest with one more tree; None where it is not measured."""
        parts = self.shares_with(tree)
        # fsum: the same mean whatever the order of the rows
        return (math.fsum(parts[0]), math.fsum(parts[1])) if parts else None

    def shares_with(self, tree: Tree) -> tuple[Floats, Floats] | None:
        """The same before it is summed: what each row adds to the cost, and each wrong one to the error."""
        self.trees.append(tree)
        one = join([tree], self.context)
        self.scores += scores(one, self.X, self.pool)
        if self.answer == Answer.LABEL:
            if not is_measured(len(self.trees), self.most):
                return None
            spent = charge(join(self.trees, self.context), self.X, self.answer, self.pool).spent
        else:
            self._charge_scores(one)
            spent = self.ledger.spent
        wrong = self.scores.argmax(axis=1) != self.label
        return self.share * spent, self.share[wrong]

    def _charge_scores(self, one: Forest) -> None:
        """Add what one more tree costs to what was paid before."""
        prices = Prices(*one.costs[:3])
        if one.costs.order_matters:
            charge_rows(one.nodes, one.roots, self.X, prices, self.ledger)
        else:
            masks = met_before(one.nodes, one.roots[:-1], len(prices.cost))
            charge_leaves(masks, walker(one, len(self.X))(self.X), prices, self.met, self.ledger)


def is_measured(trees: int, most: int) -> bool:
    """Whether the cost of labels is measured after so many trees: steps of an eighth, and the last."""
    step = max(1, 2 ** (trees.bit_length() - 4))
    return trees == most or trees % step == 0


@kernel
def add_votes(votes: Votes, leaves: Ids, scores: Floats) -> None:
    """Add what each tree's leaf gives, in the order of the trees."""
    for t in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            for c in range(scores.shape[1]):
                scores[i, c] += votes[leaves[t, i], c]
