"""One tree as text, and as nested data."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from budgetforest.data.costs import Costs, price
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.forest import BELIEF, Forest, Voting, tree_of
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree


def tree_nodes(forest: Forest, number: int) -> dict[str, Any]:
    """The root of a tree; every inner node has a feature, a cost and branches, every leaf a label."""
    tree = tree_of(forest, number)
    done: dict[int, dict[str, Any]] = {}
    for node in range(len(tree.feature) - 1, -1, -1):  # children come after their parents
        done[node] = _leaf(tree, node, forest)
        if tree.feature[node] != LEAF:
            done[node] |= {
                "feature": forest.schema.names[tree.feature[node]],
                "cost": float(forest.costs.cost[tree.feature[node]]),
                "branches": [{"when": when, **done[child]} for when, child in _branches(tree, node, forest)],
            }
    return done[0]


def tree_lines(forest: Forest, number: int) -> list[str]:
    """A tree as an indented text."""
    return list(_lines(tree_nodes(forest, number), forest))


def _lines(root: dict[str, Any], forest: Forest) -> Iterator[str]:
    """Depth first, without recursion: trees may be deeper than Python's stack."""
    column = {name: j for j, name in enumerate(forest.schema.names)}
    nothing: frozenset[int] = frozenset()
    stack = [(root, "", "", nothing)]
    while stack:
        node, first, rest, above = stack.pop()
        below, cost = above, ""
        if "feature" in node:
            j = column[node["feature"]]
            below, cost = above | {j}, _price(j, above, forest.costs)
        yield first + (f"{node['when']}: " if "when" in node else "") + _said(node, cost)
        branches = node.get("branches", [])
        for place, branch in reversed(list(enumerate(branches))):
            last = place == len(branches) - 1
            stack.append(
                (branch, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), below)
            )


def _price(feature: int, above: AbstractSet[int], costs: Costs) -> str:
    """What a row pays for a feature that has paid for those above it."""
    if feature in above:
        return "paid"
    opened = any(costs.group[j] == costs.group[feature] for j in above)
    return f"cost {price(costs, feature, opened):g}"


def _said(node: dict[str, Any], cost: str) -> str:
    if "feature" in node:
        rows = f", {node['rows']:g} rows" if "rows" in node else ""
        return f"{node['feature']}? ({cost}{rows})"
    if "score" in node:
        return f"{node['label']} ({node['score']:+.3f})"
    return f"{node['label']} ({node['share']:.0%} of {node['rows']:g} rows)"


def _leaf(tree: Tree, node: int, forest: Forest) -> dict[str, Any]:
    counts = tree.counts[node]
    rows = int(counts.sum())
    best = int(counts.argmax())
    if forest.voting == Voting.SCORES:
        return {"label": forest.classes[best], "score": float(counts[best] / BELIEF)}
    return {
        "rows": rows * forest.unit,
        "label": forest.classes[best],
        "share": float(counts[best] / max(rows, 1)),
    }


def _branches(tree: Tree, node: int, forest: Forest) -> list[tuple[str, int]]:
    """What leads to each child of an inner node."""
    left, right = int(tree.left[node]), int(tree.right[node])
    if tree.route[node] != BY_CATEGORY:
        threshold = tree.threshold[node]
        if np.isinf(threshold):
            return [("known", left), ("missing", right)]
        missing = tree.route[node]
        return [
            (f"<= {threshold:.6g}" + (" or missing" if missing == MISSING_LEFT else ""), left),
            (f"> {threshold:.6g}" + (" or missing" if missing == MISSING_RIGHT else ""), right),
        ]
    names = [*map(str, forest.schema.categories[tree.feature[node]] or ()), "missing"]
    children = tree.branches[left : left + right + 1]
    return [(name, int(child)) for name, child in zip(names, children, strict=True) if child >= 0]
