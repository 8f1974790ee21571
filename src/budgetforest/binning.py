"""Columns of numbers as small integer codes, the only form in which growing sees the data.

*Binned*: at most ``max_bins`` quantile bins; a split is an edge, ``code <= b`` if and only if
``x <= cut[b]``. *Ranked* (exact and random splits): a code for every distinct value. Both keep the raw
numbers, so that a grown tree holds thresholds on raw values. A missing value has the code after the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import Codes, Counts, Flags, Floats, Ids, Keys, Matrix
from budgetforest.draws import add_cells, name_key
from budgetforest.jit import inner, kernel
from budgetforest.table import Numbers, Schema
from budgetforest.threads import number_of

ROW_BLOCK = 1024
"""Rows hashed, or read, at a time."""

COLUMN_BLOCK = 16
"""Columns read from the caller's rows at a time: their floats share a line of the cache."""

MOST_BYTES = 2**27
"""Of the columns read at a time by all threads; of very many rows each reads one column."""

ENCODED = 2**14
"""Rows encoded at a time, as doubles."""

MANY = 2**12
"""Rows of a column that is not sorted."""

BUCKETS = 2**13
"""Parts of its range."""

SOME = 2**9
"""Rows that tell the range."""

UNROLLED = 8
"""Halvings of many steps that take as long as six in a loop."""

ONE = np.uintp(1)


class Columns(NamedTuple):
    """Training rows by column."""

    codes: Codes
    """(m, n) the code of each cell; ``n_codes[j]`` where it is missing."""
    n_codes: Ids
    """(m) number of codes of a column, missing not counted."""
    points: Floats
    """Columns one after the other: edges between bins (binned) or distinct values (ranked)."""
    offset: Counts
    """(m + 1) where each column's points begin."""
    nominal: Flags
    """(m) whether codes are categories."""
    gaps: Flags
    """(m) whether some row has no value."""
    key: Keys
    """(m) the key of each feature's random draws."""
    ranked: bool
    """Whether points are distinct values instead of edges."""


def hash_rows(X: Matrix, y: Ids, schema: Schema) -> Keys:
    """(n) a hash of each row's contents and label, whatever the order of rows and named columns."""
    hashes = np.zeros(len(y), np.uint64)
    add_cells(hashes, y.astype(np.uint64)[:, None], np.array([name_key("")], np.uint64))
    keys = keys_of(schema)
    for start in range(0, len(y), ROW_BLOCK):
        part = slice(start, start + ROW_BLOCK)
        add_cells(hashes[part], X[part].astype(np.float64, order="C").view(np.uint64), keys)
    return hashes


def single_valued(X: Numbers) -> Flags:
    """(m) whether all rows have the same value in a column, or none has any."""
    first = X[:1][0]
    missing = np.isnan(first)
    same = np.ones(len(first), bool)
    for start in range(0, len(X), ROW_BLOCK):
        part = X[start : start + ROW_BLOCK, same]
        same[same] = ((part == first[same]) | (np.isnan(part) & missing[same])).all(axis=0)
        if not same.any():
            break
    return same


