"""GREEDYTREE of Algorithm 1, and a stream of such trees.

A tree is grown depth first on the rows of its bootstrap. Trees are grown ahead by several threads and
delivered in order, so whoever stops the stream gets the same trees whatever their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Executor, Future
from typing import NamedTuple

import numpy as np

from budgetforest.data.binning import Columns
from budgetforest.growing.bounds import REST, bound_features, is_settled
from budgetforest.growing.histogram import Cells, fill_profile
from budgetforest.growing.impurity import evaluate
from budgetforest.growing.node_stack import (
    Split,
    fill_empty_branches,
    make_leaf,
    push,
    push_children,
    room_for_branches,
    take,
)
from budgetforest.growing.small_nodes import COUNTED_BELOW, approach, best_cut_of
from budgetforest.growing.split import (
    LEAST_DROP,
    RANDOM,
    Node,
    is_better,
    search_feature,
    search_nominal,
    threshold_between,
)
from budgetforest.growing.workspace import (
    GrowthWorkspace,
    Plan,
    SearchWorkspace,
    bring_near,
    gather,
    workspaces_for,
)
from budgetforest.runtime.arrays import LEAF, Counts, Floats, Ids
from budgetforest.runtime.jit import inner, kernel, passage
from budgetforest.runtime.random import draw_rows, mix, tree_key
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


class Sample(NamedTuple):
    """Training rows that trees are grown on."""

    columns: Columns
    """Rows are sorted by class."""
    ends: Counts
    """(k) where the rows of each class end."""
    weight: Ids
    """(n) whole numbers, in units of ``Measure.unit``."""
    order: Ids
    """(n) rows in the order of their contents: what bootstrap positions refer to."""
    upto: Counts
    """(n) the sum of the weights in that order; empty where all weigh 1."""
    draws: int
    """Rows to draw with replacement, 0 for no bootstrap."""


def stream_of_trees(
    sample: Sample, plan: Plan, seed: int, pool: Executor, ahead: int, most: int
) -> Generator[Tree, None, None]:
    """Trees 0, 1, 2, ... up to ``most``, ``ahead`` of them in the making."""
    waiting: deque[Future[Tree]] = deque()
    try:
        for number in range(most):
            waiting.append(pool.submit(grow_tree, sample, plan, seed, number))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def grow_tree(sample: Sample, plan: Plan, seed: int, number: int) -> Tree:
    """Tree ``number`` of a forest: bootstrap, then GREEDYTREE."""
    key = tree_key(seed, number)
    times = bootstrapped(sample, key) if sample.draws else np.array(sample.weight)
    rows = np.flatnonzero(times).astype(np.int32)
    return with_all_branches(grow_below(sample.columns, sample.ends, times, rows, plan, key))


def labels_of(sample: Sample) -> Ids:
    """(n) class codes, ascending."""
    sizes = np.diff(sample.ends, prepend=0)
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def grow_below(columns: Columns, ends: Counts, times: Ids, rows: Ids, plan: Plan, key: np.uint64) -> Tree:
    """The part of a tree below the node of this key, on its rows, which ascend.

    All rows of class c have numbers below ``ends[c]``.
    """
    tree = room_for_nodes(2 * len(rows) + 1, plan.n_classes)
    search, work = workspaces_for(columns, plan, len(rows))
    size, branches = greedy_tree(columns, ends, times, rows, plan, key, tree, search, work)
    return weighed(only_first(tree, size)._replace(branches=branches))


def with_all_branches(tree: Tree) -> Tree:
    """Say where categories go that training did not see at a node."""
    if len(tree.branches):
        fill_empty_branches(tree.weight, tree, tree.branches)
    return tree


def bootstrapped(sample: Sample, key: np.uint64) -> Ids:
    """(n) how often each row is drawn for a tree."""
    times = np.zeros(len(sample.order), np.int32)
    draw_rows(key, sample.draws, sample.upto, sample.order, times)
    return times


@kernel
def greedy_tree(
    columns: Columns,
    ends: Counts,
    times: Ids,
    rows: Ids,
    plan: Plan,
    root_key: np.uint64,
    tree: Tree,
    search: SearchWorkspace,
    work: GrowthWorkspace,
) -> tuple[int, Ids]:
    """GREEDYTREE: split by the feature of least risk until no impurity is left, or none lowers it.

    Fills ``tree``; returns its number of nodes and its branches.
    """
    # fields are taken once: numba counts references to arrays, and compiles every access
    measure, counts = plan.measure, tree.counts
    total, shares, far, near, near_ends, near_times, stack, certain = work
    branches = np.empty(0, np.int32)
    used = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    push(stack, nothing, nothing, len(rows), nothing - 1, nothing, len(plan.cost), root_key)
    top = nothing + 1
    near_until = 0  # while so many nodes wait, rows are those brought near; 0: none are
    size = nothing
    while top > 0:
        # the node on top; its children will stand there
        top -= 1
        taken = take(stack, top)
        n_features = taken.note
        node = size
        size += 1
        make_leaf(tree, branches, taken, node)
        here = rows[taken.start : taken.stop]
        if top + 1 < near_until:
            near_until = 0
        cells = near if near_until > 0 else far
        its_ends = near_ends if near_until > 0 else ends
        its_times = near_times if near_until > 0 else times
        # Algorithm 1: a node with F(S) = 0 is a leaf
        classes = gather(
            here, its_ends, its_times, counts[node], measure.symmetric, search.times, search.ends, total
        )
        n = weigh(counts[node], measure.unit, shares[0])
        impurity = evaluate(measure.impurity, shares[0])
        tree.impurity[node] = impurity
        if impurity <= 0.0:
            continue
        # what the search of every feature needs to know
        known = Node(total[:classes], impurity, n, taken.key, shares[1, :classes], shares[2, :classes])
        if taken.parent < 0:
            tree.floor[0] = least_per_drop(columns, cells, here, plan, known, search)
        # the whole subtree below fits the copy: it is made once, and serves until the stack is back here
        if near_until == 0 and len(here) <= len(near_times):
            near_until = top + 1
            bring_near(far, near, ends, times, here, search.features[:n_features], near_ends, near_times)
            cells = near
        # the risk R(t) of every feature, the least wins (line 12); none that is finite: a leaf
        above = top if taken.parent >= 0 else -1
        best, threshold, n_features = best_split(
            columns, cells, here, plan, known, search, n_features, above, certain
        )
        if best.feature == LEAF:
            continue
        tree.feature[node] = best.feature
        tree.threshold[node] = threshold
        tree.route[node] = best.route
        # a child for every outcome
        missing = int(np.int64(columns.n_codes[best.feature]))
        more = missing + 1 if best.route == BY_CATEGORY else 0
        branches = room_for_branches(branches, used, more)
        top = push_children(
            cells, rows, taken, node, best, missing, tree, branches, used, stack, top, n_features
        )
        used += more
    return size, branches[:used]


@inner
def weigh(counts: Ids, unit: float, shares: Floats) -> float:
    """Class counts as weights; returns their sum."""
    total = 0.0
    for c in range(len(counts)):
        shares[c] = counts[c] * unit
        total += shares[c]
    return total


@inner
def best_split(
    columns: Columns,
    cells: Cells,
    rows: Ids,
    plan: Plan,
    node: Node,
    search: SearchWorkspace,
    n_features: int,
    above: int,
    certain: bool,
) -> tuple[Split, float, int]:
    """The split of least risk, its threshold, and how many features are worth trying below.

    Of the first ``n_features`` of ``search.features`` those are tried that may win (``promising``), unless
    their bound says that they cannot beat the best so far; one whose bound is what it leaves is searched only
    if it is the best in the end. The node waited ``above`` so many others; -1: it is the root.

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
    measure = plan.measure
    cost = plan.cost
    features = search.features
    # bounds need a monotone F under minimax, and the codes of a row side by side
    bounded = measure.bisect and cells.by_feature == 1  # rows were brought near
    alive = n_features
    if bounded:
        alive, n_features = promising(columns, rows, plan, node, search, n_features, above, certain)
    at = 0
    searched = LEAF
    # a feature may lead by its bound alone; then it is searched after all others have lost
    while at < alive or best != searched:
        j = features[at] if at < alive else best
        counted = bounded and certain and not columns.nominal[j] and len(rows) < COUNTED_BELOW
        # a bound may spare the search
        if bounded and at < alive:
            most = drop_bound(
                cells, j, rows, plan, node, search, counted, certain, best, best_cost, best_drop
            )
            better = is_better(j, cost[j], most, best, best_cost, best_drop)
            # the bound is exact: it takes the lead without a search
            if better and is_settled(search.bounds.known[j], certain):
                best = j
                best_cost = cost[j]
                best_drop = most
                better = False
            if not better:
                at += 1
                continue
        if counted:  # settled, and the best in the end
            best_cut, best_threshold, best_route = settled_split(columns, cells, j, rows, plan, node, search)
            break
        left, cut, threshold, route = search_rows(columns, cells, j, rows, plan, node, search)
        drop = node.impurity - left
        if j == best or is_better(j, cost[j], drop, best, best_cost, best_drop):
            best = j
            searched = j
            best_cost = cost[j]
            best_drop = drop
            best_cut = cut
            best_threshold = threshold
            best_route = route
        # of no use here or below: behind all others
        useless = drop <= LEAST_DROP and measure.bisect and plan.splitter != RANDOM
        if at < alive and (drop == -np.inf or useless):
            alive -= 1
            n_features -= 1
            features[at] = features[alive]
            features[alive] = features[n_features]
            features[n_features] = j
        else:
            at += 1
    return Split(best_drop, best, best_cut, best_route), best_threshold, n_features


