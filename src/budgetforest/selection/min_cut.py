"""BUDGETPRUNE (Nan, Wang, Saligrama, NIPS 2016): the best part of a forest at a price, by a minimum cut.

A pruned forest keeps some inner nodes, a node only if its parent is kept. Keeping a node lowers the trees'
mean error on given rows by (e(node) - sum of e(children)) / T, and needs every *pair* (row, feature) that the
row first meets there, or the pair (row, group) that opens a group. A pair is paid once for the whole forest,
whatever needs it. At a given rate, what a unit of cost is worth in errors, the best part is a maximum
closure, hence one minimum cut (Picard 1976). The publication solves the same problem as a linear program.

Pairs that the same nodes need are one vertex: rows that take the same turns count once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from budgetforest.data.costs import Costs
from budgetforest.runtime.arrays import LEAF, Counts, Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import kernel
from budgetforest.trees.forest import Forest, tree_of
from budgetforest.trees.tree import BY_CATEGORY, Tree, family
from budgetforest.trees.walk import child_of

CAPACITY = 2**30
"""Everything that can be gained, in units of flow: what the solver counts in."""


class Closure(NamedTuple):
    """What keeping each inner node of a forest gains and needs."""

    parent: Ids
    """(d) the node above, -1 at roots."""
    gain: Floats
    """(d) errors per row that keeping the node saves, 0 at leaves; negative where it adds some."""
    price: Floats
    """(p) mean cost per row of each set of pairs that the same nodes need."""
    node: Ids
    """(e) a node ..."""
    pair: Ids
    """(e) ... and one of the pairs that it needs."""


def closure_of(forest: Forest, X: Matrix, label: Ids, weight: Ids) -> Closure:
    """The problem of pruning a forest on these rows."""
    nodes, roots = forest.nodes, forest.roots
    inner = nodes.feature != LEAF
    parent = family(nodes, roots[:-1]).parent
    errors = np.zeros(len(parent))
    count_errors(nodes, roots, X, label, weight, nodes.counts.argmax(axis=1), errors)
    # e(node) - sum of e(children): what keeping the node saves
    gain = np.where(inner, errors, 0.0)
    child = parent >= 0
    np.subtract.at(gain, parent[child], errors[child])
    own, opening = _fees(forest.costs)
    # pairs whose nodes have the same sum of random tags are needed by the same nodes, but for chance
    tags = np.random.default_rng(0).integers(2**63, size=len(parent), dtype=np.uint64)
    keys = np.zeros((len(X), len(own) + len(opening)), np.uint64)
    tag_pairs(nodes, roots, X, forest.costs.group, tags, keys)
    paid = np.concatenate([own, opening])[None, :] * weight[:, None]
    # what is free need not be paid for by any node
    keys[paid == 0] = 0
    # one vertex for each distinct key, at the price of all its pairs
    unique, first, which = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    price = np.bincount(which, paid.ravel())
    node, pair = list_pairs(
        nodes, roots, X, forest.costs.group, len(own), *_by_row(first, unique, keys.shape[1])
    )
    total = float(weight.sum())
    return Closure(parent, gain / (total * forest.n_trees), price / total, node, pair)


def _fees(costs: Costs) -> tuple[Floats, Floats]:
    """(m) what each feature costs once its group is open, and (g) what opening a group costs.

    Where the fee depends on which member comes first, the least is taken.
    """
    alone = np.bincount(costs.group)[costs.group] == 1
    own = np.where(alone, costs.cost, costs.discount)
    opening = np.full(len(costs.group_names), np.inf)
    np.minimum.at(opening, costs.group, np.where(alone, 0.0, np.maximum(costs.cost - costs.discount, 0.0)))
    return own, opening


def _by_row(first: Counts, unique: Keys, width: int) -> tuple[Ids, Ids, Ids]:
    """One example of each pair, in the order of rows: its row, its column, its number."""
    order = np.argsort(first, kind="stable")
    order = order[unique[order] != 0]
    row, column = np.divmod(first[order], width)
    return row.astype(np.int32), column.astype(np.int32), order.astype(np.int32)


def best_part(problem: Closure, rate: float, among: Flags | None = None) -> Flags:
    """(d) the inner nodes to keep, the fewest of those that gain most at this rate.

    ``among`` are the nodes to choose from: those kept at a lower rate hold all that are kept at a higher one.
    """
    gain = problem.gain
    here = np.ones(len(gain), bool) if among is None else among
    inner = np.zeros(len(gain), bool)
    inner[problem.parent[problem.parent >= 0]] = True
    nodes = np.flatnonzero(here & inner)
    needs = here[problem.node]
    pairs = np.unique(problem.pair[needs])
    cost = rate * problem.price[pairs]
    most = gain[nodes].clip(min=0).sum()
    kept = np.zeros(len(gain), bool)
    if most <= 0:
        return kept
    # vertices: source, sink, nodes, pairs
    #   source -> node, gain > 0     node -> sink, gain < 0     pair -> sink, its price
    #   node -> parent, node -> pair: cannot be cut, so what is kept keeps what it needs
    at = np.full(len(gain), -1)
    at[nodes] = np.arange(len(nodes)) + 2
    pair_at = np.full(len(problem.price), -1)
    pair_at[pairs] = np.arange(len(pairs)) + 2 + len(nodes)
    below = nodes[problem.parent[nodes] >= 0]
    wins, loses = nodes[gain[nodes] > 0], nodes[gain[nodes] < 0]
    # the solver counts in 32-bit integers; what cannot be cut has more than all that can be gained
    scale = CAPACITY / most
    tail = [np.zeros(len(wins)), at[loses], at[below], at[problem.node[needs]], pair_at[pairs]]
    head = [
        at[wins],
        np.ones(len(loses)),
        at[problem.parent[below]],
        pair_at[problem.pair[needs]],
        np.ones(len(pairs)),
    ]
    forced = np.full(len(below) + int(needs.sum()), 2 * CAPACITY - 1)
    flow = [gain[wins] * scale, -gain[loses] * scale, forced, cost * scale]
    capacity = np.rint(np.minimum(np.concatenate(flow), 2 * CAPACITY - 1)).astype(np.int32)
    size = 2 + len(nodes) + len(pairs)
    graph = csr_array(
        (capacity, (np.concatenate(tail).astype(np.int32), np.concatenate(head).astype(np.int32))),
        (size, size),
    )
    kept[nodes] = _source_side(graph)[at[nodes]]
    return kept


def _source_side(graph: csr_array) -> Flags:
    """The vertices that a minimum cut leaves with vertex 0, the source; vertex 1 is the sink."""
    # what the residual graph reaches is the smallest of all minimum cuts: among equals the fewest nodes
    residual = graph - maximum_flow(graph, 0, 1).flow
    residual.data[residual.data < 0] = 0
    residual.eliminate_zeros()
    reached = np.zeros(graph.shape[0], bool)
    reached[breadth_first_order(residual, 0, return_predecessors=False)] = True
    return reached


def value(problem: Closure, rate: float, kept: Flags) -> float:
    """What a part of the forest is worth: errors saved per row minus rate x mean cost."""
    bought = np.unique(problem.pair[kept[problem.node]])
    return float(problem.gain[kept].sum() - rate * problem.price[bought].sum())


def pruned(forest: Forest, kept: Flags) -> list[Tree]:
    """The trees of a forest with leaves in place of all inner nodes that are not kept."""
    return [
        trimmed(tree_of(forest, number), kept[first:last])
        for number, (first, last) in enumerate(zip(forest.roots[:-1], forest.roots[1:], strict=True))
    ]


def trimmed(tree: Tree, kept: Flags) -> Tree:
    """A tree without what is below the nodes that are not kept."""
    feature = np.where(kept, tree.feature, LEAF).astype(np.int32)
    inner = feature != LEAF
    stays = family(tree._replace(feature=feature), np.zeros(1, np.int32)).parent >= 0
    stays[0] = True
    # nodes that stay keep their order, so the tree stays in preorder
    number = (np.cumsum(stays) - 1).astype(np.int32)
    nominal = inner & (tree.route == BY_CATEGORY)
    numeric = inner & ~nominal
    left, right = np.full(len(feature), -1, np.int32), np.full(len(feature), -1, np.int32)
    left[numeric], right[numeric] = number[tree.left[numeric]], number[tree.right[numeric]]
    branches = [np.empty(0, np.int32)]
    for node in np.flatnonzero(nominal & stays):
        children = tree.branches[tree.left[node] : tree.left[node] + tree.right[node] + 1]
        left[node], right[node] = sum(map(len, branches)), tree.right[node]
        # ~child stands for a category that training did not see at the node
        branches.append(np.where(children >= 0, number[children], ~number[~children]).astype(np.int32))
    return Tree(
        feature[stays],
        np.where(inner, tree.threshold, np.nan)[stays],
        left[stays],
        right[stays],
        np.where(inner, tree.route, 0).astype(np.uint8)[stays],
        tree.counts[stays],
        tree.impurity[stays],
        tree.weight[stays],
        np.concatenate(branches),
        tree.floor,
    )


@kernel
def count_errors(
    tree: Tree, roots: Ids, X: Matrix, label: Ids, weight: Ids, top: Counts, errors: Floats
) -> None:
    """Add to every node the weight of its rows that are not of its majority."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            node = int(np.int64(roots[t]))
            while True:
                # of inner nodes too: their error as leaves; sums of whole weights are exact
                if top[node] != label[i]:
                    errors[node] += weight[i]
                if tree.feature[node] == LEAF:
                    break
                node = child_of(tree, node, X[i, tree.feature[node]])


