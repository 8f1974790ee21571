"""What forests cost validation rows and how they err, as sums that blocks of rows add up to exactly."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import Counts, Floats
from budgetforest.charge import charge, ladder, scores
from budgetforest.forest import Answer, Context, first_trees, join
from budgetforest.train import Rows
from budgetforest.tree import Tree


class Outcome(NamedTuple):
    """Of a forest, at each of some thresholds."""

    rows: int
    cost: list[Fraction]
    """What the rows pay, each by its share of all weight."""
    wrong: Counts
    """The weight of rows that are labelled wrongly."""
    differ: Counts
    """How many rows have another label than at the last threshold."""


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
    share = rows.weight.astype(np.float64) / float(weight)
    found = []
    for size in sizes:
        forest = first_trees(full, size)
        exits = ladder(forest, rows.X, ends, pool)
        if answer == Answer.PROBA:
            exits.spent[:, 0] = charge(forest, rows.X, answer, pool).spent
        wrong = exits.labels != rows.label[:, None]
        found.append(
            Outcome(
                len(share),
                [exact_sum(share * spent) for spent in exits.spent.T],
                rows.weight @ wrong,
                (exits.labels != exits.labels[:, -1:]).sum(axis=0),
            )
        )
    return found


def added(blocks: Sequence[Outcome]) -> Outcome:
    """The outcome on all blocks."""
    rows, cost, wrong, differ = zip(*blocks, strict=True)
    return Outcome(
        sum(rows),
        [sum(parts, Fraction(0)) for parts in zip(*cost, strict=True)],
        np.sum(wrong, axis=0),
        np.sum(differ, axis=0),
    )


def weight_wrong(rows: Rows, trees: Sequence[Tree], context: Context) -> int:
    """The weight of rows that all trees together label wrongly."""
    label = scores(join(trees, context), rows.X).argmax(axis=1)
    return int(rows.weight[label != rows.label].sum())


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
