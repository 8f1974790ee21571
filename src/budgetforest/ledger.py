"""What rows have paid: every feature once for the whole forest, its group considered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Flags, Floats, Ids, Keys, Matrix
from budgetforest.costs import Costs
from budgetforest.draws import ONE
from budgetforest.jit import inner, kernel
from budgetforest.tree import Tree
from budgetforest.walks import child_of


class Ledger(NamedTuple):
    """What rows have paid so far."""

    acquired: Flags
    """(n, m) which features."""
    opened: Flags
    """(n, groups) which groups."""
    spent: Floats
    """(n) how much in all."""


class Prices(NamedTuple):
    """``Costs`` as kernels take them, without names."""

    cost: Floats
    discount: Floats
    group: Ids


def open_ledger(n_rows: int, costs: Costs) -> Ledger:
    """A ledger of rows that have paid nothing."""
    return Ledger(
        np.zeros((n_rows, len(costs.cost)), bool),
        np.zeros((n_rows, len(costs.group_names)), bool),
        np.zeros(n_rows),
    )


def part_of(ledger: Ledger, rows: slice) -> Ledger:
    """The ledger of some rows."""
    return Ledger._make(column[rows] for column in ledger)


@inner
def pay(i: int, j: int, prices: Prices, ledger: Ledger) -> None:
    """Row ``i`` acquires feature ``j``."""
    opened = ledger.opened[i, prices.group[j]]
    ledger.spent[i] += prices.discount[j] if opened else prices.cost[j]
    ledger.acquired[i, j] = True
    ledger.opened[i, prices.group[j]] = True


@kernel
def charge_all(met: Keys, prices: Prices, ledger: Ledger) -> None:
    """Charge each row for every feature it has met, a bit each in ``met`` (n, words)."""
    for i in range(len(met)):
        charge_met(met, i, prices, ledger)


@inner
def charge_met(met: Keys, i: int, prices: Prices, ledger: Ledger) -> None:
    """What one row pays in all, in the order of the columns; without shared groups, without branches."""
    spent = 0.0
    m, alone = len(prices.cost), ledger.opened.shape[1] == len(prices.cost)
    for word in range(met.shape[1]):
        bits = met[i, word]
        first = 64 * word
        for j in range(first, min(first + 64, m)):
            ledger.acquired[i, j] = (bits >> np.uint64(j - first)) & ONE
    if alone:
        for j in range(m):
            spent += ledger.acquired[i, j] * prices.cost[j]
    ledger.spent[i] = spent
    if not alone:
        for g in range(ledger.opened.shape[1]):
            ledger.opened[i, g] = False
        for j in range(m):
            if ledger.acquired[i, j]:
                pay(i, j, prices, ledger)


@kernel
def charge_rows(nodes: Tree, roots: Ids, X: Matrix, prices: Prices, ledger: Ledger) -> None:
    """Pay for what each row meets, in the order it meets it: where the order of a group matters."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            charge_row(nodes, int(np.int64(roots[t])), X, i, prices, ledger)


@inner
def charge_row(nodes: Tree, node: int, X: Matrix, i: int, prices: Prices, ledger: Ledger) -> None:
    """One row in one tree."""
    while nodes.feature[node] != LEAF:
        j = nodes.feature[node]
        if not ledger.acquired[i, j]:
            pay(i, j, prices, ledger)
        node = child_of(nodes, node, X[i, j])
