"""What growing a tree needs besides the rows: the plan, and memory that every node uses again.

Rows are numbered by class, and those of a node ascend. A subtree of few enough rows is grown on a copy of
their codes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.data.binning import Columns
from budgetforest.growing.bounds import Bounds, room_for_bounds, width_of
from budgetforest.growing.histogram import (
    Cells,
    Counter,
    Profile,
    cells_of,
    code_of,
    counter_for,
    profile_for,
)
from budgetforest.growing.node_stack import NodeStack, stack_for
from budgetforest.growing.split import MOST_STUMPS, RANDOM, Measure
from budgetforest.runtime.arrays import MAX_CODES, Counts, Floats, Ids
from budgetforest.runtime.jit import inner

NEAR_ROWS = 1024
"""A subtree of so few rows is grown on a copy of its codes that fits the nearest caches."""

NEAR_BLOCK = 64
"""Rows copied together, so that the caches hold what is written."""

NEAR_CELLS = 24 * 2**20
"""The same where features are bounded: as many codes as stand side by side."""


class Plan(NamedTuple):
    """Everything that decides how trees grow, but for the rows."""

    measure: Measure
    splitter: int
    """A ``Splitter``."""
    cost: Floats
    """(m) what the risk charges for a feature: always its own full cost, as in the paper."""
    least: Floats
    """(m) the least a feature can cost a row, for the certificate."""
    n_classes: int


class SearchWorkspace(NamedTuple):
    """Memory for the search of a node, used again for the next."""

    profile: Profile
    counter: Counter
    bounds: Bounds
    ends: Ids
    """Where the node's rows of each class end, classes without rows left out if F allows it."""
    times: Ids
    """How often each of the node's rows counts."""
    cuts: Counts
    thresholds: Floats
    features: Counts
    """All features, those still worth trying first."""


class GrowthWorkspace(NamedTuple):
    """Memory for the growth of a tree besides."""

    total: Counts
    """Class counts of the node."""
    shares: Floats
    """(3, k) counts as weights: of the node, of a left and of a right child."""
    far: Cells
    """Codes of all rows."""
    near: Cells
    """Codes of a subtree's rows: those of ``bounds``, or by column."""
    near_ends: Counts
    """(k) where the rows of each class end."""
    near_times: Ids
    stack: NodeStack
    """The note of a node is how many features are worth trying. Its buffer is the memory of
    ``SearchWorkspace.times``, which is used no longer when rows are parted."""
    certain: bool
    """Whether every cut of every feature can be had, and no value is missing."""


def workspaces_for(columns: Columns, plan: Plan, n_rows: int) -> tuple[SearchWorkspace, GrowthWorkspace]:
    """Memory for a tree on so many rows."""
    m, k = len(plan.cost), plan.n_classes
    n_codes = int(columns.n_codes.max())
    near_rows = min(n_rows, NEAR_CELLS // width_of(m) if plan.measure.bisect else NEAR_ROWS)
    bounds = room_for_bounds(columns, plan.cost, k, near_rows)
    search = SearchWorkspace(
        profile=profile_for(n_codes, k),
        counter=counter_for(n_codes, k),
        bounds=bounds,
        ends=np.empty(k, np.int32),
        times=np.empty(max(n_rows, k), np.int32),
        cuts=np.arange(max(n_codes, MOST_STUMPS) + 1),
        thresholds=np.empty(MOST_STUMPS),
        features=np.arange(m),
    )
    by_feature, by_row = (1, bounds.near.shape[1]) if plan.measure.bisect else (near_rows, 1)
    work = GrowthWorkspace(
        total=np.empty(k, np.int64),
        shares=np.empty((3, k)),
        far=cells_of(columns),
        near=Cells(bounds.near.reshape(-1), by_feature, by_row),
        near_ends=np.empty(k, np.int64),
        near_times=np.empty(near_rows, np.int32),
        stack=stack_for(n_rows + 1, MAX_CODES + 1, search.times),
        certain=plan.splitter != RANDOM and not columns.gaps.any(),
    )
    return search, work


@inner
def bring_near(
    far: Cells,
    near: Cells,
    ends: Counts,
    times: Ids,
    rows: Ids,
    features: Counts,
    near_ends: Counts,
    near_times: Ids,
) -> None:
    """Copy what a subtree needs of its rows, and number the rows 0, 1, 2, ..."""
    # reads run along far columns, writes stay within NEAR_BLOCK rows that the cache holds
    for start in range(0, len(rows), NEAR_BLOCK):
        stop = min(start + NEAR_BLOCK, len(rows))
        for at in range(len(features)):
            # features of no use in this subtree are not copied
            j = features[at]
            for i in range(start, stop):
                to = np.uintp(j * near.by_feature + i * near.by_row)
                near.codes[to] = code_of(far, j, rows[i])
    # rows ascend and classes are ranges of row numbers: they still do under the new numbers
    end = 0
    for c in range(len(ends)):
        end = first_from(rows, end, ends[c])
        near_ends[c] = end
    for i in range(len(rows)):
        near_times[i] = times[rows[i]]
        # the slice is now numbered by its lines in ``near``; its old numbers are not needed again
        rows[i] = i


@inner
def gather(
    rows: Ids,
    ends: Counts,
    times: Ids,
    counts: Ids,
    symmetric: bool,
    own_times: Ids,
    own_ends: Ids,
    totals: Counts,
) -> int:
    """Times and class counts of a node's rows; returns how many classes it has.

    All rows of class c have numbers below ``ends[c]``. Where F allows it, classes are renumbered so that
    those without rows cost nothing.
    """
    classes = 0
    start = 0
    for c in range(len(counts)):
        # a bisection per class instead of a label per row
        stop = first_from(rows, start, ends[c])
        total = 0
        for i in range(start, stop):
            # side by side from here on: every feature of the node reads them in order
            own_times[i] = times[rows[i]]
            total += own_times[i]
        counts[c] = total
        # polynomials and own functions tell classes apart: there an empty one keeps its place
        if total > 0 or not symmetric:
            totals[classes] = total
            own_ends[classes] = stop
            classes += 1
        start = stop
    return classes


@inner
def first_from(rows: Ids, low: int, number: int) -> int:
    """Where ascending ``rows``, from place ``low`` on, reach a number."""
    high = len(rows)
    # rows before low are below the number, rows from high on are not
    while high - low > 8:
        middle = (low + high) // 2
        if rows[middle] < number:
            low = middle + 1
        else:
            high = middle
    while low < high and rows[low] < number:
        low += 1
    return low
