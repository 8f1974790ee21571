"""Where rows of all blocks stand in one order, which depends on what they contain alone.

Draws and the hold-out refer to that order. Keys are exchanged by their range: each task sorts one range of
all blocks, and tells every block what it found about its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from budgetforest.dask.cluster import Cluster
from budgetforest.data.rows import Rows, Totals
from budgetforest.runtime.arrays import Counts, Flags, Ids, Keys
from budgetforest.runtime.random import places

RANGE_ROWS = 2**22
"""Rows of a range, about."""


class Keyed(NamedTuple):
    """What is exchanged of rows."""

    key: Keys
    label: Ids
    weight: Ids


class Range(NamedTuple):
    """The rows of all blocks whose keys lie in one range, in order."""

    rows: Keyed
    order: Ids
    """The order they have been brought into."""
    ends: Counts
    """Where the rows of each block ended before."""


def starts_of(cluster: Cluster, blocks: list[Future], total: Totals) -> list[Future]:
    """For each block (n) the weight of all rows that stand before each of its rows."""

    def found(cluster: Cluster, ranges: list[Future]) -> list[Future]:
        weights = cluster.values([cluster.run(weight_of, part) for part in ranges])
        before = np.cumsum([0, *weights])
        return [cluster.run(weight_before, part, int(w)) for part, w in zip(ranges, before, strict=False)]

    return _exchanged(cluster, blocks, total.rows, 0, found)


def held_out_of(
    cluster: Cluster, blocks: list[Future], total: Totals, fraction: float, seed: int
) -> list[Future]:
    """For each block (n) which rows are held out: those that ``training.hold_out`` holds out."""
    k = len(total.counts)

    def found(cluster: Cluster, ranges: list[Future]) -> list[Future]:
        seen = cluster.values([cluster.run(classes_of, part, k) for part in ranges])
        before = np.cumsum([np.zeros(k, np.int64), *(weight for weight, _ in seen)], axis=0)
        last = np.max([key for _, key in seen], axis=0)
        most = fraction * total.counts
        return [cluster.run(is_held, part, before[at], most, last) for at, part in enumerate(ranges)]

    return _exchanged(cluster, blocks, total.rows, seed, found)


def turns_of(cluster: Cluster, blocks: list[Future], total: Totals, parts: int) -> list[Future]:
    """For each block (n) the turn of each row, the same as in ``crossfit.turns``."""
    k = len(total.counts)

    def found(cluster: Cluster, ranges: list[Future]) -> list[Future]:
        seen = cluster.values([cluster.run(kinds_of, part, k) for part in ranges])
        before = np.cumsum([np.zeros(k, np.int64), *seen], axis=0)
        lower = np.cumsum([0, *before[-1][:-1]])  # kinds of the classes below
        return [cluster.run(turn_of, part, lower + before[at], parts) for at, part in enumerate(ranges)]

    return _exchanged(cluster, blocks, total.rows, None, found)


def _exchanged(
    cluster: Cluster,
    blocks: list[Future],
    n: int,
    seed: int | None,
    found: Callable[[Cluster, list[Future]], list[Future]],
) -> list[Future]:
    """What is ``found`` about the rows of each range, brought back to the blocks."""
    n_ranges = min(len(blocks), 1 + n // RANGE_ROWS)
    cuts = cluster.each(cut, blocks, seed, n_ranges)
    ranges = [cluster.run(sort, cluster.each(getitem, cuts, at)) for at in range(n_ranges)]
    answers = [
        cluster.run(apart, part, answer) for part, answer in zip(ranges, found(cluster, ranges), strict=True)
    ]
    own = [cluster.each(getitem, answers, at) for at in range(len(blocks))]
    return cluster.each(put_back, blocks, seed, own)


def range_of(key: Keys, n_ranges: int) -> NDArray[np.int64]:
    """The range of each key: keys are spread evenly."""
    return ((key >> np.uint64(32)) * np.uint64(n_ranges) >> np.uint64(32)).astype(np.int64)


def sort_keys(rows: Rows, seed: int | None) -> Keys:
    """What rows are ordered by: their places, or without a seed their hashes."""
    return rows.hashes if seed is None else places(rows.hashes, seed)


def cut(rows: Rows, seed: int | None, n_ranges: int) -> list[Keyed]:
    """Rows of a block by range."""
    keyed = Keyed(sort_keys(rows, seed), rows.label, rows.weight)
    part = range_of(keyed.key, n_ranges)
    return [Keyed._make(column[part == at] for column in keyed) for at in range(n_ranges)]


def sort(parts: list[Keyed]) -> Range:
    """One range of all blocks."""
    rows = Keyed._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(rows.key, kind="stable")
    ends = np.cumsum([len(part.key) for part in parts])
    return Range(Keyed._make(column[order] for column in rows), order.astype(np.int32), ends)


def apart(part: Range, answer: NDArray[Any]) -> list[NDArray[Any]]:
    """An answer about rows in order, by block, in the order in which the rows came."""
    back = np.empty_like(answer)
    back[part.order] = answer
    return np.split(back, part.ends[:-1])


def put_back(rows: Rows, seed: int | None, answers: list[NDArray[Any]]) -> NDArray[Any]:
    """The answers of all ranges, for the rows of a block as they stand."""
    part = range_of(sort_keys(rows, seed), len(answers))
    whole = np.empty(len(part), answers[0].dtype)
    for at, answer in enumerate(answers):
        whole[part == at] = answer
    return whole


def weight_of(part: Range) -> int:
    """The weight of all rows of a range."""
    return int(part.rows.weight.sum())


def weight_before(part: Range, before: int) -> Counts:
    """The weight of all rows before each row, ``before`` of them in other ranges."""
    weight = part.rows.weight
    return before + np.cumsum(weight) - weight


def classes_of(part: Range, n_classes: int) -> tuple[Counts, Keys]:
    """Weight and last key of each class."""
    key, label, weight = part.rows
    last = np.zeros(n_classes, np.uint64)
    last[label] = key  # in order: the last one stays
    return np.bincount(label, weight, n_classes).astype(np.int64), last


def is_held(part: Range, before: Counts, most: NDArray[np.float64], last: Keys) -> Flags:
    """Of each class the rows before ``most`` of its weight; equal rows together, and never the last."""
    key, label, weight = part.rows
    held = np.zeros(len(key), bool)
    for c in range(len(before)):
        members = np.flatnonzero(label == c)
        _, group = np.unique(key[members], return_inverse=True)
        each = np.bincount(group, weight[members])
        middle = before[c] + np.cumsum(each) - each / 2
        held[members] = (middle < most[c])[group] & (key[members] != last[c])
    return held


def kinds_of(part: Range, n_classes: int) -> Counts:
    """(k) how many distinct rows each class has."""
    _, first = np.unique(part.rows.key, return_index=True)
    return np.bincount(part.rows.label[first], minlength=n_classes)


def turn_of(part: Range, before: Counts, parts: int) -> Ids:
    """Distinct rows take turns, class by class; ``before`` (k) come before those of each class."""
    key, label, _ = part.rows
    turn = np.zeros(len(key), np.int32)
    for c in range(len(before)):
        members = np.flatnonzero(label == c)
        _, group = np.unique(key[members], return_inverse=True)
        turn[members] = (before[c] + group) % parts
    return turn
