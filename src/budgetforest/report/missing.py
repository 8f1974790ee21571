"""Values that rows asked for, and paid, but lacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Counts, Flags, Matrix


class Lacks(NamedTuple):
    """What some rows lacked."""

    rows: int
    """How many lacked a value that they asked for,"""
    of: int
    """of how many."""
    by_feature: Counts
    """(m) how many lacked each feature."""

    def plus(self, other: Lacks) -> Lacks:
        """What these rows and others lacked."""
        return Lacks(self.rows + other.rows, self.of + other.of, self.by_feature + other.by_feature)

    def told(self, names: Sequence[str], row_name: str = "row") -> str:
        """The same in a sentence; nothing if no row lacked any."""
        if not self.rows:
            return ""
        most = int(self.by_feature.argmax())
        return (
            f"{self.rows:,} of {self.of:,} {row_name}s lacked a value that they asked for, most often "
            f"{names[most]!r} ({self.by_feature[most]:,}); it was paid for, and trees averaged over it, or "
            "went where missing values went in training."
        )


def lacks_of(acquired: Flags, X: Matrix) -> Lacks:
    """What rows lacked of the features (n, m) that they acquired."""
    lacked: Flags = acquired & np.isnan(X)
    return Lacks(int(lacked.any(axis=1).sum()), len(X), lacked.sum(axis=0))
