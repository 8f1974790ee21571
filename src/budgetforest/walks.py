"""Compiled walks: to the leaf of a row, and along all paths of a tree."""

from __future__ import annotations

import numpy as np

from budgetforest.arrays import LEAF, Floats, Ids
from budgetforest.costs import Costs
from budgetforest.jit import inner, kernel
from budgetforest.tree import Tree, family, next_node

child_of = inner(next_node)


@inner
def leaf_of(tree: Tree, node: int, row: Floats) -> int:
    """The leaf that a row reaches from ``node``."""
    while tree.feature[node] != LEAF:
        node = child_of(tree, node, row[tree.feature[node]])
    return node


@kernel
def spent_before(tree: Tree, parent: Ids, cost: Floats, discount: Floats, group: Ids) -> Floats:
    """(d) what a row has paid on reaching each node of one tree: features and openings once."""
    spent = np.zeros(len(parent))
    for node in range(len(parent)):
        above = parent[node]
        if above < 0:
            continue
        feature = tree.feature[above]
        price = cost[feature]
        ancestor = parent[above]
        while ancestor >= 0:
            met = tree.feature[ancestor]
            if met == feature:
                price = 0.0
                break
            if group[met] == group[feature]:
                price = discount[feature]
            ancestor = parent[ancestor]
        spent[node] = spent[above] + price
    return spent


def max_cost(tree: Tree, costs: Costs) -> float:
    """The most that any row can pay in one tree."""
    above = family(tree, np.zeros(1, np.int32)).parent
    return float(spent_before(tree, above, *costs[:3]).max())
