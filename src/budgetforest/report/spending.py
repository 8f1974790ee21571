"""Where the money goes: what rows pay for each feature and each group, how many do, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetforest.data.costs import Costs
from budgetforest.inference.trace import Trace
from budgetforest.runtime.arrays import Floats, Ids

MOST_LINES = 12
"""Features or groups that are listed; the rest are added up."""


@dataclass(frozen=True)
class Spending:
    """What goes to a feature, a group, or all that are not listed."""

    name: str
    price: float | None
    """None for groups and for what is not listed."""
    group: str
    """A feature's group; empty if it is alone."""
    paid: float
    """What an average row pays for it."""
    rows: float | None
    """Share of the rows that acquire it; None for what is not listed."""
    turn: float | None
    """Its mean place in the order of acquisition, from 1."""


def by_feature(course: Trace, costs: Costs, names: Sequence[str]) -> list[Spending]:
    """What goes to each feature, the most first."""
    paid, rows, turn = _sums(course.order, np.diff(course.spent, axis=1), len(names))
    shared = np.bincount(costs.group) > 1
    lines = []
    for j in np.lexsort((np.negative(rows), np.negative(paid))).tolist():
        g = int(costs.group[j])
        if rows[j]:
            group = costs.group_names[g] if shared[g] else ""
            lines.append(Spending(names[j], float(costs.cost[j]), group, paid[j], rows[j], turn[j]))
    return _first(lines)


def by_group(course: Trace, costs: Costs) -> list[Spending]:
    """What goes to each group of several features, the most first; nothing if there are none."""
    shared = np.bincount(costs.group) > 1
    if not shared.any():
        return []
    order = np.where(course.order >= 0, costs.group[course.order], -1)
    again = np.zeros(order.shape, bool)
    for step in range(1, order.shape[1]):
        again[:, step] = (order[:, :step] == order[:, [step]]).any(axis=1)
    cost = np.diff(course.spent, axis=1)
    paid = _sums(order, cost, len(shared))[0]
    _, rows, turn = _sums(np.where(again, -1, order), cost, len(shared))  # a group is opened once
    return _first(
        [
            Spending(costs.group_names[g], None, "", paid[g], rows[g], turn[g])
            for g in np.lexsort((np.negative(rows), np.negative(paid))).tolist()
            if shared[g] and rows[g]
        ]
    )


def _sums(order: Ids, cost: Floats, size: int) -> tuple[list[float], list[float], list[float]]:
    """For each of ``size`` things in an order: mean cost per row, share of rows, mean place."""
    n = len(order)
    row, step = np.nonzero(order >= 0)
    what = order[row, step]
    times = np.bincount(what, minlength=size)
    paid = np.bincount(what, cost[row, step], size) / n
    turn = np.bincount(what, step + 1, size) / np.maximum(times, 1)
    return paid.tolist(), (times / n).tolist(), turn.tolist()


def _first(lines: list[Spending]) -> list[Spending]:
    """The first lines, and the sum of the rest."""
    rest = lines[MOST_LINES:]
    if len(rest) < 2:
        return lines
    paid = sum(line.paid for line in rest)
    return [*lines[:MOST_LINES], Spending(f"{len(rest)} others", None, "", paid, None, None)]
