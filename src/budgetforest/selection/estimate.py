"""Errors that hold on new rows: those of the choice, not of the luckiest candidate.

The forest of a budget was chosen among thousands by its error on the validation rows, so that error is too
low. Here every row is judged by the forest that would have been chosen without it: the rows are divided into
ten folds by their contents; for each fold the choice is made again on the other nine, and its errors on the
fold are counted. (Tsamardinos and others, 2018, do the same with bootstrap samples.)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from budgetforest.runtime.arrays import Floats
from budgetforest.selection.candidates import Candidate, Folds, Point

N_FOLDS = 10
NORMAL = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""

Choice: TypeAlias = Callable[[Sequence[Candidate], int], Callable[[float], Point | None]]
"""From candidates and the number of rows that judge them to the forest for every budget."""


class Estimate(NamedTuple):
    """The error to expect on new rows within a budget."""

    budget: float
    error: float
    low: float
    """Where its 95 % interval begins,"""
    high: float
    """and ends."""


def summed(parts: Sequence[Folds]) -> Folds:
    """The folds of several sets of rows together."""
    return tuple(
        (sum(wrong for wrong, _ in fold), sum(weight for _, weight in fold))
        for fold in zip(*parts, strict=True)
    )


def error_in(folds: Folds) -> float:
    """The share of all weight that is wrong."""
    return sum(wrong for wrong, _ in folds) / sum(weight for _, weight in folds)


def choices_without(
    candidates: Sequence[Candidate], budgets: Sequence[float], choice: Choice, n_rows: int
) -> list[list[Point | None]]:
    """For each fold the forests that the rows outside of it would choose at some budgets.

    Empty if nothing was measured.
    """
    points = [point for candidate in candidates for point in candidate.points]
    if not points or not all(point.folds for point in points):
        return []
    own = {key(point): point for point in points}
    errors = errors_without([point.folds for point in points])
    found = []
    for of_points in errors.T.tolist():
        error = iter(of_points)
        others = [
            candidate._replace(points=[point._replace(error=next(error)) for point in candidate.points])
            for candidate in candidates
        ]
        best_at = choice(others, max(1, round(n_rows * (1 - 1 / N_FOLDS))))
        found.append([point and own[key(point)] for point in map(best_at, budgets)])
    return found


def errors_without(folds: Sequence[Folds]) -> Floats:
    """(points, folds) the error on the rows outside of each fold."""
    wrong, weight = np.moveaxis(np.array(folds), 2, 0)
    rest = weight.sum(axis=1, keepdims=True) - weight
    # all rows in one fold: then they judge
    others: Floats = (wrong.sum(axis=1, keepdims=True) - wrong) / np.where(rest > 0, rest, 1.0)
    return np.where(rest > 0, others, wrong / np.maximum(weight, 1.0))


def key(point: Point) -> tuple[object, int, float]:
    """Tells the points of a training apart, whatever their errors."""
    return point.recipe, point.trees, point.threshold


def estimates(
    budgets: Sequence[float], chosen: Sequence[Sequence[Point | None]], n_rows: int, smooth: bool
) -> tuple[Estimate, ...]:
    """The error to expect at ascending budgets, given what is chosen without each fold.

    Budgets at which nothing is chosen are left out. ``smooth``: never more at a larger budget.
    """
    from scipy.optimize import isotonic_regression  # takes long to import, and a loaded model does without

    found = {}
    for budget, at in zip(budgets, zip(*chosen, strict=True), strict=bool(chosen)):
        folds = tuple(point.folds[fold] for fold, point in enumerate(at) if point)
        if len(folds) == len(at):
            found[budget] = error_in(folds)
    errors = list(found.values())
    if smooth and errors:
        errors = isotonic_regression(errors, increasing=False).x.tolist()
    return tuple(
        Estimate(budget, error, *interval(error, n_rows)) for budget, error in zip(found, errors, strict=True)
    )


def estimate_at(found: Sequence[Estimate], budget: float) -> Estimate | None:
    """The estimate for a budget: that of the largest one within it; None below all of them."""
    at = bisect_right([each.budget for each in found], budget)
    return found[at - 1] if at else None


def interval(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of Wilson for a share that was seen among n rows.

    >>> [round(end, 3) for end in interval(0.1, 100)]
    [0.055, 0.174]
    """
    z = NORMAL * NORMAL / n
    centre = (share + z / 2) / (1 + z)
    half = math.sqrt(share * (1 - share) * z + z * z / 4) / (1 + z)
    # rounding must not leave the share outside
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
