"""Trees on rows that are spread over workers: the frontiers of several trees, level by level.

For every level each block counts the rows of the nodes (``count``), the counts are summed, a task chooses the
splits from the sums (``choose``), and each block moves its rows to the children (``move``). Only counts,
splits and the shape of the trees travel. A node of few rows is ``small``: its rows are brought to one worker
(``pick``), which grows all that is below as on a single machine (``finish``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from budgetforest.arrays import Counts, Ids, Keys
from budgetforest.binning import Columns
from budgetforest.dask.cluster import Cluster
from budgetforest.draws import draw_own_rows, mix, tree_key
from budgetforest.forest import moved
from budgetforest.grow import grow_below, with_all_branches
from budgetforest.level import Splits, Standing, choose_splits, counts_of_block, move_rows
from budgetforest.room import Plan
from budgetforest.tree import BY_CATEGORY, Tree, empty_tree

FIRST_TREES, TREES = 2, 8
"""Trees grown at a time, at first and later: every row has a place in each of them."""

LEAST_SMALL = 4096
"""A node of so few rows is always small."""

SHARES = 4
"""Otherwise one of so many for each thread of the cluster, so that the load is even."""

MOST_CELLS = 2**28
"""And never one of more codes than this, which a worker must hold."""

MOST_COUNTS = 2**24
"""Counts of the nodes that a task counts or adds up, at most: 64 MB. A larger frontier is sliced."""


class Block(NamedTuple):
    """Some of the training rows, in the order of their contents."""

    columns: Columns
    label: Ids
    weight: Ids
    start: Counts
    """(n) the weight of the rows of all blocks that come before."""


class Spread(NamedTuple):
    """Training rows on workers."""

    blocks: list[Future]
    columns: Future
    """What the columns are, without codes."""
    n_cells: int
    """Codes of all features, missing ones counted in."""
    n_features: int
    n_classes: int
    weight: int
    """Of all rows."""
    draws: int
    """Rows to draw with replacement, 0 for no bootstrap."""


@dataclass
class Limb:
    """A node of a growing tree, and what hangs on it."""

    key: np.uint64
    is_root: bool
    weight: int
    node: Tree
    """The node alone."""
    children: list[Limb | None] = field(default_factory=list)
    """None for a category without rows."""
    below: tuple[str, int] | None = None
    """Of a small node: the task that grows its subtree, and its place there."""
    number: int = -1
    """In its level; pure nodes have none."""


class Level(NamedTuple):
    """Nodes to be decided, numbered large ones first."""

    large: list[Limb]
    """They are split by their counts."""
    small: list[Limb]
    """All below them is grown by one task."""


def spread_trees(
    cluster: Cluster, rows: Spread, seed: int, most: int, plan: Plan
) -> Generator[Tree, None, None]:
    """Trees 0, 1, 2, ... up to ``most``, the same as those of ``grow.stream_of_trees``."""
    there = cluster.hold(plan)
    first = 0
    while first < most:
        number = min(TREES if first else FIRST_TREES, most - first)
        yield from grow_trees(cluster, rows, there, [tree_key(seed, first + t) for t in range(number)])
        first += number


def grow_trees(cluster: Cluster, rows: Spread, plan: Future, keys: Sequence[np.uint64]) -> Iterator[Tree]:
    """GREEDYTREE for several trees at once."""
    total = rows.draws or rows.weight
    small = min(max(LEAST_SMALL, total // (SHARES * cluster.n_threads)), MOST_CELLS // rows.n_features)
    roots = [Limb(key, True, total, empty_tree(1, rows.n_classes)) for key in keys]
    standing = cluster.each(stand, rows.blocks, rows.weight, rows.draws, np.array(keys))
    level = Level(roots, []) if total > small else Level([], roots)
    grown = finish_small(cluster, rows, plan, standing, level, small)
    while level.large:
        splits = split_large(cluster, rows, plan, standing, level)
        level, number = hang_children(level.large, splits, small)
        there = cluster.hold(without_counts(splits))
        standing = cluster.each(move, rows.blocks, standing, there, number)
        grown |= finish_small(cluster, rows, plan, standing, level, small)
    subtrees = dict(zip(grown, cluster.values(list(grown.values())), strict=True))
    for root in roots:
        yield with_all_branches(whole(root, subtrees))


def finish_small(
    cluster: Cluster, rows: Spread, plan: Future, standing: list[Future], level: Level, small: int
) -> dict[str, Future]:
    """Have the subtrees of small nodes grown, about ``small`` rows by each task; the tasks by name."""
    tasks: dict[str, Future] = {}
    group: list[Limb] = []
    for last, limb in enumerate(level.small, len(level.large) + 1):
        group.append(limb)
        if limb is level.small[-1] or sum(member.weight for member in group) > small // 2:
            picked = cluster.each(pick, rows.blocks, standing, last - len(group), last)
            task = cluster.run(finish, rows.columns, plan, [member.key for member in group], picked)
            tasks[task.key] = task
            for place, member in enumerate(group):
                member.below = task.key, place
            group = []
    return tasks


def split_large(cluster: Cluster, rows: Spread, plan: Future, standing: list[Future], level: Level) -> Splits:
    """The splits of the large nodes, some at a time: their counts, summed, tell them."""
    size = max(1, MOST_COUNTS // (rows.n_cells * rows.n_classes))
    chosen = []
    for first in range(0, len(level.large), size):
        limbs = level.large[first : first + size]
        counted = cluster.each(count, rows.blocks, standing, first, first + len(limbs), rows.n_classes)
        keys, is_root = np.array([limb.key for limb in limbs]), np.array([limb.is_root for limb in limbs])
        chosen.append(cluster.run(choose, cluster.total(add, counted), rows.columns, plan, keys, is_root))
    return joined(cluster.values(chosen))


def joined(parts: list[Splits]) -> Splits:
    """The splits of a level from those of its parts."""
    before = np.cumsum([0, *(len(part.below) for part in parts)])
    firsts = [part.first[:-1] + children for part, children in zip(parts, before, strict=False)]
    splits = Splits._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    return splits._replace(first=np.concatenate([*firsts, before[-1:]]).astype(np.int32))


def without_counts(splits: Splits) -> Splits:
    """What rows need to know of splits to move."""
    return splits._replace(total=splits.total[:0], counts=splits.counts[:0], below=splits.below[:0])


def hang_children(limbs: list[Limb], splits: Splits, small: int) -> tuple[Level, Ids]:
    """The next level, and the number in it of every child; pure ones are leaves and not in it."""
    for at, limb in enumerate(limbs):
        fill(limb, splits, at)
    children = [child for limb in limbs for child in limb.children]
    mixed = [child for child in children if child is not None and child.node.impurity[0] > 0]
    level = Level(
        [child for child in mixed if child.weight > small],
        [child for child in mixed if child.weight <= small],
    )
    for number, child in enumerate(level.large + level.small):
        child.number = number
    return level, np.array([-1 if child is None else child.number for child in children], np.int32)


def fill(limb: Limb, splits: Splits, at: int) -> None:
    """Write down how a node splits, and hang its children on it."""
    node = limb.node
    node.feature[0], node.threshold[0], node.route[0] = (
        splits.feature[at],
        splits.threshold[at],
        splits.route[at],
    )
    node.counts[0], node.impurity[0] = splits.total[at], splits.impurity[at]
    if limb.is_root:
        node.floor[0] = splits.floor[at]
    for code, child in enumerate(range(splits.first[at], splits.first[at + 1])):
        counts = splits.counts[child]
        hung = None
        if counts.any():
            alone = empty_tree(1, len(counts))
            alone.counts[0], alone.impurity[0] = counts, splits.below[child]
            hung = Limb(np.uint64(mix(limb.key, np.uint64(code))), False, int(counts.sum()), alone)
        limb.children.append(hung)


def whole(limb: Limb, subtrees: dict[str, list[Tree]]) -> Tree:
    """All that has grown from a node on, in preorder."""
    if limb.below is not None:
        return subtrees[limb.below[0]][limb.below[1]]
    if not limb.children:
        return limb.node
    children = [None if child is None else whole(child, subtrees) for child in limb.children]
    nominal = limb.node.route[0] == BY_CATEGORY
    nodes, slots = 1, len(children) if nominal else 0
    places, parts = np.full(len(children), -1, np.int32), []
    for at, child in enumerate(children):
        if child is not None:
            places[at] = nodes
            parts.append(moved(child, nodes, slots))
            nodes, slots = nodes + len(child.feature), slots + len(child.branches)
    node = limb.node
    if nominal:
        node.left[0], node.right[0] = 0, len(children) - 1
    else:
        node.left[0], node.right[0] = places
    branches = [places] if nominal else []
    return Tree._make(
        [
            *(
                np.concatenate(columns)
                for columns in zip(node[:-2], *(part[:-2] for part in parts), strict=True)
            ),
            np.concatenate([*branches, *(part.branches for part in parts)]),
            node.floor,
        ]
    )


# What tasks do ---------------------------------------------------------------------------------


def stand(block: Block, weight: int, draws: int, keys: Keys) -> Standing:
    """All rows at the roots of trees that are drawn for them."""
    n = len(block.label)
    times = np.zeros((len(keys), n), np.int32)
    if draws:
        shift = max(0, (weight // max(n, 1)).bit_length() - 1)
        stretches = np.arange((weight >> shift) + 1) << shift
        near = (np.searchsorted(block.start, stretches, "right") - 1).astype(np.int32)
        for key, own in zip(keys, times, strict=True):
            draw_own_rows(key, draws, weight, block.start, block.weight, near, shift, own)
    else:
        times[:] = block.weight
    return Standing(times, np.where(times > 0, np.arange(len(keys))[:, None], -1).astype(np.int32))


def count(block: Block, standing: Standing, first: int, last: int, n_classes: int) -> NDArray[np.int32]:
    """Class counts by node, feature and code."""
    return counts_of_block(block.columns, block.label, standing, first, last, n_classes)


def add(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Counts of several blocks."""
    total: NDArray[np.int32] = sum(parts[1:], start=parts[0])
    return total