def to_columns(
    X: Numbers,
    place: Ids,
    weights: Ids,
    schema: Schema,
    *,
    ranked: bool,
    max_bins: int,
    pool: Executor,
) -> Columns:
    """Find the points of every column and encode it; row i goes to ``place[i]``.

    ``weights`` (n) are whole numbers.
    """
    nominal = schema.nominal
    m = X.shape[1]
    unweighted = bool((weights == 1).all())
    kinds = np.array([len(categories or ()) for categories in schema.categories])
    # bins leave room for missing values where there are any
    codes: Codes = np.empty((m, len(weights)), code_type(max(kinds.max(), len(weights) if ranked else 0)))
    n_codes = np.empty(m, np.int32)
    gaps = np.empty(m, bool)

    room = MOST_BYTES // number_of(pool)
    width = int(np.clip(room // (X.dtype.itemsize * len(weights)), 1, COLUMN_BLOCK))

    def encode_block(start: int) -> list[Floats]:
        found = []
        for j, column in enumerate(columns_of(X, start, width), start):
            points = np.arange(kinds[j], dtype=np.float64)
            if not nominal[j]:
                points = find_points(
                    column, None if unweighted else weights, ranked=ranked, max_bins=max_bins
                )
            every = bool(nominal[j]) or ranked
            n_codes[j] = n_codes_of(points, every)
            gaps[j] = encode(column, points[:-1] if every else points, n_codes[j], place, codes[j])
            found.append(points)
        return found

    points = [found for block in pool.map(encode_block, range(0, m, width)) for found in block]
    offset = np.concatenate([[0], np.cumsum([len(p) for p in points])]).astype(np.int64)
    return Columns(codes, n_codes, np.concatenate(points), offset, nominal, gaps, keys_of(schema), ranked)


def columns_of(X: Numbers, start: int, width: int = COLUMN_BLOCK) -> Matrix:
    """Some columns as rows, from ``start`` on, without negative zeros."""
    stop = min(start + width, X.shape[1])
    found = np.empty((stop - start, len(X)), X.dtype)
    for row in range(0, len(X), ROW_BLOCK):
        np.add(X[row : row + ROW_BLOCK, start:stop].T, 0.0, out=found[:, row : row + ROW_BLOCK])
    return found


def n_codes_of(points: Floats, every: bool) -> int:
    """How many codes a column has: one for every point, or one more than edges."""
    return len(points) if every else len(points) + 1


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
    missing = np.isnan(column)
    gaps = bool(missing.any())
    known = column[~missing] if gaps else column
    bins = max_bins - int(gaps)
    edges = _edges_of_many(known, bins) if len(known) >= MANY else None
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
    low, high = float(known.min()), float(known.max())
    counts = np.zeros(BUCKETS, np.int32)
    if low.is_integer() and high - low < BUCKETS and (np.rint(known) == known).all():
        tally(known, low, 1.0, counts)
        values = np.flatnonzero(counts != 0)
        return points_of(Census(values + low, np.cumsum(counts[values]), False), ranked=False, max_bins=bins)
    some = np.sort(known[:: len(known) // SOME])
    low, high = float(some[len(some) // 100]), float(some[-len(some) // 100])  # the ends may be far out
    scale = per_unit(low, high, BUCKETS)
    tally(known, low, scale, counts)
    if np.count_nonzero(counts) <= bins:
        return None
    ranks = _ranks(len(known), bins)
    to = np.zeros(BUCKETS, np.int32)
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


def encode(column: Matrix, steps: Floats, missing: int, place: Ids, codes: Codes) -> bool:
    """``codes[place[i]]`` = how many steps lie below ``column[i]``; returns whether some are missing."""
    before = np.zeros(min(4 << len(steps).bit_length(), BUCKETS), np.int32)
    low, high = (steps[0], steps[-1]) if len(steps) else (0.0, 0.0)
    scale = per_unit(low, high, len(before))
    levels = count_steps(steps, low, scale, before)
    full = np.append(steps, np.full(1 << levels, np.inf))
    gaps = False
    for start in range(0, len(column), ENCODED):
        part = slice(start, start + ENCODED)
        count_below(column[part].astype(np.float64), full, low, scale, before, levels, place[part], codes)
        absent = np.isnan(column[part])
        if absent.any():
            codes[place[part][absent]] = missing
            gaps = True
    return gaps


def per_unit(low: float, high: float, n_buckets: int) -> float:
    """How many buckets there are to a unit; 1, which is as correct, if that is no number."""
    with np.errstate(over="ignore", divide="ignore"):
        scale = float((n_buckets - 1) / (np.float64(high) - low))
    return scale if 0.0 < scale < np.inf else 1.0


@inner
def bucket_of(x: float, low: float, scale: float, n_buckets: int) -> np.uintp:
    """The bucket of a value, never before that of a smaller one; the first has nothing above ``low``."""
    at = np.ceil((x - low) * scale)
    at = at if at > 0.0 else 0.0
    last = n_buckets - 1.0
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
        first = at
        while at < len(ranks) and ranks[at] <= upto + counts[bucket]:
            ranks[at] += size - 1 - upto
            at += 1
        upto += counts[bucket]
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
        picked[np.uintp(at)] = column[i]
        to[bucket] = at + int(at > 0)


@kernel
def count_steps(steps: Floats, low: float, scale: float, before: Ids) -> int:
    """How many steps are in the buckets ``before`` each; returns how often those of one can be halved."""
    for step in steps:
        before[bucket_of(step, low, scale, len(before))] += 1
    total = 0
    most = 1
    for bucket in range(len(before)):
        here = before[bucket]
        before[bucket] = total
        total += here
        most = max(most, here)
    levels = 0
    while most >> levels > 0:
        levels += 1
    return levels if levels < UNROLLED - 2 else max(levels, UNROLLED)


@kernel
def count_below(
    column: Floats,
    steps: Floats,
    low: float,
    scale: float,
    before: Ids,
    levels: int,
    place: Ids,
    codes: Codes,
) -> None:
    """``encode``, the steps padded: no value is above the padding.

    Steps of a value's bucket are halved; written with shifts, for a branch would be a toss-up. Eight
    halvings, the most of a byte, are unrolled.
    """
    for i in range(len(column)):
        x = column[i]
        below = np.uintp(before[bucket_of(x, low, scale, len(before))])
        for level in range(levels - 1, 0 if levels < UNROLLED else UNROLLED - 1, -1):
            below += np.uintp(steps[below + (ONE << np.uintp(level)) - ONE] < x) << np.uintp(level)
        for done in range(UNROLLED - 1 if levels >= UNROLLED else 0):
            level = UNROLLED - 1 - done
            below += np.uintp(steps[below + (ONE << np.uintp(level)) - ONE] < x) << np.uintp(level)
        codes[np.uintp(place[i])] = below + np.uintp(steps[below] < x)


def keys_of(schema: Schema) -> Keys:
    """(m) the key of each feature."""
    return np.array([name_key(name) for name in schema.names], np.uint64)


def code_type(n_codes: int) -> Any:
    """The narrowest code that leaves room for 'missing'."""
    if n_codes < 256:
        return np.uint8
    return np.uint16 if n_codes < 65536 else np.uint32
