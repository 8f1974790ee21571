"""One level of many trees at once, for rows that no machine holds: GREEDYTREE, breadth first.

Every block of rows counts (``count_rows``); counts of blocks add up; the split of each node is chosen from
the sums alone (``choose_splits``), by the rules of ``split``; every block moves its rows to the children
(``move_rows``). Integers add up exactly, so the trees are those of ``greedytree``, whatever the blocks.

It stands apart from ``greedytree`` because the rows of a node are nowhere together: they cannot be reordered,
copied or bounded, and a round over all blocks is expensive, so that it serves every node of a level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.growing.histogram import Profile
from budgetforest.growing.impurity import evaluate, value_of
from budgetforest.growing.node_stack import Split, edge_after
from budgetforest.growing.split import LEAST_DROP, Node, is_better, search_feature, search_nominal
from budgetforest.growing.workspace import GrowthWorkspace, Plan, SearchWorkspace, workspaces_for
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Floats, Ids, Keys
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import mix
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT


class Standing(NamedTuple):
    """Where the rows of a block stand in some trees."""

    times: Ids
    """(t, n) how often a row was drawn for a tree."""
    node: Ids
    """(t, n) the number of its node in the level, nodes that split first; -1 where it is in none."""


class Splits(NamedTuple):
    """What becomes of the nodes of a level, but for small ones."""

    feature: Ids
    """(d) ``LEAF`` where a node does not split."""
    cut: Ids
    """(d) the last code on the left."""
    threshold: Floats
    route: Ids
    total: Counts
    """(d, k) class counts of the nodes."""
    impurity: Floats
    floor: Floats
    """(d) of roots: see ``Tree.floor``."""
    first: Ids
    """(d + 1) where the children of a node begin: left and right, or one per category and one for missing."""
    size: Counts
    """(c) weight of the rows of a child; -1 where there is no child."""
    waits: Flags
    """(c) whether a child may be split in its turn."""
    counts: Counts
    """(c, k) class counts of the children."""
    below: Floats
    """(c) F of the children."""


def no_splits(total: Counts) -> Splits:
    """Nodes of these class counts, none of which splits yet; children are not known."""
    d, k = total.shape
    return Splits(
        feature=np.full(d, LEAF, np.int32),
        cut=np.full(d, -1, np.int32),
        threshold=np.full(d, np.nan),
        route=np.zeros(d, np.int32),
        total=total,
        impurity=np.zeros(d),
        floor=np.full(d, np.inf),
        first=np.zeros(d + 1, np.int32),
        size=np.zeros(0, np.int64),
        waits=np.zeros(0, bool),
        counts=np.zeros((0, k), np.int64),
        below=np.zeros(0),
    )


@inner
def put_split(columns: Columns, split: Split, splits: Splits, at: int) -> None:
    """Write down how a node splits."""
    splits.feature[at] = split.feature
    splits.cut[at] = split.cut
    splits.route[at] = split.route
    # of a nominal node it stays NaN
    if split.route != BY_CATEGORY:
        splits.threshold[at] = edge_after(columns, split.feature, split.cut)


def cells_of(columns: Columns, pool: Flags | None = None) -> Counts:
    """(m + 1) where the codes of each feature begin among all, missing counted in; none outside the pool."""
    width = columns.n_codes + 1 if pool is None else np.where(pool, columns.n_codes + 1, 0)
    begin: Counts = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    return begin


def counts_of_block(
    columns: Columns, label: Ids, standing: Standing, begin: Counts, first: int, last: int, n_classes: int
) -> NDArray[np.int32]:
    """(nodes, cells, k) class counts by code, of the nodes from ``first`` up to ``last``."""
    n = len(label)
    counts = np.zeros((last - first, int(begin[-1]), n_classes), np.int32)
    count_rows(columns.codes, label, standing, first, begin, counts, np.empty((3, n), np.int64))
    return counts


@kernel
def count_rows(
    codes: Codes,
    label: Ids,
    standing: Standing,
    first: int,
    begin: Counts,
    counts: NDArray[np.int32],
    room: Counts,
) -> None:
    """Add up ``counts_of_block``, feature by feature; ``room`` (3, n) is for rows that are in the nodes."""
    k = np.uintp(counts.shape[2])
    # counts of a node: | feature 0: a cell a code, missing last | feature 1 ... |, k classes in a cell
    flat = counts.reshape(-1)
    rows, place, times = room[0], room[1], room[2]
    for t in range(standing.node.shape[0]):
        n = take_rows(standing, t, first, len(counts), room)
        # where the counts of the row's node and class begin
        for r in range(n):
            place[r] = place[r] * counts.shape[1] * counts.shape[2] + label[rows[r]]
        for j in range(codes.shape[0]):
            # a feature outside the pool has no cells
            if begin[j] == begin[j + 1]:
                continue
            # feature by feature: one column is read at a time, in the order of rows
            column = codes[j]
            first_cell = np.uintp(begin[j])
            for r in range(n):
                # unsigned, so that no index is checked for being negative
                cell = first_cell + np.uintp(column[np.uintp(rows[r])])
                flat[np.uintp(place[r]) + cell * k] += np.int32(times[r])


@inner
def take_rows(standing: Standing, t: int, first: int, n_nodes: int, room: Counts) -> int:
    """The rows of a tree that are in so many nodes from ``first``: which, in which, and how often drawn."""
    n = 0
    # a level may be counted some nodes at a time; rows elsewhere, or in no node (-1), are left out
    for i in range(standing.node.shape[1]):
        node = np.int64(standing.node[t, i]) - first
        if 0 <= node < n_nodes:
            room[0, n] = i
            room[1, n] = node
            room[2, n] = standing.times[t, i]
            n += 1
    return n


def choose_splits(
    columns: Columns, plan: Plan, counts: NDArray[np.int32], keys: Keys, at_roots: bool
) -> Splits:
    """The best split of every node from its ``counts`` (d, cells, k) and its key."""
    begin = cells_of(columns)
    splits = no_splits(whole_of(counts, begin))
    search_splits(columns, plan, counts, begin, keys, at_roots, *workspaces_for(columns, plan, 1), splits)
    first, below = children_of(counts, begin, splits)
    size = below.sum(axis=1)
    impurity = np.array([value_of(plan.measure.impurity, c * plan.measure.unit) for c in below], np.float64)
    return splits._replace(
        first=first, size=np.where(size > 0, size, -1), waits=impurity > 0, counts=below, below=impurity
    )


def whole_of(sums: NDArray[Any], begin: Counts) -> Counts:
    """(d, w) the sums (d, cells, w) of whole nodes: those over all codes of any feature."""
    whole: Counts = sums[:, : begin[begin > 0][0]].sum(axis=1, dtype=np.int64)
    return whole


def children_of(sums: NDArray[Any], begin: Counts, splits: Splits) -> tuple[Ids, Counts]:
    """Where the children of each node begin, and (c, w) the sums of all children."""
    children = [_parted(*node, begin) for node in zip(sums, *splits[:2], splits.route, strict=True)]
    first: Ids = np.cumsum([0, *map(len, children)]).astype(np.int32)
    return first, np.concatenate(children)


def _parted(sums: NDArray[Any], feature: int, cut: int, route: int, begin: Counts) -> Counts:
    """(children, w) the sums of a node's children."""
    if feature == LEAF:
        return np.zeros((0, sums.shape[1]), np.int64)
    by_code = sums[begin[feature] : begin[feature + 1]].astype(np.int64)
    if route == BY_CATEGORY:
        return by_code
    # missing values stand after the last code
    left = by_code[: cut + 1].sum(axis=0) + (by_code[-1] if route & MISSING_LEFT else 0)
    return np.array([left, by_code.sum(axis=0) - left])


