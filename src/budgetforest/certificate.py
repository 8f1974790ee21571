"""How far a tree can be from the cheapest one: lemma 2.1 and theorem 2.2 of the paper, per tree.

OPT is the least max-cost of any tree with the same family of splits whose leaves are no more impure than
this tree's and that uses no feature twice on a path. At a node with rows S whose least cost per drop
of impurity is R, lemma 2.1 says R (F(S) - r) <= OPT, where r is the largest leaf impurity (0 when the tree is
complete). OPT on all rows is at least OPT on some of them, so the largest bound over all nodes holds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF
from budgetforest.costs import Costs
from budgetforest.tree import Tree, max_cost


class Certificate(NamedTuple):
    """What is proven about one tree; NaN where nothing is."""

    max_cost: float
    """The most that any row can pay in this tree."""
    lower_bound: float
    """No tree as pure as this one has a smaller max-cost (lemma 2.1)."""
    ratio: float
    """max_cost / lower_bound: this tree is at most so many times dearer than the best."""
    factor: float
    """What theorem 2.2 promises beforehand: log F(S) + 1."""


def certify(tree: Tree, costs: Costs, *, admissible: bool) -> Certificate:
    """The certificate of a tree; without an admissible minimax impurity only its max-cost."""
    most = max_cost(tree, costs)
    if not admissible:
        return Certificate(most, math.nan, math.nan, math.nan)
    inner = tree.feature != LEAF
    if not inner.any():
        return Certificate(0.0, 0.0, 1.0, 1.0)
    residue = float(tree.impurity[~inner].max())
    bound = float(np.max(tree.floor[inner] * (tree.impurity[inner] - residue), initial=0.0))
    smallest = min(1.0, float(tree.impurity[inner].min()))
    factor = math.log(tree.impurity[0] / smallest) + 1 if residue == 0 else math.nan
    ratio = most / bound if bound > 0 else (1.0 if most == 0 else math.inf)
    return Certificate(most, bound, ratio, factor)
