"""Training rows in blocks in the form that trees are grown on."""

from __future__ import annotations

from distributed import Future

from budgetforest.dask.bin_edges import encoded, outline
from budgetforest.dask.cluster import Cluster
from budgetforest.dask.global_order import starts_of
from budgetforest.dask.level_growth import Spread
from budgetforest.dask.strategies import NO_SCORES, first_state
from budgetforest.data.binning import Columns
from budgetforest.data.rows import Totals
from budgetforest.growing.level_greedy import cells_of
from budgetforest.runtime.arrays import Flags
from budgetforest.selection.settings import Settings, draws_of


def coded(cluster: Cluster, train: list[Future], total: Totals, settings: Settings) -> tuple[Spread, Flags]:
    """The rows as codes, and which features are constant."""
    found = outline(cluster, train, total.rows, settings)
    columns = cluster.run(_first, found)
    n_cells, constant = cluster.values(cluster.run(_known, found))
    blocks = cluster.each(encoded, train, starts_of(cluster, train, total), columns)
    rows = Spread(
        blocks=blocks,
        plain=cluster.each(first_state, blocks, settings.costs, False, NO_SCORES),
        columns=columns,
        n_cells=n_cells,
        n_features=len(settings.schema.names),
        n_rows=total.rows,
        counts=total.counts,
        draws=draws_of(int(total.counts.sum()), settings),
    )
    return rows, constant


def _first(found: tuple[Columns, Flags]) -> Columns:
    return found[0]


def _known(found: tuple[Columns, Flags]) -> tuple[int, Flags]:
    return int(cells_of(found[0])[-1]), found[1]
