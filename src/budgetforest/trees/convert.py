"""What other people's forests would pay, counted the same way as ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from budgetforest.data.costs import Costs
from budgetforest.data.table import Schema, names_of
from budgetforest.runtime.arrays import LEAF, MOST_WEIGHT
from budgetforest.runtime.errors import InvalidCosts, InvalidParameter
from budgetforest.trees.forest import Context, Forest, Voting, join
from budgetforest.trees.tree import MISSING_LEFT, MISSING_RIGHT, Tree, empty_tree


def from_sklearn(model: Any, costs: Costs) -> Forest:
    """A scikit-learn tree or forest classifier as a ``Forest``, to be charged and walked as ours."""
    trees = [_tree(tree.tree_) for tree in getattr(model, "estimators_", [model])]
    schema = _schema(names_of(model, model.n_features_in_), costs)
    classes = tuple(model.classes_.tolist())
    return join(trees, Context(trees[0].counts[0].astype(np.int64), costs, schema, classes, Voting.SOFT, 1.0))


def check_forest(model: Any) -> None:
    """Refuse what is not a fitted tree or forest classifier of scikit-learn."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    kind = type(model).__name__
    if not isinstance(model, RandomForestClassifier | ExtraTreesClassifier | DecisionTreeClassifier):
        raise InvalidParameter(
            f"the model is a {kind}; it must be a RandomForestClassifier, an ExtraTreesClassifier or a "
            "DecisionTreeClassifier of scikit-learn, or one of budgetforest"
        )
    if not hasattr(model, "classes_"):
        raise InvalidParameter(f"the {kind} is not fitted yet; fit it before")


def from_lightgbm(booster: Any, costs: Costs, rounds: int | None = None) -> Forest:
    """The trees of a LightGBM ``Booster``, or of its first rounds, as a ``Forest``: to be charged only.

    Trees stand in LightGBM's order: all classes of the first round, then those of the next. What leaves add
    to scores is left out, so labels come from ``booster.predict``; ``counts`` has a single column, how many
    training rows LightGBM says reached a node. Charge it for ``Answer.PROBA``.
    """
    dumped = booster.dump_model(num_iteration=rounds)
    trees = [_dumped_tree(tree["tree_structure"]) for tree in dumped["tree_info"]]
    schema = _schema(dumped["feature_names"], costs)
    return join(
        trees, Context(trees[0].counts[0].astype(np.int64), costs, schema, ("any",), Voting.COUNTS, 1.0)
    )


def from_catboost(model: Any, costs: Costs) -> Forest:
    """The trees of a CatBoost model as a ``Forest``: one a round, to be charged only.

    A symmetric tree asks the same of all rows, so every row pays for all of its splits. As with LightGBM,
    scores come from ``model.predict``; ``counts`` is empty. Charge it for ``Answer.PROBA``.
    """
    dumped = _catboost_json(model)
    columns = {int(f["feature_index"]): f for f in dumped["features_info"]["float_features"]}
    trees = [_symmetric_tree(tree["splits"], columns) for tree in dumped.get("oblivious_trees", ())]
    trees += [_catboost_tree(root, columns) for root in dumped.get("trees", ())]
    schema = _schema(model.feature_names_, costs)
    return join(trees, Context(np.zeros(1, np.int64), costs, schema, ("any",), Voting.COUNTS, 1.0))


def _schema(names: Sequence[str], costs: Costs) -> Schema:
    if len(names) != len(costs.cost):
        raise InvalidCosts(f"there are {len(costs.cost)} prices for a model of {len(names)} features")
    return Schema(tuple(names), (None,) * len(names))


def _tree(fitted: Any) -> Tree:
    inner = fitted.children_left >= 0
    weight = fitted.weighted_n_node_samples
    rows = np.round(fitted.value[:, 0, :] * (weight * min(1.0, MOST_WEIGHT / weight[0]))[:, None])
    return Tree(
        feature=np.where(inner, fitted.feature, LEAF).astype(np.int32),
        threshold=np.where(inner, fitted.threshold, np.nan),
        left=fitted.children_left.astype(np.int32),
        right=fitted.children_right.astype(np.int32),
        route=np.where(fitted.missing_go_to_left, MISSING_LEFT, MISSING_RIGHT).astype(np.uint8),
        counts=rows.astype(np.int32),
        impurity=fitted.impurity.copy(),
        weight=rows.sum(axis=1).astype(np.int32),
        branches=np.empty(0, np.int32),
        floor=np.full(1, np.nan),
    )


