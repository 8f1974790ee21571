"""Cost and error of a growing forest on validation rows in blocks: what ``Meter`` measures here.

Sums of doubles depend on their order; here they are exact, so blocks do not matter.
"""

from __future__ import annotations

import copy

from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.data.rows import Rows, Totals
from budgetforest.inference.ledger import Ledger
from budgetforest.selection.backend import TreeMeter, meter_of
from budgetforest.selection.evaluation import Measured, Meter, Sums, measured
from budgetforest.selection.settings import Settings
from budgetforest.trees.forest import Context
from budgetforest.trees.tree import Tree


def meter_on(
    cluster: Cluster, blocks: list[Future], total: Totals | None, context: Context, settings: Settings
) -> TreeMeter:
    """A meter whose rows stay on the workers; without rows nobody knows."""
    if total is None:
        return meter_of(None, context, settings, None)
    meters = cluster.each(open_meter, blocks, int(total.counts.sum()), cluster.hold(context), settings)

    def add(tree: Tree) -> Measured | None:
        nonlocal meters
        meters = cluster.each(with_tree, meters, cluster.hold(tree))
        sums = cluster.values(cluster.each(sums_of, meters))
        return None if sums[0] is None else measured(sums)

    return add


def open_meter(rows: Rows, total: int, context: Context, settings: Settings) -> tuple[Meter, None]:
    """The meter of a block, without trees."""
    return Meter(rows, total, context, settings.answer, settings.max_trees, None), None


def with_tree(before: tuple[Meter, Sums | None], tree: Tree) -> tuple[Meter, Sums | None]:
    """The meter with one more tree, and what it measures, as a new one: tasks may be run again."""
    meter = copy.copy(before[0])
    meter.scores, meter.met, meter.forests = meter.scores.copy(), meter.met.copy(), meter.forests.copy()
    meter.spent = meter.spent.copy()
    meter.ledger = Ledger._make(part.copy() for part in meter.ledger)
    return meter, meter.sums_with(tree)


def sums_of(after: tuple[Meter, Sums | None]) -> Sums | None:
    """What was measured."""
    return after[1]
