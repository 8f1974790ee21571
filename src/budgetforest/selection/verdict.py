"""Whether a model is better than answering without it: in figures, and in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Counts
from budgetforest.selection.estimate import NORMAL, interval


class ClassFigures(NamedTuple):
    """How the rows of one class fare."""

    label: Any
    rows: int
    recall: float
    """The share of its rows that get its label; NaN without rows."""
    precision: float
    """The share of the rows with its label that are its own; NaN if no row has it."""


class Verdict(NamedTuple):
    """A model beside the answer that costs nothing: always the most common class."""

    error: float
    """Share of wrong labels,"""
    low: float
    """its 95 % interval from here"""
    high: float
    """to here."""
    rows: int
    """How many rows that is worth."""
    common: Any
    """The most common class,"""
    common_error: float
    """and how often it is wrong."""
    margin: float
    """By so much the error may seem smaller or larger than that only by chance, 95 of 100 times."""
    free: float | None = None
    """The error of what free features tell, if there are any."""

    @property
    def better(self) -> bool | None:
        """Whether the model is better; None if the rows are too few to tell."""
        gain = self.common_error - self.error
        return None if abs(gain) <= self.margin else gain > 0

    def __str__(self) -> str:
        common = f"always answering {str(self.common)!r} ({self.common_error:.1%} wrong)"
        expected = f"{self.error:.1%} of labels are wrong (95% interval {self.low:.1%} to {self.high:.1%})"
        if self.better is None:
            told = f"Not shown to be better than {common}: {expected}. More rows may tell."
        else:
            told = f"{'Better' if self.better else 'Worse'} than {common}: {expected}."
        return told if self.free is None else f"{told} Spending nothing, {self.free:.1%} are."


def verdict_on(
    confusion: Counts,
    classes: Sequence[Any],
    common: int,
    rows: int,
    error: tuple[float, float, float] | None = None,
) -> Verdict:
    """The verdict on labels that were counted by true class (k, k), from so many rows.

    ``error``, low and high where they are known better than by these counts.
    """
    total = max(1, int(confusion.sum()))
    wrong = total - int(np.trace(confusion))
    # right where the common class is wrong, and the other way round: only these rows tell them apart
    gained = int(np.trace(confusion) - confusion[common, common])
    lost = int(confusion[common].sum() - confusion[common, common])
    spread = (gained + lost) / total - ((gained - lost) / total) ** 2
    return Verdict(
        *(error or (wrong / total, *interval(wrong / total, rows))),
        rows=rows,
        common=classes[common],
        common_error=1 - int(confusion[common].sum()) / total,
        # three rows more, as the intervals of shares near 0 have
        margin=NORMAL * math.sqrt(spread / rows) + 1.5 / rows,
    )


def by_class(confusion: Counts, classes: Sequence[Any], unit: float = 1.0) -> list[ClassFigures]:
    """Recall and precision of every class; ``unit`` is the weight of one count."""
    right, true, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return [
        ClassFigures(
            label,
            round(float(true[c]) * unit),
            float(right[c] / true[c]) if true[c] else math.nan,
            float(right[c] / said[c]) if said[c] else math.nan,
        )
        for c, label in enumerate(classes)
    ]