def choose(counts: NDArray[np.int32], columns: Columns, plan: Plan, keys: Keys, is_root: Any) -> Splits:
    """The best splits."""
    return choose_splits(columns, plan, counts, keys, is_root)


def move(block: Block, standing: Standing, splits: Splits, number: Ids) -> Standing:
    """The rows at their children."""
    after = np.empty_like(standing.node)
    move_rows(block.columns.codes, block.columns.n_codes, standing.node, splits, number, after)
    return standing._replace(node=after)


class Picked(NamedTuple):
    """Rows of some nodes in one block."""

    codes: Any
    """(m, n)"""
    label: Ids
    times: Ids
    place: Ids
    """(n) which of the nodes a row is in, from 0 up."""


def pick(block: Block, standing: Standing, first: int, last: int) -> Picked:
    """The rows of the nodes from ``first`` up to ``last``."""
    tree, row = np.nonzero((standing.node >= first) & (standing.node < last))
    return Picked(
        block.columns.codes[:, row],
        block.label[row],
        standing.times[tree, row],
        standing.node[tree, row] - first,
    )


def finish(columns: Columns, plan: Plan, keys: Sequence[np.uint64], parts: list[Picked]) -> list[Tree]:
    """The subtrees of small nodes."""
    label, times, place = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    order = np.lexsort((label, place))
    here = columns._replace(codes=np.concatenate([part.codes for part in parts], axis=1).take(order, axis=1))
    at_class = place[order].astype(np.int64) * plan.n_classes + label[order]
    ends = np.searchsorted(at_class, np.arange(len(keys) * plan.n_classes), "right")
    ends = ends.reshape(len(keys), plan.n_classes)
    starts = np.append(0, ends[:, -1])
    return [
        grow_below(
            here,
            ends[at],
            times[order],
            np.arange(starts[at], starts[at + 1], dtype=np.int32),
            plan,
            np.uint64(key),
        )
        for at, key in enumerate(keys)
    ]
