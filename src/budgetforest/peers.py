"""What other people's forests would pay, counted the same way as ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetforest.arrays import LEAF
from budgetforest.costs import Costs
from budgetforest.forest import Context, Forest, Voting, join
from budgetforest.table import Schema
from budgetforest.tree import MISSING_LEFT, MISSING_RIGHT, Tree


def from_sklearn(model: Any, costs: Costs) -> Forest:
    """A scikit-learn tree or forest classifier as a ``Forest``, to be charged and walked as ours."""
    trees = [_tree(tree.tree_) for tree in getattr(model, "estimators_", [model])]
    names = tuple(f"x{j}" for j in range(model.n_features_in_))
    schema = Schema(names, (None,) * len(names))
    classes = tuple(model.classes_.tolist())
    return join(trees, Context(trees[0].counts[0], costs, schema, classes, Voting.SOFT, 1.0))


def _tree(fitted: Any) -> Tree:
    inner = fitted.children_left >= 0
    rows = np.round(fitted.value[:, 0, :] * fitted.weighted_n_node_samples[:, None])
    return Tree(
        feature=np.where(inner, fitted.feature, LEAF).astype(np.int32),
        threshold=np.where(inner, fitted.threshold, np.nan),
        left=fitted.children_left.astype(np.int32),
        right=fitted.children_right.astype(np.int32),
        route=np.where(fitted.missing_go_to_left, MISSING_LEFT, MISSING_RIGHT).astype(np.uint8),
        counts=rows.astype(np.int64),
        impurity=fitted.impurity.copy(),
        branches=np.empty(0, np.int32),
        floor=np.full(1, np.nan),
    )
