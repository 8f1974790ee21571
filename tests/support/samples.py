"""Rows as growers take them, prices, and the parts of a split."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from budgetforest.data.binning import hash_rows, to_columns
from budgetforest.data.costs import Costs
from budgetforest.data.table import Schema
from budgetforest.growing.greedytree import Sample
from budgetforest.runtime.random import in_order


def sample_of(X, y, weight=None, nominal=()):
    m = X.shape[1]
    categories = tuple(tuple(range(4)) if j in nominal else None for j in range(m))
    schema = Schema(tuple(f"x{j}" for j in range(m)), categories)
    weight = np.ones(len(y), np.int32) if weight is None else np.asarray(weight, np.int32)
    label = y.astype(np.int32)
    by_class = np.argsort(label, kind="stable")
    place = np.empty(len(y), np.int32)
    place[by_class] = np.arange(len(y))
    with ThreadPoolExecutor(1) as pool:
        columns = to_columns(X, place, weight, schema, ranked=False, max_bins=256, pool=pool)
    order = in_order(hash_rows(X, label, schema), 0)
    ends, upto = np.cumsum(np.bincount(label)), np.cumsum(weight[order])
    return Sample(columns, ends, weight[by_class], place[order], upto, int(weight.sum()))


def priced(cost, group=None, discount=None):
    cost = np.asarray(cost, float)
    group = np.arange(len(cost), dtype=np.int32) if group is None else np.asarray(group, np.int32)
    discount = np.zeros(len(cost)) if discount is None else np.asarray(discount, float)
    return Costs(cost, discount, group, tuple(map(str, range(int(group.max()) + 1))))


def parts_of(column, nominal):
    """Every way to part rows by a feature, as tuples of row masks."""
    missing = np.isnan(column)
    values = np.unique(column[~missing])
    if nominal:
        yield tuple(m for m in [*(column == v for v in values), missing] if m.any())
        return
    for low, high in pairwise(values):
        left = column <= (low + high) / 2
        yield left, ~left
        if missing.any():
            yield left | missing, ~(left | missing)
    if missing.any() and len(values):
        yield ~missing, missing
