"""Growth that knows what is already paid: the drop of entropy minus the price of what rows lack.

The paper's ratio charges a feature's full price at every node. Here a split is worth

    n H(S) - sum_i n_i H(S_i)  -  rate * (what the rows of S that lack the feature would pay for it),

in nats, where a row has what it met above, *or in an earlier tree* of the forest. What a row has costs
nothing, so later trees ride free. Entropy is additive over rows, hence the difference: a ratio discounted for
what is paid collapses to trees of one feature. Trees differ by bootstrap, by the features tried at a node, or
by random cuts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.data.costs import Costs
from budgetforest.growing.greedytree import (
    LEFT,
    RIGHT,
    Sample,
    bootstrapped,
    hang,
    labels_of,
    make_leaf,
    with_all_branches,
)
from budgetforest.growing.histogram import Cells, partition, partition_by_code
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Floats, Ids
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import mix, tree_key, uniform
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree, only_first, room_for_nodes

LEAST_GAIN = 1e-7
"""Nats of all rows of a node together; less is rounding, not progress."""

LOGS = 2**20
"""So many logarithms are at hand."""

CUTS, TRIES = np.uint64(0x63757473), np.uint64(0x74726965)
"""Keys of what is drawn at a node."""


class Growth(NamedTuple):
    """Everything that decides how a forest grows, but for the rows."""

    pool: Flags
    """(m) which features may be used."""
    rate: float
    """Nats that a unit of cost is worth to a row; 0 grows as if everything were free."""
    tries: float
    """Share of the pool that is tried at a node; more if none of these splits it."""
    random_cuts: bool
    """One random cut of each feature instead of the best one."""
    least_rows: int
    """A child has at least so many rows."""
    n_classes: int


class Acquired(NamedTuple):
    """What training rows have acquired so far, in all trees."""

    feature: NDArray[np.uint8]
    """(m, n / 8) a bit for each row that has a feature; empty when nothing costs anything."""
    group: NDArray[np.uint8]
    """(g, n / 8) the same for one of a group; empty where every feature is a group of its own."""


class Desk(NamedTuple):
    """Memory of one tree's growth, used again for every node."""

    tally: NDArray[np.int64]
    """(codes + 1, k) class counts by code; the last used code is that of missing values."""
    below: Counts
    """(k) class counts of the rows up to a cut."""
    buffer: Ids
    begin: Counts
    waiting: Counts
    """(n, 4) nodes still to be decided: rows start to stop, parent, which child."""
    keys: NDArray[np.uint64]
    logs: Floats
    """n log n of small n."""


def grow_saving(
    sample: Sample, growth: Growth, costs: Costs, seed: int, bootstrap: bool, payers: float = math.inf
) -> Iterator[Tree]:
    """Trees without end, each grown in view of what rows have acquired in those before.

    After so many ``payers`` come free riders, which use only what their rows have: their rate is infinite.
    """
    owned = nothing_acquired(len(sample.order), costs)
    number = 0
    while True:
        rate = growth.rate if number < payers else math.inf
        yield grow_one(sample, growth._replace(rate=rate), costs, owned, seed, number, bootstrap)
        number += 1


def nothing_acquired(n_rows: int, costs: Costs) -> Acquired:
    """Room for what so many rows acquire."""
    m, groups, n_bytes = len(costs.cost), len(costs.group_names), n_rows // 8 + 1
    return Acquired(
        np.zeros((m, n_bytes), np.uint8), np.zeros((groups if groups < m else 0, n_bytes), np.uint8)
    )


def grow_one(
    sample: Sample, growth: Growth, costs: Costs, owned: Acquired, seed: int, number: int, bootstrap: bool
) -> Tree:
    """Tree ``number`` of a forest. At a rate of 0 it does not depend on the others."""
    key = tree_key(seed, number)
    times = bootstrapped(sample, key) if bootstrap else np.array(sample.weight)
    # rows that were not drawn go along where it matters what they acquire
    rows = (np.arange(len(times)) if growth.rate else np.flatnonzero(times)).astype(np.int32)
    return saving_below(sample.columns, labels_of(sample), times, rows, growth, costs, owned, key)


