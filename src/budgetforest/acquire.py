"""Prediction as it is meant to be run: ask for one feature at a time, pay each once.

``acquire`` is a generator: it yields a ``Need``, receives the value, and returns the ``Decision``. Whoever
drives it decides where values come from. It is also the readable reference for the compiled walk.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF
from budgetforest.forest import Forest
from budgetforest.tree import next_node


class Need(NamedTuple):
    """The next feature to acquire."""

    feature: int
    """Its column."""
    cost: float
    """What it costs this row now, its group considered."""
    spent: float
    """What the row has paid before."""
    tree: int
    """The tree that asks."""


class Decision(NamedTuple):
    """The answer."""

    label: int
    """The class code with most votes, the lowest among equals."""
    votes: tuple[int, ...]
    """(k) how many trees voted for each class."""
    spent: float
    """What the row has paid in all."""
    acquired: tuple[int, ...]
    """Columns in the order they were acquired."""


def acquire(forest: Forest, known: Mapping[int, float] | None = None) -> Generator[Need, float, Decision]:
    """Decide one row by majority vote, asking for values as its trees meet them.

    ``known`` values are free. NaN is a value: acquired, paid for, and missing.
    """
    values = dict(known or {})
    opened = {int(forest.costs.group[j]) for j in values}
    acquired: list[int] = []
    spent = 0.0
    votes = np.zeros(len(forest.prior), np.int64)
    for tree, root in enumerate(forest.roots[:-1]):
        node = int(root)
        while (feature := int(forest.nodes.feature[node])) != LEAF:
            if feature not in values:
                group = int(forest.costs.group[feature])
                price = forest.costs.discount if group in opened else forest.costs.cost
                values[feature] = yield Need(feature, float(price[feature]), spent, tree)
                spent += float(price[feature])
                opened.add(group)
                acquired.append(feature)
            node = int(next_node(forest.nodes, node, values[feature]))
        votes[forest.nodes.counts[node].argmax()] += 1
    label = int((votes if forest.n_trees else forest.prior).argmax())
    return Decision(label, tuple(map(int, votes)), spent, tuple(acquired))