@passage
def promising(
    columns: Columns,
    rows: Ids,
    plan: Plan,
    node: Node,
    search: SearchWorkspace,
    n_features: int,
    above: int,
    certain: bool,
) -> tuple[int, int]:
    """How many features may win, which are put first, and how many are of use below."""
    return bound_features(
        columns.n_codes,
        columns.nominal,
        rows,
        search.times,
        search.ends[: len(node.total)],
        plan.cost,
        certain,
        node,
        plan.measure,
        search.features,
        n_features,
        above,
        search.bounds,
    )


@passage
def drop_bound(
    cells: Cells,
    j: int,
    rows: Ids,
    plan: Plan,
    node: Node,
    search: SearchWorkspace,
    counted: bool,
    certain: bool,
    best: int,
    best_cost: float,
    best_drop: float,
) -> float:
    """The most by which a feature can lower the impurity, as closely as it takes to beat the best so far."""
    known = search.bounds.known[j]
    ends = search.ends[: len(node.total)]
    most = node.impurity - known[REST]
    # a pass over few rows is cheaper than a profile, and stops as soon as the feature has lost
    while (
        counted
        and not is_settled(known, certain)
        and is_better(j, plan.cost[j], most, best, best_cost, best_drop)
    ):
        approach(cells, j, rows, search.times, ends, node, plan.measure, known)
        most = node.impurity - known[REST]
    return float(most)


