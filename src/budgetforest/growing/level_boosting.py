"""One level of a boosted tree, for rows in blocks: the rules of ``boosting`` on sums alone.

Besides sums of slopes blocks count how many of a node's rows lack each feature. When a tree is complete, the
rows of every block follow it, and have from then on what they met, and its scores.

It stands apart from ``boosting`` because the rows of a node are in many blocks: they cannot be reordered or
packed side by side. Gains and scores are computed by the same functions.
"""

from __future__ import annotations

import numpy as np

from budgetforest.data.binning import Columns
from budgetforest.data.costs import Costs, Prices
from budgetforest.growing.acquired import Acquired, acquire, has_bit, price_for, put_bit
from budgetforest.growing.boosting import (
    LEAST_GAIN,
    Boost,
    Slopes,
    SlopeSums,
    gain_of,
    score_of,
    shift_of,
    sums_for,
    worth_of,
)
from budgetforest.growing.feature_order import START, next_step
from budgetforest.growing.level_greedy import (
    Splits,
    Standing,
    cells_of,
    children_of,
    no_splits,
    put_split,
    take_rows,
    whole_of,
)
from budgetforest.growing.node_stack import Split
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Floats, Ids, Keys
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree


def slopes_of_block(
    codes: Codes, slopes: Slopes, standing: Standing, begin: Counts, first: int, last: int
) -> Counts:
    """(nodes, cells, 2 q + 2) sums by code: those of ``boosting.SlopeSums``, and rows drawn or not."""
    n, width = slopes.shape
    sums = np.zeros((last - first, int(begin[-1]), width + 2), np.int64)
    add_slopes(codes, slopes, standing, first, begin, sums, np.empty((3, n), np.int64))
    return sums


@kernel
def add_slopes(
    codes: Codes, slopes: Slopes, standing: Standing, first: int, begin: Counts, sums: Counts, room: Counts
) -> None:
    """Add up ``slopes_of_block``, feature by feature; ``room`` (3, n) is for rows that are in the nodes."""
    # sums of a cell: | weight drawn | q gradients | q curvatures | rows, drawn or not |
    width = sums.shape[2]
    flat = sums.reshape(-1)
    rows, node, times = room[0], room[1], room[2]
    for t in range(standing.node.shape[0]):
        n = take_rows(standing, t, first, len(sums), room)
        for j in range(codes.shape[0]):
            if begin[j] == begin[j + 1]:
                continue
            for r in range(n):
                at = (node[r] * sums.shape[1] + begin[j] + np.int64(codes[j, rows[r]])) * width
                # a child exists where any row goes, for rows that were not drawn need a score too
                flat[at + width - 1] += 1
                # whole numbers, so the sums of blocks are those of all rows
                if times[r] > 0:
                    flat[at] += times[r]
                    for s in range(slopes.shape[1]):
                        flat[at + 1 + s] += times[r] * slopes[rows[r], s]


def lacking_in_block(
    owned: Acquired, group: Ids, pool: Flags, standing: Standing, first: int, last: int
) -> Counts:
    """(nodes, m, 2) weight of the rows that lack a feature, and of those that have another of its group."""
    lacking = np.zeros((last - first, len(pool), 2), np.int64)
    count_lacking(owned, group, pool, standing, first, lacking)
    return lacking


@kernel
def count_lacking(
    owned: Acquired, group: Ids, pool: Flags, standing: Standing, first: int, lacking: Counts
) -> None:
    """Fill in ``lacking_in_block``."""
    # what rows met above in this tree is no bit yet, but known of the whole node (``without_met``)
    for j in range(len(pool)):
        if not pool[j]:
            continue
        for t in range(standing.node.shape[0]):
            for i in range(standing.node.shape[1]):
                node = np.int64(standing.node[t, i]) - first
                if 0 <= node < len(lacking) and not has_bit(owned.feature, j, i):
                    # whole numbers, to be added up over blocks before they are priced
                    lacking[node, j, 0] += standing.times[t, i]
                    if len(owned.group) > 0 and has_bit(owned.group, group[j], i):
                        lacking[node, j, 1] += standing.times[t, i]


def choose_boosts(
    columns: Columns, boost: Boost, costs: Costs, sums: Counts, lacking: Counts, keys: Keys, depth: int
) -> Splits:
    """The largest gain at every node of a depth, from its ``sums`` and what its rows lack."""
    begin = cells_of(columns, boost.pool)
    whole = whole_of(sums, begin)
    k = boost.n_classes
    splits = no_splits(np.zeros((len(sums), k), np.int64))
    splits.floor[:] = np.nan
    room = sums_for(columns, k, 0)
    judge_nodes(whole, boost.speed, room, splits.total, splits.impurity)
    if depth < boost.depth:
        search_boosts(columns, boost, costs.bare, sums, whole, lacking, begin, keys, room, splits)
    first, below = children_of(sums, begin, splits)
    drawn, present = below[:, 0], below[:, -1]
    splits = splits._replace(
        first=first,
        size=np.where(present > 0, drawn, -1),
        waits=(drawn >= 2 * boost.least_rows) & (depth + 1 < boost.depth),
        counts=np.zeros((len(below), k), np.int64),
        below=np.zeros(len(below)),
    )
    judge_nodes(below, boost.speed, room, splits.counts, splits.below)
    return splits


