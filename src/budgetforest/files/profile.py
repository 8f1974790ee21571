"""What training rows hold, column by column, and what in them is probably not meant.

Rows are read as a training reads them; where that would end with an error, here is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.bin_edges import find_points
from budgetforest.data.binning import hash_rows
from budgetforest.data.table import Table
from budgetforest.files.learning import Labelled, Listener, ProgressCallback, Wish, learn_rows
from budgetforest.files.source import Source
from budgetforest.runtime.arrays import Counts, Floats, Ids, Matrix

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?")
"""A text that is a date, perhaps with a time."""
NEARLY_ALL = 0.95
"""So many cells of a column that the rest are exceptions."""
FEW = 20
"""Rows too few to say anything about a column."""
TELLS = 0.98
"""A column may be leakage if it tells so many of the labels that the largest class does not."""
BINS, BIN_ROWS = 256, 4
"""Parts of a column's range in that search, at most, and rows of a part, at least."""
TINY = 10
"""A class of fewer rows can hardly be measured: of ten, three are held out."""
REPEATED = 0.05
"""Share of equal rows that is pointed out."""


class Finding(NamedTuple):
    """Something that is probably not meant, and how to mend it."""

    column: str | None
    message: str
    refused: bool = False
    """Whether training would end with it."""


class Column(NamedTuple):
    """What is in a column, in the rows that have a label."""

    name: str
    kind: str
    """``numbers``, ``whole numbers``, ``categories``, ``dates`` or ``labels``; empty if it was not read."""
    use: str
    """What training takes it for: ``numeric`` or ``nominal``, ``target``, ``dropped``, ``refused``."""
    missing: float | None = None
    """Share of the rows."""
    distinct: int | None = None
    low: Any = None
    high: Any = None


class Profile(NamedTuple):
    """What training rows hold."""

    rows: Labelled
    columns: list[Column]
    classes: dict[Any, int]
    """How many rows each label has."""
    repeated: float
    """Share of the rows that are equal to another one, label included."""
    findings: list[Finding]

    @property
    def accepted(self) -> Table:
        """The features that training takes."""
        refused = {finding.column for finding in self.findings if finding.refused}
        table = self.rows.table
        kept = [c for c, name in enumerate(table.schema.names) if name not in refused]
        if len(kept) == table.shape[1]:
            return table
        names, categories = table.schema.names, table.schema.categories
        schema = table.schema._replace(
            names=tuple(names[c] for c in kept), categories=tuple(categories[c] for c in kept)
        )
        return Table(table.matrix[:, kept], schema)


