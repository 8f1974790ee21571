"""Cost and error of a growing forest on validation rows in blocks: what ``Meter`` measures here.

Sums of doubles depend on their order; here they are exact, so blocks do not matter.
"""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.data.rows import Rows, Totals
from budgetforest.inference.ledger import Ledger
from budgetforest.selection.backend import TreeMeter, meter_of
from budgetforest.selection.evaluation import Meter, exact_sum
from budgetforest.selection.settings import Settings
from budgetforest.trees.forest import Context
from budgetforest.trees.tree import Tree

WeightSums = tuple[Fraction, Fraction]
"""Shares of cost and error."""


def meter_on(
    cluster: Cluster, blocks: list[Future], total: Totals | None, context: Context, settings: Settings
) -> TreeMeter:
    """A meter whose rows stay on the workers; without rows nobody knows."""
    if total is None:
        return meter_of(None, context, settings, None)
    meters = cluster.each(open_meter, blocks, int(total.counts.sum()), cluster.hold(context), settings)

    def add(tree: Tree) -> tuple[float, float] | None:
        nonlocal meters
        meters = cluster.each(with_tree, meters, cluster.hold(tree))
        sums = cluster.values(cluster.each(sums_of, meters))
        if sums[0] is None:
            return None
        cost, error = (sum(parts) for parts in zip(*sums, strict=True))
        return float(cost), float(error)

    return add


def open_meter(rows: Rows, total: int, context: Context, settings: Settings) -> tuple[Meter, None]:
    """The meter of a block, without trees."""
    share = rows.weight.astype(np.float64) / float(total)
    meter = Meter(rows.X, rows.label, share, context, settings.answer, settings.max_trees, None)
    return meter, None


def with_tree(before: tuple[Meter, WeightSums | None], tree: Tree) -> tuple[Meter, WeightSums | None]:
    """The meter with one more tree, and what it measures, as a new one: tasks may be run again."""
    meter = copy.copy(before[0])
    meter.scores, meter.met, meter.forests = meter.scores.copy(), meter.met.copy(), meter.forests.copy()
    meter.spent = meter.spent.copy()
    meter.ledger = Ledger._make(part.copy() for part in meter.ledger)
    parts = meter.shares_with(tree)
    return meter, (exact_sum(parts[0]), exact_sum(parts[1])) if parts else None


def sums_of(measured: tuple[Meter, WeightSums | None]) -> WeightSums | None:
    """What was measured."""
    return measured[1]