@kernel
def search_splits(
    columns: Columns,
    plan: Plan,
    counts: NDArray[np.int32],
    begin: Counts,
    keys: Keys,
    at_roots: bool,
    search: SearchWorkspace,
    work: GrowthWorkspace,
    splits: Splits,
) -> None:
    """Fill in feature, cut, threshold, route, impurity and floor of every node.

    The twin of ``greedytree.best_split``, which has rows at hand and skips features by their bounds.
    """
    for at in range(len(counts)):
        here = counts[at]
        # every row has one code of each feature, missing included: the first feature's counts add up to all
        classes = take_total(here[: begin[1]], plan, work)
        n = 0.0
        for c in range(plan.n_classes):
            n += work.shares[0, c]
        impurity = evaluate(plan.measure.impurity, work.shares[0])
        splits.impurity[at] = impurity
        # Algorithm 1: a node with F(S) = 0 is a leaf
        if impurity <= 0.0:
            continue
        node = Node(
            work.total[:classes],
            impurity,
            n,
            keys[at],
            work.shares[1, :classes],
            work.shares[2, :classes],
        )
        best = int(np.int64(LEAF))
        best_cost = 0.0
        best_drop = 0.0
        # every feature is searched: bounds would need the rows; they change no tree (``bounds``)
        for j in range(len(plan.cost)):
            size = profile_from(here[begin[j] : begin[j + 1]], work.stack.buffer[:classes], search.profile)
            # lemma 2.1: the floor of the tree, as ``least_per_drop`` finds it for rows at hand
            if at_roots:
                drop = impurity - search_nominal(search.profile, size, node, plan.measure)
                if drop > LEAST_DROP:
                    splits.floor[at] = min(splits.floor[at], plan.least[j] / drop)
            left, cut, threshold, route = search_feature(
                search.profile,
                size,
                columns.nominal[j],
                plan.splitter,
                columns.points[columns.offset[j] : columns.offset[j + 1]],
                # the key of the depth-first grower, so random stumps are the same
                mix(node.key, columns.key[j]),
                node,
                plan.measure,
                search.cuts,
                search.thresholds,
            )
            drop = impurity - left
            if is_better(j, plan.cost[j], drop, best, best_cost, best_drop):
                best = j
                best_cost = plan.cost[j]
                best_drop = drop
                splits.feature[at] = j
                splits.cut[at] = cut
                splits.threshold[at] = threshold
                splits.route[at] = route


