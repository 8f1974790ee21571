"""GREEDYTREE of Algorithm 1, and an endless stream of such trees.

A tree is grown depth first on the rows of its bootstrap. Trees are grown ahead by several threads and
delivered in order, so whoever stops the stream gets the same trees whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Executor, Future
from itertools import count
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Ids
from budgetforest.binning import Columns
from budgetforest.bounds import REST, bound_features, is_settled
from budgetforest.crossing import COUNTED_BELOW, approach, best_cut_of
from budgetforest.draws import draw_rows, mix, tree_key
from budgetforest.impurity import evaluate
from budgetforest.jit import inner, kernel
from budgetforest.room import Plan, Room, bring_near, gather, put, room_for_growth
from budgetforest.rows import Cells, fill_profile, partition, partition_by_code
from budgetforest.split import (
    LEAST_DROP,
    RANDOM,
    Node,
    is_better,
    search_feature,
    search_nominal,
    threshold_between,
)
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree, empty_tree

LEFT, RIGHT = -1, -2
"""Which child of its parent a waiting node is; from 0 up, a position in ``branches``."""


class Sample(NamedTuple):
    """Training rows that trees are grown on."""

    columns: Columns
    label: Ids
    """(n) class codes."""
    weight: Counts
    """(n) whole numbers, in units of ``Measure.unit``."""
    order: Ids
    """(n) rows in the order of their contents: what bootstrap positions refer to."""
    by_class: Ids
    """(n) rows sorted by class."""
    draws: int
    """Rows to draw with replacement, 0 for no bootstrap."""


def stream_of_trees(
    sample: Sample, plan: Plan, seed: int, pool: Executor, ahead: int
) -> Generator[Tree, None, None]:
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
    times = bootstrapped(sample, key) if sample.draws else sample.weight
    rows = sample.by_class[times[sample.by_class] > 0]
    return with_all_branches(grow_below(sample.columns, sample.label, times, rows, plan, key))


def grow_below(columns: Columns, label: Ids, times: Counts, rows: Ids, plan: Plan, key: np.uint64) -> Tree:
    """The part of a tree below the node of this key, on its rows, which are sorted by class."""
    tree = empty_tree(2 * len(rows) + 1, plan.n_classes)
    room = room_for_growth(columns, plan, len(rows))
    size, branches = greedy_tree(columns, label, times.astype(np.int32), rows, plan, key, tree, room)
    return Tree._make([*(part[:size].copy() for part in tree[:-2]), branches, tree.floor])


def with_all_branches(tree: Tree) -> Tree:
    """Say where categories go that training did not see at a node."""
    if len(tree.branches):
        fill_empty_branches(tree.counts.sum(axis=1), tree, tree.branches)
    return tree


def bootstrapped(sample: Sample, key: np.uint64) -> Counts:
    """(n) how often each row is drawn for a tree."""
    times = np.zeros(len(sample.label), np.int64)
    upto = np.concatenate([[0], np.cumsum(sample.weight[sample.order])])
    draw_rows(key, sample.draws, upto, sample.order, times)
    return times


@kernel
def greedy_tree(
    columns: Columns,
    label: Ids,
    times: Ids,
    rows: Ids,
    plan: Plan,
    root_key: np.uint64,
    tree: Tree,
    room: Room,
) -> tuple[int, Ids]:
    """GREEDYTREE: split by the feature of least risk until no impurity is left, or none lowers it.

    Fills ``tree``; returns its number of nodes and its branches.
    """
    k = plan.n_classes
    far = Cells(columns.codes.reshape(-1), columns.codes.shape[1], 1)
    near = Cells(room.near, len(room.near_label), 1)
    if plan.measure.bisect:
        near = Cells(room.near, 1, room.bounds.near.shape[1])
    certain = plan.splitter != RANDOM and not columns.gaps.any()
    branches = np.empty(0, np.int32)
    n_branches = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    put(room, nothing, nothing, len(rows), nothing - 1, nothing, len(plan.cost), root_key)
    waiting = nothing + 1
    near_until = 0  # how many nodes must wait for rows to be those brought near; 0: none are
    size = nothing
    while waiting > 0:
        waiting -= 1
        start = room.waiting[waiting, 0]
        stop = room.waiting[waiting, 1]
        parent = room.waiting[waiting, 2]
        slot = room.waiting[waiting, 3]
        n_features = room.waiting[waiting, 4]
        key = room.keys[waiting]
        node = size
        size += 1
        hang(tree, branches, parent, slot, node)
        here = rows[start:stop]
        if waiting + 1 < near_until:
            near_until = 0
        cells = near if near_until > 0 else far
        classes = gather(
            here,
            room.near_label if near_until > 0 else label,
            room.near_times if near_until > 0 else times,
            tree.counts[node],
            plan,
            room,
        )
        n = 0.0
        for c in range(k):
            room.shares[0, c] = tree.counts[node, c] * plan.measure.unit
            n += room.shares[0, c]
        tree.impurity[node] = evaluate(plan.measure.impurity, room.shares[0])
        if tree.impurity[node] <= 0.0:
            continue
        known = Node(
            room.total[:classes],
            tree.impurity[node],
            n,
            key,
            room.shares[1, :classes],
            room.shares[2, :classes],
        )
        if parent < 0:
            tree.floor[0] = least_per_drop(columns, cells, here, plan, known, room)
        if near_until == 0 and len(here) <= len(room.near_label):
            near_until = waiting + 1
            bring_near(far, near, label, times, here, room, n_features)
            cells = near
        alive = n_features
        if plan.measure.bisect and near_until > 0:
            alive, n_features = bound_features(
                columns,
                here,
                room.times,
                room.ends[:classes],
                plan.cost,
                certain,
                known,
                plan.measure,
                room.features,
                n_features,
                waiting if parent >= 0 else -1,
                room.bounds,
            )
        best, cut, threshold, route, n_features = best_split(
            columns, cells, here, plan, known, room, alive, n_features, certain
        )
        if best == LEAF:
            continue
        tree.feature[node] = best
        tree.threshold[node] = threshold
        tree.route[node] = route
        missing = columns.n_codes[best]
        if route == BY_CATEGORY:
            partition_by_code(cells, best, here, missing, room.begin, room.buffer)
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
                first = start + room.begin[code]
                last = start + room.begin[code + 1]
                if last > first:
                    child = mix(key, np.uint64(code))
                    put(room, waiting, first, last, node, at, n_features, child)
                    waiting += 1
            n_branches += missing + 1
        else:
            goes_left = route == MISSING_LEFT
            middle = start + partition(cells, best, here, cut, goes_left, missing, room.buffer)
            # the left child comes last, so that it follows its parent
            child = mix(key, np.uint64(1))
            put(room, waiting, middle, stop, node, nothing + RIGHT, n_features, child)
            child = mix(key, np.uint64(0))
            put(room, waiting + 1, start, middle, node, nothing + LEFT, n_features, child)
            waiting += 2
    return size, branches[:n_branches]


@inner
def best_split(
    columns: Columns,
    cells: Cells,
    rows: Ids,
    plan: Plan,
    node: Node,
    room: Room,
    alive: int,
    n_features: int,
    certain: bool,
) -> tuple[int, int, float, int, int]:
    """The feature of least risk: (feature, last code left, threshold, route, features left).

    The first ``alive`` of ``room.features`` are tried, unless a bound says that they cannot beat the best
    so far; one whose bound is what it leaves is searched only if it is the best in the end.

    A feature that has a single value here has a single value in every part of these rows, and one that
    lowers a supermodular F by nothing here does so nowhere below: such features go behind the others
    and are not tried again below.
    """
    best = int(np.int64(LEAF))
    best_cost = 0.0
    best_drop = 0.0
    best_cut = -1
    best_threshold = np.nan
    best_route = 0
    ends = room.ends[: len(node.total)]
    bounded = plan.measure.bisect and cells.by_feature == 1
    at = 0
    searched = LEAF
    while at < alive or best != searched:
        j = room.features[at] if at < alive else best
        counted = bounded and certain and not columns.nominal[j] and len(rows) < COUNTED_BELOW
        if bounded and at < alive:
            most = node.impurity - room.bounds.known[j, REST]
            better = is_better(j, plan.cost[j], most, best, best_cost, best_drop)
            while better and counted and not is_settled(j, certain, room.bounds):
                approach(cells, j, rows, room.times, ends, node, plan.measure, room.bounds)
                most = node.impurity - room.bounds.known[j, REST]
                better = is_better(j, plan.cost[j], most, best, best_cost, best_drop)
            if better and is_settled(j, certain, room.bounds):
                best = j
                best_cost = plan.cost[j]
                best_drop = most
                better = False
            if not better:
                at += 1
                continue
        points = columns.points[columns.offset[j] : columns.offset[j + 1]]
        if counted:  # settled, and the best in the end
            best_cut, after, more = best_cut_of(
                cells, j, rows, room.times, ends, node, plan.measure, room.bounds
            )
            best_threshold = threshold_between(plan.splitter, best_cut, after, points)
            best_route = MISSING_LEFT if more else MISSING_RIGHT
            break
        size = fill_profile(
            cells, j, columns.n_codes[j], rows, room.label, room.times, len(node.total), room.profile
        )
        left, cut, threshold, route = search_feature(
            room.profile,
            size,
            columns.nominal[j],
            plan.splitter,
            points,
            mix(node.key, columns.key[j]),
            node,
            plan.measure,
            room.cuts,
            room.thresholds,
        )
        drop = node.impurity - left
        if j == best or is_better(j, plan.cost[j], drop, best, best_cost, best_drop):
            best = j
            searched = j
            best_cost = plan.cost[j]
            best_drop = drop
            best_cut = cut
            best_threshold = threshold
            best_route = route
        if at < alive and (
            drop == -np.inf or (drop <= LEAST_DROP and plan.measure.bisect and plan.splitter != RANDOM)
        ):
            alive -= 1
            n_features -= 1
            room.features[at] = room.features[alive]
            room.features[alive] = room.features[n_features]
            room.features[n_features] = j
        else:
            at += 1
    return best, best_cut, best_threshold, best_route, n_features


@inner
def least_per_drop(columns: Columns, cells: Cells, rows: Ids, plan: Plan, node: Node, room: Room) -> float:
    """Least cost per drop of impurity if features, at their cheapest, told all their values at once."""
    least = np.inf
    for j in range(len(plan.cost)):
        size = fill_profile(
            cells, j, columns.n_codes[j], rows, room.label, room.times, len(node.total), room.profile
        )
        drop = node.impurity - search_nominal(room.profile, size, node, plan.measure)
        if drop > LEAST_DROP:
            least = min(least, plan.least[j] / drop)
    return least


@inner
def hang(tree: Tree, branches: Ids, parent: int, slot: int, node: int) -> None:
    """Make a node the child of its parent, if it has one."""
    if parent < 0:
        return
    if slot == LEFT:
        tree.left[parent] = node
    elif slot == RIGHT:
        tree.right[parent] = node
    else:
        branches[slot] = node


@kernel
def fill_empty_branches(rows: Counts, tree: Tree, branches: Ids) -> None:
    """Categories absent from a node's training rows go where most of its ``rows`` went, (d) by node."""
    for node in range(len(rows)):
        if tree.feature[node] == LEAF or tree.route[node] != BY_CATEGORY:
            continue
        largest = -1
        for slot in range(tree.left[node], tree.left[node] + tree.right[node] + 1):
            child = branches[slot]
            if child >= 0 and (largest < 0 or rows[child] > rows[largest]):
                largest = child
        for slot in range(tree.left[node], tree.left[node] + tree.right[node] + 1):
            if branches[slot] < 0:
                branches[slot] = ~largest
