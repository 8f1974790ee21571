"""``fit`` on a cluster: the steps of the classifier's own, with rows or trees spread over the workers."""

from __future__ import annotations

from typing import Any

from distributed import Future

from budgetforest.dask.backend import backend_on
from budgetforest.dask.cluster import Cluster
from budgetforest.dask.global_order import held_out_of
from budgetforest.dask.growers import Growers
from budgetforest.dask.inputs import blocks_of
from budgetforest.dask.validation import SpreadIntake, other_rows, part_of, spread_rows, totals
from budgetforest.data.holdout import some_of
from budgetforest.data.validation import check_held_out, warn_of_absent_classes, warn_of_constants
from budgetforest.estimators.base import threads_of
from budgetforest.estimators.fitting import Folder, adopt, fit_here
from budgetforest.estimators.parameters import settings_of
from budgetforest.runtime import params as check
from budgetforest.runtime.arrays import Anything
from budgetforest.runtime.errors import InvalidData
from budgetforest.runtime.progress import ProgressCallback
from budgetforest.selection.settings import Settings, measured_share
from budgetforest.selection.training import train
from budgetforest.storage.checkpoint import cache_in

ROW_STEPS = 3
"""What is done with rows in blocks before the first tree: checked, parted, encoded."""


def fit_by_trees(
    cluster: Cluster,
    classifier: Any,
    X: Anything,
    y: Anything,
    validation: Anything,
    weight: Anything,
    checkpoint: Folder,
) -> None:
    """Rows at hand; their codes go to every worker, and each grows whole trees."""
    growers, ahead = Growers(cluster), 2 * cluster.n_threads
    with threads_of(classifier) as (pool, _):
        fit_here(classifier, X, y, validation, weight, checkpoint, pool, growers, ahead)


def fit_by_rows(
    cluster: Cluster,
    classifier: Any,
    blocks: list[Future],
    validation: Anything,
    checkpoint: Folder,
    tell: ProgressCallback,
) -> None:
    """Rows stay in their blocks, which are taken over: the list is empty afterwards."""
    tell("rows", 0, ROW_STEPS, "checking")
    rows = spread_rows(cluster, classifier, blocks)
    blocks.clear()  # also the caller's: what is made of them is enough, and Dask knows how
    settings = settings_of(classifier, rows.schema, rows.classes, rows.unit)
    tell("rows", 1, ROW_STEPS, "validation rows")
    train_blocks, judged = parted(cluster, classifier, rows, validation, settings)
    schema, classes = rows.schema, rows.classes
    del rows
    tell("rows", 2, ROW_STEPS, "edges and codes")
    with threads_of(classifier) as (pool, _):
        backend, constant = backend_on(cluster, train_blocks, judged, settings, pool)
        del train_blocks
        tell("rows", ROW_STEPS, ROW_STEPS)
        if validation is not None and backend.validation is not None:
            warn_of_absent_classes(backend.validation.counts, classes)
        warn_of_constants(constant, schema)
        cache = cache_in(checkpoint, backend.train, backend.validation, settings)
        result = train(backend, settings, tell, cache)
    adopt(classifier, result, classes)


def parted(
    cluster: Cluster,
    classifier: Any,
    rows: SpreadIntake,
    validation: Anything,
    settings: Settings,
) -> tuple[list[Future], list[Future]]:
    """Training and validation rows, both in blocks; none of the latter if nothing is measured."""
    if validation is not None:
        try:
            X, y = validation
        except (TypeError, ValueError):
            raise InvalidData(
                f"validation is a {type(validation).__name__}; it must be a pair (X, y)"
            ) from None
        others = blocks_of(cluster, X, y, None)
        checked = cluster.each(other_rows, others, rows.estimator, rows.schema, rows.classes, rows.unit)
        weight = float(totals(cluster, checked, settings.n_classes).counts.sum())
        return rows.blocks, cluster.each(some_of, checked, measured_share(weight, settings))
    if not settings.measures:
        return rows.blocks, []
    fraction = check.share("validation_fraction", classifier.validation_fraction)
    total = totals(cluster, rows.blocks, settings.n_classes)
    fraction = min(fraction, measured_share(float(total.counts.sum()), settings))
    held = held_out_of(cluster, rows.blocks, total, fraction, settings.seed)
    measured = cluster.each(part_of, rows.blocks, held, True)
    counts = totals(cluster, measured, settings.n_classes).counts
    check_held_out(counts, rows.classes, fraction, total.rows)
    return cluster.each(part_of, rows.blocks, held, False), measured