def saving_below(
    columns: Columns,
    label: Ids,
    times: Ids,
    rows: Ids,
    growth: Growth,
    costs: Costs,
    owned: Acquired,
    key: np.uint64,
) -> Tree:
    """The part of a tree below the node of this key, on its rows, which then have what they met."""
    tree = room_for_nodes(2 * int((times[rows] > 0).sum()) + 1, growth.n_classes)
    desk = desk_for(columns, growth.n_classes, len(rows))
    size, branches = saving_tree(columns, label, times, rows, growth, costs[:3], owned, key, tree, desk)
    tree.floor[0] = np.nan
    return with_all_branches(only_first(tree, size)._replace(branches=branches))


def desk_for(columns: Columns, k: int, n_rows: int) -> Desk:
    """Memory for a tree on so many rows."""
    codes = int(columns.n_codes.max()) + 2
    return Desk(
        np.zeros((codes, k), np.int64),
        np.empty(k, np.int64),
        np.empty(max(n_rows, codes), np.int32),
        np.empty(codes + 1, np.int64),
        np.empty((n_rows + codes, 4), np.int64),
        np.empty(n_rows + codes, np.uint64),
        small_logs(),
    )


@cache
def small_logs() -> Floats:
    """The n log n of n below ``LOGS``; whoever grows the tree, larger ones are computed."""
    logs = np.arange(LOGS, dtype=np.float64)
    logs[1:] *= np.log(logs[1:])
    return logs


class Split(NamedTuple):
    """The best split so far."""

    gain: float
    """Drop of entropy minus price."""
    feature: int
    cut: int
    """The last code on the left."""
    route: int


@kernel
def saving_tree(
    columns: Columns,
    label: Ids,
    times: Ids,
    rows: Ids,
    growth: Growth,
    prices: tuple[Floats, Floats, Ids],
    owned: Acquired,
    root_key: np.uint64,
    tree: Tree,
    desk: Desk,
) -> tuple[int, Ids]:
    """Split by the largest saving while there is one. Fills ``tree``; returns its size and branches."""
    cells = Cells(columns.codes.reshape(-1), columns.codes.shape[1], 1)
    branches = np.empty(0, np.int32)
    n_branches = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    _put(desk, nothing, nothing, len(rows), nothing - 1, nothing, root_key)
    waiting = nothing + 1
    size = nothing
    while waiting > 0:
        waiting -= 1
        start, stop, parent, slot = desk.waiting[waiting]
        key = desk.keys[waiting]
        node = size
        size += 1
        make_leaf(tree, node)
        hang(tree, branches, parent, slot, node)
        here = rows[start:stop]
        counts = tree.counts[node]
        n = nothing
        for i in range(len(here)):
            counts[label[here[i]]] += times[here[i]]
            n += times[here[i]]
        mixed = entropy_of(counts, n, desk.logs)
        tree.impurity[node] = mixed / n
        if mixed <= LEAST_GAIN or n < 2 * growth.least_rows:
            continue
        best = _best_split(columns, label, times, here, growth, prices, owned, key, counts, n, mixed, desk)
        j = best.feature
        if j == LEAF:
            continue
        if growth.rate > 0.0:
            acquire(j, here, prices, owned)
        tree.feature[node] = j
        tree.route[node] = best.route
        missing = columns.n_codes[j]
        if best.route == BY_CATEGORY:
            partition_by_code(cells, j, here, missing, desk.begin, desk.buffer)
            if n_branches + missing + 1 > len(branches):
                more = np.empty(2 * len(branches) + missing + 1, np.int32)
                for branch in range(n_branches):
                    more[branch] = branches[branch]
                branches = more
            tree.left[node] = n_branches
            tree.right[node] = missing
            for code in range(missing, -1, -1):
                at = n_branches + code
                branches[at] = -1
                first = start + desk.begin[code]
                last = start + desk.begin[code + 1]
                if _weight(rows[first:last], times) > 0:
                    _put(desk, waiting, first, last, node, at, mix(key, np.uint64(code)))
                    waiting += 1
            n_branches += missing + 1
        else:
            tree.threshold[node] = np.inf
            if best.cut < missing - 1:
                tree.threshold[node] = columns.points[columns.offset[j] + best.cut]
            to_left = best.route == MISSING_LEFT
            middle = start + partition(cells, j, here, best.cut, to_left, missing, desk.buffer)
            # the left child comes last, so that it follows its parent
            _put(desk, waiting, middle, stop, node, nothing + RIGHT, mix(key, np.uint64(1)))
            _put(desk, waiting + 1, start, middle, node, nothing + LEFT, mix(key, np.uint64(0)))
            waiting += 2
    return size, branches[:n_branches]