@passage
def settled_split(
    columns: Columns, cells: Cells, j: int, rows: Ids, plan: Plan, node: Node, search: SearchWorkspace
) -> tuple[int, float, int]:
    """The cut, threshold and route of a feature whose bound is what it leaves."""
    bounds = search.bounds
    least = int(np.int64(bounds.least[j]))
    ends = search.ends[: len(node.total)]
    cut, after, more = best_cut_of(
        cells, j, rows, search.times, ends, node, plan.measure, bounds.known[j], least
    )
    points = columns.points[columns.offset[j] : columns.offset[j + 1]]
    threshold = threshold_between(plan.splitter, cut, after, points)
    return cut, threshold, UNSEEN + (MISSING_LEFT if more else MISSING_RIGHT)


@passage
def search_rows(
    columns: Columns, cells: Cells, j: int, rows: Ids, plan: Plan, node: Node, search: SearchWorkspace
) -> tuple[float, int, float, int]:
    """The best split of a feature, from its class counts; see ``search_feature``."""
    profile = search.profile
    ends = search.ends[: len(node.total)]
    size = fill_profile(cells, j, columns.n_codes[j], rows, ends, search.times, search.counter, profile)
    return search_feature(
        profile,
        size,
        columns.nominal[j],
        plan.splitter,
        columns.points[columns.offset[j] : columns.offset[j + 1]],
        mix(node.key, columns.key[j]),
        node,
        plan.measure,
        search.cuts,
        search.thresholds,
    )


@passage
def least_per_drop(
    columns: Columns, cells: Cells, rows: Ids, plan: Plan, node: Node, search: SearchWorkspace
) -> float:
    """Least cost per drop of impurity if features, at their cheapest, told all their values at once."""
    least = np.inf
    ends = search.ends[: len(node.total)]
    for j in range(len(plan.cost)):
        size = fill_profile(
            cells, j, columns.n_codes[j], rows, ends, search.times, search.counter, search.profile
        )
        drop = node.impurity - search_nominal(search.profile, size, node, plan.measure)
        if drop > LEAST_DROP:
            least = min(least, plan.least[j] / drop)
    return least
