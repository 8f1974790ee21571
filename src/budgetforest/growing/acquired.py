"""What training rows have acquired in the trees so far, and what they would pay for a feature.

A row has what it met above in the tree, *or in an earlier tree*. What it has costs nothing, so later trees
reuse what is paid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.costs import Costs, Prices
from budgetforest.data.price_kernel import price
from budgetforest.runtime.arrays import Ids
from budgetforest.runtime.jit import inner, passage


class Acquired(NamedTuple):
    """What training rows have acquired so far, in all trees."""

    feature: NDArray[np.uint8]
    """(m, n / 8) a bit for each row that has a feature; empty when nothing costs anything."""
    group: NDArray[np.uint8]
    """(g, n / 8) the same for one of a group; empty where every feature is a group of its own."""


def nothing_acquired(n_rows: int, costs: Costs) -> Acquired:
    """Room for what so many rows acquire."""
    m, groups, n_bytes = len(costs.cost), len(costs.group_names), n_rows // 8 + 1
    return Acquired(
        np.zeros((m, n_bytes), np.uint8), np.zeros((groups if groups < m else 0, n_bytes), np.uint8)
    )


@inner
def has_bit(bits: NDArray[np.uint8], j: int, row: int) -> bool:
    """Whether the bit of a row is set."""
    # row r is bit r & 7 of byte r >> 3, as ``np.packbits(bitorder="little")`` writes it
    return bool(bits[j, row >> 3] >> (row & 7) & 1)


@inner
def put_bit(bits: NDArray[np.uint8], j: int, row: int) -> None:
    """Set it."""
    # read, changed and written back: safe because one thread grows all trees of a forest
    bits[j, row >> 3] |= 1 << (row & 7)


@inner
def acquire(j: int, rows: Ids, prices: Prices, owned: Acquired) -> None:
    """The rows of a node have a feature from now on."""
    for i in range(len(rows)):
        put_bit(owned.feature, j, rows[i])
    if len(owned.group) > 0:
        for i in range(len(rows)):
            put_bit(owned.group, prices.group[j], rows[i])


@inner
def price_of(j: int, rows: Ids, times: Ids, prices: Prices, owned: Acquired) -> float:
    """What the rows of a node would pay for a feature, all together."""
    shared = len(owned.group) > 0
    # by weight: rows that lack the feature, and those of them that have another of its group
    lacking = 0
    opened = 0
    for i in range(len(rows)):
        if not has_bit(owned.feature, j, rows[i]):
            lacking += times[rows[i]]
            if shared and has_bit(owned.group, prices.group[j], rows[i]):
                opened += times[rows[i]]
    # whole numbers up to here: the price does not depend on the order of rows or on blocks
    return price_for(j, lacking, opened, prices)


@passage
def price_for(j: int, lacking: int, opened: int, prices: Prices) -> float:
    """What rows pay for a feature that so many lack, ``opened`` of which have another of its group."""
    return float(price(prices, j, False) * (lacking - opened) + price(prices, j, True) * opened)