@kernel
def judge_nodes(whole: Counts, speed: float, room: SlopeSums, score: Counts, impurity: Floats) -> None:
    """What each node adds to every class, and what that is worth, from its sums (d, 2 q + 2)."""
    for at in range(len(whole)):
        # of inner nodes and leaves alike: a row may exit anywhere
        take_all(whole[at], room)
        impurity[at] = -worth_of(room.all)
        score_of(room.all, speed, score[at])


@inner
def take_all(whole: Counts, room: SlopeSums) -> None:
    """The sums of a node."""
    # all but the last sum, the number of rows
    for s in range(len(room.all)):
        room.all[s] = whole[s]


@kernel
def search_boosts(
    columns: Columns,
    boost: Boost,
    prices: Prices,
    sums: Counts,
    whole: Counts,
    lacking: Counts,
    begin: Counts,
    keys: Keys,
    room: SlopeSums,
    splits: Splits,
) -> None:
    """Fill in feature, cut, threshold and route of every node: ``boosting._best_split`` on sums."""
    for at in range(len(sums)):
        if whole[at, 0] < 2 * boost.least_rows:
            continue
        take_all(whole[at], room)
        worth = worth_of(room.all)
        # features in the same order and with the same ties as where rows are at hand
        best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
        m, key = len(boost.pool), keys[at]
        step = int(np.int64(START))
        while True:
            step = next_step(step, best.feature != LEAF, key, columns.key, boost.pool, boost.tries)
            if step < 0:
                break
            j = step % m
            low, high = take_sums(sums[at, begin[j] : begin[j + 1]], shift_of(columns, j), room.by_code)
            gain, cut, route = gain_of(columns, j, low, high, worth, boost, room)
            if boost.rate > 0.0 and gain > best.gain:
                gain -= boost.rate * price_for(j, lacking[at, j, 0], lacking[at, j, 1], prices)
            if gain > best.gain:
                best = Split(gain, j, cut, route)
        if best.feature != LEAF:
            put_split(columns, best, splits, at)


@inner
def take_sums(sums: Counts, shift: int, by_code: Counts) -> tuple[int, int]:
    """Sums of a feature by coarse code; returns the lowest and the highest one present but for missing."""
    last = len(sums) - 2
    missing = (last >> shift) + 1
    # codes are merged for the search alone: cuts and children refer to fine ones
    by_code[: missing + 1] = 0
    low = missing
    high = -1
    for fine in range(len(sums)):
        code = missing if fine > last else fine >> shift
        for s in range(by_code.shape[1]):
            by_code[code, s] += sums[fine, s]
        # by weight drawn: a code of undrawn rows alone is no cut, as in ``boosting._by_code``
        if sums[fine, 0] > 0 and code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@kernel
def take_met(owned: Acquired, rows: Ids, met: Flags, prices: Prices) -> None:
    """Rows have the features that they met."""
    if len(owned.feature) > 0:
        # the rows come from blocks, whose bits know the trees before but not this one
        for j in range(len(met)):
            if met[j]:
                acquire(j, rows, prices, owned)


def follow_tree(columns: Columns, tree: Tree, group: Ids, owned: Acquired, scores: Counts) -> None:
    """The rows of a block have what they meet in a tree, and their leaves are added to their scores."""
    cut = np.full(len(tree.feature), -1, np.int32)
    for node in np.flatnonzero((tree.feature != LEAF) & (tree.route != BY_CATEGORY)):
        j = tree.feature[node]
        points = columns.points[columns.offset[j] : columns.offset[j + 1]]
        # after all edges for a threshold of +inf: every value goes left
        cut[node] = np.searchsorted(points, tree.threshold[node])
    follow_rows(columns.codes, columns.n_codes, tree, cut, group, owned, scores)


@kernel
def follow_rows(
    codes: Codes, n_codes: Ids, tree: Tree, cut: Ids, group: Ids, owned: Acquired, scores: Counts
) -> None:
    """The same with the last code on the left of every node."""
    # codes lead where values would: ``code <= cut`` if and only if ``x <= threshold``
    for i in range(codes.shape[1]):
        node = int(np.int64(0))
        # a negative child: a category that no drawn row had
        while node >= 0 and tree.feature[node] != LEAF:
            j = tree.feature[node]
            code = np.int64(codes[j, i])
            # asked is paid, wherever the answer leads
            if len(owned.feature) > 0:
                put_bit(owned.feature, j, i)
                if len(owned.group) > 0:
                    put_bit(owned.group, group[j], i)
            route = tree.route[node]
            if route == BY_CATEGORY:
                node = int(np.int64(tree.branches[tree.left[node] + code]))
            elif code <= cut[node] if code < n_codes[j] else (route & MISSING_LEFT) != 0:
                node = int(np.int64(tree.left[node]))
            else:
                node = int(np.int64(tree.right[node]))
        if node >= 0:
            for c in range(scores.shape[1]):
                scores[i, c] += tree.counts[node, c]
