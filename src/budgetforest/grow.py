"""GREEDYTREE of Algorithm 1, and an endless stream of such trees.

A tree is grown depth first on the rows of its bootstrap. Trees are grown ahead by several threads and
delivered in order, so whoever stops the stream gets the same trees whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from itertools import count
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Floats, Ids
from budgetforest.binning import Columns
from budgetforest.draws import draw_rows, mix, tree_key
from budgetforest.impurity import evaluate
from budgetforest.jit import kernel
from budgetforest.rows import fill_profile, partition, partition_by_code, room_for
from budgetforest.split import LEAST_DROP, MOST_STUMPS, Measure, Node, is_better, search
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, Tree


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


class Sample(NamedTuple):
    """Training rows that trees are grown on."""

    columns: Columns
    label: Ids
    """(n) class codes."""
    weight: Counts
    """(n) whole numbers, in units of ``Measure.unit``."""
    order: Ids
    """(n) rows in the order of their contents: what bootstrap positions refer to."""
    draws: int
    """Rows to draw with replacement, 0 for no bootstrap."""


def stream_of_trees(
    sample: Sample, plan: Plan, seed: int, pool: Executor, ahead: int
) -> Iterator[Tree]:
    """Trees 0, 1, 2, ... without end, ``ahead`` of them in the making."""
    waiting: deque[Future[Tree]] = deque()
    try:
        for number in count():
            waiting.append(pool.submit(grow_tree, sample, plan, seed, number))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def grow_tree(sample: Sample, plan: Plan, seed: int, number: int) -> Tree:
    """Tree ``number`` of a forest: bootstrap, then GREEDYTREE."""
    key = tree_key(seed, number)
    times = sample.weight
    if sample.draws:
        times = np.zeros(len(sample.label), np.int64)
        upto = np.concatenate([[0], np.cumsum(sample.weight[sample.order])])
        draw_rows(key, sample.draws, upto, sample.order, times)
    rows = np.flatnonzero(times).astype(np.int32)
    return Tree(*greedy_tree(sample.columns, sample.label, times, rows, plan, key))


@kernel
def greedy_tree(columns, label, times, rows, plan, root_key):  # type: ignore[no-untyped-def]
    """GREEDYTREE: split by the feature of least risk until no impurity is left, or none lowers it."""
    k = plan.n_classes
    most = 2 * len(rows) + 1  # every leaf has a row, every inner node two children
    feature = np.full(most, LEAF, np.int32)
    threshold = np.full(most, np.nan)
    left = np.full(most, -1, np.int32)
    right = np.full(most, -1, np.int32)
    route = np.zeros(most, np.uint8)
    counts = np.zeros((most, k), np.int64)
    impurity = np.zeros(most)
    floor = np.full(most, np.inf)
    branches = np.empty(16, np.int32)
    n_branches = 0

    n_codes = 0
    for j in range(len(columns.n_codes)):
        n_codes = max(n_codes, columns.n_codes[j])
    profile = room_for(n_codes, k, len(rows))
    cuts = np.empty(max(n_codes, MOST_STUMPS) + 1, np.int64)
    thresholds = np.empty(len(cuts))
    buffer = np.empty(len(rows), np.int32)
    begin = np.empty(258, np.int64)
    node_label = np.empty(len(rows), np.int32)
    node_times = np.empty(len(rows), np.int64)
    scratch = np.empty((3, k))

    # Nodes still to be decided: rows start to stop, the parent, which child, and the key.
    frontier = np.empty((len(rows) + 300, 4), np.int64)
    keys = np.empty(len(rows) + 300, np.uint64)
    frontier[0, 0] = 0
    frontier[0, 1] = len(rows)
    frontier[0, 2] = -1
    frontier[0, 3] = 0
    keys[0] = root_key
    waiting = 1
    size = 0
    while waiting > 0:
        waiting -= 1
        start = frontier[waiting, 0]
        stop = frontier[waiting, 1]
        parent = frontier[waiting, 2]
        key = keys[waiting]
        node = size
        size += 1
        if parent >= 0:
            slot = frontier[waiting, 3]
            if slot == -1:
                left[parent] = node
            elif slot == -2:
                right[parent] = node
            else:
                branches[slot] = node
        here = rows[start:stop]
        for i in range(len(here)):
            node_label[i] = label[here[i]]
            node_times[i] = times[here[i]]
            counts[node, node_label[i]] += node_times[i]
        n = 0.0
        for c in range(k):
            scratch[0, c] = counts[node, c] * plan.measure.unit
            n += scratch[0, c]
        impurity[node] = evaluate(plan.measure.impurity, scratch[0])
        if impurity[node] <= 0.0:
            continue
        at = Node(counts[node], impurity[node], n, key, scratch[1], scratch[2])
        best, cut, cut_at, way, least = best_split(
            columns, here, node_label, node_times, plan, at, profile, cuts, thresholds
        )
        floor[node] = least
        if best == LEAF:
            continue
        feature[node] = best
        threshold[node] = cut_at
        route[node] = way
        codes = columns.codes[best]
        missing = columns.n_codes[best]
        if way == BY_CATEGORY:
            partition_by_code(codes, here, missing, begin, buffer)
            if n_branches + missing + 1 > len(branches):
                more = np.empty(2 * len(branches) + missing + 1, np.int32)
                for slot in range(n_branches):
                    more[slot] = branches[slot]
                branches = more
            left[node] = n_branches
            right[node] = missing
            n_branches += missing + 1
            for code in range(missing, -1, -1):
                branches[left[node] + code] = -1
                if begin[code + 1] > begin[code]:
                    frontier[waiting, 0] = start + begin[code]
                    frontier[waiting, 1] = start + begin[code + 1]
                    frontier[waiting, 2] = node
                    frontier[waiting, 3] = left[node] + code
                    keys[waiting] = mix(key, np.uint64(code))
                    waiting += 1
        else:
            kept = partition(codes, here, cut, way == MISSING_LEFT, missing, buffer)
            for slot in range(2):  # right first, so that the left child follows its parent
                frontier[waiting, 0] = start + kept if slot == 0 else start
                frontier[waiting, 1] = stop if slot == 0 else start + kept
                frontier[waiting, 2] = node
                frontier[waiting, 3] = -2 if slot == 0 else -1
                keys[waiting] = mix(key, np.uint64(1 - slot))
                waiting += 1
    _fill_empty_branches(feature[:size], left, right, route, counts, branches)
    return (
        feature[:size].copy(),
        threshold[:size].copy(),
        left[:size].copy(),
        right[:size].copy(),
        route[:size].copy(),
        counts[:size].copy(),
        impurity[:size].copy(),
        floor[:size].copy(),
        branches[:n_branches].copy(),
    )


@kernel
def best_split(columns, rows, label, times, plan, node, profile, cuts, thresholds):  # type: ignore[no-untyped-def]
    """The feature of least risk: (feature, last code left, threshold, route, least cost per drop)."""
    best = LEAF
    best_cost = 0.0
    best_drop = 0.0
    best_cut = -1
    best_threshold = np.nan
    best_route = 0
    floor = np.inf
    for j in range(len(plan.cost)):
        n_codes = columns.n_codes[j]
        if n_codes == 0:
            continue
        size = fill_profile(columns.codes[j], n_codes, rows, label, times, profile)
        points = columns.points[columns.offset[j] : columns.offset[j + 1]]
        drop, cut, threshold, route = search(
            profile,
            size,
            columns.nominal[j],
            plan.splitter,
            points,
            columns.key[j],
            node,
            plan.measure,
            cuts,
            thresholds,
        )
        if is_better(plan.cost[j], drop, best_cost, best_drop):
            best = j
            best_cost = plan.cost[j]
            best_drop = drop
            best_cut = cut
            best_threshold = threshold
            best_route = route
        if drop > LEAST_DROP:
            floor = min(floor, plan.least[j] / drop)
    return best, best_cut, best_threshold, best_route, floor


@kernel
def _fill_empty_branches(feature, left, right, route, counts, branches):  # type: ignore[no-untyped-def]
    """Categories absent from a node's training rows go where most of its rows went."""
    for node in range(len(feature)):
        if feature[node] == LEAF or route[node] != BY_CATEGORY:
            continue
        largest = -1
        most = -1
        for slot in range(left[node], left[node] + right[node] + 1):
            child = branches[slot]
            size = 0
            for c in range(counts.shape[1] if child >= 0 else 0):
                size += counts[child, c]
            if size > most and child >= 0:
                largest = child
                most = size
        for slot in range(left[node], left[node] + right[node] + 1):
            if branches[slot] < 0:
                branches[slot] = largest