@kernel
def tag_pairs(tree: Tree, roots: Ids, X: Matrix, group: Ids, tags: Keys, keys: Keys) -> None:
    """``keys[i, j]``, of groups ``keys[i, m + g]``: the sum of the tags of nodes where i first meets it."""
    m = X.shape[1]
    # stamped with the walk, a number for each row and tree, so nothing is cleared between walks
    seen = np.empty(keys.shape[1], np.int64)
    for pair in range(len(seen)):
        seen[pair] = -1
    for i in range(len(X)):
        for t in range(len(roots) - 1):
            walk = i * (len(roots) - 1) + t
            node = int(np.int64(roots[t]))
            while tree.feature[node] != LEAF:
                j = tree.feature[node]
                for met in (np.int64(j), np.int64(m + group[j])):
                    # the first node on the way that asks for it, in each tree
                    if seen[met] != walk:
                        seen[met] = walk
                        keys[i, met] += tags[node]
                node = child_of(tree, node, X[i, j])


@kernel
def list_pairs(
    tree: Tree, roots: Ids, X: Matrix, group: Ids, m: int, rows: Ids, columns: Ids, numbers: Ids
) -> tuple[Ids, Ids]:
    """All (node, pair) where the node needs the pair, for one example (row, column) of each pair."""
    # at most one node of each tree needs a pair
    nodes = np.empty(len(rows) * (len(roots) - 1), np.int32)
    pairs = np.empty(len(nodes), np.int32)
    found = 0
    for at in range(len(rows)):
        for t in range(len(roots) - 1):
            node = int(np.int64(roots[t]))
            while tree.feature[node] != LEAF:
                j = tree.feature[node]
                # columns from m on stand for groups, as in ``tag_pairs``
                if columns[at] == j or columns[at] == m + group[j]:
                    nodes[found] = node
                    pairs[found] = numbers[at]
                    found += 1
                    break
                node = child_of(tree, node, X[rows[at], j])
    return nodes[:found].copy(), pairs[:found].copy()
