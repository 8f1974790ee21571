"""The steps of ``fit``: check rows, settle the settings, hold out, train, put the result to use."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from typing import Any, TypeAlias

from budgetforest import __version__
from budgetforest.data.holdout import some_of
from budgetforest.data.rows import Rows
from budgetforest.data.validation import (
    Intake,
    constants,
    held_out,
    training_rows,
    validation_rows,
    warn_of_constants,
)
from budgetforest.estimators.parameters import settings_of
from budgetforest.runtime import params as check
from budgetforest.runtime.arrays import Anything
from budgetforest.runtime.progress import progress
from budgetforest.selection.backend import LocalBackend
from budgetforest.selection.result import TrainingResult, plain, warn_of_idle
from budgetforest.selection.settings import Settings, measured_share
from budgetforest.selection.training import train
from budgetforest.storage.checkpoint import cache_in

KEPT_ELSEWHERE = ("costs", "groups", "categorical_features", "n_jobs", "verbose")
"""Parameters that the costs and the schema tell, or that do not matter after training."""

Folder: TypeAlias = str | os.PathLike[str] | None


def fit_here(
    estimator: Any,
    X: Anything,
    y: Anything,
    validation: Anything,
    sample_weight: Anything,
    checkpoint: Folder,
    pool: Executor,
    growers: Executor,
    ahead: int,
) -> None:
    """Fit on rows at hand; trees are grown by ``growers``, our threads or a cluster, ``ahead`` at a time."""
    intake, settings, rows, judged = checked(estimator, X, y, validation, sample_weight)
    warn_of_constants(constants(rows), intake.schema)
    classes = intake.classes
    del intake  # training keeps codes, not rows
    with progress(estimator.verbose) as tell:
        tell("rows", 0, 1, "edges and codes")
        backend = LocalBackend(rows, judged, settings, pool, growers, ahead)
        del rows, judged
        tell("rows", 1, 1)
        cache = cache_in(checkpoint, backend.train, backend.validation, settings)
        result = train(backend, settings, tell, cache)
    adopt(estimator, result, classes)


def checked(
    estimator: Any, X: Anything, y: Anything, validation: Anything = None, sample_weight: Anything = None
) -> tuple[Intake, Settings, Rows, Rows | None]:
    """All that training begins with; what it cannot begin with is refused here."""
    intake = training_rows(estimator, X, y, sample_weight)
    settings = settings_of(estimator, intake.schema, intake.classes, intake.unit)
    return intake, settings, *parted(estimator, intake, validation, settings)


def parted(
    estimator: Any, intake: Intake, validation: Anything, settings: Settings
) -> tuple[Rows, Rows | None]:
    """Rows to train on and rows to measure with, which the caller gives or which are held out."""
    if validation is not None:
        given = validation_rows(estimator, validation, intake)
        return intake.rows, some_of(given, measured_share(float(given.weight.sum()), settings))
    if not settings.measures:
        return intake.rows, None
    fraction = check.share("validation_fraction", estimator.validation_fraction)
    enough = measured_share(float(intake.rows.weight.sum()), settings)
    return held_out(intake, min(fraction, enough), settings.seed)


def adopt(estimator: Any, result: TrainingResult, classes: Any) -> None:
    """Put the best forest of a training to use."""
    parameters = estimator.get_params(deep=False).items()
    told = {name: plain(value) for name, value in parameters if name not in KEPT_ELSEWHERE}
    summary = {"version": __version__, **result.summary, "parameters": told}
    estimator.classes_ = classes
    best = estimator._use(result._replace(summary=summary), result.budget)
    warn_of_idle(result, result.budget, best)
