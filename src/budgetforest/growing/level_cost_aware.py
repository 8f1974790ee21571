"""One level of trees that know what is paid, for rows in blocks: the rules of ``cost_aware`` on sums alone.

Besides class counts blocks count how many of a node's rows lack each feature. When a tree is complete, the
rows of every block follow it, and have from then on what they met.

It stands apart from ``cost_aware`` because the rows of a node are in many blocks: that one reorders them and
asks each what it has, this one sees sums. Gains and prices are computed by the same functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.data.costs import Costs, Prices
from budgetforest.growing.cost_aware import (
    LEAST_GAIN,
    Acquired,
    Growth,
    Workspace,
    acquire,
    entropy_of,
    gain_of,
    has_bit,
    price_for,
    put_bit,
    workspace_for,
)
from budgetforest.growing.feature_order import START, next_step
from budgetforest.growing.level_greedy import Splits, Standing, cells_of, children_of, no_splits, whole_of
from budgetforest.growing.node_stack import Split, edge_after
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Floats, Ids, Keys
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree


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


def choose_cost_aware(
    columns: Columns, growth: Growth, costs: Costs, counts: NDArray[np.int32], lacking: Counts, keys: Keys
) -> Splits:
    """The largest gain at every node, from its ``counts`` (d, cells, k) and what its rows lack."""
    begin = cells_of(columns, growth.pool)
    splits = no_splits(whole_of(counts, begin))
    splits.floor[:] = np.nan
    work = workspace_for(columns, growth.n_classes, 0)
    search_cost_aware(columns, growth, costs.bare, counts, lacking, begin, keys, work, splits)
    first, below = children_of(counts, begin, splits)
    size = below.sum(axis=1)
    splits = splits._replace(
        first=first,
        size=np.where(size > 0, size, -1),
        waits=np.zeros(len(size), bool),
        counts=below,
        below=np.zeros(len(size)),
    )
    judge_children(growth.least_rows, work.logs, splits)
    return splits


@kernel
def search_cost_aware(
    columns: Columns,
    growth: Growth,
    prices: Prices,
    counts: NDArray[np.int32],
    lacking: Counts,
    begin: Counts,
    keys: Keys,
    work: Workspace,
    splits: Splits,
) -> None:
    """Fill in all of every node but its children: ``cost_aware._best_split`` on sums."""
    for at in range(len(counts)):
        total = splits.total[at]
        n = 0
        for c in range(len(total)):
            n += total[c]
        mixed = entropy_of(total, n, work.logs)
        splits.impurity[at] = mixed / n
        if mixed <= LEAST_GAIN or n < 2 * growth.least_rows:
            continue
        # features in the same order and with the same ties as where rows are at hand
        best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
        m, key = len(growth.pool), keys[at]
        step = int(np.int64(START))
        while True:
            step = next_step(step, best.feature != LEAF, key, columns.key, growth.pool, growth.tries)
            if step < 0:
                break
            j = step % m
            low, high = take_tally(counts[at, begin[j] : begin[j + 1]], work.tally)
            gain, cut, route = gain_of(columns, j, low, high, total, n, mixed, growth, key, work)
            # the gain alone must win first: most features are never priced
            if growth.rate > 0.0 and gain > best.gain:
                price = price_for(j, lacking[at, j, 0], lacking[at, j, 1], prices)
                if price > 0.0:  # the rate may be infinite, and inf * 0 is no number
                    gain -= growth.rate * price
            if gain > best.gain:
                best = Split(gain, j, cut, route)
        if best.feature != LEAF:
            put_split(columns, best, splits, at)


@inner
def take_tally(by_code: NDArray[np.int32], tally: Counts) -> tuple[int, int]:
    """Class counts of a feature; returns the lowest and the highest code present, missing not counted."""
    missing = len(by_code) - 1
    low = missing
    high = -1
    # every code is overwritten, so nothing needs clearing; counts hold drawn rows alone
    for code in range(len(by_code)):
        present = 0
        for c in range(by_code.shape[1]):
            tally[code, c] = by_code[code, c]
            present += by_code[code, c]
        if present > 0 and code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@inner
def put_split(columns: Columns, split: Split, splits: Splits, at: int) -> None:
    """Write down how a node splits."""
    splits.feature[at] = split.feature
    splits.cut[at] = split.cut
    splits.route[at] = split.route
    # of a nominal node it stays NaN
    if split.route != BY_CATEGORY:
        splits.threshold[at] = edge_after(columns, split.feature, split.cut)


@kernel
def judge_children(least_rows: int, logs: Floats, splits: Splits) -> None:
    """Fill in impurity and ``waits`` of the children."""
    for at in range(len(splits.size)):
        n = splits.size[at]
        if n > 0:
            mixed = entropy_of(splits.counts[at], n, logs)
            splits.below[at] = mixed / n
            # what the search of the next level would ask first: other children are not counted at all
            splits.waits[at] = mixed > LEAST_GAIN and n >= 2 * least_rows


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
