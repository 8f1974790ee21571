"""Which rows are held out of training, to measure cost and error on."""

from __future__ import annotations

import numpy as np

from budgetforest.data.rows import Rows
from budgetforest.runtime.arrays import Ids
from budgetforest.runtime.random import in_order, places

SOME = 0x736F6D65
"""Key of the rows that are enough to measure on."""


def some_of(rows: Rows, share: float) -> Rows:
    """About this share of the rows, by their contents: equal rows stay together."""
    if share >= 1:
        return rows
    return rows.take(places(rows.hashes, SOME) < np.uint64(share * 2.0**64))


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[Ids, Ids]:
    """Training and validation rows: of every class about ``fraction`` is held out.

    Equal rows stay together, so nothing leaks, a weight of 2 is the row twice, and the order of the
    rows does not matter. A class of a single distinct row is for training.
    """
    order = in_order(rows.hashes, seed)
    held = np.zeros(len(order), bool)
    for label in np.unique(rows.label):
        members = order[rows.label[order] == label]
        _, first, group = np.unique(rows.hashes[members], return_index=True, return_inverse=True)
        weight = np.bincount(group, rows.weight[members])
        by_place = np.argsort(first)
        middle = np.cumsum(weight[by_place]) - weight[by_place] / 2
        chosen = np.zeros(len(weight), bool)
        chosen[by_place] = middle < fraction * weight.sum()
        chosen[by_place[-1]] = False
        held[members] = chosen[group]
    return np.flatnonzero(~held).astype(np.int32), np.flatnonzero(held).astype(np.int32)
