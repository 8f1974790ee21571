"""Columns in blocks as codes, with the same points as on one machine, from summaries that can be merged.

A column of few distinct values is known by its census. Of others blocks propose *pivots*, values that part
them evenly. The weight of all rows up to each pivot tells between which pivots the wanted quantiles lie, and
only the values there are brought together.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.dask.strategies import RowBlock
from budgetforest.data.bin_edges import Census, census_of, merged, points_of, quantile_edges
from budgetforest.data.binning import (
    COLUMN_BLOCK,
    Columns,
    code_type,
    columns_of,
    encode,
    keys_of,
    n_codes_of,
)
from budgetforest.data.rows import Rows
from budgetforest.growing.split import Splitter
from budgetforest.runtime.arrays import Codes, Counts, Flags, Floats, Ids, Matrix
from budgetforest.runtime.random import in_order
from budgetforest.selection.settings import Settings

FEW, MANY = 2**10, 2**16
"""The least and the most pivots; distinct values of a column are brought together as they are up to these."""

SOME = 4
"""Values looked at for each pivot of a block."""

INSIDE = 2**20
"""Values of a column between pivots that are brought together at most, while pivots are no more than MANY."""


class Sketch(NamedTuple):
    """What is known of a column at first."""

    census: Census
    """Of all its values, or of pivots, the largest value among them."""
    is_whole: bool


class Found(NamedTuple):
    """What blocks tell of some columns."""

    points: list[Floats]
    gaps: Flags
    same: Flags
    """Which have a single value, or none."""


def outline(cluster: Cluster, blocks: list[Future], n_rows: int, settings: Settings) -> Future:
    """The columns without codes, and which of them are constant."""
    most = (
        np.inf if settings.splitter != Splitter.BINNED else n_pivots(n_rows, len(blocks), settings.max_bins)
    )
    found = []
    for start in range(0, len(settings.schema.names), COLUMN_BLOCK):
        sketches = cluster.total(partial(merge, most), cluster.each(sketch, blocks, start, most))
        upto = cluster.total(add, cluster.each(weigh, blocks, start, sketches))
        wanted = cluster.run(brackets, sketches, upto, settings.max_bins)
        inside = cluster.total(merge_all, cluster.each(look_inside, blocks, start, sketches, wanted))
        found.append(cluster.run(find, start, sketches, upto, inside, settings))
    return cluster.run(put_together, found, settings)


def n_pivots(n_rows: int, n_blocks: int, max_bins: int) -> int:
    """How many pivots of a column: those of all blocks are as many as the values between them.

    Two brackets are wanted for each bin.
    """
    wanted = 2 * max_bins * n_rows
    return int(np.clip(max(math.sqrt(wanted / n_blocks), wanted / INSIDE), max(FEW, max_bins), MANY))


# What tasks do: all values, or pivots ------------------------------------------------------------


def sketch(rows: Rows, start: int, most: float) -> list[Sketch]:
    """Sketches of some columns of a block."""
    weight = weights_in(rows)
    return [sketch_of(column, weight, most) for column in columns_of(rows.X, start)]


def weights_in(rows: Rows) -> Ids | None:
    """What rows weigh; None where every one counts once."""
    return None if (rows.weight == 1).all() else rows.weight


def sketch_of(column: Matrix, weight: Ids | None, most: float) -> Sketch:
    """The census of a column; of one with many values, some of them and the largest, without sorting all."""
    if len(column) > 2 * SOME * most:
        some = census_of(column[:: int(len(column) // (SOME * most))], None)
        if len(some.values) > most:
            values = np.union1d(some.values, np.nanmax(column))
            gaps = bool(np.isnan(column).any())
            return thinned(Sketch(Census(values, np.zeros(len(values), np.int64), gaps), False), most)
    return thinned(Sketch(census_of(column, weight), True), most)


def merge(most: float, blocks: list[list[Sketch]]) -> list[Sketch]:
    """Sketches of the same columns in several blocks."""
    return [
        thinned(Sketch(merged([part.census for part in parts]), all(part.is_whole for part in parts)), most)
        for parts in zip(*blocks, strict=True)
    ]


def thinned(known: Sketch, most: float) -> Sketch:
    """At most so many values, evenly spread."""
    values, upto, gaps = known.census
    if len(values) <= most:
        return known
    kept = np.linspace(0, len(values) - 1, int(most)).astype(np.int64)
    return Sketch(Census(values[kept], upto[kept], gaps), False)


# The weight up to each pivot, and the brackets of the wanted quantiles ---------------------------


def weigh(rows: Rows, start: int, sketches: list[Sketch]) -> list[Counts]:
    """For each column the weight of the block's rows up to each pivot; nothing if all values are known."""
    if all(known.is_whole for known in sketches):
        return [np.zeros(0, np.int64) for _ in sketches]
    weight = weights_in(rows)
    return [
        np.zeros(0, np.int64) if known.is_whole else weight_upto(column, weight, known.census.values)
        for column, known in zip(columns_of(rows.X, start), sketches, strict=True)
    ]


def weight_upto(column: Matrix, weight: Ids | None, pivots: Matrix) -> Counts:
    """(pivots) the weight of all values at or below each."""
    found = np.bincount(brackets_of(column, pivots), weight, len(pivots))[: len(pivots)]
    return np.cumsum(found.astype(np.int64))


