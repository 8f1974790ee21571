"""How rows exit: what they have paid, asked and believe when asking stops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetforest.inference.trace import Trace
from budgetforest.runtime.arrays import Floats, Ids

MOST_BARS = 24
"""Bars of a histogram, about."""
TENTHS = 10


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram of one forest."""

    at: int
    """Which forest of the path."""
    of: str
    """Of cost, features or trees."""
    low: float
    high: float
    share: float
    """Of the rows."""


@dataclass(frozen=True)
class Calibrated:
    """Rows that were believed about equally."""

    at: int
    belief: float
    """Their mean belief when asking stopped."""
    right: float
    """How often that label was right."""
    rows: int


def histograms(courses: Sequence[Trace], n_trees: Sequence[int]) -> list[Bar]:
    """Cost, features and share of the trees that had spoken, with the same bars for every forest."""
    spent = [course.spent[:, -1] for course in courses]
    asked = [(course.order >= 0).sum(axis=1) for course in courses]
    spoken = [course.settled / max(trees, 1) for course, trees in zip(courses, n_trees, strict=True)]
    dearest, longest = (max(float(values.max()) for values in some) for some in (spent, asked))
    bars = _bars("cost", spent, _edges(dearest))
    bars += _bars("features", asked, _edges(longest, whole=True))
    return bars + _bars("trees", spoken, np.linspace(0, 1, 21))


def _edges(most: float, *, whole: bool = False) -> Floats:
    """Round limits of bars from zero past ``most``; whole numbers stand in the middle of theirs."""
    step = 10 ** math.floor(math.log10(most / MOST_BARS)) if most > 0 else 1.0
    step *= next(times for times in (1, 2, 5, 10) if step * times * MOST_BARS >= most)
    if whole:
        step = max(1.0, step)
    edges: Floats = np.arange(math.floor(most / step) + 2) * step - (0.5 if whole else 0)
    return edges


def _bars(of: str, values: Sequence[Floats], edges: Floats) -> list[Bar]:
    bars = []
    for at, some in enumerate(values):
        share = np.histogram(some, edges)[0] / len(some)
        bars += [
            Bar(at, of, float(edges[b]), float(edges[b + 1]), float(share[b])) for b in np.flatnonzero(share)
        ]
    return bars


def calibration(courses: Sequence[Trace], truth: Ids) -> list[Calibrated]:
    """Belief in the leading label against how often it was right, by tenths of the rows."""
    found = []
    for at, course in enumerate(courses):
        belief, right = course.belief[:, -1], course.leader[:, -1] == truth
        limits = np.unique(np.quantile(belief, np.arange(1, TENTHS) / TENTHS))
        tenth = np.searchsorted(limits, belief)  # equal beliefs stay together
        for b in np.unique(tenth):
            rows = tenth == b
            found.append(
                Calibrated(at, float(belief[rows].mean()), float(right[rows].mean()), int(rows.sum()))
            )
    return found
