"""The one training: candidates from a backend, a path from the candidates."""

from __future__ import annotations

import math

from budgetforest.data.rows import Totals
from budgetforest.growing.impurity import compiled, is_admissible
from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.auto import auto_candidates
from budgetforest.selection.backend import Backend
from budgetforest.selection.candidates import Candidate, Point
from budgetforest.selection.crossfit import judged_by
from budgetforest.selection.evaluation import error_without
from budgetforest.selection.paper import paper_candidates
from budgetforest.selection.path import careful_path, only_used, path_of, surest, without_idle_trees
from budgetforest.selection.result import TrainingResult
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
    return result_of(
        list(search(backend, settings, tell, cache)), backend.train, backend.validation, settings
    )


def result_of(
    candidates: list[Candidate], train: Totals, validation: Totals | None, settings: Settings
) -> TrainingResult:
    """What is kept of a training: the path, and the trees that it needs."""
    context = context_of(train, settings)
    best: Point | None = None
    judged = validation
    if settings.auto:
        assert validation is not None
        judged = judged_by(train, validation, settings)
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
        candidates=kept,
        path=path,
        surest=best,
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
    )