def brackets_of(column: Matrix, pivots: Matrix) -> Codes:
    """(n) the first pivot that a value is not above; after the last one where it is missing."""
    codes = np.empty(len(column), code_type(len(pivots)))
    encode(column, pivots.astype(np.float64), len(pivots), np.arange(len(column), dtype=np.int32), codes)
    return codes


def add(blocks: list[list[Counts]]) -> list[Counts]:
    """The weights of several blocks."""
    return [np.sum(parts, axis=0) for parts in zip(*blocks, strict=True)]


def brackets(sketches: list[Sketch], upto: list[Counts], max_bins: int) -> list[Ids]:
    """For each column the pivots at or just below which the wanted quantiles and the next values lie."""
    found = []
    for known, weight in zip(sketches, upto, strict=True):
        bins = max_bins - int(known.census.gaps)
        wanted = -(-np.arange(1, bins) * int(weight[-1]) // bins) if len(weight) else np.zeros(0, int)
        at = np.searchsorted(weight, wanted)
        found.append(np.union1d(at, np.minimum(at + 1, len(weight) - 1)).astype(np.int32))
    return found


# The values there ----------------------------------------------------------------------------------


def look_inside(rows: Rows, start: int, sketches: list[Sketch], wanted: list[Ids]) -> list[Census]:
    """For each column the census of the values in the brackets; none if all values are known."""
    if all(known.is_whole for known in sketches):
        return [census_of(rows.X[:0, 0], None) for _ in sketches]
    weight = weights_in(rows)
    found = []
    for column, known, chosen in zip(columns_of(rows.X, start), sketches, wanted, strict=True):
        inside = np.zeros(len(column), bool)
        if not known.is_whole:
            flags = np.zeros(len(known.census.values) + 1, bool)
            flags[chosen] = True
            inside = flags[brackets_of(column, known.census.values)]
        found.append(census_of(column[inside], None if weight is None else weight[inside]))
    return found


def merge_all(blocks: list[list[Census]]) -> list[Census]:
    """The census of the same columns in several blocks."""
    return [merged(parts) for parts in zip(*blocks, strict=True)]


def find(
    start: int,
    sketches: list[Sketch],
    upto: list[Counts],
    inside: list[Census],
    settings: Settings,
) -> Found:
    """The points of some columns."""
    kinds = settings.schema.categories[start : start + COLUMN_BLOCK]
    points = []
    for kind, known, weight, within in zip(kinds, sketches, upto, inside, strict=True):
        if kind is not None:
            points.append(np.arange(len(kind), dtype=np.float64))
        elif known.is_whole:
            ranked = settings.splitter != Splitter.BINNED
            points.append(points_of(known.census, ranked=ranked, max_bins=settings.max_bins))
        else:
            bins = settings.max_bins - int(known.census.gaps)
            points.append(quantile_edges(in_place(known, weight, within), bins))
    return Found(
        points,
        np.array([known.census.gaps for known in sketches]),
        np.array([len(known.census.values) + known.census.gaps <= 1 for known in sketches]),
    )


def in_place(known: Sketch, weight: Counts, within: Census) -> Census:
    """The values in the brackets with the weight of all rows up to them, and the largest value of all."""
    pivots = known.census.values
    place = np.searchsorted(pivots, within.values)
    first = np.searchsorted(place, place)  # of the values in the same bracket
    before = np.concatenate([[0], weight])[place]  # up to the pivot below
    upto = before + within.upto - np.concatenate([[0], within.upto])[first]
    if pivots[-1] in within.values[-1:]:
        return Census(within.values, upto, known.census.gaps)
    return Census(np.append(within.values, pivots[-1]), np.append(upto, weight[-1]), known.census.gaps)


# Codes -------------------------------------------------------------------------------------------
def put_together(found: list[Found], settings: Settings) -> tuple[Columns, Flags]:
    """All columns, and which are constant."""
    schema = settings.schema
    ranked = settings.splitter != Splitter.BINNED
    points = [each for part in found for each in part.points]
    every = schema.nominal | ranked
    n_codes = np.array([n_codes_of(p, bool(e)) for p, e in zip(points, every, strict=True)], np.int32)
    most = max([len(kind or ()) for kind in schema.categories] + ([int(n_codes.max())] if ranked else []))
    columns = Columns(
        codes=np.empty((len(points), 0), code_type(most)),
        n_codes=n_codes,
        points=np.concatenate(points),
        offset=np.concatenate([[0], np.cumsum([len(p) for p in points])]).astype(np.int64),
        nominal=schema.nominal,
        gaps=np.concatenate([part.gaps for part in found]),
        key=keys_of(schema),
        ranked=ranked,
    )
    return columns, np.concatenate([part.same for part in found])


def encoded(rows: Rows, start: Counts, columns: Columns) -> RowBlock:
    """A block as codes, its rows in the order of their contents."""
    order = in_order(rows.hashes, 0)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    m = len(columns.n_codes)
    codes = np.empty((m, len(order)), columns.codes.dtype)
    for first in range(0, m, COLUMN_BLOCK):
        for j, column in enumerate(columns_of(rows.X, first), first):
            points = columns.points[columns.offset[j] : columns.offset[j + 1]]
            every = columns.nominal[j] or columns.ranked
            encode(column, points[:-1] if every else points, columns.n_codes[j], place, codes[j])
    here = columns._replace(codes=codes)
    return RowBlock(here, rows.label[order], rows.weight[order], start[order])
