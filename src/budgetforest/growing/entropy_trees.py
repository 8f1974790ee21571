"""Trees of largest entropy drop, on rows as drawn, whatever features cost: the forests of ``method="auto"``.

A split is worth n H(S) - sum_i n_i H(S_i), in nats of all rows of the node. Trees of a forest differ by
bootstrap, by the features tried at a node, or by random cuts; none depends on another.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.growing.feature_order import START, next_step
from budgetforest.growing.greedytree import Sample, bootstrapped, labels_of, with_all_branches
from budgetforest.growing.histogram import Cells, cells_of
from budgetforest.growing.node_stack import (
    NodeStack,
    Split,
    edge_after,
    make_leaf,
    push,
    push_children,
    room_for_branches,
    stack_for,
    take,
)
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Floats, Ids
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import mix, tree_key, uniform
from budgetforest.trees.tree import (
    BY_CATEGORY,
    MISSING_LEFT,
    MISSING_RIGHT,
    UNSEEN,
    Tree,
    only_first,
    room_for_nodes,
    weighed,
)

LEAST_GAIN = 1e-7
"""Nats of all rows of a node together; less is rounding, not progress."""

LOGS = 2**20
"""So many logarithms are at hand."""

CUTS = np.uint64(0x63757473)
"""Key of random cuts."""


class Growth(NamedTuple):
    """Everything that decides how a forest grows, but for the rows."""

    pool: Flags
    """(m) which features may be used."""
    tries: float
    """Share of the pool that is tried at a node; more if none of these splits it."""
    random_cuts: bool
    """One random cut of each feature instead of the best one."""
    least_rows: int
    """A child has at least so many rows."""
    n_classes: int


class Workspace(NamedTuple):
    """Memory of one tree's growth, used again for every node."""

    tally: NDArray[np.int64]
    """(codes + 1, k) class counts by code; the last used code is that of missing values."""
    below: Counts
    """(k) class counts of the rows up to a cut."""
    stack: NodeStack
    cells: Cells
    """All codes."""
    logs: Floats
    """n log n of small n."""


def grow_one(sample: Sample, growth: Growth, seed: int, number: int, bootstrap: bool) -> Tree:
    """Tree ``number`` of a forest; it does not depend on the others."""
    key = tree_key(seed, number)
    times = bootstrapped(sample, key) if bootstrap else np.array(sample.weight)
    drawn = np.flatnonzero(times).astype(np.int32)
    return entropy_tree_below(sample.columns, labels_of(sample), times, drawn, growth, key)


def entropy_tree_below(
    columns: Columns, label: Ids, times: Ids, rows: Ids, growth: Growth, key: np.uint64
) -> Tree:
    """The part of a tree below the node of this key, on its rows, all of which were drawn."""
    tree = room_for_nodes(2 * len(rows) + 1, growth.n_classes)
    work = workspace_for(columns, growth.n_classes, len(rows))
    size, branches = entropy_tree(columns, label, times, rows, growth, key, tree, work)
    tree.floor[0] = np.nan
    return with_all_branches(weighed(only_first(tree, size)._replace(branches=branches)))


def workspace_for(columns: Columns, k: int, n_rows: int) -> Workspace:
    """Memory for a tree on so many rows."""
    codes = int(columns.n_codes.max()) + 2
    return Workspace(
        np.zeros((codes, k), np.int64),
        np.empty(k, np.int64),
        stack_for(n_rows + codes, codes, np.empty(max(n_rows, codes), np.int32)),
        cells_of(columns),
        small_logs(),
    )


@cache
def small_logs() -> Floats:
    """The n log n of n below ``LOGS``; whoever grows the tree, larger ones are computed."""
    logs = np.arange(LOGS, dtype=np.float64)
    logs[1:] *= np.log(logs[1:])
    return logs


@kernel
def entropy_tree(
    columns: Columns,
    label: Ids,
    times: Ids,
    rows: Ids,
    growth: Growth,
    root_key: np.uint64,
    tree: Tree,
    work: Workspace,
) -> tuple[int, Ids]:
    """Split by the largest gain while there is one. Fills ``tree``; returns its size and branches."""
    cells = work.cells
    branches = np.empty(0, np.int32)
    used = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    # rows is permuted in place: waiting nodes own disjoint slices, and a split reorders its own slice alone
    push(work.stack, nothing, nothing, len(rows), nothing - 1, nothing, nothing, root_key)
    top = nothing + 1
    size = nothing
    while top > 0:
        top -= 1
        taken = take(work.stack, top)
        node = size
        size += 1
        make_leaf(tree, branches, taken, node)
        here = rows[taken.start : taken.stop]
        counts = tree.counts[node]
        n = nothing
        for i in range(len(here)):
            counts[label[here[i]]] += times[here[i]]
            n += times[here[i]]
        mixed = entropy_of(counts, n, work.logs)
        tree.impurity[node] = mixed / n
        # no split gains more than n H(S)
        if mixed <= LEAST_GAIN or n < 2 * growth.least_rows:
            continue
        best = _best_split(columns, label, times, here, growth, taken.key, counts, n, mixed, work)
        j = best.feature
        if j == LEAF:
            continue
        tree.feature[node] = j
        tree.route[node] = best.route
        if best.route != BY_CATEGORY:
            tree.threshold[node] = edge_after(columns, j, best.cut)
        # codes 0 to missing - 1 are values, so a nominal node has missing + 1 branches
        missing = int(np.int64(columns.n_codes[best.feature]))
        more = missing + 1 if best.route == BY_CATEGORY else 0
        branches = room_for_branches(branches, used, more)
        top = push_children(
            cells, rows, taken, node, best, missing, tree, branches, used, work.stack, top, taken.note
        )
        used += more
    return size, branches[:used]


