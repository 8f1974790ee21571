"""Random draws keyed by what they are for, never by the order of the work.

A draw is a hash of (seed, tree, node, feature, number), so a forest grown by one thread, eight
threads or a cluster is identical, bit for bit.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from budgetforest.runtime.arrays import Counts, Ids, Keys
from budgetforest.runtime.jit import inner, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
NEGATIVE_ZERO = np.uint64(1 << 63)
INFINITY = np.uint64(0x7FF0000000000000)
MISSING = np.uint64(0x7FF8000000000000)
S11, S27, S30, S31, S32 = (np.uint64(s) for s in (11, 27, 30, 31, 32))


@kernel
def mix(key: np.uint64, number: np.uint64) -> np.uint64:
    """The key of draw ``number`` under ``key`` (the finaliser of splitmix64)."""
    # plus one, or draw 0 would begin with the key itself; sums and products wrap at 2^64
    z = key + GOLDEN * (number + ONE)
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


@inner
def uniform(key: np.uint64) -> float:
    """A number in [0, 1) from a key."""
    # 53 bits, all that a double holds exactly: never rounded up to 1
    return float(key >> S11) * 1.1102230246251565e-16  # 2 ** -53


@kernel
def draw_rows(key: np.uint64, total: int, upto: Counts, order: Ids, times: Ids) -> None:
    """Bootstrap: ``total`` draws with replacement, row i in proportion to its weight.

    ``upto`` (n) sums the weights of the rows in ``order``; empty: each weighs 1. ``times`` (n) counts each
    row. The order is that of the rows' contents, so neither row order nor blocks matter, and a weight
    of 2 is the row twice.
    """
    span = float(upto[-1] if len(upto) > 0 else len(order))
    # a position below the sum of all weights; row r has those with upto[r - 1] <= at < upto[r]
    for draw in range(total):
        at = int(uniform(mix(key, np.uint64(draw))) * span)
        if len(upto) == 0:
            times[order[at]] += 1
        else:
            low = 0
            high = len(order) - 1
            # the first row whose upto is above the position
            while low < high:
                middle = (low + high) // 2
                if upto[middle] <= at:
                    low = middle + 1
                else:
                    high = middle
            times[order[low]] += 1


@kernel
def draw_own_rows(
    key: np.uint64, total: int, span: int, start: Counts, weight: Ids, near: Ids, shift: int, times: Ids
) -> None:
    """The same draws for a block of rows, which are in order; ``times`` (n) counts those that fall on them.

    Row i has the ``weight[i]`` positions from ``start[i]`` on, of ``span`` in all. ``near[p >> shift]`` is
    the last row that starts at or before the first position of that stretch, -1 if none does.
    """
    # every block makes all draws and keeps its own, so that blocks need not agree on anything
    for draw in range(total):
        at = int(uniform(mix(key, np.uint64(draw))) * float(span))
        row = near[at >> shift]
        # few steps: there are about as many stretches as rows
        while row + 1 < len(start) and start[row + 1] <= at:
            row += 1
        if row >= 0 and at < start[row] + weight[row]:
            times[row] += 1


@kernel
def add_cells(hashes: Keys, cells: NDArray[np.uint64], keys: Keys) -> None:
    """Add cells (n, m), doubles seen as integers, to the hash of each row; a key for each column.

    Equal values count as equal bits: both zeros, and all missing ones.
    """
    for i in range(len(hashes)):
        # a sum: columns may come in any order, and in parts
        total = hashes[i]
        for j in range(len(keys)):
            cell = cells[i, j]
            cell = np.uint64(0) if cell == NEGATIVE_ZERO else cell
            # without its sign, every NaN is above infinity
            cell = MISSING if (cell & ~NEGATIVE_ZERO) > INFINITY else cell
            total += mix(keys[j], cell)
        hashes[i] = total


def name_key(name: str) -> int:
    """The key of a feature is its name, so column order does not matter."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def tree_key(seed: int, number: int) -> np.uint64:
    """The key of everything random in tree ``number``."""
    return np.uint64(mix(np.uint64(mix(np.uint64(seed), ONE)), np.uint64(number)))


def places(hashes: Keys, seed: int) -> Keys:
    """(n) where rows stand in an order that depends on their contents and the seed alone."""
    with np.errstate(over="ignore"):
        keyed = (hashes ^ np.uint64(seed)) * MIX_1
        return (keyed ^ (keyed >> S32)) * MIX_2


def in_order(hashes: Keys, seed: int) -> Ids:
    """Rows in that order: by the upper half of their keys, which tells nearly all apart, ties by the whole.

    Sorted by sixteen bits at a time, for so few numpy counts, and compares nothing.
    """
    keys = places(hashes, seed)
    high = (keys >> S32).astype(np.uint32)
    order = np.argsort(high.astype(np.uint16), kind="stable").astype(np.int32)
    order = order[np.argsort((high >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    high = high[order]
    same = high[1:] == high[:-1]
    ties = np.flatnonzero(np.append(same, False) | np.append(False, same))
    order[ties] = order[ties][np.argsort(keys[order[ties]], kind="stable")]
    return order
