"""Labelled rows after all checks, and totals of them that blocks of rows add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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


class Totals(NamedTuple):
    """What is remembered of rows besides what grew on them; totals of blocks of rows add up."""

    rows: int
    counts: Counts
    """(k) weight of each class."""
    mark: int
    """Tells sets of rows apart, whatever their order."""


def totals_of(rows: Rows, n_classes: int) -> Totals:
    """The totals of some rows."""
    counts = np.bincount(rows.label, rows.weight, n_classes).astype(np.int64)
    marks = places(rows.hashes, 0) * (2 * rows.weight.astype(np.uint64) + np.uint64(1))
    return Totals(len(rows.label), counts, int(marks.sum()))


def together(blocks: Sequence[Totals]) -> Totals:
    """The totals of all blocks."""
    rows, counts, marks = zip(*blocks, strict=True)
    return Totals(sum(rows), np.sum(counts, axis=0), sum(marks) % 2**64)
