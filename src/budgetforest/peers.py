"""What other people's forests would pay, counted the same way as ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from budgetforest.arrays import LEAF
from budgetforest.costs import Costs
from budgetforest.errors import InvalidCosts, InvalidParameter
from budgetforest.forest import Context, Forest, Voting, join
from budgetforest.table import Schema
from budgetforest.tree import MISSING_LEFT, MISSING_RIGHT, Tree, empty_tree


def from_sklearn(model: Any, costs: Costs) -> Forest:
    """A scikit-learn tree or forest classifier as a ``Forest``, to be charged and walked as ours."""
    trees = [_tree(tree.tree_) for tree in getattr(model, "estimators_", [model])]
    schema = _schema([f"x{j}" for j in range(model.n_features_in_)], costs)
    classes = tuple(model.classes_.tolist())
    return join(trees, Context(trees[0].counts[0], costs, schema, classes, Voting.SOFT, 1.0))


def from_lightgbm(booster: Any, costs: Costs, rounds: int | None = None) -> Forest:
    """The trees of a LightGBM ``Booster``, or of its first rounds, as a ``Forest``: to be charged only.

    Trees stand in LightGBM's order: all classes of the first round, then those of the next. What leaves add
    to scores is left out, so labels come from ``booster.predict``; ``counts`` has a single column, how many
    training rows LightGBM says reached a node. Charge it for ``Answer.PROBA``.
    """
    dumped = booster.dump_model(num_iteration=rounds)
    trees = [_dumped_tree(tree["tree_structure"]) for tree in dumped["tree_info"]]
    schema = _schema(dumped["feature_names"], costs)
    return join(trees, Context(trees[0].counts[0], costs, schema, ("any",), Voting.COUNTS, 1.0))


def _schema(names: Sequence[str], costs: Costs) -> Schema:
    if len(names) != len(costs.cost):
        raise InvalidCosts(f"there are {len(costs.cost)} prices for a model of {len(names)} features")
    return Schema(tuple(names), (None,) * len(names))


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


def _dumped_tree(root: Mapping[str, Any]) -> Tree:
    """A tree of LightGBM's ``dump_model``; its nodes are brought into preorder."""
    nodes, right_of = _preorder(root)
    tree = empty_tree(len(nodes), 1)._replace(floor=np.full(1, np.nan))
    for at, node in enumerate(nodes):
        tree.counts[at] = node.get("internal_count", node.get("leaf_count", 0))
        if "leaf_features" in node:
            raise InvalidParameter("the booster has linear leaves; train it with linear_tree=False")
        if "split_feature" in node:
            tree.feature[at], tree.threshold[at] = node["split_feature"], node["threshold"]
            tree.left[at], tree.right[at] = at + 1, right_of[at]
            tree.route[at] = _missing_route(node)
    return tree


def _preorder(root: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], dict[int, int]]:
    """Nodes in preorder, and the place of each right child by that of its parent."""
    nodes: list[Mapping[str, Any]] = []
    right_of: dict[int, int] = {}
    waiting = [(root, -1)]
    while waiting:
        node, above = waiting.pop()
        right_of[above] = at = len(nodes)
        nodes.append(node)
        if "split_feature" in node:
            waiting += [(node["right_child"], at), (node["left_child"], -1)]
    return nodes, right_of


def _missing_route(split: Mapping[str, Any]) -> int:
    """Where LightGBM sends NaN; where training had none it takes it for zero."""
    if split["decision_type"] != "<=":
        raise InvalidParameter("the booster has categorical splits; only numeric ones can be charged")
    if split["missing_type"] == "Zero":
        raise InvalidParameter("the booster takes zero for missing; train it with zero_as_missing=False")
    left = split["default_left"] if split["missing_type"] == "NaN" else split["threshold"] >= 0
    return MISSING_LEFT if left else MISSING_RIGHT
