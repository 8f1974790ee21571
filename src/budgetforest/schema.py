"""What columns mean, and rows that were read by it: plain data, for all that come after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import Flags, Matrix
from budgetforest.errors import InvalidData

MISSING = ("", "NA", "N/A", "#N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "?", "-", ".")
"""Texts in files that stand for a missing value."""


class Schema(NamedTuple):
    """What the columns of a table mean."""

    names: tuple[str, ...]
    """(m) feature names; ``x0, x1, ...`` for plain arrays."""
    categories: tuple[tuple[Any, ...] | None, ...]
    """(m) the categories of a nominal feature in code order, None for a numeric one."""
    missing: tuple[str, ...] = MISSING
    """Texts that stand for a missing value in files; Python's own values need none."""
    target: str | None = None
    """The column of the labels, if the training rows were read from a file."""

    @property
    def nominal(self) -> Flags:
        """(m) which features are nominal."""
        return np.array([c is not None for c in self.categories], dtype=bool)


@dataclass(frozen=True)
class Table:
    """Rows that are numbers already, with the schema that explains them: what files are read into."""

    matrix: Matrix
    schema: Schema

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.matrix.shape

    def under(self, schema: Schema) -> Matrix:
        """The numbers, if they were made by this schema."""
        if self.schema != schema:
            raise InvalidData("these rows were read by the schema of another model; read them by this one's")
        return self.matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, rows: Any) -> Table:
        return Table(self.matrix[rows], self.schema)
