"""The nodes of a forest as a table, one line each, in the manner of LightGBM's."""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetforest.data.table import Schema
from budgetforest.runtime.arrays import LEAF
from budgetforest.runtime.errors import MissingExtra
from budgetforest.trees.forest import BELIEF, Forest, Voting, tree_of
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, UNSEEN, Tree, family


def to_dataframe(forest: Forest) -> Any:
    """Columns: tree, node, parent, depth, feature, threshold, left, right, counts and more.

    Node numbers are those within a tree, in preorder. ``category`` is what leads from a nominal parent to
    the node; ``missing`` where missing values go; ``risk`` the cost per drop of impurity of the split,
    infinite where the worst child is no purer. Boosted trees have neither risk nor impurity, and scores
    in place of counts.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("trees_to_dataframe needs pandas: pip install pandas") from None
    trees = [(t, tree_of(forest, t)) for t in range(forest.n_trees)] or [(0, forest.nodes)]
    frames = [pd.DataFrame(_columns(tree, forest)).assign(tree=t) for t, tree in trees]
    table = pd.concat(frames, ignore_index=True)
    table.insert(0, "tree", table.pop("tree"))
    whole = ["parent", "left", "right", "column"]
    return table.astype(dict.fromkeys(whole, "Int64"))


def _columns(tree: Tree, forest: Forest) -> dict[str, Any]:
    parent, depth = family(tree, np.zeros(min(1, len(tree.feature)), np.int32))
    inner = tree.feature != LEAF
    numeric = inner & (tree.route != BY_CATEGORY)
    names = np.array([*forest.schema.names, None], dtype=object)
    worst = np.zeros(len(parent))
    np.maximum.at(worst, parent[1:], tree.impurity[1:])
    cost = np.append(forest.costs.cost, np.nan)[tree.feature]
    counts: Any = tree.counts * forest.unit if forest.unit != 1 else tree.counts
    rows, impurity = counts.sum(axis=1), tree.impurity
    with np.errstate(divide="ignore", invalid="ignore"):  # expected splits need not lower the worst child's
        risk = np.where(cost > 0, cost / np.maximum(impurity - worst, 0.0), cost)
    boosted = forest.voting == Voting.SCORES
    if boosted:  # scores stand in place of counts, and no impurity is lowered
        counts, rows = tree.counts / BELIEF, tree.weight
        impurity = risk = np.full(len(parent), np.nan)
    way = np.select(
        [~inner, ~numeric, tree.route >= UNSEEN],
        ["", "category", "both"],
        np.where(tree.route == MISSING_LEFT, "left", "right"),
    )
    return {
        "node": np.arange(len(parent)),
        "parent": _or_none(parent, parent >= 0),
        "depth": depth,
        "feature": names[tree.feature],
        "column": _or_none(tree.feature, inner),
        "threshold": tree.threshold,
        "left": _or_none(tree.left, numeric),
        "right": _or_none(tree.right, numeric),
        "missing": [str(w) or None for w in way],
        "category": _categories(tree, forest.schema, parent),
        "cost": cost,
        "risk": risk,
        "impurity": impurity,
        "rows": rows,
        "label": np.array(forest.classes)[tree.counts.argmax(axis=1)],
        "scores" if boosted else "counts": [tuple(row) for row in counts.tolist()],
    }


def _or_none(values: Any, present: Any) -> list[int | None]:
    return [int(v) if p else None for v, p in zip(values, present, strict=True)]


def _categories(tree: Tree, schema: Schema, parent: Any) -> list[Any]:
    """What leads from a nominal parent to each node: its category, "missing", or None."""
    found: list[Any] = [None] * len(parent)
    for node in np.flatnonzero(tree.route == BY_CATEGORY):
        names = [*(schema.categories[tree.feature[node]] or ()), "missing"]
        slots = tree.branches[tree.left[node] : tree.left[node] + len(names)]
        for category, child in zip(names, slots, strict=True):
            if child >= 0:
                found[child] = category
    return found
