"""How far a tree can be from the cheapest one: lemma 2.1 and theorem 2.2 of the paper, per tree.

OPT is the least max-cost of any tree on these rows whose leaves are no more impure than this tree's. Let
a feature t that tells all its values at once leave at most F_t in one part of the rows S. Whatever the
optimal tree does, some row sees, test after test, the value of each feature that leaves most; the features
it pays for then lower F(S) by at most the sum of F(S) - F_t, by supermodularity. So

    OPT  >=  (F(S) - r)  min over t of  c(t) / (F(S) - F_t),        r the largest leaf impurity.

For features of two values this is lemma 2.1. For others the lemma assumes that the optimal tree uses no
feature twice on a path; this bound holds without, since telling all values at once is worth any number
of uses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Costs
from budgetforest.data.costs import price as price_of
from budgetforest.runtime.arrays import LEAF, Flags, Floats, Ids
from budgetforest.trees.tree import Tree, family


class Certificate(NamedTuple):
    """What is proven about one tree; NaN where nothing is."""

    max_cost: float
    """The most that any row can pay in this tree."""
    lower_bound: float
    """No tree as pure as this one has a smaller max-cost (lemma 2.1)."""
    ratio: float
    """max_cost / lower_bound: this tree is at most so many times dearer than the best."""
    factor: float
    """What theorem 2.2 promises beforehand against trees that use no feature twice: log F(S) + 1."""


def certify(trees: Tree, roots: Ids, costs: Costs, *, admissible: bool) -> list[Certificate]:
    """The certificates of trees end to end; without an admissible minimax impurity only their max-costs."""
    found = []
    spent = spent_before(trees, roots, costs)
    dearest = np.maximum.reduceat(spent, roots[:-1]).tolist() if len(spent) else []
    for t, most in enumerate(dearest):
        nodes = slice(roots[t], roots[t + 1])
        feature, impurity, floor = trees.feature[nodes], trees.impurity[nodes], float(trees.floor[t])
        found.append(_certificate(most, feature != LEAF, impurity, floor if admissible else math.nan))
    return found


def _certificate(most: float, inner: Flags, impurity: Floats, floor: float) -> Certificate:
    """The certificate of one tree of which the lemma's ``floor`` is known."""
    if math.isnan(floor):
        return Certificate(most, math.nan, math.nan, math.nan)
    if not inner.any():
        return Certificate(0.0, 0.0, 1.0, 1.0)
    residue = float(impurity[~inner].max())
    bound = floor * float(impurity[0] - residue)
    # theorem 2.2 needs F >= 1 wherever it is not 0: it is scaled by its smallest value in the tree
    smallest = min(1.0, float(impurity[inner].min()))
    # the theorem speaks of trees whose leaves have F = 0
    factor = math.log(impurity[0] / smallest) + 1 if residue == 0 else math.nan
    ratio = most / bound if bound > 0 else (1.0 if most == 0 else math.inf)
    return Certificate(most, bound, ratio, factor)


def spent_before(trees: Tree, roots: Ids, costs: Costs) -> Floats:
    """(d) what a row has paid in a tree on reaching a node of it: features and openings of groups once."""
    parent, depth = family(trees, roots[:-1])
    price = _prices(trees, parent, costs)
    spent = np.zeros(len(parent))
    # parents before children, a level at a time
    by_depth = np.argsort(depth, kind="stable")
    for level in np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1)[1:]:
        spent[level] = spent[parent[level]] + price[level]
    return spent


def _prices(trees: Tree, parent: Ids, costs: Costs) -> Floats:
    """(d) what the question above each node costs a row that comes by, given the questions before it."""
    price = np.zeros(len(parent))
    node = np.flatnonzero(parent >= 0)
    asked, before = trees.feature[parent[node]], parent[parent[node]]
    price[node] = price_of(costs, asked, False)
    # all nodes climb to their ancestors together, a level a round; who meets its own feature pays nothing
    while len(node):
        more = before >= 0
        node, asked, before = node[more], asked[more], before[more]
        met = trees.feature[before]
        opened, again = costs.group[met] == costs.group[asked], met == asked
        # another member opened the group; the climb goes on, for the feature itself may stand higher
        price[node[opened]] = price_of(costs, asked[opened], True)
        price[node[again]] = 0.0
        node, asked, before = node[~again], asked[~again], parent[before[~again]]
    return price
