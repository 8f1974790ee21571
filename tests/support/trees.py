"""Grown trees in the form of the reference, and data to grow them on."""

import math

import numpy as np
from hypothesis import strategies as st

from budgetforest import BudgetForestClassifier
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.forest import tree_of
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT


def nested(model, number=0):
    """A tree as nested tuples, as the reference has it."""
    tree = tree_of(model.forest_, number)

    def at(node):
        counts = tree.counts[node].tolist()
        if tree.feature[node] == LEAF:
            return ("leaf", counts)
        feature = int(tree.feature[node])
        if tree.route[node] == BY_CATEGORY:
            start = tree.left[node]
            branches = tree.branches[start : start + tree.right[node] + 1]
            children = branches[branches >= 0].tolist()
            return ("node", feature, None, "category", counts, [at(c) for c in children])
        side = ("right", "left")[tree.route[node] & MISSING_LEFT]
        children = [at(tree.left[node]), at(tree.right[node])]
        return ("node", feature, float(tree.threshold[node]), side, counts, children)

    return at(0)


def one_tree(X, y, **parameters):
    """A single tree on all rows, every distinct value tried."""
    settings = {"max_trees": 1, "bootstrap": False, "splitter": "exact", "alpha": 0.0} | parameters
    return BudgetForestClassifier(**{"method": "paper"} | settings).fit(X, y)


def as_rows(X, nominal=()):
    """Rows as tuples, None where missing, nominal values as category numbers."""
    columns = []
    for j in range(X.shape[1]):
        values = [None if math.isnan(v) else float(v) for v in X[:, j]]
        if j in nominal:
            kinds = sorted({v for v in values if v is not None})
            values = [None if v is None else float(kinds.index(v)) for v in values]
        columns.append(values)
    return list(zip(*columns, strict=True))


@st.composite
def labelled_rows(draw, max_rows=40, max_features=5, max_classes=10, max_value=6, missing=False):
    """Small integer tables full of ties, and labels 0 to k - 1, all present."""
    n_classes = draw(st.integers(2, max_classes))
    n = draw(st.integers(n_classes, max(max_rows, n_classes)))
    m = draw(st.integers(1, max_features))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, draw(st.integers(1, max_value)) + 1, (n, m)).astype(float)
    if missing:
        X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.5]))] = np.nan
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return X, rng.permutation(y)
