"""What forests cost validation rows and how they err, as sums that blocks of rows add up to exactly.

Errors are also summed by fold (``estimate``), so that a choice can be judged on rows that had no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.rows import Rows, Totals
from budgetforest.inference.ledger import open_ledger, part_of
from budgetforest.inference.predict import (
    for_blocks,
    labels,
    ladder,
    ladder_for,
    nothing_met,
    payer,
    scores,
    spent,
    visitor,
)
from budgetforest.runtime.arrays import Counts, Floats, Ids, Keys, Matrix
from budgetforest.runtime.random import places
from budgetforest.selection.candidates import Folds
from budgetforest.selection.estimate import N_FOLDS, error_in
from budgetforest.selection.settings import Settings
from budgetforest.trees.forest import Answer, Context, Forest, first_trees, join, join_forests, shares
from budgetforest.trees.tree import Tree

FOLD_KEY = 0x666F6C64
"""Folds have an order of rows of their own."""
MEASURED = 2**16
"""Rows whose exits are held at a time."""


class Outcome(NamedTuple):
    """Of a forest, at each of some thresholds; every row counts by its weight, in units."""

    weight: Counts
    """(folds) of all rows."""
    paid: list[Fraction]
    """What the rows pay."""
    wrong: NDArray[Any]
    """(thresholds, folds) how far from right they are: in their labels, as whole numbers, or in their scores
    if these are asked for, as fractions."""
    differ: Counts
    """The weight of the rows that have another label than at the last threshold."""

    def cost(self, at: int) -> float:
        """What an average row pays at a threshold."""
        return float(self.paid[at] / int(self.weight.sum()))

    def folds(self, at: int) -> Folds:
        """How far from right rows are at a threshold, by fold."""
        return tuple(zip(map(float, self.wrong[at]), map(float, self.weight), strict=True))

    def error(self, at: int) -> float:
        """How far from right an average row is at a threshold."""
        return error_in(self.folds(at))


def outcomes_of(
    rows: Rows,
    trees: Sequence[Tree],
    context: Context,
    sizes: Sequence[int],
    ends: Sequence[float],
    answer: Answer,
    pool: Executor | None = None,
) -> list[Outcome]:
    """Of the first so many trees for each of ``sizes``, on some of the rows."""
    full = join(trees, context)
    forests = (first_trees(full, size) for size in sizes)
    if answer == Answer.PROBA:
        return [_of_scores(rows, forest, pool) for forest in forests]
    return [_of_labels(rows, forest, ends, pool) for forest in forests]


def _of_scores(rows: Rows, forest: Forest, pool: Executor | None) -> Outcome:
    """All trees are asked, so there is one exit."""
    paid = rows.weight * spent(forest, rows.X, Answer.PROBA, pool)
    fold = folds_of(rows.hashes)
    wrong = rows.weight * brier(shares(scores(forest, rows.X, pool), forest.voting), rows.label)
    return Outcome(
        by_fold(fold, rows.weight),
        [exact_sum(paid)],
        np.array([[exact_sum(wrong[fold == each]) for each in range(N_FOLDS)]], object),
        np.zeros(1, np.int64),
    )


def _of_labels(rows: Rows, forest: Forest, ends: Sequence[float], pool: Executor | None) -> Outcome:
    """Some rows after the other, since each has many exits."""
    exits_of = ladder_for(forest, ends)
    found = []
    # no row at all is one empty block, whose sums are zero
    for start in range(0, max(1, len(rows.label)), MEASURED):
        part = rows.take(slice(start, start + MEASURED))
        exits = exits_of(part.X, pool)
        fold = folds_of(part.hashes)
        found.append(
            Outcome(
                by_fold(fold, part.weight),
                [exact_sum(part.weight * paid) for paid in exits.spent.T],
                np.array([wrong_by_fold(part, fold, label) for label in exits.labels.T]),
                part.weight.astype(np.int64) @ (exits.labels != exits.labels[:, -1:]),
            )
        )
    return added(found)


def added(blocks: Sequence[Outcome]) -> Outcome:
    """The outcome on all blocks."""
    weight, paid, wrong, differ = zip(*blocks, strict=True)
    return Outcome(
        np.sum(weight, axis=0),
        [sum(parts, Fraction(0)) for parts in zip(*paid, strict=True)],
        np.sum(wrong, axis=0),
        np.sum(differ, axis=0),
    )


def confusion_of(
    rows: Rows, trees: Sequence[Tree], context: Context, fold: int, pool: Executor | None = None
) -> Counts:
    """(k, k) the labels that some trees give to the rows of a fold, by true class, in units of weight."""
    part, k = rows.take(folds_of(rows.hashes) == fold), len(context.prior)
    found = labels(join(trees, context), part.X, pool)
    return np.bincount(part.label * k + found, part.weight, k * k).astype(np.int64).reshape(k, k)


def folds_of(hashes: Keys) -> Ids:
    """(n) the fold of each row, by its contents: equal rows are in the same."""
    return (places(hashes, FOLD_KEY) % np.uint64(N_FOLDS)).astype(np.int32)


def by_fold(fold: Ids, weight: Ids) -> Counts:
    """(folds) the weight of the rows of each fold."""
    return np.bincount(fold, weight, N_FOLDS).astype(np.int64)


def wrong_by_fold(rows: Rows, fold: Ids, label: Ids) -> Counts:
    """(folds) the weight of the rows that are labelled wrongly."""
    return by_fold(fold, rows.weight * (label != rows.label))


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


class Sums(NamedTuple):
    """Of a growing forest on some rows."""

    cost: Fraction
    """What each row pays, times its share of all weight."""
    wrong: Counts
    """(folds) the weight of the rows that are labelled wrongly."""
    weight: Counts
    """(folds) of the rows."""


class Measured(NamedTuple):
    """Cost and error of a forest on validation rows."""

    cost: float
    error: float
    folds: Folds


def measured(blocks: Sequence[Sums]) -> Measured:
    """What the sums of all blocks mean."""
    weight = np.sum([block.weight for block in blocks], axis=0)
    wrong = np.sum([block.wrong for block in blocks], axis=0)
    folds = tuple(zip(map(float, wrong), map(float, weight), strict=True))
    return Measured(float(sum(block.cost for block in blocks)), error_in(folds), folds)


class Meter:
    """Adds trees to a forest one by one and tells its mean cost and error on validation rows.

    The cost of all scores only grows with each tree and is known after each. The cost of labels is that of
    the whole forest anew, so it is measured at growing distances: after 1, 2, ... 16, 18, ... trees.
    """

    def __init__(
        self,
        rows: Rows,
        weight: int,
        context: Context,
        answer: Answer,
        most: int,
        pool: Executor | None,
    ) -> None:
        self.rows, self.share = rows, shares_in(rows, weight)
        self.fold = folds_of(rows.hashes)
        self.context, self.answer, self.most, self.pool = context, answer, most, pool
        scored = len(rows.label) if answer == Answer.PROBA else 0
        self.scores = np.zeros((scored, len(context.prior)))
        self.spent = np.zeros(scored)
        self.met = nothing_met(scored, context)
        self.ledger = open_ledger(scored if context.costs.order_matters else 0, context.costs)
        self.forests: list[Forest] = []

    def add(self, tree: Tree) -> Measured | None:
        """Mean cost and error of the forest with one more tree; None where it is not measured."""
        sums = self.sums_with(tree)
        return measured([sums]) if sums else None

    def sums_with(self, tree: Tree) -> Sums | None:
        """The same as sums, which those of other rows can be added to."""
        one = join([tree], self.context)
        if self.answer == Answer.PROBA:
            self._score(one)
            return self._sums(self.spent, self.scores.argmax(axis=1))
        self.forests.append(one)
        if not is_measured(len(self.forests), self.most):
            return None
        whole = join_forests(self.forests, self.context)
        exits = ladder(whole, self.rows.X, [self.context.threshold], self.pool)
        return self._sums(exits.spent[:, 0], exits.labels[:, 0])

    def _sums(self, spent: Floats, label: Ids) -> Sums:
        wrong = wrong_by_fold(self.rows, self.fold, label)
        return Sums(exact_sum(self.share * spent), wrong, by_fold(self.fold, self.rows.weight))

    def _score(self, one: Forest) -> None:
        """Add the votes of one more tree, and what all scores cost more."""
        visit, pay_for = visitor(one, len(self.rows.X)), payer(one)

        def block(rows: slice, part: Matrix) -> None:
            in_order = one.costs.order_matters  # else what was met tells all that was paid
            paid = part_of(self.ledger, rows) if in_order else open_ledger(len(part), one.costs)
            visit(part, self.scores[rows], self.met[rows])
            pay_for(part, self.met[rows], paid)
            self.spent[rows] = paid.spent

        for_blocks(block, self.rows.X, self.pool)


def is_measured(trees: int, most: int) -> bool:
    """Whether the cost of labels is measured after so many trees: steps of an eighth, and the last."""
    step = max(1, 2 ** (trees.bit_length() - 4))
    return trees == most or trees % step == 0
