"""The nodes that a tree still has to decide, and how a node is parted into children: what all growers share.

Growers work depth first. They take the node on top, decide, and push its children, the left one last, so that
it follows its parent in the tree:

    | ... | right child | left child |  <- top
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.data.binning import Columns
from budgetforest.growing.histogram import Cells, partition, partition_by_code
from budgetforest.runtime.arrays import LEAF, Counts, Ids, Keys
from budgetforest.runtime.jit import inner, kernel, passage
from budgetforest.runtime.random import mix
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree

LEFT, RIGHT = -1, -2
"""Which child of its parent a waiting node is; from 0 up, a position in ``branches``."""


class NodeStack(NamedTuple):
    """Nodes that wait to be decided."""

    nodes: Counts
    """(n, 5) first and last of the node's rows, its parent, which child it is, and a note of the grower: its
    depth, or how many features are worth trying."""
    keys: Keys
    """(n) what random draws at the node are keyed by."""
    begin: Counts
    """Where the rows of each category begin, when a node is parted."""
    buffer: Ids
    """Memory to part rows with."""


class Taken(NamedTuple):
    """A node that waits no longer; see ``NodeStack``."""

    start: int
    stop: int
    parent: int
    slot: int
    note: int
    key: np.uint64


class Split(NamedTuple):
    """The best split of a node so far."""

    gain: float
    """What it is worth, by the grower's own measure."""
    feature: int
    """``LEAF`` if there is none."""
    cut: int
    """The last code on the left."""
    route: int
    """Where missing values go, or ``BY_CATEGORY``."""


def stack_for(n_nodes: int, n_codes: int, buffer: Ids) -> NodeStack:
    """Room for so many waiting nodes; ``buffer`` has room for the rows of the largest."""
    nodes, keys = np.empty((n_nodes, 5), np.int64), np.empty(n_nodes, np.uint64)
    return NodeStack(nodes, keys, np.empty(n_codes + 1, np.int64), buffer)


@inner
def push(
    stack: NodeStack, top: int, start: int, stop: int, parent: int, slot: int, note: int, key: np.uint64
) -> None:
    """Let a node wait for its turn."""
    node = stack.nodes[top]
    node[0] = start
    node[1] = stop
    node[2] = parent
    node[3] = slot
    node[4] = note
    stack.keys[top] = key


@passage
def take(stack: NodeStack, at: int) -> Taken:
    """The node that waits at a place."""
    node = stack.nodes[at]
    return Taken(node[0], node[1], node[2], node[3], node[4], stack.keys[at])


@passage
def make_leaf(tree: Tree, branches: Ids, taken: Taken, node: int) -> None:
    """A new node: a leaf without rows, the child of its parent if it has one."""
    tree.feature[node] = LEAF
    tree.threshold[node] = np.nan
    tree.left[node] = -1
    tree.right[node] = -1
    tree.route[node] = MISSING_RIGHT
    tree.impurity[node] = 0.0
    for c in range(tree.counts.shape[1]):
        tree.counts[node, c] = 0
    if taken.parent < 0:
        return
    if taken.slot == LEFT:
        tree.left[taken.parent] = node
    elif taken.slot == RIGHT:
        tree.right[taken.parent] = node
    else:
        branches[taken.slot] = node


@passage
def push_children(
    cells: Cells,
    rows: Ids,
    taken: Taken,
    node: int,
    split: Split,
    missing: int,
    tree: Tree,
    branches: Ids,
    n_branches: int,
    stack: NodeStack,
    top: int,
    note: int,
) -> int:
    """Part the rows of a node by its split, and let its children wait; returns the new top.

    rows:  | ... | left: code <= cut | right: code > cut | ... |     ``missing`` go where ``split.route`` says
           start                   middle               stop

    ``missing`` is the code of missing values. A category has a child if it has rows.
    """
    start, stop, j = taken.start, taken.stop, split.feature
    here = rows[start:stop]
    if split.route != BY_CATEGORY:
        to_left = (split.route & MISSING_LEFT) != 0
        middle = start + partition(cells, j, here, split.cut, to_left, missing, stack.buffer)
        left, right = int(np.int64(LEFT)), int(np.int64(RIGHT))  # literals would be compiled once more
        # keys of children depend on their parent's and their side alone, not on the order of work
        push(stack, top, middle, stop, node, right, note, mix(taken.key, np.uint64(1)))
        push(stack, top + 1, start, middle, node, left, note, mix(taken.key, np.uint64(0)))
        return top + 2
    partition_by_code(cells, j, here, missing, stack.begin, stack.buffer)
    # a nominal node keeps a range of branches: | category 0 | ... | category c - 1 | missing |
    tree.left[node] = n_branches
    tree.right[node] = missing
    # from the last category down, so that the first is on top and follows its parent
    for code in range(missing, -1, -1):
        slot = n_branches + code
        branches[slot] = -1
        first = start + stack.begin[code]
        last = start + stack.begin[code + 1]
        if last > first:
            push(stack, top, first, last, node, slot, note, mix(taken.key, np.uint64(code)))
            top += 1
    return top


@passage
def room_for_branches(branches: Ids, used: int, more: int) -> Ids:
    """The same branches with room for more."""
    if used + more <= len(branches):
        return branches
    grown = np.empty(2 * len(branches) + more, np.int32)
    for at in range(used):
        grown[at] = branches[at]
    return grown


@inner
def edge_after(columns: Columns, feature: int, cut: int) -> float:
    """The threshold above a code; +inf after the last one, which parts values from missing ones."""
    if cut >= columns.n_codes[feature] - 1:
        return np.inf
    return float(columns.points[columns.offset[feature] + cut])


@kernel
def fill_empty_branches(rows: Ids, tree: Tree, branches: Ids) -> None:
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
