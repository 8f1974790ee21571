"""Trees on rows that are spread over workers: the frontiers of several trees, level by level.

For every level each block counts the rows of the nodes (``count``), the counts are summed, a task chooses
splits from the sums (``choose``), and each block moves its rows to the children (``move``). What is counted
and chosen is a ``Strategy``. Only counts, splits and the shape of the trees travel. A node of few rows is
``small``: its rows are brought to one worker (``pick``), which grows all that is below as on a single machine
(``finish``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.dask.partial_tree import Level, PartialTree, hang_children, whole
from budgetforest.dask.strategies import (
    Gathered,
    Nodes,
    NodeSums,
    RowBlock,
    State,
    Strategy,
    added,
    for_growth,
    joined,
)
from budgetforest.data.binning import Columns
from budgetforest.growing.level_greedy import Splits, Standing, move_rows
from budgetforest.runtime.arrays import Counts, Ids, Keys
from budgetforest.runtime.random import draw_own_rows
from budgetforest.trees.tree import Tree, empty_tree

LEAST_SMALL = 4096
"""A node of so few rows is always small."""

SHARES = 4
"""Otherwise all trees together have so many for each thread of the cluster, so that the load is even."""

MOST_CELLS = 2**28
"""And never one of more codes than this, which a worker must hold; nor are more picked for each at a time."""

MOST_COUNTS = 2**24
"""Counts of the nodes that a task counts or adds up, at most: 64 MB. A larger frontier is sliced."""


class Spread(NamedTuple):
    """Training rows on workers."""

    blocks: list[Future]
    plain: list[Future]
    """The state of blocks that remember nothing."""
    columns: Future
    """What the columns are, without codes."""
    n_cells: int
    """Codes of all features, missing ones counted in."""
    n_features: int
    n_rows: int
    counts: Counts
    """(k) weight of each class."""
    draws: int
    """Rows to draw with replacement, 0 for no bootstrap."""

    @property
    def weight(self) -> int:
        """Of all rows."""
        return int(self.counts.sum())


def grow_trees(
    cluster: Cluster,
    rows: Spread,
    state: list[Future],
    strategy: Strategy,
    draws: int,
    keys: Sequence[np.uint64],
) -> Iterator[Tree]:
    """Several trees at once, each on so many draws; without draws, on all rows."""
    total = draws or rows.weight
    small, most = small_for(cluster, rows, len(keys), total / rows.n_rows)
    roots = [PartialTree(key, total, empty_tree(1, len(rows.counts))) for key in keys]
    standing = cluster.each(stand, rows.blocks, rows.weight, draws, np.array(keys), strategy.takes_all)
    level = Level(roots, []) if total > small else Level([], roots)
    here = Growing(cluster, rows, cluster.hold(strategy), strategy.width, state, small, most)
    grown = finish_small(here, standing, level, 0)
    depth = 0
    while level.large:
        splits = split_large(here, standing, level, depth)
        level, number = hang_children(level.large, splits, small)
        there = cluster.hold(without_counts(splits))
        standing = cluster.each(move, rows.blocks, standing, there, number)
        depth += 1
        grown |= finish_small(here, standing, level, depth)
    subtrees = dict(zip(grown, cluster.values(list(grown.values())), strict=True))
    for root in roots:
        yield whole(root, subtrees)


class Growing(NamedTuple):
    """What all levels of some trees share."""

    cluster: Cluster
    rows: Spread
    strategy: Future
    width: int
    state: list[Future]
    small: int
    """A node of so much weight is small."""
    most: int
    """Nodes of more weight than this are not picked at a time."""


def small_for(cluster: Cluster, rows: Spread, trees: int, weight: float) -> tuple[int, int]:
    """The weight of small nodes, and of all that is picked at a time, where rows weigh so much on average."""
    most = MOST_CELLS // rows.n_features
    even = trees * rows.n_rows // (SHARES * cluster.n_threads)
    return int(min(max(LEAST_SMALL, even), most) * weight), int(most * weight) * cluster.n_workers


def are_few(n_rows: int) -> bool:
    """Whether a node of all rows is small, whatever the cluster."""
    return n_rows <= LEAST_SMALL


def finish_small(here: Growing, standing: list[Future], level: Level, depth: int) -> dict[str, Future]:
    """Have the subtrees of small nodes grown, about ``small`` rows by each task; the tasks by name."""
    cluster, rows = here.cluster, here.rows
    tasks: dict[str, Future] = {}
    first = len(level.large)
    for partials in in_groups(level.small, here.most):
        groups = in_groups(partials, here.small // 2)
        ends = first + np.cumsum([0, *map(len, groups)])
        first = int(ends[-1])
        picked = cluster.each(pick, rows.blocks, here.state, standing, ends)
        for at, group in enumerate(groups):
            nodes = nodes_of(group, rows.n_features, depth)
            parts = cluster.each(getitem, picked, at)
            task = cluster.run(finish, rows.columns, here.strategy, nodes, parts)
            tasks[task.key] = task
            for place, member in enumerate(group):
                member.below = task.key, place
    return tasks


def in_groups(partials: list[PartialTree], least: int) -> list[list[PartialTree]]:
    """Nodes together that have more than ``least`` rows, the last ones as they are."""
    groups: list[list[PartialTree]] = []
    weight = least + 1
    for partial in partials:
        if weight > least:
            groups.append([])
            weight = 0
        groups[-1].append(partial)
        weight += partial.weight
    return groups


def split_large(here: Growing, standing: list[Future], level: Level, depth: int) -> Splits:
    """The splits of the large nodes, some at a time: their counts, summed, tell them."""
    cluster, rows = here.cluster, here.rows
    size = max(1, MOST_COUNTS // (rows.n_cells * here.width))
    chosen = []
    for first in range(0, len(level.large), size):
        partials = level.large[first : first + size]
        counted = cluster.each(
            count, rows.blocks, here.state, standing, here.strategy, first, first + len(partials)
        )
        nodes = nodes_of(partials, rows.n_features, depth)
        chosen.append(cluster.run(choose, cluster.total(added, counted), rows.columns, here.strategy, nodes))
    return all_splits(cluster.values(chosen))


def nodes_of(partials: list[PartialTree], n_features: int, depth: int) -> Nodes:
    """What workers must know of some nodes."""
    met = np.zeros((len(partials), n_features), bool)
    for own, partial in zip(met, partials, strict=True):
        own[list(partial.met)] = True
    return Nodes(np.array([partial.key for partial in partials]), met, depth)


def all_splits(parts: list[Splits]) -> Splits:
    """The splits of a level from those of its parts."""
    before = np.cumsum([0, *(len(part.below) for part in parts)])
    firsts = [part.first[:-1] + children for part, children in zip(parts, before, strict=False)]
    splits = Splits._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    return splits._replace(first=np.concatenate([*firsts, before[-1:]]).astype(np.int32))


def without_counts(splits: Splits) -> Splits:
    """What rows need to know of splits to move."""
    nothing = {name: getattr(splits, name)[:0] for name in ("total", "size", "waits", "counts", "below")}
    return splits._replace(**nothing)


# What tasks do ---------------------------------------------------------------------------------


def stand(block: RowBlock, weight: int, draws: int, keys: Keys, takes_all: bool) -> Standing:
    """All rows at the roots of trees that are drawn for them, or of all trees."""
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
    here = (times > 0) | takes_all
    return Standing(times, np.where(here, np.arange(len(keys))[:, None], -1).astype(np.int32))


def count(
    block: RowBlock, state: State, standing: Standing, strategy: Strategy, first: int, last: int
) -> NodeSums:
    """What is counted of some nodes."""
    return strategy.add_up(block, state, standing, first, last)


def choose(sums: NodeSums, columns: Columns, strategy: Strategy, nodes: Nodes) -> Splits:
    """The best splits."""
    return strategy.choose(columns, sums, nodes)


def move(block: RowBlock, standing: Standing, splits: Splits, number: Ids) -> Standing:
    """The rows at their children."""
    after = np.empty_like(standing.node)
    move_rows(block.columns.codes, block.columns.n_codes, standing.node, splits, number, after)
    return standing._replace(node=after)


class Portion(NamedTuple):
    """Rows of some nodes in one block."""

    codes: Any
    """(m, n)"""
    label: Ids
    times: Ids
    place: Ids
    """(n) which of the nodes a row is in, from 0 up."""
    state: State


def pick(block: RowBlock, state: State, standing: Standing, ends: Counts) -> list[Portion]:
    """The rows of some groups of nodes; ``ends`` is where each begins, and where the last one ends."""
    tree, row = np.nonzero((standing.node >= ends[0]) & (standing.node < ends[-1]))
    node, times = standing.node[tree, row], standing.times[tree, row]
    order = np.argsort(node, kind="stable")
    cuts = np.searchsorted(node[order], ends)
    return [
        Portion(
            block.columns.codes[:, row[some]],
            block.label[row[some]],
            times[some],
            node[some] - first,
            for_growth(state, row[some]),
        )
        for first, some in zip(ends, np.split(order, cuts[1:-1]), strict=False)
    ]


def finish(columns: Columns, strategy: Strategy, nodes: Nodes, parts: list[Portion]) -> list[Tree]:
    """The subtrees of small nodes."""
    label, times, place = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:4])
    by_class = place * (int(label.max()) + 1) + label
    order = np.argsort(by_class.astype(np.min_scalar_type(by_class.max())), kind="stable").astype(np.int32)
    codes = np.concatenate([part.codes for part in parts], axis=1).take(order, axis=1)
    state = joined([part.state for part in parts], order)
    here = Gathered(columns._replace(codes=codes), label[order], times[order], state)
    ends = np.searchsorted(place[order], np.arange(len(nodes.keys) + 1))
    members = [np.arange(*each, dtype=np.int32) for each in pairwise(ends)]
    return [strategy.finish(here, rows, nodes, at) for at, rows in enumerate(members)]
