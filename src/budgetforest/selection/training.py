"""The one training: candidates from a backend, a path from the candidates."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from budgetforest.data.rows import Totals
from budgetforest.data.seen import seen_together
from budgetforest.growing.impurity import compiled, is_admissible
from budgetforest.runtime.arrays import Counts
from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.auto import auto_candidates
from budgetforest.selection.backend import Backend
from budgetforest.selection.candidates import Candidate, Point
from budgetforest.selection.crossfit import judged_by
from budgetforest.selection.estimate import Choice, choices_without, estimates
from budgetforest.selection.evaluation import error_without
from budgetforest.selection.paper import paper_candidates
from budgetforest.selection.path import (
    best_at,
    careful_path,
    only_near,
    only_used,
    path_of,
    surest,
    without_folds,
    without_idle_trees,
)
from budgetforest.selection.refit import refitted
from budgetforest.selection.result import TrainingResult, best_within, context_for
from budgetforest.selection.settings import Settings, context_of, n_rows
from budgetforest.selection.step_cache import StepCache, no_cache


def train(
    backend: Backend,
    settings: Settings,
    tell: ProgressCallback = quiet,
    cache: StepCache = no_cache,
) -> TrainingResult:
    """Grow and measure forests of either method on any backend, and keep those that some budget needs."""
    search = auto_candidates if settings.auto else paper_candidates
    candidates = list(search(backend, settings, tell, cache))
    result = result_of(candidates, backend.train, backend.validation, settings)
    result = with_estimates(result, candidates, backend, settings)
    # what may differ from certain exit is promised of the forest that was measured
    if settings.auto and settings.refit and settings.disagreement is None:
        return refitted(result, candidates, backend, settings, tell, cache)
    return result


def result_of(
    candidates: list[Candidate], train: Totals, validation: Totals | None, settings: Settings
) -> TrainingResult:
    """What is kept of a training: the path, and the trees that it needs."""
    context = context_of(train, settings)
    best: Point | None = None
    judged = judges(train, validation, settings)
    if settings.auto:
        assert judged is not None
        # thousands of candidates on few rows: the path is careful about the luckiest
        path = careful_path(candidates, n_rows(judged, settings))
        path = [point for point in path if point.cost <= settings.budget]
        best = surest(candidates)
        kept = only_used(candidates, [*path, best])
    else:
        path = path_of(candidates, settings.budget)
        kept = without_idle_trees(candidates, settings.budget)
    impurity = compiled(settings.impurity, settings.n_classes)
    return TrainingResult(
        context=context,
        candidates=without_folds(kept),
        path=[point._replace(folds=()) for point in path],
        surest=best and best._replace(folds=()),
        budget=settings.budget,
        answer=settings.answer,
        unit=settings.unit,
        proven=is_admissible(impurity) and not (settings.expected or settings.auto),
        prior_error=math.nan if judged is None else error_without(context, judged, settings),
        summary={
            "rows": train.rows,
            "validation_rows": 0 if validation is None else validation.rows,
            "seed": settings.seed,
        },
        seen=seen_together([totals.seen for totals in (train, validation) if totals]),
    )


def judges(train: Totals, validation: Totals | None, settings: Settings) -> Totals | None:
    """The rows that errors come from."""
    return judged_by(train, validation, settings) if settings.auto and validation else validation


def with_estimates(
    result: TrainingResult, candidates: list[Candidate], backend: Backend, settings: Settings
) -> TrainingResult:
    """The result with the errors to expect on new rows."""
    judged = judges(backend.train, backend.validation, settings)
    best = best_within(result, settings.budget)
    if judged is None or best is None:
        return result
    n, path, near = n_rows(judged, settings), result.path, candidates
    if settings.auto:
        # the whole path, so that smaller budgets have the same estimates
        path = careful_path(candidates, n)
        # what is far from the best on all rows is chosen in no fold
        near = only_near(candidates, n)
    costs = {point.cost for point in path}
    # on the careful path only costs matter: the budget must not change what smaller ones are told
    budgets = sorted(costs if settings.auto and settings.budget < math.inf else costs | {settings.budget})
    chosen = choices_without(near, budgets, choice_of(settings), n)
    # where training rows took their turn, other forests than this one judged them: they count half
    worth = n if judged is backend.validation else max(1, n // 2)
    found = estimates(budgets, chosen, worth, smooth=len(candidates) > 1)
    at = bisect_right(budgets, settings.budget) - 1
    taken = [forests[at] or best for forests in chosen]
    return result._replace(
        estimates=tuple(each for each in found if each.budget <= settings.budget),
        judged=worth,
        confusion=confusion(backend, candidates, taken, best, result, settings),
    )


def choice_of(settings: Settings) -> Choice:
    """How the forest of a budget is chosen."""

    def paper(candidates: Sequence[Candidate], n: int) -> Callable[[float], Point | None]:
        return partial(best_at, candidates)

    def auto(candidates: Sequence[Candidate], n: int) -> Callable[[float], Point | None]:
        path = careful_path(candidates, n)

        def taken(budget: float) -> Point | None:
            if budget == math.inf:
                return surest(candidates)
            return next((point for point in reversed(path) if point.cost <= budget), None)

        return taken

    return auto if settings.auto else paper


def confusion(
    backend: Backend,
    candidates: Sequence[Candidate],
    chosen: Sequence[Point],
    best: Point,
    result: TrainingResult,
    settings: Settings,
) -> Counts:
    """(k, k) labels by true class at the budget, the rows of every fold by what is chosen without them.

    Where those trees are gone, by the forest in use.
    """
    trees = {candidate.recipe: candidate.trees for candidate in candidates}
    found = np.zeros((settings.n_classes, settings.n_classes), np.int64)
    for fold, taken in enumerate(chosen):
        point = taken if len(trees[taken.recipe]) >= taken.trees else best
        own = context_for(point, result.context, settings.unit)
        found += backend.confusion(trees[point.recipe][: point.trees], own, fold)
    return found
