"""Strategies to grow a tree on rows in blocks: what is added up, how sums choose splits, how small nodes end.

``level_growth`` drives them all. Boosting also knows what the rows of a block remember of the trees before,
their ``State``; the other strategies know their rules alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.data.costs import Costs
from budgetforest.growing.acquired import Acquired, nothing_acquired
from budgetforest.growing.boosting import Boost, Slopes, boosted_below, slopes_at, sums_for
from budgetforest.growing.entropy_trees import Growth, entropy_tree_below
from budgetforest.growing.greedytree import grow_below, with_all_branches
from budgetforest.growing.level_boosting import (
    choose_boosts,
    follow_tree,
    lacking_in_block,
    slopes_of_block,
    take_met,
)
from budgetforest.growing.level_entropy_trees import choose_entropy_splits
from budgetforest.growing.level_greedy import Splits, Standing, cells_of, choose_splits, counts_of_block
from budgetforest.growing.workspace import Plan
from budgetforest.runtime.arrays import Counts, Flags, Ids, Keys
from budgetforest.trees.tree import Tree

NO_SCORES: Counts = np.zeros(0, np.int64)
"""Of trees that are not boosted."""


class RowBlock(NamedTuple):
    """Some of the training rows, in the order of their contents."""

    columns: Columns
    label: Ids
    weight: Ids
    start: Counts
    """(n) the weight of the rows of all blocks that come before."""


class State(NamedTuple):
    """What the rows of a block remember of the trees before; empty where it does not matter."""

    owned: Acquired
    scores: Counts
    """(n, k) of boosted trees, so far."""
    slopes: Slopes
    """Of the loss at these scores."""


class NodeSums(NamedTuple):
    """What is added up over the rows of a block, and then over blocks."""

    cells: NDArray[Any]
    """(nodes, cells, w)"""
    lacking: Counts
    """(nodes, m, 2) see ``lacking_in_block``; of no features where nothing is paid."""


class Gathered(NamedTuple):
    """Rows of small nodes, brought to one worker: node after node, sorted by class."""

    columns: Columns
    label: Ids
    times: Ids
    state: State


class Nodes(NamedTuple):
    """Nodes of the same depth."""

    keys: Keys
    met: Flags
    """(d, m) the features that split the nodes above."""
    depth: int


class Strategy(Protocol):
    """How a tree grows; sent to the workers."""

    @property
    def width(self) -> int:
        """How many numbers of four bytes are added up for a code."""
        ...

    @property
    def takes_all(self) -> bool:
        """Whether rows that are not drawn go along, since they remember the trees."""
        ...

    def add_up(self, block: RowBlock, state: State, standing: Standing, first: int, last: int) -> NodeSums:
        """The sums of a block for the nodes from ``first`` up to ``last``."""
        ...

    def choose(self, columns: Columns, sums: NodeSums, nodes: Nodes) -> Splits:
        """The best split of every node."""
        ...

    def finish(self, rows: Gathered, members: Ids, nodes: Nodes, at: int) -> Tree:
        """All below one of the nodes, as on a single machine; its ``members`` stand side by side."""
        ...


class Greedy(NamedTuple):
    """The paper's GREEDYTREE."""

    plan: Plan

    @property
    def width(self) -> int:
        """Class counts."""
        return self.plan.n_classes

    @property
    def takes_all(self) -> bool:
        """Nothing is remembered."""
        return False

    def add_up(self, block: RowBlock, state: State, standing: Standing, first: int, last: int) -> NodeSums:
        """Class counts by code."""
        begin = cells_of(block.columns)
        k = self.plan.n_classes
        return NodeSums(
            counts_of_block(block.columns, block.label, standing, begin, first, last, k),
            nothing_lacking(last - first),
        )

    def choose(self, columns: Columns, sums: NodeSums, nodes: Nodes) -> Splits:
        """The splits of least risk."""
        return choose_splits(columns, self.plan, sums.cells, nodes.keys, nodes.depth == 0)

    def finish(self, rows: Gathered, members: Ids, nodes: Nodes, at: int) -> Tree:
        """The local grower."""
        classes = np.arange(self.plan.n_classes)
        ends = members[0] + np.searchsorted(rows.label[members], classes, "right")
        return with_all_branches(
            grow_below(rows.columns, ends, rows.times, members, self.plan, nodes.keys[at])
        )


class Entropy(NamedTuple):
    """Trees of largest entropy drop."""

    growth: Growth

    @property
    def width(self) -> int:
        """Class counts."""
        return self.growth.n_classes

    @property
    def takes_all(self) -> bool:
        """Nothing is remembered."""
        return False

    def add_up(self, block: RowBlock, state: State, standing: Standing, first: int, last: int) -> NodeSums:
        """Class counts by code."""
        begin = cells_of(block.columns, self.growth.pool)
        k = self.growth.n_classes
        return NodeSums(
            counts_of_block(block.columns, block.label, standing, begin, first, last, k),
            nothing_lacking(last - first),
        )

    def choose(self, columns: Columns, sums: NodeSums, nodes: Nodes) -> Splits:
        """The splits of largest drop."""
        return choose_entropy_splits(columns, self.growth, sums.cells, nodes.keys)

    def finish(self, rows: Gathered, members: Ids, nodes: Nodes, at: int) -> Tree:
        """The local grower."""
        return entropy_tree_below(rows.columns, rows.label, rows.times, members, self.growth, nodes.keys[at])