@inner
def _put(desk: Desk, at: int, start: int, stop: int, parent: int, slot: int, key: np.uint64) -> None:
    """Let a node wait for its turn."""
    desk.waiting[at, 0] = start
    desk.waiting[at, 1] = stop
    desk.waiting[at, 2] = parent
    desk.waiting[at, 3] = slot
    desk.keys[at] = key


@inner
def _weight(rows: Ids, times: Ids) -> int:
    total = 0
    for i in range(len(rows)):
        total += times[rows[i]]
    return total


@inner
def _times_log(n: int, logs: Floats) -> float:
    return float(logs[n] if n < len(logs) else n * np.log(n))


@inner
def entropy_of(counts: Ids, n: int, logs: Floats) -> float:
    """Nats of all rows together, n H."""
    total = _times_log(n, logs)
    for c in range(len(counts)):
        total -= _times_log(int(np.int64(counts[c])), logs)  # as wide as others, or numba compiles it twice
    return total


@inner
def _best_split(
    columns: Columns,
    label: Ids,
    times: Ids,
    rows: Ids,
    growth: Growth,
    prices: tuple[Floats, Floats, Ids],
    owned: Acquired,
    key: np.uint64,
    counts: Ids,
    n: int,
    mixed: float,
    desk: Desk,
) -> Split:
    """The largest saving among the features that are tried: first a random share, then the rest."""
    best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
    for turn in range(2):
        for j in range(len(growth.pool)):
            if not growth.pool[j] or is_tried(key, columns.key[j], growth.tries) != (turn == 0):
                continue
            missing = columns.n_codes[j]
            low, high = _tally(columns.codes[j], missing, rows, label, times, desk.tally)
            gain, cut, route = gain_of(columns, j, low, high, counts, n, mixed, growth, key, desk)
            _clear(desk.tally, low, high, missing)
            if growth.rate > 0.0 and gain > best.gain:
                price = price_of(j, rows, times, prices, owned)
                if price > 0.0:  # whatever the rate, what rows have is free
                    gain -= growth.rate * price
            if gain > best.gain:
                best = Split(gain, j, cut, route)
        if best.feature != LEAF:
            break
    return best


@inner
def is_tried(key: np.uint64, feature: np.uint64, tries: float) -> bool:
    """Whether a feature is among those that the node of this key tries first."""
    return uniform(mix(mix(key, TRIES), feature)) < tries


@inner
def gain_of(
    columns: Columns,
    j: int,
    low: int,
    high: int,
    counts: Ids,
    n: int,
    mixed: float,
    growth: Growth,
    key: np.uint64,
    desk: Desk,
) -> tuple[float, int, int]:
    """The drop of entropy by a feature whose class counts are in ``desk.tally``: (drop, cut, route)."""
    missing = columns.n_codes[j]
    if columns.nominal[j]:
        gain = _nominal_gain(desk.tally, low, high, missing, mixed, growth.least_rows, desk.logs)
        return gain, -1, BY_CATEGORY
    at = mix(key, columns.key[j] ^ CUTS)
    return _numeric_gain(desk.tally, low, high, missing, counts, n, mixed, growth, at, desk)


@inner
def _tally(
    codes: Codes, missing: int, rows: Ids, label: Ids, times: Ids, tally: NDArray[np.int64]
) -> tuple[int, int]:
    """Class counts by code; returns the lowest and the highest code present, missing not counted."""
    low = missing
    high = -1
    for i in range(len(rows)):
        row = rows[i]
        if times[row] == 0:
            continue
        code = int(codes[row])
        tally[code, label[row]] += times[row]
        if code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@inner
