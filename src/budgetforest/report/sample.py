"""The rows that a report measures: checked, drawn if there are many, as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.binning import hash_rows
from budgetforest.data.rows import keys_of
from budgetforest.data.seen import Seen, share_seen
from budgetforest.data.table import Table, as_frame, to_matrix
from budgetforest.runtime.arrays import Anything, Floats, Ids
from budgetforest.runtime.errors import InvalidData, near

MOST_ROWS = 2500
"""Rows that are measured; of more, a random part."""


class Rows(NamedTuple):
    """The rows that are measured."""

    given: Anything
    """As the caller has them; those read from a file as numbers."""
    number: Ids
    """(n) their places among all rows of the caller."""
    X: Floats
    truth: Ids
    """(n) their class numbers."""


def rows_of(model: Any, X: Anything, y: Anything) -> Rows:
    """The rows to measure, all of them or a random part, as numbers."""
    y = np.asarray(y)
    frame = as_frame(X)
    if frame is None and not isinstance(X, Table):
        X = np.asarray(X)
    if y.ndim != 1 or not len(y) or len(y) != len(X):
        raise InvalidData(
            f"X has {len(X)} rows and y the shape {y.shape}; give a label for each row, and some"
        )
    number = np.arange(len(y), dtype=np.int32)
    if len(y) > MOST_ROWS:
        number = np.sort(np.random.default_rng(0).choice(number, MOST_ROWS, replace=False))
        X = X[number] if frame is None else frame[number, :].to_native()
    model.predict(X[:1] if frame is None else as_frame(X)[:1, :].to_native())  # type: ignore[index]
    matrix = np.asarray(to_matrix(X, model.forest_.schema), np.float64)
    given = X.matrix if isinstance(X, Table) else X
    return Rows(given, number, matrix, _codes(y[number], model.classes_.tolist()))


def seen_share(rows: Rows, seen: Seen | None, model: Any) -> float | None:
    """The share of the rows that training has seen; None if nobody knows."""
    if seen is None:
        return None
    share = share_seen(seen, keys_of(hash_rows(rows.X, rows.truth, model.forest_.schema)))
    return None if math.isnan(share) else share


def _codes(y: Any, classes: Sequence[Any]) -> Ids:
    """Labels as class numbers."""
    place = {label: c for c, label in enumerate(classes)}
    for label in y.tolist():
        if label not in place:
            known = near(str(label), map(str, classes))
            raise InvalidData(f"y has the label {label!r}, which the model does not know; {known}")
    return np.array([place[label] for label in y.tolist()], np.int32)
