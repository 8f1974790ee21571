"""The paper's two procedures in plain Python, short enough to check by eye against Algorithm 1.

The rules for ties are those of the package: thresholds ascend and the first best wins, missing values
go left among equals, the lowest feature wins, zero-cost features by largest drop. Rows are tuples
of numbers, None is missing. A tree is a nested tuple: ("leaf", counts) or
("node", feature, threshold, missing, counts, children).
"""

import math
from itertools import pairwise

EPSILON = 1e-7


def pairs(alpha, offset=True):
    def impurity(n):
        kept = [max(x - alpha, 0) for x in n]
        total = 0.0
        for i in range(len(n)):
            for j in range(i + 1, len(n)):
                total += max(kept[i] * kept[j] - alpha * alpha * offset, 0)
        return total

    return impurity


def powers(power):
    return lambda n: float(sum(n) ** power - sum(x**power for x in n))


def entropy(n):
    size = float(sum(n))
    return -sum(x / size * math.log(x / size) for x in n if x) if size else 0.0


def count(labels, n_classes):
    return [labels.count(c) for c in range(n_classes)]


def minimax(children, impurity):
    return max(impurity(n) for n in children)


def expected(children, impurity):
    total = sum(sum(n) * impurity(n) for n in children)
    return total / sum(sum(n) for n in children)


def middle(low, high):
    m = (low + high) / 2
    return m if m < high else low


def thresholds(values):
    ascending = sorted(set(values))
    return [middle(a, b) for a, b in pairwise(ascending)]


def best_threshold(column, labels, n_classes, judge, impurity):
    """(impurity left, threshold, missing side) of least impurity, then least threshold, then left."""
    present = [x for x in column if x is not None]
    missing = len(present) < len(column)
    cuts = thresholds(present) + [math.inf] * (missing and bool(present))
    best = (math.inf, math.nan, "right")
    for cut in cuts:
        for side in ("left", "right") if missing else ("none",):
            if cut == math.inf and side == "left":
                continue
            goes = [side == "left" if x is None else x <= cut for x in column]
            children = [
                count([y for y, g in zip(labels, goes, strict=True) if g == way], n_classes)
                for way in (True, False)
            ]
            left = judge(children, impurity)
            if left < best[0]:
                larger = "left" if sum(children[0]) >= sum(children[1]) else "right"
                best = (left, cut, larger if side == "none" else side)
    return best


def by_category(column, labels, n_classes, judge, impurity):
    kinds = sorted({x for x in column if x is not None}) + [None] * (None in column)
    if len(kinds) < 2:
        return math.inf
    children = [
        count([y for x, y in zip(column, labels, strict=True) if x == kind], n_classes) for kind in kinds
    ]
    return judge(children, impurity)


def greedy_tree(rows, labels, n_classes, costs, impurity, judge=minimax, nominal=()):
    """GREEDYTREE."""
    counts = count(labels, n_classes)
    whole = impurity(counts)
    if whole <= 0:
        return ("leaf", counts)
    best = None
    for t, cost in enumerate(costs):
        column = [row[t] for row in rows]
        if t in nominal:
            left, cut, side = (
                by_category(column, labels, n_classes, judge, impurity),
                None,
                "category",
            )
        else:
            left, cut, side = best_threshold(column, labels, n_classes, judge, impurity)
        drop = whole - left
        if drop <= EPSILON:
            continue
        risk = (cost / drop, -drop if cost == 0 else 0.0)
        if best is None or risk < best[0]:
            best = (risk, t, cut, side)
    if best is None:
        return ("leaf", counts)
    _, t, cut, side = best
    if side == "category":
        keys = sorted({row[t] for row in rows if row[t] is not None})
        keys += [None] * any(row[t] is None for row in rows)
        parts = [[i for i, row in enumerate(rows) if row[t] == key] for key in keys]
    else:
        goes = [side == "left" if row[t] is None else row[t] <= cut for row in rows]
        parts = [[i for i, g in enumerate(goes) if g == way] for way in (True, False)]
    children = [
        greedy_tree(
            [rows[i] for i in part],
            [labels[i] for i in part],
            n_classes,
            costs,
            impurity,
            judge,
            nominal,
        )
        for part in parts
    ]
    return ("node", t, cut, side, counts, children)


def walk(tree, row):
    """Features met on the way to the leaf (numeric features), and the leaf's counts."""
    met = []
    while tree[0] == "node":
        _, t, cut, side, _, children = tree
        met.append(t)
        left = side == "left" if row[t] is None else row[t] <= cut
        tree = children[0 if left else 1]
    return met, tree[1]


def budget_rf(trees, validation, costs, budget):
    """BUDGETRF: trees kept from a stream, the one that passes the budget dropped."""
    kept = []
    for tree in trees:
        spent = 0.0
        for row in validation:
            met = {t for k in [*kept, tree] for t in walk(k, row)[0]}
            spent += sum(costs[t] for t in met)
        if spent / len(validation) > budget:
            return kept
        kept.append(tree)
    return kept
