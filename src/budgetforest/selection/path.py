"""From candidates to a path: which forest to take at every budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from budgetforest.selection.candidates import Candidate, Point, Recipe


def within(candidate: Candidate, budget: float) -> list[Point]:
    """The forests that growing for this budget would have kept; an unknown cost (NaN) fits."""
    fitting, misses = [], 0
    for point in candidate.points:
        # growing for this budget would have stopped after so many misses in a row
        # NaN > budget is false, so an unknown cost is no miss
        misses = misses + 1 if point.cost > budget else 0
        if misses == candidate.patience:
            break
        if not misses:
            fitting.append(point)
    return fitting


def best_at(candidates: Sequence[Candidate], budget: float) -> Point | None:
    """The forest to take at a budget, exactly as if trained for it.

    A single alpha gives Algorithm 1's forest: all trees that fit. Of several, the forest of least error
    is taken, then of least cost, then of the smallest alpha.
    """
    fitting = [within(candidate, budget) for candidate in candidates]
    # the last is the largest forest: Algorithm 1 looks at costs alone
    if len(fitting) == 1:
        return fitting[0][-1] if fitting[0] else None
    return min(chain(*fitting), key=lambda p: (p.error, p.cost, p.recipe), default=None)


def path_of(candidates: Sequence[Candidate], budget: float) -> list[Point]:
    """The lower envelope up to a budget: forests that err less than any that is cheaper."""
    path: list[Point] = []
    points = chain(*(within(candidate, budget) for candidate in candidates))
    # cheapest first, so one pass keeps whoever errs less than all before
    for point in sorted(points, key=lambda p: (p.cost, p.error, p.recipe)):
        if not path or point.error < path[-1].error:
            path.append(point)
    return path


def without_idle_trees(candidates: Sequence[Candidate], budget: float) -> list[Candidate]:
    """The candidates without the trees that are best at no budget up to this one."""
    # the best forest changes only at costs of forests
    best = [best_at(candidates, cost) for cost in _costs(candidates, budget)]
    return only_used(candidates, [point for point in best if point])


def only_used(candidates: Sequence[Candidate], points: Iterable[Point]) -> list[Candidate]:
    """The candidates without the trees that no point needs."""
    used = {candidate.recipe: 0 for candidate in candidates}
    for point in points:
        used[point.recipe] = max(used[point.recipe], point.trees)
    return [candidate._replace(trees=candidate.trees[: used[candidate.recipe]]) for candidate in candidates]


def surest(candidates: Sequence[Candidate]) -> Point:
    """The forest of least error that never exits before it is certain."""
    certain = [p for candidate in candidates for p in candidate.points if p.threshold == math.inf]
    return min(certain, key=lambda p: (p.error, p.cost, p.recipe, p.trees))


def without_folds(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without what only a training needs of their points."""
    return [
        candidate._replace(points=[point._replace(folds=()) for point in candidate.points])
        for candidate in candidates
    ]


STEP = 1.06
"""Neighbours on the careful path that err alike differ so much in cost."""
NEAR, FAR = 1 / 3, 4 / 3
"""Standard errors within which an error is as good as the best, and beyond which a tenth of the rows less
does not make it so."""


def careful_path(candidates: Sequence[Candidate], n_rows: int) -> list[Point]:
    """For every budget the dearest forest that errs no more than the best, but for noise.

    Of hundreds of forests measured on few rows the luckiest seems best, often a cheap one that errs more on
    other rows. Within a third of a standard error of the best a blend is a better bet than a small forest;
    of blends the dearest, or one whose trees are in use already, if it costs about as much.
    """
    path: list[Point] = []
    used: set[Recipe] = set()
    points = _by_cost(candidates)
    for last, near in _budgets(points, n_rows):
        # of those near the best the dearest: it asks for more, and luck is cheap
        good = [p for p in reversed(points[: last + 1]) if p.error <= near]
        # many trees on many rows are less often lucky than few
        dearest_first = iter([p for p in good if p.recipe.cuts == "blend"] or good)
        taken = next(dearest_first)
        if taken.recipe not in used:
            # trees that the path has already are better than new ones that cost about as much
            # the iterator goes on after taken: what follows costs no more
            again = next((p for p in dearest_first if p.recipe in used), taken)
            taken = again if again.cost * STEP**2 >= taken.cost else taken
        if not path or (
            # less error, or clearly more cost at an error that is as near the best
            taken.cost > path[-1].cost and (taken.error < path[-1].error or taken.cost > path[-1].cost * STEP)
        ):
            path.append(taken)
            used.add(taken.recipe)
    return path


def without_hopeless(candidates: Sequence[Candidate], n_rows: int) -> list[Candidate]:
    """The candidates without the trees that can be on no careful path, whatever is still to be offered.

    More candidates only lower what is near the best: a forest that errs too much at its own cost stays out.
    """
    points = _by_cost(candidates)
    hopeful, first = {surest(candidates).recipe}, 0
    for last, near in _budgets(points, n_rows):
        # judged at its own cost: at larger budgets the limit is only lower
        hopeful.update(p.recipe for p in points[first : last + 1] if p.error <= near)
        first = last + 1
    return [
        candidate if candidate.recipe in hopeful else candidate._replace(trees=[]) for candidate in candidates
    ]


def only_near(candidates: Sequence[Candidate], n_rows: int) -> list[Candidate]:
    """The candidates without the points that no nine tenths of the rows would choose."""
    limits: dict[float, float] = {}
    points = _by_cost(candidates)
    for last, near in _budgets(points, n_rows, FAR):
        limits[points[last].cost] = near
    certain = surest(candidates)
    return [
        candidate._replace(points=[p for p in candidate.points if p.error <= limits[p.cost] or p == certain])
        for candidate in candidates
    ]


def _by_cost(candidates: Sequence[Candidate]) -> list[Point]:
    points = (p for candidate in candidates for p in candidate.points)
    return sorted(points, key=lambda p: (p.cost, p.error, p.recipe, p.trees))


def _budgets(points: Sequence[Point], n_rows: int, errors: float = NEAR) -> Iterator[tuple[int, float]]:
    """Every cost as a budget: the last point within it, and the largest error that is near the best."""
    best = 1.0
    for last, point in enumerate(points):
        # the best of all that cost no more
        best = min(best, point.error)
        if last + 1 == len(points) or points[last + 1].cost > point.cost:
            yield last, best + errors * math.sqrt(best * (1 - best) / n_rows)


def _costs(candidates: Sequence[Candidate], budget: float) -> list[float]:
    """All costs within the budget at which the best forest can change, and the budget itself."""
    costs = {p.cost for candidate in candidates for p in candidate.points if not p.cost > budget}
    return [*sorted(costs), budget]
