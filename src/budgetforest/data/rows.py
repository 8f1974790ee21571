"""Labelled rows after all checks, and totals of them that blocks of rows add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from budgetforest.data.seen import Seen, seen_together, smallest
from budgetforest.data.table import Numbers, Picked
from budgetforest.runtime.arrays import Counts, Flags, Ids, Keys
from budgetforest.runtime.random import places


class Rows(NamedTuple):
    """Labelled rows, checked."""

    X: Numbers
    """(n, m)"""
    label: Ids
    """(n) class codes."""
    weight: Ids
    """(n) whole numbers of units, all positive."""
    hashes: Keys
    """(n) what each row contains."""

    def take(self, index: Ids | Flags | slice) -> Rows:
        """A copy of some of the rows."""
        return Rows._make(part[index] for part in self)

    def pick(self, index: Ids) -> Rows:
        """Some of the rows, their numbers left where they are."""
        assert not isinstance(self.X, Picked)
        return Rows(Picked(self.X, index), self.label[index], self.weight[index], self.hashes[index])


def joined(rows: Rows, others: Rows) -> Rows:
    """All rows of both."""
    return Rows(
        stacked(rows.X, others.X),
        np.concatenate([rows.label, others.label]),
        np.concatenate([rows.weight, others.weight]),
        np.concatenate([rows.hashes, others.hashes]),
    )


def stacked(X: Numbers, others: Numbers) -> Numbers:
    """The numbers of both; those of the same matrix stay where they are."""
    if isinstance(X, Picked) and isinstance(others, Picked) and X.matrix is others.matrix:
        return Picked(X.matrix, np.concatenate([X.at, others.at]))
    return np.concatenate([X[:], others[:]])


class Totals(NamedTuple):
    """What is remembered of rows besides what grew on them; totals of blocks of rows add up."""

    rows: int
    counts: Counts
    """(k) weight of each class."""
    mark: int
    """Tells sets of rows apart, whatever their order."""
    seen: Seen


def totals_of(rows: Rows, n_classes: int) -> Totals:
    """The totals of some rows."""
    counts = np.bincount(rows.label, rows.weight, n_classes).astype(np.int64)
    marks = places(rows.hashes, 0) * (2 * rows.weight.astype(np.uint64) + np.uint64(1))
    return Totals(len(rows.label), counts, int(marks.sum()), seen_in(rows))


def together(blocks: Sequence[Totals]) -> Totals:
    """The totals of all blocks."""
    rows, counts, marks, seen = zip(*blocks, strict=True)
    return Totals(sum(rows), np.sum(counts, axis=0), sum(marks) % 2**64, seen_together(seen))


BLOCK = 2**16
"""Rows that are looked at together."""


def seen_in(rows: Rows) -> Seen:
    """What is remembered of some rows."""
    m = rows.X.shape[1]
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    for start in range(0, len(rows.label), BLOCK):
        part = rows.X[slice(start, start + BLOCK)]
        # fmin and fmax pass over missing values
        low = np.fmin(low, np.fmin.reduce(part, axis=0))
        high = np.fmax(high, np.fmax.reduce(part, axis=0))
    return Seen(low, high, smallest(keys_of(rows.hashes)))


def keys_of(hashes: Keys) -> Keys:
    """The keys of rows in a sketch."""
    return places(hashes, 0)