def _clear(tally: NDArray[np.int64], low: int, high: int, missing: int) -> None:
    for c in range(tally.shape[1]):
        tally[missing, c] = 0
    for code in range(low, high + 1):
        for c in range(tally.shape[1]):
            tally[code, c] = 0


@inner
def _numeric_gain(
    tally: NDArray[np.int64],
    low: int,
    high: int,
    missing: int,
    counts: Ids,
    n: int,
    mixed: float,
    growth: Growth,
    key: np.uint64,
    desk: Desk,
) -> tuple[float, int, int]:
    """The drop of entropy by the best, or a random, cut: (drop, last code on the left, route).

    Where values are missing both sides are tried for them, and the cut that parts them from all values;
    otherwise they would go to the larger child.
    """
    k = len(counts)
    lost = 0
    for c in range(k):
        desk.below[c] = 0
        lost += tally[missing, c]
    chosen = low + int(uniform(key) * (high - low))
    best = 0.0
    best_cut = -1
    best_route = MISSING_RIGHT
    size = 0
    for code in range(low, high + (1 if lost > 0 else 0)):
        present = 0
        for c in range(k):
            desk.below[c] += tally[code, c]
            present += tally[code, c]
        size += present
        if growth.random_cuts and code != chosen and code != high:
            continue
        if present == 0 and not growth.random_cuts:
            continue
        for side in range(1 + (lost > 0 and code < high)):
            left = size + (lost if side == 1 else 0)
            if left < growth.least_rows or n - left < growth.least_rows:
                continue
            drop = mixed - _times_log(left, desk.logs) - _times_log(n - left, desk.logs)
            for c in range(k):
                inside = desk.below[c] + (tally[missing, c] if side == 1 else 0)
                drop += _times_log(inside, desk.logs) + _times_log(counts[c] - inside, desk.logs)
            if drop > best:
                best = drop
                best_cut = code if code < high else missing - 1
                best_route = side
                if lost == 0:
                    best_route = MISSING_LEFT if 2 * left >= n else MISSING_RIGHT
    return best, best_cut, best_route


@inner
def _nominal_gain(
    tally: NDArray[np.int64], low: int, high: int, missing: int, mixed: float, least_rows: int, logs: Floats
) -> float:
    """The drop of entropy by a child for each category; none if a child has too few rows."""
    children = 0
    drop = mixed
    for code in range(low, missing + 1):
        if high < code < missing:
            continue
        size = 0
        for c in range(tally.shape[1]):
            size += tally[code, c]
            drop += _times_log(tally[code, c], logs)
        drop -= _times_log(size, logs)
        if 0 < size < least_rows:
            return 0.0
        children += size > 0
    return drop if children > 1 else 0.0


@inner
def has_bit(bits: NDArray[np.uint8], j: int, row: int) -> bool:
    """Whether the bit of a row is set."""
    return bool(bits[j, row >> 3] >> (row & 7) & 1)


@inner
def put_bit(bits: NDArray[np.uint8], j: int, row: int) -> None:
    """Set it."""
    bits[j, row >> 3] |= 1 << (row & 7)


@inner
def acquire(j: int, rows: Ids, prices: tuple[Floats, Floats, Ids], owned: Acquired) -> None:
    """The rows of a node have a feature from now on."""
    for i in range(len(rows)):
        put_bit(owned.feature, j, rows[i])
    if len(owned.group) > 0:
        for i in range(len(rows)):
            put_bit(owned.group, prices[2][j], rows[i])


@inner
def price_of(j: int, rows: Ids, times: Ids, prices: tuple[Floats, Floats, Ids], owned: Acquired) -> float:
    """What the rows of a node would pay for a feature, all together."""
    shared = len(owned.group) > 0
    lacking = 0
    opened = 0
    for i in range(len(rows)):
        if not has_bit(owned.feature, j, rows[i]):
            lacking += times[rows[i]]
            if shared and has_bit(owned.group, prices[2][j], rows[i]):
                opened += times[rows[i]]
    return price_for(j, lacking, opened, prices)


@inner
def price_for(j: int, lacking: int, opened: int, prices: tuple[Floats, Floats, Ids]) -> float:
    """What rows pay for a feature that so many lack, ``opened`` of which have another of its group."""
    return float(prices[0][j] * (lacking - opened) + prices[1][j] * opened)
