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

from budgetforest.arrays import LEAF
from budgetforest.costs import Costs
from budgetforest.tree import Tree
from budgetforest.walks import max_cost


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


def certify(tree: Tree, costs: Costs, *, admissible: bool) -> Certificate:
    """The certificate of a tree; without an admissible minimax impurity only its max-cost."""
    most = max_cost(tree, costs)
    if not admissible:
        return Certificate(most, math.nan, math.nan, math.nan)
    inner = tree.feature != LEAF
    if not inner.any():
        return Certificate(0.0, 0.0, 1.0, 1.0)
    residue = float(tree.impurity[~inner].max())
    bound = float(tree.floor[0] * (tree.impurity[0] - residue))
    smallest = min(1.0, float(tree.impurity[inner].min()))
    factor = math.log(tree.impurity[0] / smallest) + 1 if residue == 0 else math.nan
    ratio = most / bound if bound > 0 else (1.0 if most == 0 else math.inf)
    return Certificate(most, bound, ratio, factor)
