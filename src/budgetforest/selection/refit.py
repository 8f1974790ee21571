"""All rows: the chosen forests are grown again on training and validation rows together.

A forest on more rows errs less, but its beliefs are others: at the old threshold rows might pay much more. So
each threshold is found anew. It is the largest at which the new forest costs the training rows no more than
the measured one costs them at the old threshold. Both have seen these rows, so both believe too much in
their labels there, and alike.

What is told of a forest, its cost and its error, stays what was measured before. Where no threshold meets the
cost, the measured forest stays, too.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.backend import Backend
from budgetforest.selection.candidates import Candidate, Point, Recipe, thresholds
from budgetforest.selection.recipes import regrown
from budgetforest.selection.result import TrainingResult, context_for
from budgetforest.selection.settings import Settings
from budgetforest.selection.step_cache import StepCache, no_cache
from budgetforest.trees.forest import Answer
from budgetforest.trees.tree import Tree

LEVELS = 128
"""Thresholds that are tried."""
LEAST, MOST = 0.9, 1.01
"""What a forest costs that was grown again, as a share of what the measured one costs."""


def refitted(
    result: TrainingResult,
    candidates: Sequence[Candidate],
    backend: Backend,
    settings: Settings,
    tell: ProgressCallback = quiet,
    cache: StepCache = no_cache,
) -> TrainingResult:
    """The result with its forests grown again; ``candidates`` know their pools."""
    assert result.surest is not None
    whole, pools = backend.whole(), {candidate.recipe: candidate.pool for candidate in candidates}
    needed = dict.fromkeys([*result.path, result.surest])
    used = [candidate for candidate in result.candidates if candidate.trees]
    trees: dict[Recipe, list[Tree]] = {}
    now: dict[Point, Point] = {}
    for done, candidate in enumerate(used):
        tell("all rows", done, len(used), str(candidate.recipe))
        old = candidate._replace(pool=pools[candidate.recipe], points=[])
        [new] = cache(f"again-{done}", partial(regrown, old, whole, result.context, settings))
        points = [point for point in needed if point.recipe == candidate.recipe]
        if moved := matched(points, candidate.trees, new.trees, whole, result, settings):
            trees[candidate.recipe] = new.trees
            now |= dict(zip(points, moved, strict=True))
    tell("all rows", len(used), len(used))
    return result._replace(
        candidates=[
            candidate._replace(
                trees=trees.get(candidate.recipe, candidate.trees),
                points=[now.get(point, point) for point in candidate.points],
            )
            for candidate in result.candidates
        ],
        path=[now.get(point, point) for point in result.path],
        surest=now.get(result.surest, result.surest),
    )


def matched(
    points: Sequence[Point],
    measured: list[Tree],
    trees: list[Tree],
    whole: Backend,
    result: TrainingResult,
    settings: Settings,
) -> list[Point] | None:
    """The points at the thresholds at which the new trees cost as much; None if one of them cannot."""
    own = context_for(points[0], result.context, 1.0)
    sizes, ends = (
        sorted(set(column)) for column in zip(*((p.trees, p.threshold) for p in points), strict=True)
    )
    levels = thresholds(len(own.classes), LEVELS) if settings.answer == Answer.LABEL else [math.inf]
    before = dict(zip(sizes, whole.outcomes(measured, own, sizes, ends), strict=True))
    after = dict(zip(sizes, whole.outcomes(trees, own, sizes, levels), strict=True))
    found = []
    for point in points:
        threshold: float | None = math.inf
        # without a budget there is no cost to meet
        if point in result.path:
            most = before[point.trees].cost(ends.index(point.threshold))
            costs = [after[point.trees].cost(at) for at in range(len(levels))]
            threshold = largest_within(most, costs, levels)
        if threshold is None:
            return None
        found.append(point._replace(threshold=threshold))
    return found


def largest_within(most: float, costs: Sequence[float], thresholds: Sequence[float]) -> float | None:
    """The largest threshold that costs about as much, at the ascending costs of ascending thresholds.

    >>> largest_within(4.0, [1.0, 2.0, 3.9, 6.0], [0.5, 0.6, 0.7, 0.8])
    0.7
    >>> largest_within(4.0, [1.0, 2.0, 6.0], [0.5, 0.6, 0.8])
    """
    at = bisect_right(costs, MOST * most)
    return thresholds[at - 1] if at and costs[at - 1] >= LEAST * most else None
