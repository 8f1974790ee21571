"""Answers as lines of a CSV, written by DuckDB: one by one in Python would take longer than to find them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetforest.cli.cells import guarded, listed, quoted
from budgetforest.files.source import connected
from budgetforest.inference.predict import Answers
from budgetforest.trees.forest import Forest

MILLION = 10**6
"""Shares are written with six digits."""


def csv_header(names: Sequence[str]) -> bytes:
    """The first line."""
    return (",".join(map(quoted, names)) + "\n").encode()


def csv_lines(forest: Forest, kept: dict[str, list[str]], given: Answers) -> bytes:
    """A line for each row: what was ``kept``, label, cost, features paid for joined by ;, shares."""
    costs, cost = np.unique(given.ledger.spent, return_inverse=True)
    texts = {f"kept{place}": _texts(map(guarded, column)) for place, column in enumerate(kept.values())}
    labels = _texts(guarded(str(label)) for label in forest.classes)
    quotes = [column for column, cells in {**texts, "label": labels}.items() if any(";" in c for c in cells)]
    texts["label"] = labels[given.label]
    texts["cost"] = _texts(f"{value:.12g}" for value in costs.tolist())[cost]
    acquired = given.ledger.acquired
    paid = {f"paid{j}": acquired[:, j].copy() for j in np.flatnonzero(acquired.any(axis=0)).tolist()}
    shares = {
        f"share{place}": np.rint(share * MILLION).astype(np.int32)
        for place, share in enumerate(given.share.T)
    }
    cells = [
        *(f"nullif({column}, '') as {column}" for column in texts),
        f"nullif(concat_ws(';', null, {_names(forest, paid)}), '')",
        *(f"{column} * 0.000001" for column in shares),  # a decimal, exact
    ]
    rows = texts | paid | shares  # the name by which the query finds it
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        path = Path(folder) / "answers.csv"
        place = str(path).replace("'", "''")
        options = ["header false", *([f"force_quote ({', '.join(quotes)})"] if quotes else [])]
        connection.execute(f"copy (select {', '.join(cells)} from rows) to '{place}' ({', '.join(options)})")
        del rows  # used by the query alone, which linters do not see
        return path.read_bytes()


def _texts(texts: Iterable[str]) -> Any:
    return np.array(list(texts), object)


def _names(forest: Forest, paid: Iterable[str]) -> str:
    """The names of the features that a row paid for, in SQL; null for each that it did not."""
    names = [listed(name).replace("'", "''") for name in forest.schema.names]
    cases = (f"case when {column} then '{names[int(column[4:])]}' end" for column in paid)
    return ", ".join(cases) or "null"
