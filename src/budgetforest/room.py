"""What growing a tree needs besides the rows: the plan, and memory that every node uses again.

Rows of a node are sorted by class. A subtree of few enough rows is grown on a copy of their codes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.arrays import MAX_CODES, Codes, Counts, Floats, Ids, Keys
from budgetforest.binning import Columns
from budgetforest.bounds import Bounds, room_for_bounds, width_of
from budgetforest.jit import inner
from budgetforest.rows import Cells, Profile, code_of, room_for
from budgetforest.split import MOST_STUMPS, Measure

NEAR_ROWS = 1024
"""A subtree of so few rows is grown on a copy of its codes that fits the nearest caches."""

NEAR_BLOCK = 64
"""Rows copied together, so that the caches hold what is written."""

NEAR_CELLS = 32 * 2**20
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


class Room(NamedTuple):
    """Memory of one tree's growth, used again for every node."""

    profile: Profile
    bounds: Bounds
    label: Ids
    """Dense classes of the node's rows, ascending."""
    ends: Ids
    """Where the rows of each dense class end."""
    times: Ids
    """How often each of the node's rows counts."""
    buffer: Ids
    begin: Counts
    """Where the rows of each category begin."""
    total: Counts
    """Class counts of the node."""
    shares: Floats
    """(3, k) counts as weights: of the node, of a left and of a right child."""
    cuts: Counts
    thresholds: Floats
    features: Counts
    """All features, those still worth trying first."""
    near: Codes
    """Codes of a subtree's rows: those of ``bounds``, or by column."""
    near_label: Ids
    near_times: Ids
    waiting: Counts
    """(n, 5) nodes still to be decided: rows start to stop, parent, which child, features to try."""
    keys: Keys
    """(n) their keys."""


def room_for_growth(columns: Columns, plan: Plan, n_rows: int) -> Room:
    """Memory for a tree on so many rows."""
    m, k = len(plan.cost), plan.n_classes
    n_codes = int(columns.n_codes.max())
    near_rows = min(n_rows, NEAR_CELLS // width_of(m) if plan.measure.bisect else NEAR_ROWS)
    bounds = room_for_bounds(columns, plan.cost, k, near_rows)
    return Room(
        profile=room_for(n_codes, k, n_rows),
        bounds=bounds,
        label=np.empty(n_rows, np.int32),
        ends=np.empty(k, np.int32),
        times=np.empty(n_rows, np.int32),
        buffer=np.empty(max(n_rows, k, MAX_CODES + 2), np.int32),
        begin=np.empty(MAX_CODES + 2, np.int64),
        total=np.empty(k, np.int64),
        shares=np.empty((3, k)),
        cuts=np.arange(max(n_codes, MOST_STUMPS) + 1),
        thresholds=np.empty(MOST_STUMPS),
        features=np.arange(m),
        near=bounds.near.reshape(-1),
        near_label=np.empty(near_rows, np.int32),
        near_times=np.empty(near_rows, np.int32),
        waiting=np.empty((n_rows + 1, 5), np.int64),
        keys=np.empty(n_rows + 1, np.uint64),
    )


@inner
def put(
    room: Room, at: int, start: int, stop: int, parent: int, slot: int, n_features: int, key: np.uint64
) -> None:
    """Let a node wait for its turn."""
    room.waiting[at, 0] = start
    room.waiting[at, 1] = stop
    room.waiting[at, 2] = parent
    room.waiting[at, 3] = slot
    room.waiting[at, 4] = n_features
    room.keys[at] = key


@inner
def bring_near(
    far: Cells, near: Cells, label: Ids, times: Ids, rows: Ids, room: Room, n_features: int
) -> None:
    """Copy what a subtree needs of its rows, and number the rows 0, 1, 2, ..."""
    for start in range(0, len(rows), NEAR_BLOCK):
        stop = min(start + NEAR_BLOCK, len(rows))
        for at in range(n_features):
            j = room.features[at]
            for i in range(start, stop):
                to = np.uintp(j * near.by_feature + i * near.by_row)
                near.codes[to] = code_of(far, j, rows[i])
    for i in range(len(rows)):
        room.near_label[i] = label[rows[i]]
        room.near_times[i] = times[rows[i]]
        rows[i] = i


@inner
def gather(rows: Ids, label: Ids, times: Ids, counts: Counts, plan: Plan, room: Room) -> int:
    """Labels, times and class counts of a node's rows; returns how many classes it has.

    Rows are sorted by class. Where F allows it, classes are renumbered so that those without rows
    cost nothing.
    """
    classes = 0
    i = 0
    for c in range(len(counts)):
        total = 0
        while i < len(rows) and label[rows[i]] == c:
            room.label[i] = classes
            room.times[i] = times[rows[i]]
            total += room.times[i]
            i += 1
        counts[c] = total
        if total > 0 or not plan.measure.symmetric:
            room.total[classes] = total
            room.ends[classes] = i
            classes += 1
    return classes
