"""Trees that grow level by level: nodes, and what hangs on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from budgetforest.growing.level_greedy import Splits
from budgetforest.runtime.arrays import Ids
from budgetforest.runtime.random import mix
from budgetforest.trees.forest import moved
from budgetforest.trees.tree import BY_CATEGORY, Tree, empty_tree


@dataclass
class PartialTree:
    """A node of a growing tree, and what hangs on it."""

    key: np.uint64
    weight: int
    node: Tree
    """The node alone."""
    met: frozenset[int] = frozenset()
    """The features that split the nodes above."""
    children: list[PartialTree | None] = field(default_factory=list)
    """None for a category without rows."""
    below: tuple[str, int] | None = None
    """Of a small node: the task that grows its subtree, and its place there."""
    number: int = -1
    """In its level; nodes that do not wait have none."""


class Level(NamedTuple):
    """Nodes to be decided, numbered large ones first."""

    large: list[PartialTree]
    """They are split by their counts."""
    small: list[PartialTree]
    """All below them is grown by one task."""


def hang_children(partials: list[PartialTree], splits: Splits, small: int) -> tuple[Level, Ids]:
    """The next level, and the number in it of every child; those that do not wait are not in it."""
    for at, partial in enumerate(partials):
        fill(partial, splits, at)
    children = [child for partial in partials for child in partial.children]
    waiting = [child for child, waits in zip(children, splits.waits, strict=True) if child and waits]
    level = Level(
        [child for child in waiting if child.weight > small],
        [child for child in waiting if child.weight <= small],
    )
    for number, child in enumerate(level.large + level.small):
        child.number = number
    return level, np.array([-1 if child is None else child.number for child in children], np.int32)


def fill(partial: PartialTree, splits: Splits, at: int) -> None:
    """Write down how a node splits, and hang its children on it."""
    node = partial.node
    node.feature[0], node.threshold[0], node.route[0] = (
        splits.feature[at],
        splits.threshold[at],
        splits.route[at],
    )
    node.counts[0], node.impurity[0] = splits.total[at], splits.impurity[at]
    node.floor[0], node.weight[0] = splits.floor[at], partial.weight
    met = partial.met | {int(splits.feature[at])}
    for code, child in enumerate(range(splits.first[at], splits.first[at + 1])):
        hung = None
        if splits.size[child] >= 0:
            alone = empty_tree(1, splits.counts.shape[1])
            alone.counts[0], alone.impurity[0] = splits.counts[child], splits.below[child]
            alone.weight[0] = splits.size[child]
            hung = PartialTree(
                np.uint64(mix(partial.key, np.uint64(code))), int(splits.size[child]), alone, met
            )
        partial.children.append(hung)


def whole(root: PartialTree, subtrees: dict[str, list[Tree]]) -> Tree:
    """The tree that has grown from a root, in preorder."""
    parts: list[Tree] = []
    nodes = slots = 0

    def put(partial: PartialTree) -> int:
        """Put a node and all below it behind the others; returns its number."""
        nonlocal nodes, slots
        number = nodes
        if partial.below is not None:
            below = subtrees[partial.below[0]][partial.below[1]]
            parts.append(moved(below, nodes, slots))
            nodes, slots = nodes + len(below.feature), slots + len(below.branches)
            return number
        node, places = partial.node, np.full(len(partial.children), -1, np.int32)
        nominal = node.route[0] == BY_CATEGORY
        parts.append(node._replace(branches=places) if nominal else node)
        nodes += 1
        if nominal:
            node.left[0], node.right[0] = slots, len(places) - 1
            slots += len(places)
        for at, child in enumerate(partial.children):
            places[at] = -1 if child is None else put(child)
        if nominal:
            # categories without rows go where most rows went
            most = np.argmax([-1 if child is None else child.weight for child in partial.children])
            places[places < 0] = ~places[most]
        elif len(places):
            node.left[0], node.right[0] = places
        return number

    put(root)
    return Tree._make(np.concatenate(columns) for columns in zip(*parts, strict=True))._replace(
        floor=parts[0].floor
    )