@inner
def take_total(by_code: NDArray[np.int32], plan: Plan, work: GrowthWorkspace) -> int:
    """Class counts of a node from those of one feature; returns how many classes it has.

    ``work.stack.buffer`` holds the classes: all, or where F allows it those that have rows.
    """
    classes = 0
    for c in range(plan.n_classes):
        total = 0
        for code in range(len(by_code)):
            total += by_code[code, c]
        work.shares[0, c] = total * plan.measure.unit
        # nothing is parted here: the buffer lists classes, as ``gather`` would renumber them
        if total > 0 or not plan.measure.symmetric:
            work.total[classes] = total
            work.stack.buffer[classes] = c
            classes += 1
    return classes


@inner
def profile_from(by_code: NDArray[np.int32], classes: Ids, profile: Profile) -> int:
    """The profile of a feature from its counts by code, the last of which is of missing values."""
    size = 0
    for code in range(len(by_code) - 1):
        present = 0
        for c in range(len(classes)):
            present += by_code[code, classes[c]]
        # codes present alone, as in ``take_profile``: cuts and ties are those of the rows at hand
        if present == 0:
            continue
        for c in range(len(classes)):
            before = profile.upto[size - 1, c] if size > 0 else 0
            profile.upto[size, c] = before + by_code[code, classes[c]]
        profile.code[size] = code
        size += 1
    for c in range(len(classes)):
        profile.missing[c] = by_code[len(by_code) - 1, classes[c]]
    return size


@kernel
def move_rows(codes: Codes, n_codes: Ids, node: Ids, splits: Splits, number: Ids, moved: Ids) -> None:
    """``moved`` (t, n): the child that each row goes to, by its ``number`` (c) in the next level, or -1."""
    for t in range(node.shape[0]):
        for i in range(node.shape[1]):
            moved[t, i] = -1
            at = node[t, i]
            # nodes that split are numbered first; rows of small nodes are grown elsewhere
            if at < 0 or at >= len(splits.feature) or splits.feature[at] == LEAF:
                continue
            j = splits.feature[at]
            child = np.int64(codes[j, i])
            # children, from first[at] on: | left | right |, or | category 0 | category 1 | ... | missing |
            if splits.route[at] != BY_CATEGORY:
                goes_left = child <= splits.cut[at] or (
                    splits.route[at] & MISSING_LEFT != 0 and child == n_codes[j]
                )
                child = np.int64(0) if goes_left else np.int64(1)
            moved[t, i] = number[splits.first[at] + child]
