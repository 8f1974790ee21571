"""What forests cost validation rows and how they err, as sums that blocks of rows add up to exactly."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import Counts, Floats, Ids
from budgetforest.charge import ladder_for, scores, spent
from budgetforest.forest import Answer, Context, Forest, first_trees, join, shares
from budgetforest.train import Rows, Settings, Totals
from budgetforest.tree import Tree

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