class Boosting(NamedTuple):
    """Gradient boosting with prices."""

    boost: Boost
    costs: Costs

    @property
    def width(self) -> int:
        """Gradients, curvatures and rows, of eight bytes."""
        k = self.boost.n_classes
        return 4 * (1 if k == 2 else k) + 4

    @property
    def takes_all(self) -> bool:
        """Every row has a score."""
        return True

    def add_up(self, block: RowBlock, state: State, standing: Standing, first: int, last: int) -> NodeSums:
        """Slopes by code, and who lacks what."""
        pool = self.boost.pool
        begin = cells_of(block.columns, pool)
        return NodeSums(
            slopes_of_block(block.columns.codes, state.slopes, standing, begin, first, last),
            lacking_in_block(state.owned, self.costs.group, pool, standing, first, last)
            if self.boost.rate
            else nothing_lacking(last - first),
        )

    def choose(self, columns: Columns, sums: NodeSums, nodes: Nodes) -> Splits:
        """The splits that save most."""
        lacking = without_met(sums.lacking, nodes.met, self.costs.group)
        return choose_boosts(columns, self.boost, self.costs, sums.cells, lacking, nodes.keys, nodes.depth)

    def finish(self, rows: Gathered, members: Ids, nodes: Nodes, at: int) -> Tree:
        """The local grower; what it adds to scores is added where the rows are."""
        columns, _, times, state = rows
        take_met(state.owned, members, nodes.met[at], self.costs.bare)
        boost = self.boost._replace(depth=self.boost.depth - nodes.depth)
        spare = np.zeros((len(times), boost.n_classes), np.int64)
        return boosted_below(
            columns,
            state.slopes,
            times,
            members,
            boost,
            self.costs,
            state.owned,
            nodes.keys[at],
            spare,
            sums_for(columns, boost.n_classes, len(members)),
        )


def nothing_lacking(nodes: int) -> Counts:
    """Where nothing is paid."""
    return np.zeros((nodes, 0, 2), np.int64)


def without_met(lacking: Counts, met: Flags, group: Ids) -> Counts:
    """The same in view of what all rows of a node met above it: features, and others of their groups."""
    if not lacking.shape[1]:
        return lacking
    lack = np.where(met, 0, lacking[:, :, 0])
    return np.stack([lack, np.where(groups_met(met, group)[:, group], lack, lacking[:, :, 1])], axis=2)


def groups_met(met: Flags, group: Ids) -> Flags:
    """(d, g) the groups of which some feature was met."""
    found = np.zeros((len(met), int(group.max()) + 1), bool)
    for j in range(met.shape[1]):
        found[:, group[j]] |= met[:, j]
    return found


def added(parts: Sequence[NodeSums]) -> NodeSums:
    """The sums of several blocks."""
    return NodeSums._make(sum(columns[1:], start=columns[0]) for columns in zip(*parts, strict=True))


# What rows remember ------------------------------------------------------------------------------


def first_state(block: RowBlock, costs: Costs, pays: bool, start: Counts) -> State:
    """Nobody has anything; ``start`` (k) are the first scores, none for trees that are not boosted."""
    n = len(block.label)
    owned = nothing_acquired(n, costs)
    if not pays:
        owned = Acquired._make(part[:0] for part in owned)
    scores = np.tile(start, (n, 1))
    return State(owned, scores, slopes_for(scores, block.label))


def after_tree(block: RowBlock, state: State, tree: Tree, group: Ids) -> State:
    """What rows remember once they have followed a tree; a new state, since tasks may be run again."""
    owned, scores = Acquired._make(part.copy() for part in state.owned), state.scores.copy()
    follow_tree(block.columns, tree, group, owned, scores)
    return State(owned, scores, slopes_for(scores, block.label))


def slopes_for(scores: Counts, label: Ids) -> Slopes:
    """The slopes at the scores, if there are any."""
    if scores.shape[1]:
        return slopes_at(scores, label)
    return np.zeros((len(label), 0), np.int32)


def for_growth(state: State, rows: Any) -> State:
    """What a tree on some of the rows must know; scores stay."""
    bit = (rows & 7).astype(np.uint8)
    return State(
        Acquired._make(_packed(part[:, rows >> 3] >> bit & 1) for part in state.owned),
        state.scores[:0],
        state.slopes[rows],
    )


def joined(states: Sequence[State], order: Ids) -> State:
    """What rows of several blocks remember, in another order."""
    owned, scores, slopes = zip(*states, strict=True)
    sizes = [len(part) for part in slopes]

    def together(parts: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        flags = [_unpacked(part, size) for part, size in zip(parts, sizes, strict=True)]
        return _packed(np.concatenate(flags, axis=1).take(order, axis=1))

    return State(
        Acquired._make(together(parts) for parts in zip(*owned, strict=True)),
        scores[0],
        np.concatenate(slopes).take(order, axis=0),
    )


def _packed(flags: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bits of ``Acquired`` from bytes."""
    return np.packbits(flags, axis=1, bitorder="little")


def _unpacked(bits: NDArray[np.uint8], n_rows: int) -> NDArray[np.uint8]:
    return np.unpackbits(bits, axis=1, count=n_rows, bitorder="little")
