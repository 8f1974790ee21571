"""What forests cost validation rows and how they err, as sums that blocks of rows add up to exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from budgetforest.data.rows import Rows, Totals
from budgetforest.data.table import Numbers
from budgetforest.inference.ledger import open_ledger, part_of
from budgetforest.inference.predict import (
    for_blocks,
    ladder,
    ladder_for,
    nothing_met,
    payer,
    scores,
    spent,
    visitor,
)
from budgetforest.runtime.arrays import Counts, Floats, Ids, Matrix
from budgetforest.selection.settings import Settings
from budgetforest.trees.forest import Answer, Context, Forest, first_trees, join, join_forests, shares
from budgetforest.trees.tree import Tree

MEASURED = 2**16
"""Rows whose exits are held at a time."""


class Outcome(NamedTuple):
    """Of a forest, at each of some thresholds; every row counts by its share of all weight."""

    cost: list[Fraction]
    """What the rows pay."""
    error: list[Fraction]
    """How far from right they are: in their labels, or in their scores if these are what is asked for."""
    differ: Counts
    """The weight, in units, of the rows that have another label than at the last threshold."""


def outcomes_of(
    rows: Rows,
    weight: int,
    trees: Sequence[Tree],
    context: Context,
    sizes: Sequence[int],
    ends: Sequence[float],
    answer: Answer,
    pool: Executor | None = None,
) -> list[Outcome]:
    """Of the first so many trees for each of ``sizes``, on some of the rows of that ``weight`` in all."""
    full = join(trees, context)
    forests = (first_trees(full, size) for size in sizes)
    if answer == Answer.PROBA:
        return [_of_scores(rows, weight, forest, pool) for forest in forests]
    return [_of_labels(rows, weight, forest, ends, pool) for forest in forests]


def _of_scores(rows: Rows, weight: int, forest: Forest, pool: Executor | None) -> Outcome:
    """All trees are asked, so there is one exit."""
    paid = shares_in(rows, weight) * spent(forest, rows.X, Answer.PROBA, pool)
    error = error_of(rows, weight, forest, Answer.PROBA, pool)
    return Outcome([exact_sum(paid)], [error], np.zeros(1, np.int64))


def _of_labels(
    rows: Rows, weight: int, forest: Forest, ends: Sequence[float], pool: Executor | None
) -> Outcome:
    """Some rows after the other, since each has many exits."""
    exits_of = ladder_for(forest, ends)
    found = []
    # no row at all is one empty block, whose sums are zero
    for start in range(0, max(1, len(rows.label)), MEASURED):
        part = rows.take(slice(start, start + MEASURED))
        exits = exits_of(part.X, pool)
        found.append(
            Outcome(
                [exact_sum(shares_in(part, weight) * paid) for paid in exits.spent.T],
                [share_wrong(part, weight, label) for label in exits.labels.T],
                part.weight.astype(np.int64) @ (exits.labels != exits.labels[:, -1:]),
            )
        )
    return added(found)


def added(blocks: Sequence[Outcome]) -> Outcome:
    """The outcome on all blocks."""
    cost, error, differ = zip(*blocks, strict=True)
    return Outcome(
        [sum(parts, Fraction(0)) for parts in zip(*cost, strict=True)],
        [sum(parts, Fraction(0)) for parts in zip(*error, strict=True)],
        np.sum(differ, axis=0),
    )


def error_of(
    rows: Rows, weight: int, forest: Forest, answer: Answer, pool: Executor | None = None
) -> Fraction:
    """How far from right a forest is if nothing exits, on some of the rows of that ``weight`` in all."""
    total = scores(forest, rows.X, pool)
    if answer == Answer.LABEL:
        return share_wrong(rows, weight, total.argmax(axis=1))
    return exact_sum(shares_in(rows, weight) * brier(shares(total, forest.voting), rows.label))


def error_without(context: Context, judged: Totals, settings: Settings) -> float:
    """How far from right an answer is that asks for nothing."""
    if settings.auto and settings.answer == Answer.PROBA:
        share = np.tile(context.prior / context.prior.sum(), (settings.n_classes, 1))
        return float(
            brier(share, np.arange(settings.n_classes, dtype=np.int32)) @ judged.counts / judged.counts.sum()
        )
    right, total = judged.counts[context.prior.argmax()], judged.counts.sum()
    return int(total - right) / int(total)


def shares_in(rows: Rows, weight: int) -> Floats:
    """(n) each row as a share of all weight."""
    return rows.weight / np.int64(weight)


def share_wrong(rows: Rows, weight: int, label: Ids) -> Fraction:
    """Share of all weight that is labelled wrongly here."""
    return Fraction(int(rows.weight[label != rows.label].sum()), weight)


def brier(share: Floats, label: Ids) -> Floats:
    """(n) half the squared distance of probabilities from the truth: 0 is right, 1 surely wrong."""
    hit = np.arange(share.shape[1]) == label[:, None]
    distance: Floats = np.square(share - hit).sum(axis=1)
    return distance / 2


def exact_sum(values: Floats) -> Fraction:
    """The sum, not rounded; rounded it is that of ``math.fsum``, whatever the order.

    >>> float(exact_sum(np.full(10, 0.1)))
    1.0
    """
    # every double is a whole number of 53 bits times a power of two: sums by power are exact
    share, power = np.frexp(values)
    whole = (share * 2.0**53).astype(np.int64)
    total = Fraction(0)
    least = int(power.min(initial=0))
    for each in least + np.flatnonzero(np.bincount(power - least)):
        part = whole[power == each]
        # high and low half apart: neither sum overflows
        number = (int((part >> 26).sum()) << 26) + int((part & (2**26 - 1)).sum())
        total += number * Fraction(2) ** (int(each) - 53)
    return total


class Meter:
    """Adds trees to a forest one by one and tells its mean cost and error on validation rows.

    The cost of all scores only grows with each tree and is known after each. The cost of labels is that of
    the whole forest anew, so it is measured at growing distances: after 1, 2, ... 16, 18, ... trees.
    """

    def __init__(
        self,
        X: Numbers,
        label: Ids,
        share: Floats,
        context: Context,
        answer: Answer,
        most: int,
        pool: Executor | None,
    ) -> None:
        self.X, self.label, self.share = X, label, share
        self.context, self.answer, self.most, self.pool = context, answer, most, pool
        scored = len(X) if answer == Answer.PROBA else 0
        self.scores = np.zeros((scored, len(context.prior)))
        self.spent = np.zeros(scored)
        self.met = nothing_met(scored, context)
        self.ledger = open_ledger(scored if context.costs.order_matters else 0, context.costs)
        self.forests: list[Forest] = []

    def add(self, tree: Tree) -> tuple[float, float] | None:
        """Mean cost and error of the forest with one more tree; None where it is not measured."""
        parts = self.shares_with(tree)
        # fsum: the same mean whatever the order of the rows
        return (math.fsum(parts[0]), math.fsum(parts[1])) if parts else None

    def shares_with(self, tree: Tree) -> tuple[Floats, Floats] | None:
        """The same before it is summed: what each row adds to the cost, and each wrong one to the error."""
        one = join([tree], self.context)
        if self.answer == Answer.PROBA:
            self._score(one)
            return self.share * self.spent, self.share[self.scores.argmax(axis=1) != self.label]
        self.forests.append(one)
        if not is_measured(len(self.forests), self.most):
            return None
        whole = join_forests(self.forests, self.context)
        exits = ladder(whole, self.X, [self.context.threshold], self.pool)
        return self.share * exits.spent[:, 0], self.share[exits.labels[:, 0] != self.label]

    def _score(self, one: Forest) -> None:
        """Add the votes of one more tree, and what all scores cost more."""
        visit, pay_for = visitor(one, len(self.X)), payer(one)

        def block(rows: slice, part: Matrix) -> None:
            in_order = one.costs.order_matters  # else what was met tells all that was paid
            paid = part_of(self.ledger, rows) if in_order else open_ledger(len(part), one.costs)
            visit(part, self.scores[rows], self.met[rows])
            pay_for(part, self.met[rows], paid)
            self.spent[rows] = paid.spent

        for_blocks(block, self.X, self.pool)


def is_measured(trees: int, most: int) -> bool:
    """Whether the cost of labels is measured after so many trees: steps of an eighth, and the last."""
    step = max(1, 2 ** (trees.bit_length() - 4))
    return trees == most or trees % step == 0
