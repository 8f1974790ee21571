"""Columns of numbers as small integer codes, the only form in which growing sees the data.

*Binned*: at most ``max_bins`` quantile bins; a split is an edge, ``code <= b`` if and only if
``x <= cut[b]``. *Ranked* (exact and random splits): a code for every distinct value. Both keep the raw
numbers, so that a grown tree holds thresholds on raw values. A missing value has the code after the last.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import Codes, Counts, Flags, Floats, Ids, Keys, Matrix
from budgetforest.draws import add_column, name_key
from budgetforest.jit import kernel
from budgetforest.table import Schema


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
    key: Keys
    """(m) the key of each feature's random draws."""
    ranked: bool
    """Whether points are distinct values instead of edges."""


def hash_rows(X: Matrix, y: Ids, schema: Schema) -> Keys:
    """(n) a hash of each row's contents and label, whatever the order of rows and named columns."""
    hashes = np.zeros(len(y), np.uint64)
    add_column(hashes, y.astype(np.uint64), np.uint64(name_key("")))
    for j, name in enumerate(schema.names):
        add_column(hashes, _doubles(X[:, j]).view(np.uint64), np.uint64(name_key(name)))
    return hashes


def to_columns(
    X: Matrix,
    weights: Counts,
    schema: Schema,
    *,
    ranked: bool,
    max_bins: int,
    pool: Executor,
) -> Columns:
    """Find the points of every column and encode it. ``weights`` (n) are whole numbers."""
    nominal = schema.nominal
    cells = [X[:, j] for j in range(X.shape[1])]

    def points_of(j: int) -> Floats:
        if nominal[j]:
            return np.arange(len(schema.categories[j] or ()), dtype=np.float64)
        return find_points(_doubles(cells[j]), weights, ranked=ranked, max_bins=max_bins)

    points = list(pool.map(points_of, range(len(cells))))
    sizes = np.array([len(p) for p in points])
    n_codes = np.where(nominal | ranked, sizes, sizes + 1).astype(np.int32)
    codes: Codes = np.empty((len(cells), len(weights)), _code_type(int(n_codes.max())))

    def encode_column(j: int) -> None:
        steps = points[j][:-1] if nominal[j] or ranked else points[j]
        encode(_doubles(cells[j]), steps, n_codes[j], codes[j])

    list(pool.map(encode_column, range(len(cells))))
    keys = np.array([name_key(name) for name in schema.names], np.uint64)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Columns(codes, n_codes, np.concatenate(points), offset, nominal, keys, ranked)


def find_points(column: Floats, weights: Counts, *, ranked: bool, max_bins: int) -> Floats:
    """Distinct values (ranked), or edges between at most ``max_bins`` quantile bins.

    With few distinct values every midpoint is an edge. Otherwise edge number k follows the first value
    at or above the quantile k / max_bins: a count of rows, the same in any order and any blocks.
    """
    present = ~np.isnan(column)
    bins = max_bins
    if not present.all():
        column, weights, bins = column[present], weights[present], max_bins - 1
    order = None if ranked or (weights == 1).all() else np.argsort(column, kind="stable")
    ascending = np.sort(column) if order is None else column[order]
    first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))[: len(column)]
    values = ascending[first]
    if ranked:
        return values
    last = np.arange(len(values) - 1)
    if len(values) > bins:
        upto = np.append(first[1:], len(column))
        if order is not None:
            upto = np.cumsum(weights[order])[upto - 1]
        wanted = np.arange(1, bins) * int(upto[-1])
        last = np.unique(np.searchsorted(upto * bins, wanted))
        last = last[last < len(values) - 1]
    return midpoints(values[last], values[last + 1])


def midpoints(low: Floats, high: Floats) -> Floats:
    """Thresholds between neighbours, in double; never as large as ``high``, which must go right."""
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


@kernel
def encode(column: Floats, steps: Floats, missing: int, codes: Codes) -> None:
    """``codes[i]`` = how many steps lie below ``column[i]``."""
    for i in range(len(column)):
        x = column[i]
        if np.isnan(x):
            codes[i] = missing
            continue
        low = 0
        high = len(steps)
        while low < high:
            middle = (low + high) // 2
            if steps[middle] < x:
                low = middle + 1
            else:
                high = middle
        codes[i] = low


def _doubles(column: Matrix) -> Floats:
    """A contiguous column of doubles in which equal values have equal bits."""
    doubles = column.astype(np.float64)
    doubles += 0.0  # no negative zero
    doubles[np.isnan(doubles)] = np.nan
    return doubles


def _code_type(n_codes: int) -> Any:
    """The narrowest code that leaves room for 'missing'."""
    if n_codes < 256:
        return np.uint8
    return np.uint16 if n_codes < 65536 else np.uint32
