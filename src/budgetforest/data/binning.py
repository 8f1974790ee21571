"""Columns of numbers as small integer codes, the only form in which growing sees the data.

*Binned*: at most ``max_bins`` quantile bins; a split is an edge, ``code <= b`` if and only if
``x <= cut[b]``. *Ranked* (exact and random splits): a code for every distinct value. Both keep the raw
numbers, so that a grown tree holds thresholds on raw values. A missing value has the code after the last.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.bin_edges import BUCKETS, bucket_of, find_points, per_unit
from budgetforest.data.table import Numbers, Schema
from budgetforest.runtime.arrays import Codes, Counts, Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import kernel
from budgetforest.runtime.random import add_cells, name_key
from budgetforest.runtime.threads import number_of

ROW_BLOCK = 1024
"""Rows hashed, or read, at a time."""

COLUMN_BLOCK = 16
"""Columns read from the caller's rows at a time: their floats share a line of the cache."""

MOST_BYTES = 2**27
"""Of the columns read at a time by all threads; of very many rows each reads one column."""

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


def encode(column: Matrix, steps: Floats, missing: int, place: Ids, codes: Codes) -> bool:
    """``codes[place[i]]`` = how many steps lie below ``column[i]``; returns whether some are missing."""
    before = np.zeros(min(4 << len(steps).bit_length(), BUCKETS), np.int32)
    low, high = (steps[0], steps[-1]) if len(steps) else (0.0, 0.0)
    scale = per_unit(low, high, len(before))
    levels = count_steps(steps, low, scale, before)
    full = np.append(steps, np.full(1 << levels, np.inf))
    return bool(count_below(column, full, low, scale, before, levels, missing, place, codes))


@kernel
def count_steps(steps: Floats, low: float, scale: float, before: Ids) -> int:
    """How many steps are in the buckets ``before`` each; returns how often those of one can be halved."""
    for step in steps:
        before[bucket_of(step, low, scale, len(before))] += 1
    # counts become running sums: where the steps of a bucket begin among all
    total = 0
    most = 1
    for bucket in range(len(before)):
        here = before[bucket]
        before[bucket] = total
        total += here
        most = max(most, here)
    # no bucket has 2 ** levels steps or more
    levels = 0
    while most >> levels > 0:
        levels += 1
    # a few levels too many do no harm, for the padding is never below a value
    return levels if levels < UNROLLED - 2 else max(levels, UNROLLED)


@kernel
def count_below(
    column: Matrix,
    steps: Floats,
    low: float,
    scale: float,
    before: Ids,
    levels: int,
    missing: int,
    place: Ids,
    codes: Codes,
) -> bool:
    """``encode``, the steps padded: no value is above the padding.

    Steps of a value's bucket are halved; written with shifts, for a branch would be a toss-up. Eight
    halvings, the most of a byte, are unrolled.
    """
    gaps = False
    for i in range(len(column)):
        x = float(column[i])
        # buckets are monotone: steps of lower ones are below x, of higher ones not; NaN has bucket 0
        below = np.uintp(before[bucket_of(x, low, scale, len(before))])
        # the answer lies between below and below + 2 ** (level + 1) - 1
        for level in range(levels - 1, 0 if levels < UNROLLED else UNROLLED - 1, -1):
            below += np.uintp(steps[below + (ONE << np.uintp(level)) - ONE] < x) << np.uintp(level)
        for done in range(UNROLLED - 1 if levels >= UNROLLED else 0):
            level = UNROLLED - 1 - done
            below += np.uintp(steps[below + (ONE << np.uintp(level)) - ONE] < x) << np.uintp(level)
        below += np.uintp(steps[below] < x)
        gaps |= x != x
        codes[np.uintp(place[i])] = below if x == x else np.uintp(missing)
    return gaps


def keys_of(schema: Schema) -> Keys:
    """(m) the key of each feature."""
    return np.array([name_key(name) for name in schema.names], np.uint64)


def code_type(n_codes: int) -> Any:
    """The narrowest code that leaves room for 'missing'."""
    if n_codes < 256:
        return np.uint8
    return np.uint16 if n_codes < 65536 else np.uint32