def _dumped_tree(root: Mapping[str, Any]) -> Tree:
    """A tree of LightGBM's ``dump_model``; its nodes are brought into preorder."""
    nodes, right_of = _preorder(root, "left_child", "right_child")
    tree = empty_tree(len(nodes), 1)._replace(floor=np.full(1, np.nan))
    for at, node in enumerate(nodes):
        tree.counts[at] = tree.weight[at] = node.get("internal_count", node.get("leaf_count", 0))
        if "leaf_features" in node:
            raise InvalidParameter("the booster has linear leaves; train it with linear_tree=False")
        if "split_feature" in node:
            tree.feature[at], tree.threshold[at] = node["split_feature"], node["threshold"]
            tree.left[at], tree.right[at] = at + 1, right_of[at]
            tree.route[at] = _missing_route(node)
    return tree


def _preorder(
    root: Mapping[str, Any], left: str, right: str
) -> tuple[list[Mapping[str, Any]], dict[int, int]]:
    """Nodes in preorder, and the place of each right child by that of its parent."""
    nodes: list[Mapping[str, Any]] = []
    right_of: dict[int, int] = {}
    waiting = [(root, -1)]
    while waiting:
        node, above = waiting.pop()
        right_of[above] = at = len(nodes)
        nodes.append(node)
        if left in node:
            waiting += [(node[right], at), (node[left], -1)]
    return nodes, right_of


def _missing_route(split: Mapping[str, Any]) -> int:
    """Where LightGBM sends NaN; where training had none it takes it for zero."""
    if split["decision_type"] != "<=":
        raise InvalidParameter("the booster has categorical splits; only numeric ones can be charged")
    if split["missing_type"] == "Zero":
        raise InvalidParameter("the booster takes zero for missing; train it with zero_as_missing=False")
    left = split["default_left"] if split["missing_type"] == "NaN" else split["threshold"] >= 0
    return MISSING_LEFT if left else MISSING_RIGHT


def _catboost_json(model: Any) -> Any:
    """CatBoost writes its trees to files only."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        return json.loads(path.read_text())


def _symmetric_tree(splits: Sequence[Mapping[str, Any]], columns: Mapping[int, Mapping[str, Any]]) -> Tree:
    """All nodes of a level have the same split; the first one is at the root."""
    asked = [_catboost_split(split, columns) for split in splits]
    level = np.zeros(1, np.int32)
    for _ in asked:
        level = np.concatenate([[0], level + 1, level + 1])
    inner, at = level < len(asked), np.arange(len(level))
    tree = empty_tree(len(level), 1)._replace(floor=np.full(1, np.nan))
    tree.feature[:], tree.threshold[:], tree.route[:] = np.array([*asked, (LEAF, np.nan, 0)])[level].T
    tree.left[inner] = at[inner] + 1
    tree.right[inner] = at[inner] + 2 ** (len(asked) - level[inner])
    return tree


def _catboost_tree(root: Mapping[str, Any], columns: Mapping[int, Mapping[str, Any]]) -> Tree:
    """A tree of CatBoost that is not symmetric, in preorder."""
    nodes, right_of = _preorder(root, "left", "right")
    tree = empty_tree(len(nodes), 1)._replace(floor=np.full(1, np.nan))
    for at, node in enumerate(nodes):
        if "split" in node:
            tree.feature[at], tree.threshold[at], tree.route[at] = _catboost_split(node["split"], columns)
            tree.left[at], tree.right[at] = at + 1, right_of[at]
    return tree


def _catboost_split(
    split: Mapping[str, Any], columns: Mapping[int, Mapping[str, Any]]
) -> tuple[int, float, int]:
    """Feature, threshold and the way of missing values, which are the least of all unless said otherwise."""
    if split["split_type"] != "FloatFeature":
        raise InvalidParameter("the CatBoost model has categorical splits; only numeric ones can be charged")
    column = columns[split["float_feature_index"]]
    route = MISSING_RIGHT if column["nan_value_treatment"] == "AsTrue" else MISSING_LEFT
    return int(column["flat_feature_index"]), float(split["border"]), route
