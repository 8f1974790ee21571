"""``fit`` on a cluster: the steps of the classifier's own, with rows or trees spread over the workers."""

from __future__ import annotations

import os
from functools import partial

from distributed import Future

from budgetforest import settings as check
from budgetforest.arrays import Anything
from budgetforest.classifier import BudgetForestClassifier
from budgetforest.dask.cluster import Cluster
from budgetforest.dask.coding import coded
from budgetforest.dask.forests import spread_trees
from budgetforest.dask.ground import ground_on
from budgetforest.dask.meters import meter_on
from budgetforest.dask.places import held_out_of
from budgetforest.dask.rows import SpreadIntake, other_rows, part_of, spread_rows, totals
from budgetforest.dask.sources import blocks_of
from budgetforest.dask.trees import Growers
from budgetforest.errors import InvalidData
from budgetforest.frontier import grow_frontier
from budgetforest.intake import check_held_out, warn_of_absent_classes, warn_of_constants
from budgetforest.progress import Tell
from budgetforest.train import Settings, context_of, grow_offers

ROW_STEPS = 3
"""What is done with rows in blocks before the first tree: checked, parted, encoded."""

Folder = str | os.PathLike[str] | None


def fit_by_trees(
    cluster: Cluster,
    classifier: BudgetForestClassifier,
    X: Anything,
    y: Anything,
    validation: Anything,
    weight: Anything,
    checkpoint: Folder,
) -> BudgetForestClassifier:
    """Rows at hand; their codes go to every worker, and each grows whole trees."""
    with classifier._threads() as (pool, _):
        ahead = 2 * cluster.n_threads
        return classifier._fit(X, y, validation, weight, checkpoint, pool, ahead, Growers(cluster))


def fit_by_rows(
    cluster: Cluster,
    classifier: BudgetForestClassifier,
    blocks: list[Future],
    validation: Anything,
    checkpoint: Folder,
    tell: Tell,
) -> BudgetForestClassifier:
    """Rows stay in their blocks, which are taken over: the list is empty afterwards."""
    tell("rows", 0, ROW_STEPS, "checking")
    rows = spread_rows(cluster, classifier, blocks)
    blocks.clear()  # also the caller's: what is made of them is enough, and Dask knows how
    classifier.classes_ = rows.classes
    settings = classifier._settings(rows.schema, rows.unit)
    tell("rows", 1, ROW_STEPS, "validation rows")
    train, measured = parted(cluster, classifier, rows, validation, settings)
    total = totals(cluster, train, settings.n_classes)
    validated = totals(cluster, measured, settings.n_classes) if measured else None
    if validation is not None and validated is not None:
        warn_of_absent_classes(validated.counts, rows.classes)
    keep = classifier._keep(checkpoint, total, validated, settings)
    tell("rows", 2, ROW_STEPS, "edges and codes")
    with classifier._threads() as (pool, _):
        if settings.auto:
            ground, constant = ground_on(cluster, train, measured, settings, pool)
            tell("rows", ROW_STEPS, ROW_STEPS)
            warn_of_constants(constant, rows.schema)
            offers = grow_frontier(ground, settings, tell, keep)
        else:
            grown, constant = coded(cluster, train, total, settings)
            tell("rows", ROW_STEPS, ROW_STEPS)
            warn_of_constants(constant, rows.schema)
            del rows, train  # codes are enough
            trees = partial(spread_trees, cluster, grown, settings.seed, settings.max_trees)
            meter = partial(meter_on, cluster, measured, validated, context_of(total, settings), settings)
            offers = list(grow_offers(trees, meter, settings, tell, keep))
    return classifier._conclude(offers, total, validated, settings)


def parted(
    cluster: Cluster,
    classifier: BudgetForestClassifier,
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
        return rows.blocks, checked
    if not settings.measures:
        return rows.blocks, []
    fraction = check.share("validation_fraction", classifier.validation_fraction)
    total = totals(cluster, rows.blocks, settings.n_classes)
    held = held_out_of(cluster, rows.blocks, total, fraction, settings.seed)
    measured = cluster.each(part_of, rows.blocks, held, True)
    counts = totals(cluster, measured, settings.n_classes).counts
    check_held_out(counts, rows.classes, fraction, total.rows)
    return cluster.each(part_of, rows.blocks, held, False), measured
