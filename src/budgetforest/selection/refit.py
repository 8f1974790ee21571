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
from budgetforest.selection.candidates import Candidate, Point, thresholds
from budgetforest.selection.estimate import key
from budgetforest.selection.evaluation import Outcome
from budgetforest.selection.recipes import regrown
from budgetforest.selection.result import TrainingResult, context_for
from budgetforest.selection.settings import Settings
from budgetforest.selection.step_cache import StepCache, no_cache
from budgetforest.trees.forest import Answer
from budgetforest.trees.tree import Tree

LEVELS = 128
"""Thresholds that are tried."""
LEAST = 0.9
"""What a forest costs at least that was grown again, as a share of what the measured one costs."""


def refitted(
    result: TrainingResult,
    candidates: Sequence[Candidate],
    backend: Backend,
    settings: Settings,
    tell: ProgressCallback = quiet,
    cache: StepCache = no_cache,
) -> TrainingResult:
    """The result with its forests grown again; ``candidates`` know their pools."""
    whole, pools = backend.whole(), {candidate.recipe: candidate.pool for candidate in candidates}
    used = [candidate for candidate in result.candidates if candidate.trees]
    for done, candidate in enumerate(used):
        tell("all rows", done, len(used), str(candidate.recipe))
        old = candidate._replace(pool=pools[candidate.recipe], points=[])
        [new] = cache(f"again-{done}", partial(regrown, old, whole, result.context, settings))
        result = exchanged(result, candidate, new.trees, whole, settings)
    tell("all rows", len(used), len(used))
    return result


def exchanged(
    result: TrainingResult, candidate: Candidate, trees: list[Tree], whole: Backend, settings: Settings
) -> TrainingResult:
    """The result with these trees of a candidate instead of its own, if all its points can cost as much."""
    surest = result.surest
    assert surest is not None
    points = [point for point in result.path if point.recipe == candidate.recipe]
    sizes = sorted({point.trees for point in [*points, surest] if point.recipe == candidate.recipe})
    own = context_for(surest._replace(recipe=candidate.recipe), result.context, 1.0)
    ends = sorted({math.inf, *(point.threshold for point in points)})
    levels = thresholds(len(own.classes), LEVELS) if settings.answer == Answer.LABEL else [math.inf]
    before = costs_of(whole.outcomes(candidate.trees, own, sizes, ends), sizes, ends)
    after = costs_of(whole.outcomes(trees, own, sizes, levels), sizes, levels)
    moved: dict[Point, Point] = {}
    for point in points:
        costs = [after[point.trees, level] for level in levels]
        threshold = largest_within(before[point.trees, point.threshold], costs, levels)
        if threshold is None:
            return result
        moved[point] = point._replace(threshold=threshold)
    path = distinct([moved.get(point, point) for point in result.path])
    if surest.recipe == candidate.recipe:
        # without a budget there is no cost to meet: it stays sure, and costs what it costs
        old, new = before[surest.trees, math.inf], after[surest.trees, math.inf]
        surest = surest._replace(cost=surest.cost * new / old if old else new)
        surest = next((point for point in path if key(point) == key(surest)), surest)
    needed = distinct([point for point in [*path, surest] if point.recipe == candidate.recipe])
    replaced = candidate._replace(trees=trees, points=needed)
    return result._replace(
        candidates=[replaced if each is candidate else each for each in result.candidates],
        path=path,
        surest=surest,
    )


def costs_of(
    outcomes: Sequence[Outcome], sizes: Sequence[int], ends: Sequence[float]
) -> dict[tuple[int, float], float]:
    """Mean costs by number of trees and threshold."""
    return {
        (size, end): outcome.cost(at)
        for size, outcome in zip(sizes, outcomes, strict=True)
        for at, end in enumerate(ends)
    }


def distinct(points: Sequence[Point]) -> list[Point]:
    """Each forest once, by ascending cost: thresholds that differed may be the same now."""
    dearest_first = sorted(points, key=lambda point: -point.cost)
    return sorted({key(point): point for point in dearest_first}.values(), key=lambda point: point.cost)


def largest_within(most: float, costs: Sequence[float], thresholds: Sequence[float]) -> float | None:
    """The largest threshold that costs no more, nor much less; ``costs`` ascend with ``thresholds``.

    >>> largest_within(4.0, [1.0, 2.0, 3.9, 6.0], [0.5, 0.6, 0.7, 0.8])
    0.7
    >>> largest_within(4.0, [1.0, 2.0, 6.0], [0.5, 0.6, 0.8])
    """
    at = bisect_right(costs, most)
    return thresholds[at - 1] if at and costs[at - 1] >= LEAST * most else None