@inner
def _times_log(n: int, logs: Floats) -> float:
    # logs[0] is 0, hence 0 log 0 = 0
    return float(logs[n] if n < len(logs) else n * np.log(n))


@inner
def entropy_of(counts: Ids, n: int, logs: Floats) -> float:
    """Nats of all rows together, n H."""
    # n H = n log n - sum over classes of n_c log n_c
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
    key: np.uint64,
    counts: Ids,
    n: int,
    mixed: float,
    work: Workspace,
) -> Split:
    """The largest gain among the features that are tried."""
    best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
    m = len(growth.pool)
    step = int(np.int64(START))
    while True:
        step = next_step(step, best.feature != LEAF, key, columns.key, growth.pool, growth.tries)
        if step < 0:
            break
        j = step % m
        missing = columns.n_codes[j]
        low, high = _tally(columns.codes[j], missing, rows, label, times, work.tally)
        gain, cut, route = gain_of(columns, j, low, high, counts, n, mixed, growth, key, work)
        _clear(work.tally, low, high, missing)
        # ties stay with the feature tried first, the lowest column of those drawn
        if gain > best.gain:
            best = Split(gain, j, cut, route)
    return best


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
    work: Workspace,
) -> tuple[float, int, int]:
    """The drop of entropy by a feature whose class counts are in ``work.tally``: (drop, cut, route)."""
    missing = columns.n_codes[j]
    if columns.nominal[j]:
        gain = _nominal_gain(work.tally, low, high, missing, mixed, growth.least_rows, work.logs)
        return gain, -1, BY_CATEGORY
    # keyed by node and feature name: neither threads nor the order of columns change the cut
    at = mix(key, columns.key[j] ^ CUTS)
    return _numeric_gain(work.tally, low, high, missing, counts, n, mixed, growth, at, work)


@inner
def _tally(
    codes: Codes, missing: int, rows: Ids, label: Ids, times: Ids, tally: NDArray[np.int64]
) -> tuple[int, int]:
    """Class counts by code; returns the lowest and the highest code present, missing not counted."""
    low = missing
    high = -1
    for i in range(len(rows)):
        row = rows[i]
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
    # the tally stays zero between uses; codes outside low..high were never touched
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
    work: Workspace,
) -> tuple[float, int, int]:
    """The drop of entropy by the best, or a random, cut: (drop, last code on the left, route).

    Where values are missing both sides are tried for them, and the cut that parts them from all values;
    otherwise they would go to the larger child.
    """
    k = len(counts)
    lost = 0
    for c in range(k):
        work.below[c] = 0
        lost += tally[missing, c]
    # of random cuts this one is tried, and the one that parts missing values from all others
    chosen = low + int(uniform(key) * (high - low))
    best = 0.0
    best_cut = -1
    best_route = MISSING_RIGHT
    size = 0
    # after the last code nothing is left for the right side but missing values
    for code in range(low, high + (1 if lost > 0 else 0)):
        present = 0
        for c in range(k):
            work.below[c] += tally[code, c]
            present += tally[code, c]
        size += present
        if growth.random_cuts and code != chosen and code != high:
            continue
        # the same parting as one code before
        if present == 0 and not growth.random_cuts:
            continue
        # missing values on the right, then on the left
        for side in range(1 + (lost > 0 and code < high)):
            left = size + (lost if side == 1 else 0)
            if left < growth.least_rows or n - left < growth.least_rows:
                continue
            # n H(S) - sum n_i H(S_i), as sums of n log n
            drop = mixed - _times_log(left, work.logs) - _times_log(n - left, work.logs)
            for c in range(k):
                inside = work.below[c] + (tally[missing, c] if side == 1 else 0)
                drop += _times_log(inside, work.logs) + _times_log(counts[c] - inside, work.logs)
            # strictly: the lowest cut wins ties, then missing values on the right
            if drop > best:
                best = drop
                # the cut after all values becomes the threshold +inf (``edge_after``)
                best_cut = code if code < high else missing - 1
                best_route = side
                # nothing here tells where missing values belong: the larger child is only noted
                if lost == 0:
                    best_route = UNSEEN + (MISSING_LEFT if 2 * left >= n else MISSING_RIGHT)
    return best, best_cut, best_route


@inner
def _nominal_gain(
    tally: NDArray[np.int64], low: int, high: int, missing: int, mixed: float, least_rows: int, logs: Floats
) -> float:
    """The drop of entropy by a child for each category; none if a child has too few rows."""
    children = 0
    drop = mixed
    for code in range(low, missing + 1):
        # no rows between the last code present and missing values
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
