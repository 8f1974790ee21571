"""The forest as JSON, for other languages: all that the decision of a row needs, see docs/modelfile.md."""

from __future__ import annotations

import json
import math
from typing import Any

from budgetforest import __version__
from budgetforest.runtime.arrays import LEAF
from budgetforest.storage.fields import storable, storable_categories
from budgetforest.trees.forest import Answer, Forest, tree_of
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree

FORMAT = 3
"""Number of the JSON format; raised when readers must change."""


def forest_to_json(forest: Forest, answer: Answer) -> str:
    """A forest, and what its rows pay for, as a JSON text."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": __version__,
            "classes": storable(forest.classes, "the classes"),
            "features": _features(forest),
            "voting": forest.voting.name.lower(),
            "answer": answer.name.lower(),
            "exit": None if forest.threshold == math.inf else forest.threshold,
            "prior": forest.prior.tolist(),
            "trees": [_tree(tree_of(forest, number)) for number in range(forest.n_trees)],
        },
        allow_nan=False,
    )


def _features(forest: Forest) -> list[dict[str, Any]]:
    """Names, categories and prices; a feature that is alone has no group, and costs the same always."""
    costs, schema = forest.costs, forest.schema
    grouped = costs.shared
    return [
        {
            "name": name,
            "categories": kinds,
            "cost": float(costs.cost[j]),
            "discount": float(costs.discount[j] if grouped[j] else costs.cost[j]),
            "group": costs.group_names[costs.group[j]] if grouped[j] else None,
        }
        for j, (name, kinds) in enumerate(zip(schema.names, storable_categories(schema), strict=True))
    ]


def _tree(tree: Tree) -> dict[str, Any]:
    """Parallel lists, an entry per node; null where a node has no such thing."""
    nodes = range(len(tree.feature))
    leaf, nominal = (tree.feature == LEAF).tolist(), (tree.route == BY_CATEGORY).tolist()
    numeric = [not (leaf[node] or nominal[node]) for node in nodes]
    threshold, left, right = tree.threshold.tolist(), tree.left.tolist(), tree.right.tolist()
    side = {MISSING_LEFT: left, MISSING_RIGHT: right}
    route = tree.route.tolist()
    return {
        "feature": [None if leaf[node] else int(tree.feature[node]) for node in nodes],
        "threshold": [
            threshold[node] if numeric[node] and threshold[node] < math.inf else None for node in nodes
        ],
        "left": [left[node] if numeric[node] else None for node in nodes],
        "right": [right[node] if numeric[node] else None for node in nodes],
        "missing": [
            side[route[node]][node] if numeric[node] and route[node] in side else None for node in nodes
        ],
        "branches": [_branches(tree, left[node], right[node]) if nominal[node] else None for node in nodes],
        "counts": tree.counts.tolist(),
        "weight": tree.weight.tolist(),
    }


def _branches(tree: Tree, start: int, categories: int) -> list[int | None]:
    """Children of a nominal node, one per category, then that of missing and unseen ones, null if none."""
    children = tree.branches[start : start + categories + 1].tolist()
    return [child if child >= 0 else None for child in children]