class _Collector(Listener):
    """Keeps the first finding of each kind about a column."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.findings: list[Finding] = []
        self.refused: set[int] = set()

    def refuse(self, column: int, message: str) -> None:
        if column not in self.refused:
            self.refused.add(column)
            self.findings.append(Finding(self.names[column], message, refused=True))

    def note(self, column: int, message: str) -> None:
        self.findings.append(Finding(self.names[column], message))


def profile(source: Source, wish: Wish, tell: ProgressCallback = lambda upto: None) -> Profile:
    """Read training rows and say what is in them; raises only what leaves nothing to look at."""
    heard = _Collector(source.names)
    rows = learn_rows(source, wish, tell, heard)
    labels, place, counts = np.unique(rows.labels, return_inverse=True, return_counts=True)
    code = place.astype(np.int32)
    classes = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    findings = [*heard.findings, *_about_labels(classes, rows.unlabelled, wish.target)]
    columns = []
    for name in source.names:
        if name == wish.target:
            share = rows.unlabelled / (len(code) + rows.unlabelled)
            columns.append(Column(name, "labels", "target", share, len(labels)))
        elif name in wish.drop:
            columns.append(Column(name, "", "dropped"))
        else:
            column, found = _feature(rows.table, name, code, counts, heard)
            columns.append(column)
            findings += found
    repeated = _repeated(rows.table, code)
    if repeated >= REPEATED:
        findings.append(
            Finding(
                None,
                f"{repeated:.0%} of the rows repeat another one, label included; unless that is so by "
                "nature, leave the copies out: what repeats weighs more",
            )
        )
    return Profile(rows, columns, classes, repeated, findings)


def _feature(
    table: Table, name: str, label: Ids, counts: Counts, heard: _Collector
) -> tuple[Column, list[Finding]]:
    """What is in a feature, and what is odd about it."""
    c = table.schema.names.index(name)
    values, categories = table.matrix[:, c], table.schema.categories[c]
    known: Any = np.sort(values[np.isfinite(values)])
    distinct = int(np.count_nonzero(known[1:] != known[:-1])) + 1 if len(known) else 0
    kind = _kind(known, categories)
    refused = heard.names.index(name) in heard.refused
    use = "refused" if refused else "nominal" if categories is not None else "numeric"
    low, high = (known[0], known[-1]) if len(known) and categories is None else (None, None)
    column = Column(name, kind, use, (len(values) - len(known)) / len(values), distinct, low, high)
    odd = _about_values(column, len(known), len(values))
    if odd is None and not refused:
        odd = _leakage(column, values, label, counts)
    return column, [Finding(name, odd)] if odd else []


def _kind(known: Floats, categories: Sequence[Any] | None) -> str:
    if categories is None:
        return "whole numbers" if len(known) and (np.rint(known) == known).all() else "numbers"
    dates = sum(DATE.fullmatch(str(text)) is not None for text in categories)
    return "dates" if categories and dates >= NEARLY_ALL * len(categories) else "categories"


def _about_values(column: Column, known: int, rows: int) -> str | None:
    """What is odd about the values of a column, whatever the labels are."""
    name, distinct = column.name, column.distinct or 0
    drop = f"leave it out with --drop {name!r}"
    if not known:
        return f"{name!r} has no value in any row; {drop}"
    if distinct == 1 and known == rows:
        return f"{name!r} has one value only, so it tells nothing; {drop}"
    if column.kind == "dates":
        return f"{name!r} holds dates, and categories know no order; write days since an event, or {drop}"
    if column.kind == "numbers" or known < FEW:
        return None
    if distinct >= NEARLY_ALL * known:
        return f"{name!r} may be an id: {distinct} of {known} values are different; if it is one, {drop}"
    if column.kind == "categories" and distinct > known / 2:
        return f"{name!r} has {distinct} categories in {known} rows, too few of each to learn from; {drop}"
    return None


def _leakage(column: Column, values: Matrix, label: Ids, counts: Counts) -> str | None:
    """Whether the values of a column alone tell the labels of nearly all rows."""
    n, k = len(label), len(counts)
    most, nominal = min(BINS, n // BIN_ROWS), column.kind == "categories"
    if n < FEW or k < 2 or (nominal and (column.distinct or 0) > most):
        return None
    edges = find_points(values, None, ranked=False, max_bins=BINS if nominal else most)
    part: Counts = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values))
    told = _majorities(part * k + label, k)
    if told - counts.max() < TELLS * (n - counts.max()):
        return None
    return (
        f"{column.name!r} alone tells {told / n:.1%} of the labels and may be leakage; if it is known only "
        f"after the label, leave it out with --drop {column.name!r}"
    )


def _majorities(cell: Counts, k: int) -> int:
    """Rows in the largest class of their part, given ``part * k + label``."""
    cells, rows = np.unique(cell, return_counts=True)
    starts = np.flatnonzero(np.append(True, np.diff(cells // k) > 0))
    return int(np.maximum.reduceat(rows, starts).sum())


def _repeated(table: Table, label: Ids) -> float:
    distinct = len(np.unique(hash_rows(table.matrix, label, table.schema)))
    return 1 - distinct / len(label)


def _about_labels(classes: dict[Any, int], unlabelled: int, target: str) -> list[Finding]:
    found = []
    if unlabelled:
        rows = sum(classes.values()) + unlabelled
        found.append(f"{unlabelled} of {rows} rows have no label in {target!r}; they are left out")
    tiny = [f"{label!r} ({rows})" for label, rows in classes.items() if rows < TINY]
    if tiny:
        shown = ", ".join(tiny[:5]) + ", ..." * (len(tiny) > 5)
        found.append(
            f"classes with fewer than {TINY} rows, whose errors can hardly be measured: {len(tiny)} of "
            f"{len(classes)}, {shown}; merge them, or give more rows"
        )
    return [Finding(target, message) for message in found]
