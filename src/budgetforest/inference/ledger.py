"""What rows have paid: every feature once for the whole forest, its group considered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Costs, Prices
from budgetforest.data.price_kernel import price
from budgetforest.runtime.arrays import LEAF, Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import ONE
from budgetforest.trees.tree import BY_CATEGORY, Tree
from budgetforest.trees.walk import child_of, is_lost

TOGETHER = 64
"""Rows whose payments are summed at a time."""


class Ledger(NamedTuple):
    """What rows have paid so far."""

    acquired: Flags
    """(n, m) which features."""
    opened: Flags
    """(n, groups) which groups."""
    spent: Floats
    """(n) how much in all."""


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
    # priced before the group is marked as open: its first member pays in full
    ledger.spent[i] += price(prices, j, ledger.opened[i, prices.group[j]])
    ledger.acquired[i, j] = True
    ledger.opened[i, prices.group[j]] = True


@kernel
def charge_all(met: Keys, prices: Prices, ledger: Ledger) -> None:
    """Charge each row for every feature it has met, a bit each in ``met`` (n, words).

    Where every feature is a group of its own, nobody asks which are opened, and payments are summed in the
    order of the columns for many rows at a time.
    """
    alone = ledger.opened.shape[1] == len(prices.cost)
    for start in range(0, len(met), TOGETHER):
        stop = min(start + TOGETHER, len(met))
        for i in range(start, stop):
            ledger.spent[i] = 0.0
            note_met(met, i, ledger)
            if not alone:
                pay_for_met(i, prices, ledger)
        # in the order of columns, as a row pays alone: sums round alike
        if alone:
            spent = ledger.spent[start:stop]
            for j in range(len(prices.cost)):
                of_rows, bit = met[start:stop, j >> 6], np.uint64(j & 63)
                for i in range(len(spent)):
                    # times 0 or 1 instead of a branch, so that rows are vectors; adding 0.0 changes no sum
                    spent[i] += ((of_rows[i] >> bit) & ONE) * prices.cost[j]


@inner
def note_met(met: Keys, i: int, ledger: Ledger) -> None:
    """What a row has met it has acquired."""
    m = ledger.acquired.shape[1]
    for word in range(met.shape[1]):
        # feature j is bit j & 63 of word j >> 6
        bits = met[i, word]
        flags = ledger.acquired[i, 64 * word : min(64 * word + 64, m)]
        for bit in range(len(flags)):
            flags[bit] = (bits >> np.uint64(bit)) & ONE


@inner
def pay_for_met(i: int, prices: Prices, ledger: Ledger) -> None:
    """A row pays for all it has acquired, the first of a group in full."""
    for g in range(ledger.opened.shape[1]):
        ledger.opened[i, g] = False
    # in the order of columns: where another order costs another sum, ``charge_rows`` is called instead
    for j in range(len(prices.cost)):
        if ledger.acquired[i, j]:
            pay(i, j, prices, ledger)


@kernel
def charge_rows(nodes: Tree, roots: Ids, X: Matrix, prices: Prices, ledger: Ledger, stack: Ids) -> None:
    """Pay for what each row meets, in the order it meets it: where the order of a group matters."""
    # the nodes of one tree stay in the cache; every row still meets trees in their order
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            charge_row(nodes, int(np.int64(roots[t])), X, i, prices, ledger, stack)


@inner
def charge_row(nodes: Tree, root: int, X: Matrix, i: int, prices: Prices, ledger: Ledger, stack: Ids) -> None:
    """One row in one tree, on all sides of lost values, left before right."""
    stack[0] = root
    top = 1
    while top > 0:
        top -= 1
        node = int(np.int64(stack[top]))
        j = nodes.feature[node]
        if j == LEAF:
            continue
        if not ledger.acquired[i, j]:
            pay(i, j, prices, ledger)
        if not is_lost(nodes, node, X[i, j]):
            stack[top] = child_of(nodes, node, X[i, j])
            top += 1
        elif nodes.route[node] != BY_CATEGORY:
            stack[top], stack[top + 1] = nodes.right[node], nodes.left[node]
            top += 2
        else:
            first = int(np.int64(nodes.left[node]))
            for branch in range(first + int(np.int64(nodes.right[node])), first - 1, -1):
                if nodes.branches[branch] >= 0:
                    stack[top] = nodes.branches[branch]
                    top += 1
