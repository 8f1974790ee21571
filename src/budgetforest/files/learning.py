"""Training rows from a source: types, categories and labels are found out here, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.table import MISSING, Schema, Table
from budgetforest.files.coding import Coder, LearningCoder, brief, labels_of
from budgetforest.files.header import place_of
from budgetforest.files.source import Block, Source
from budgetforest.files.thousands import GROUPED, Doubts, about_groups
from budgetforest.runtime.arrays import FEW_CLASSES, MAX_CODES, Floats
from budgetforest.runtime.errors import InvalidData, UnusualData, warn

COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
"""A number with a decimal comma, in a file whose cells are separated by commas."""

SHOWN = 5
"""Words of a column that are named, at most."""

ProgressCallback = Callable[[int], None]
"""Told how much of a source has been read."""


class Labelled(NamedTuple):
    """Rows and their labels."""

    table: Table
    labels: Any
    """(n) as the model knows them."""
    unlabelled: int
    """How many rows had no label and were left out."""


class Wish(NamedTuple):
    """What the caller knows about the columns."""

    target: str
    drop: Sequence[str] = ()
    """Columns that are no features."""
    categorical: Sequence[str] = ()
    """Numbers that are names of categories."""
    missing: Sequence[str] = ()
    """Texts for missing values, besides the usual ones."""


class Listener:
    """Hears what is odd about a column: an error ends a training, a warning does not.

    After a ``refuse`` that returns, rows are read to the end all the same.
    """

    def refuse(self, column: int, message: str) -> None:
        """A column that training does not take."""
        raise InvalidData(message)

    def note(self, column: int, message: str) -> None:
        """A column that is probably not what was meant."""
        warn(message, UnusualData)


def learn_rows(
    source: Source,
    wish: Wish,
    tell: ProgressCallback = lambda upto: None,
    listener: Listener = Listener(),  # noqa: B008, it has no state
) -> Labelled:
    """All rows with a label, and the schema that later rows have to follow."""
    target = place_of(wish.target, source.names, "which should be the target", source.name)
    left_out = {place_of(name, source.names, "which should be dropped", source.name) for name in wish.drop}
    features = [j for j in range(len(source.names)) if j != target and j not in left_out]
    if not features:
        raise InvalidData(f"{source.name} has no column besides the target {wish.target!r} to learn from")
    named = {
        place_of(name, source.names, "which should be categorical", source.name) for name in wish.categorical
    }
    missing = tuple(dict.fromkeys([*MISSING, *wish.missing]))
    nominal = named | _texts(source, [j for j in features if j not in named], missing, listener)
    for j, message in Doubts([j for j in features if j not in nominal]).about(source):
        listener.refuse(j, message)
    rows = _collect(source, target, features, nominal & set(features), missing, tell, listener)
    if target not in named:
        _refuse_decimals(rows.labels, target, wish.target, listener)
    return rows


@dataclass
class _Strays:
    """Cells of a column that are no numbers."""

    where: str
    """The first one."""
    decimals: bool
    """Whether they look like decimals with a comma."""
    words: dict[str, None] = field(default_factory=dict)
    """Some of them."""
    cells: int = 0
    thousands: bool = True
    """Whether all of them may be numbers whose thousands are parted."""

    def add(self, odd: Mapping[int, str]) -> None:
        self.cells += len(odd)
        self.thousands = self.thousands and all(map(GROUPED.fullmatch, odd.values()))
        if len(self.words) < SHOWN:
            new = islice(dict.fromkeys(map(brief, odd.values())), SHOWN)
            self.words = dict.fromkeys(list(self.words | dict.fromkeys(new))[:SHOWN])

    def message(self, name: str, numbers: int) -> str:
        first = next(iter(self.words))
        hint = (
            f"{self.cells} of {self.cells + numbers} cells are none ({', '.join(map(repr, self.words))}): if "
            f"they stand for missing values, say so with --missing {first!r}"
        )
        if self.decimals:
            hint = (
                "write decimals with a point, or put semicolons between the cells of the file, or say with "
                "--decimal ',' or --thousands ',' what the comma is"
            )
        why = f"{first!r} on {self.where} is no number"
        return f"column {name!r} is read as categories, because {why}; {hint}"


def _texts(source: Source, columns: Sequence[int], missing: tuple[str, ...], listener: Listener) -> set[int]:
    """The columns that are not all numbers; a first reading where only the cells can tell."""
    kinds = {j: _is_text(source, j, listener) for j in columns}
    open_columns = [j for j in columns if kinds[j] is None]
    numbers = np.zeros(len(open_columns), np.int64)
    strays: dict[int, _Strays] = {}
    for block in source.blocks(open_columns, (), missing) if open_columns else ():
        numbers += np.isfinite(block.numbers).sum(axis=0)
        for c, odd in block.odd.items():
            if c not in strays:
                strays[c] = _Strays(block.where(next(iter(odd))), _are_decimals(odd.values()))
            strays[c].add(odd)
    for c, found in sorted(strays.items()):
        j = open_columns[c]
        if numbers[c] and found.thousands:
            listener.refuse(j, about_groups(source, j, next(iter(found.words))))
        elif numbers[c] or found.decimals:
            listener.note(j, found.message(source.names[j], int(numbers[c])))
    return {j for j in columns if kinds[j]} | {open_columns[c] for c in strays}


def _is_text(source: Source, column: int, listener: Listener) -> bool | None:
    """Whether a column holds texts; one that is no feature is read as such, if it is read."""
    try:
        return source.is_text(column)
    except InvalidData as error:
        listener.refuse(column, str(error))
        return True


def _are_decimals(cells: Collection[str]) -> bool:
    """Whether most cells look like numbers with a decimal comma."""
    return 2 * sum(COMMA.fullmatch(cell) is not None for cell in cells) > len(cells)


def _collect(
    source: Source,
    target: int,
    features: Sequence[int],
    nominal: set[int],
    missing: tuple[str, ...],
    tell: ProgressCallback,
    listener: Listener,
) -> Labelled:
    """The second reading: numbers, and categories by first appearance, then in order."""
    coders = {j: LearningCoder(missing, MAX_CODES) for j in sorted(nominal)}
    coders[target] = LearningCoder(missing)
    parts: list[Floats] = []
    codes: list[Floats] = []
    rows = 0
    numeric = [j for j in features if j not in nominal]
    for block in source.blocks(numeric, list(coders), missing):
        label = coded(block, target, coders[target])
        kept = ~np.isnan(label)
        _refuse_odd(source, block, numeric, listener)
        part = np.empty((len(label), len(features)))
        part[:, [j not in nominal for j in features]] = block.numbers
        for c, j in enumerate(features):
            if j in nominal:
                part[:, c] = coded(block, j, coders[j])
                _check_categories(source, j, coders[j], listener)
        parts.append(part if kept.all() else part[kept])
        codes.append(label[kept])
        rows += len(label)
        tell(block.upto)
    if not rows:
        raise InvalidData(f"{source.name} has columns but no rows")
    matrix = np.concatenate(parts)
    categories: list[tuple[Any, ...] | None] = []
    for c, j in enumerate(features):
        if j not in nominal:
            categories.append(None)
        elif coders[j].is_full:
            categories.append(tuple(coders[j].code))
        else:
            matrix[:, c], names = _in_order(matrix[:, c], list(coders[j].code))
            categories.append(names)
    schema = Schema(
        tuple(source.names[j] for j in features), tuple(categories), missing, source.names[target]
    )
    labels = _labels(np.concatenate(codes), coders[target], target, source.names[target], listener)
    return Labelled(Table(matrix, schema), labels, rows - len(labels))


def coded(block: Block, column: int, coder: Coder) -> Floats:
    """One column as category numbers."""
    return np.array([coder[cell] for cell in block.texts[column]])


def _refuse_odd(source: Source, block: Block, numeric: Sequence[int], listener: Listener) -> None:
    """Refuse infinities of columns that are numbers by their type."""
    for c, odd in block.odd.items():
        row, text = next(iter(odd.items()))
        listener.refuse(
            numeric[c],
            f"{source.name}, {block.where(row)}: {source.names[numeric[c]]!r} is {text!r}, which is not a "
            "finite number",
        )


def _check_categories(source: Source, column: int, coder: LearningCoder, listener: Listener) -> None:
    if coder.is_full:
        shown = ", ".join(repr(text) for text in list(coder.code)[:3])
        listener.refuse(
            column,
            f"column {source.names[column]!r} has more than {MAX_CODES - 1} categories ({shown}, ...); leave "
            "it out with --drop, or merge the rare ones",
        )


def _in_order(codes: Floats, texts: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Category numbers by the order of the texts instead of first appearance."""
    order = sorted(range(len(texts)), key=lambda place: texts[place])
    rank = np.empty(len(texts) + 1)
    rank[order] = np.arange(len(texts))
    rank[-1] = np.nan
    absent = np.isnan(codes)
    return rank[np.where(absent, len(texts), codes).astype(np.int64)], tuple(texts[place] for place in order)


def _refuse_decimals(labels: Any, column: int, target: str, listener: Listener) -> None:
    """Refuse labels that are many numbers, not whole: these are measured, not named."""
    texts = sorted(set(labels.tolist())) if labels.dtype.kind == "U" else []
    if len(texts) <= FEW_CLASSES:
        return
    try:
        decimals = [text for text in texts if not float(text.replace(",", ".")).is_integer()]
    except ValueError:
        return
    if decimals:
        listener.refuse(
            column,
            f"column {target!r} has {len(texts)} different numbers, as {decimals[0]!r}; labels of more than "
            f"{FEW_CLASSES} classes are whole numbers or words: cut what is measured into ranges, or take "
            f"every number as a class with --categorical {target!r}",
        )


def _labels(codes: Floats, coder: LearningCoder, column: int, target: str, listener: Listener) -> Any:
    if not len(codes):
        raise InvalidData(f"no row has a label in column {target!r}")
    classes = labels_of(list(coder.code))
    if len(set(classes)) < 2:
        listener.refuse(
            column, f"column {target!r} has one class only, {classes[0]!r}; give rows of at least two"
        )
    return np.array(classes)[codes.astype(np.int64)]
