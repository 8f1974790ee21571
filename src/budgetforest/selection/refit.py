"""All rows: the chosen forests are grown again on training and validation rows together.

A forest on more rows errs less, but its beliefs are others: at the old threshold rows might pay much more. So
each threshold is found anew: the one at which the new forest costs the training rows most nearly what the
measured one costs them. Both have seen these rows, so both believe too much in their labels there, and alike.

What is told of its cost stays what was measured before. What is told of its error is a little less: nobody
knows it, for no row is left that it has not seen, but forests on more rows err less (``GAIN``). Where no
threshold costs about as much, the measured forest stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.backend import Backend
from budgetforest.selection.candidates import Candidate, Point, thresholds
from budgetforest.selection.estimate import Estimate, interval, key
from budgetforest.selection.path import only_used
from budgetforest.selection.recipes import leaf_for, regrown
from budgetforest.selection.result import TrainingResult, context_for
from budgetforest.selection.settings import Settings, n_rows
from budgetforest.selection.step_cache import StepCache, no_cache
from budgetforest.trees.forest import Answer, Context
from budgetforest.trees.tree import Tree

LEVELS = 128
"""Thresholds that are tried."""
NEAR = 0.1
"""By which share of its cost a forest that was grown again may differ from the measured one."""
GAIN = 4.5
"""How errors fall with rows: in proportion to 1 + GAIN / sqrt(rows), as found on 200 fits whose errors are
not shown (``benchmarks/estimates.py``). From large tables to larger ones that is next to nothing."""
Costs: TypeAlias = dict[int, dict[float, float]]
"""Mean costs of training rows, by number of trees and ascending threshold."""


def refitted(
    result: TrainingResult,
    candidates: Sequence[Candidate],
    backend: Backend,
    settings: Settings,
    tell: ProgressCallback = quiet,
    cache: StepCache = no_cache,
) -> TrainingResult:
    """The result with its forests grown again; ``candidates`` know their pools."""
    path, surest, grown = result.path, result.surest, []
    assert surest is not None
    leaf = leaf_for(backend.train, settings)
    whole, pools = backend.whole(), {candidate.recipe: candidate.pool for candidate in candidates}
    used = [candidate for candidate in result.candidates if candidate.trees]
    for done, candidate in enumerate(used):
        tell("all rows", done, len(used), str(candidate.recipe))
        recipe = candidate.recipe
        old = candidate._replace(pool=pools[recipe], points=[])
        [new] = cache(f"again-{done}", partial(regrown, old, whole, result.context, leaf, settings))
        points = [point for point in dict.fromkeys([*path, surest]) if point.recipe == recipe]
        context = context_for(points[0], result.context, 1.0)
        sizes = sorted({point.trees for point in points})
        ends = sorted({point.threshold for point in points})
        levels = thresholds(len(context.classes), LEVELS) if settings.answer == Answer.LABEL else [math.inf]
        # a row takes long to be certain: it need not be where no row of the measured forest had to
        levels = [level for level in levels if level < math.inf or math.inf in ends]
        before = costs_of(candidate.trees, context, sizes, ends, whole)
        after = costs_of(new.trees, context, sizes, levels, whole)
        path = [matched(point, before, after) if point.recipe == recipe else point for point in path]
        if surest.recipe == recipe:
            surest = as_sure(surest, before, after)
        grown.append(new)
    tell("all rows", len(used), len(used))
    path = distinct(path)
    surest = next((point for point in path if key(point) == key(surest)), surest)
    needed = [*path, surest]
    again = [
        new._replace(points=list(dict.fromkeys(point for point in needed if point.recipe == new.recipe)))
        for new in grown
    ]
    kept = only_used([*result.candidates, *(new for new in again if new.points)], needed)
    n = n_rows(backend.train, settings)
    n_all = n + n_rows(backend.validation, settings) if backend.validation else n
    return result._replace(
        candidates=kept,
        path=path,
        surest=surest,
        estimates=foreseen(result.estimates, path, surest, learnt(n, n_all), result.judged),
    )


def learnt(n: int, n_all: int) -> float:
    """The error of a forest on ``n_all`` rows, as a share of that on ``n``.

    >>> round(learnt(70, 100), 2), round(learnt(70_000, 100_000), 3)
    (0.94, 0.997)
    """
    return (1 + GAIN / math.sqrt(n_all)) / (1 + GAIN / math.sqrt(n))


def foreseen(
    estimates: Sequence[Estimate], path: Sequence[Point], surest: Point, share: float, judged: int
) -> tuple[Estimate, ...]:
    """The estimates, with errors that fall to this share where the forest of a budget was grown again."""
    found: list[Estimate] = []
    least = 1.0
    for each in estimates:
        within = (point for point in reversed(path) if point.cost <= each.budget)
        taken = surest if each.budget == math.inf else next(within, surest)
        # never more at a larger budget
        least = min(least, each.error * share if taken.recipe.refit else each.error)
        found.append(Estimate(each.budget, least, *interval(least, judged)))
    return tuple(found)


def costs_of(
    trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float], backend: Backend
) -> Costs:
    """What the first so many trees cost the rows of a backend at each threshold."""
    outcomes = zip(sizes, backend.outcomes(trees, context, sizes, ends), strict=True)
    return {size: {end: outcome.cost(at) for at, end in enumerate(ends)} for size, outcome in outcomes}


def matched(point: Point, before: Costs, after: Costs) -> Point:
    """The point of the trees that were grown again, where they cost as much, if they do anywhere."""
    aim, costs = before[point.trees][point.threshold], after[point.trees]
    threshold = nearest(aim, list(costs.values()), list(costs))
    if threshold is None:
        return point
    return point._replace(recipe=point.recipe._replace(refit=True), threshold=threshold)


def as_sure(point: Point, before: Costs, after: Costs) -> Point:
    """The same for the forest to take without a budget: there is no cost to meet, it costs what it costs."""
    old, new = before[point.trees][math.inf], after[point.trees][math.inf]
    cost = point.cost * new / old if old else new
    return point._replace(recipe=point.recipe._replace(refit=True), cost=cost)


def distinct(points: Sequence[Point]) -> list[Point]:
    """Each forest once, by ascending cost: thresholds that differed may be the same now."""
    dearest_first = sorted(points, key=lambda point: -point.cost)
    return sorted({key(point): point for point in dearest_first}.values(), key=lambda point: point.cost)


def nearest(aim: float, costs: Sequence[float], thresholds: Sequence[float]) -> float | None:
    """The largest threshold whose cost is nearest, if that is near; ``costs`` ascend with ``thresholds``.

    >>> nearest(4.0, [1.0, 2.0, 3.9, 3.9, 6.0], [0.5, 0.6, 0.7, 0.8, 0.9])
    0.8
    >>> nearest(4.0, [1.0, 2.0, 6.0], [0.5, 0.6, 0.8])
    """
    off, _, at = min((abs(cost - aim), -at, at) for at, cost in enumerate(costs))
    return thresholds[at] if off <= NEAR * aim else None
