"""The points of a column: edges between quantile bins, or its distinct values.

Few values are sorted. Of many only those next to an edge are: all are counted in buckets first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Counts, Floats, Ids, Matrix
from budgetforest.runtime.jit import inner, kernel

BUCKETS_FROM = 2**12
"""From so many rows on a column is not sorted but counted by buckets."""

BUCKETS = 2**13
"""Parts of its range."""

FINE = 2**18
"""Rows from which on there are four times as many: else most of the time would go to sorting."""

SOME = 2**9
"""Rows that tell the range."""


class Census(NamedTuple):
    """The distinct values of a column; those of blocks of rows can be merged."""

    values: Matrix
    """Ascending, missing ones left out."""
    upto: Counts
    """The weight of all rows up to each value."""
    gaps: bool
    """Whether some row has no value."""


def find_points(column: Matrix, weights: Ids | None, *, ranked: bool, max_bins: int) -> Floats:
    """Distinct values (ranked), or edges between at most ``max_bins`` quantile bins."""
    if ranked or weights is not None:
        return points_of(census_of(column, None if ranked else weights), ranked=ranked, max_bins=max_bins)
    gaps = bool(np.isnan(column.min(initial=np.inf)))
    known = column[~np.isnan(column)] if gaps else column
    bins = max_bins - int(gaps)
    edges = _edges_of_many(known, bins) if len(known) >= BUCKETS_FROM else None
    return _edges_of_few(known, bins) if edges is None else edges


def _edges_of_few(known: Matrix, bins: int) -> Floats:
    """Edges between so many bins, from the sorted values."""
    ascending: Any = np.sort(known)
    steps = ascending[1:] != ascending[:-1]
    many = np.count_nonzero(steps) >= bins
    return _edges_after(ascending, _ranks(len(ascending), bins) - 1 if many else np.flatnonzero(steps))


def _edges_of_many(known: Matrix, bins: int) -> Floats | None:
    """The same, only values next to edges sorted; None where these might be most of them.

    Values are counted in buckets of equal width. Whole numbers, if few, have a bucket each.
    """
    counts = np.zeros(BUCKETS if len(known) < FINE else 4 * BUCKETS, np.int32)
    some = np.sort(known[:: len(known) // SOME])
    if (np.rint(some) == some).all():
        low, high = float(known.min()), float(known.max())
        if low.is_integer() and high - low < len(counts) and (np.rint(known) == known).all():
            tally(known, low, 1.0, counts)
            values = np.flatnonzero(counts != 0)
            census = Census(values + low, np.cumsum(counts[values]), False)
            return points_of(census, ranked=False, max_bins=bins)
    low, high = float(some[len(some) // 100]), float(some[-len(some) // 100])  # the ends may be far out
    scale = per_unit(low, high, len(counts))
    tally(known, low, scale, counts)
    if np.count_nonzero(counts) <= bins:
        return None
    ranks = _ranks(len(known), bins)
    to = np.zeros_like(counts)
    size = find_buckets(counts, ranks, to)
    if size - counts[0] > len(known) // 2:
        return None
    beside = np.empty(size, known.dtype)
    pick(known, low, scale, to, beside)
    ascending = np.sort(beside[1:], kind="stable")  # it profits from buckets being in order
    return _edges_after(ascending, ranks - 1)


def _edges_after(ascending: Matrix, places: Counts) -> Floats:
    """The edges that follow the values at ascending places; none follows the largest value."""
    low = ascending[places]
    low = low[np.append(True, low[1:] != low[:-1])[: len(low)]]
    after = np.searchsorted(ascending, low, "right")
    after = after[after < len(ascending)]
    return midpoints(low[: len(after)].astype(np.float64), ascending[after].astype(np.float64))


def n_known(ascending: Matrix) -> int:
    """How many of sorted values there are before the missing ones.

    Sought as a number of their own type: for another one numpy would copy them all.
    """
    return int(np.searchsorted(ascending, ascending.dtype.type(np.nan)))


def census_of(column: Matrix, weights: Ids | None) -> Census:
    """The census of a column; without weights every row counts once."""
    order = None if weights is None else np.argsort(column, kind="stable")
    ascending: Any = np.sort(column) if order is None else column[order]
    n = n_known(ascending)
    starts = np.flatnonzero(np.append(True, ascending[1:n] != ascending[:n][:-1])[:n])
    upto = np.append(starts[1:], n)[: len(starts)]
    if order is not None and weights is not None:
        upto = np.cumsum(weights[order[:n]])[upto - 1]
    return Census(ascending[starts], upto, n < len(column))


def merged(blocks: Sequence[Census]) -> Census:
    """The census of all rows."""
    weights = np.concatenate([np.diff(block.upto, prepend=0) for block in blocks])
    values, place = np.unique(np.concatenate([block.values for block in blocks]), return_inverse=True)
    total = np.zeros(len(values), np.int64)
    np.add.at(total, place, weights)
    return Census(values, np.cumsum(total), any(block.gaps for block in blocks))


def points_of(census: Census, *, ranked: bool, max_bins: int) -> Floats:
    """The points of a column, from its census alone.

    With few distinct values every midpoint is an edge. Otherwise edge number k follows the first value
    at or above the quantile k / max_bins: a count of rows, the same in any order and any blocks.
    """
    bins = max_bins - int(census.gaps)
    if ranked or len(census.values) <= bins:
        values = census.values.astype(np.float64)
        return values if ranked else midpoints(values[:-1], values[1:])
    return quantile_edges(census, bins)


def quantile_edges(census: Census, bins: int) -> Floats:
    """The edges of so many bins; of the census only the values next to them are needed."""
    values, upto, _ = census
    last = np.unique(np.searchsorted(upto, _ranks(int(upto[-1]), bins)))
    last = last[last < len(values) - 1]
    return midpoints(values[last].astype(np.float64), values[last + 1].astype(np.float64))


def _ranks(weight: int, bins: int) -> Counts:
    """The quantiles between bins, as counts of rows."""
    return -(-np.arange(1, bins) * weight // bins)


def midpoints(low: Floats, high: Floats) -> Floats:
    """Thresholds between neighbours, in double; never as large as ``high``, which must go right."""
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def per_unit(low: float, high: float, n_buckets: int) -> float:
    """How many buckets there are to a unit; 1, which is as correct, if that is no number."""
    with np.errstate(over="ignore", divide="ignore"):
        scale = float((n_buckets - 1) / (np.float64(high) - low))
    return scale if 0.0 < scale < np.inf else 1.0


@inner
def bucket_of(x: float, low: float, scale: float, n_buckets: int) -> np.uintp:
    """The bucket of a value, never before that of a smaller one; the first has nothing above ``low``."""
    at = np.ceil((x - low) * scale)
    # comparisons that are false for NaN: it ends in bucket 0, never outside
    at = at if at > 0.0 else 0.0
    last = n_buckets - 1.0
    # by way of a signed number: most processors convert doubles to those in one instruction
    return np.uintp(np.int64(at if at < last else last))


@kernel
def tally(column: Matrix, low: float, scale: float, counts: Ids) -> None:
    """Count values by bucket."""
    for i in range(len(column)):
        counts[bucket_of(float(column[i]), low, scale, len(counts))] += 1


@kernel
def find_buckets(counts: Ids, ranks: Counts, to: Ids) -> int:
    """Say where the values of buckets go that hold a rank, or come next after one; others go to place 0.

    Ranks become those among the values of these buckets; returns how many places there are.
    """
    size = 1
    upto = 0
    at = 0
    after = False
    for bucket in range(len(counts)):
        if counts[bucket] == 0:
            continue
        # upto < rank <= upto + count: the rank is in this bucket
        first = at
        while at < len(ranks) and ranks[at] <= upto + counts[bucket]:
            # minus all values before this bucket, plus those of them that are picked
            ranks[at] += size - 1 - upto
            at += 1
        upto += counts[bucket]
        # an edge lies between its value and the next, which may be the first of the next bucket with values
        if after or at > first:
            to[bucket] = size
            size += counts[bucket]
        after = at > first
    return size


@kernel
def pick(column: Matrix, low: float, scale: float, to: Ids, picked: Matrix) -> None:
    """Put each value where its bucket says, one after the other, those of place 0 on top of each other."""
    for i in range(len(column)):
        bucket = bucket_of(float(column[i]), low, scale, len(to))
        at = to[bucket]
        # no branch: what is not wanted is written to place 0, which nobody reads
        picked[np.uintp(at)] = column[i]
        to[bucket] = at + int(at > 0)
