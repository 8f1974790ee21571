"""Training rows from a source: types, categories and labels are found out here, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.costs import both_readings, like_thousands
from budgetforest.data.table import MISSING, Schema, Table
from budgetforest.files.coding import Coder, LearningCoder, brief, labels_of
from budgetforest.files.header import place_of
from budgetforest.files.source import Block, Source, Wanted
from budgetforest.runtime.arrays import FEW_CLASSES, MAX_CODES, Floats
from budgetforest.runtime.errors import InvalidData, UnusualData, warn

COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
"""A number with a decimal comma, in a file whose cells are separated by commas."""

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


def learn_rows(source: Source, wish: Wish, tell: ProgressCallback = lambda upto: None) -> Labelled:
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
    nominal = named | _texts(source, [j for j in features if j not in named], missing)
    _refuse_thousands(source, [j for j in features if j not in nominal])
    rows = _collect(source, target, features, nominal & set(features), missing, tell)
    if target not in named:
        _refuse_decimals(rows.labels, wish.target)
    return rows


def _texts(source: Source, columns: Sequence[int], missing: tuple[str, ...]) -> set[int]:
    """The columns that are not all numbers; a first reading where only the cells can tell."""
    found = {j for j in columns if source.is_text(j)}
    open_columns = [j for j in columns if source.is_text(j) is None]
    seen_numbers: set[int] = set()
    first: dict[int, str] = {}
    commas: set[int] = set()
    for block in source.blocks(open_columns, (), missing) if open_columns else ():
        numeric = ~np.isnan(block.numbers).all(axis=0)
        seen_numbers |= {open_columns[c] for c in np.flatnonzero(numeric)}
        for c, odd in block.odd.items():
            if (j := open_columns[c]) not in first:
                row, text = next(iter(odd.items()))
                first[j] = f"{brief(text)!r} on {block.where(row)}"
                commas |= {j} if _are_decimals(odd.values()) else set()
    for j in sorted(seen_numbers & set(first) | commas):
        hint = "if that stands for a missing value, say so with --missing"
        if j in commas:
            hint = "write decimals with a point, or put semicolons between the cells of the file"
        warn(
            f"column {source.names[j]!r} is read as categories, because {first[j]} is no number; {hint}",
            UnusualData,
        )
    return found | set(first)


def _refuse_thousands(source: Source, columns: Sequence[int]) -> None:
    """Refuse numbers as 1.200 beside 950, unless others as 7.27 show that their sign is a decimal one.

    Only in files whose delimiter is no comma: elsewhere a point is a decimal sign.
    """
    if not source.decimal_comma or source.decimal or not columns:
        return
    counts = []
    for j in columns:
        for sign in ".,":
            like = f"regexp_full_match(trim(n{j}), '{like_thousands(sign)}')"
            counts += [f"count_if({like})", f"count_if(contains(n{j}, '{sign}'))"]
            counts += [f"count_if(regexp_full_match(trim(n{j}), '[0-9]+'))", f"min(n{j}) filter ({like})"]
    with source.opened(Wanted((), tuple(columns), ())) as rows:
        [found] = rows.connection.sql(f"select {', '.join(counts)} from ({rows.query}\n)").fetchall()
    for at, (j, sign) in enumerate(product(columns, ".,")):
        unclear, written, whole, cell = found[4 * at : 4 * at + 4]
        # 0.125 and 7.27 are none but decimals
        if whole and unclear and unclear == written:
            other = {".": ",", ",": "."}[sign]
            thousands, decimals = both_readings(cell.strip(), sign)
            raise InvalidData(
                f"column {source.names[j]!r} of {source.name} has {cell!r} beside whole numbers: is that "
                f"{thousands} or {decimals}? Say so with --decimal {other!r} or --decimal {sign!r}"
            )


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
) -> Labelled:
    """The second reading: numbers, and categories by first appearance, then in order."""
    coders = {j: LearningCoder(missing) for j in [*sorted(nominal), target]}
    parts: list[Floats] = []
    codes: list[Floats] = []
    rows = 0
    numeric = [j for j in features if j not in nominal]
    for block in source.blocks(numeric, list(coders), missing):
        label = coded(block, target, coders[target])
        kept = ~np.isnan(label)
        _refuse_odd(source, block, numeric)
        part = np.empty((len(label), len(features)))
        part[:, [j not in nominal for j in features]] = block.numbers
        for c, j in enumerate(features):
            if j in nominal:
                part[:, c] = coded(block, j, coders[j])
        _check_categories(source, coders, target)
        parts.append(part if kept.all() else part[kept])
        codes.append(label[kept])
        rows += len(label)
        tell(block.upto)
    if not rows:
        raise InvalidData(f"{source.name} has columns but no rows")
    matrix = np.concatenate(parts)
    categories: list[tuple[Any, ...] | None] = []
    for c, j in enumerate(features):
        if j in nominal:
            matrix[:, c], names = _in_order(matrix[:, c], list(coders[j].code))
        categories.append(names if j in nominal else None)
    schema = Schema(
        tuple(source.names[j] for j in features), tuple(categories), missing, source.names[target]
    )
    labels = _labels(np.concatenate(codes), coders[target], source.names[target])
    return Labelled(Table(matrix, schema), labels, rows - len(labels))


def coded(block: Block, column: int, coder: Coder) -> Floats:
    """One column as category numbers."""
    return np.array([coder[cell] for cell in block.texts[column]])


def _refuse_odd(source: Source, block: Block, numeric: Sequence[int]) -> None:
    """Refuse infinities of columns that are numbers by their type."""
    for c, odd in block.odd.items():
        row, text = next(iter(odd.items()))
        raise InvalidData(
            f"{source.name}, {block.where(row)}: {source.names[numeric[c]]!r} is {text!r}, which is not a "
            "finite number"
        )


def _check_categories(source: Source, coders: dict[int, LearningCoder], target: int) -> None:
    for j, coder in coders.items():
        if len(coder.code) > MAX_CODES - 1 and j != target:
            shown = ", ".join(repr(text) for text in list(coder.code)[:3])
            raise InvalidData(
                f"column {source.names[j]!r} has more than {MAX_CODES - 1} categories ({shown}, ...); leave "
                "it out with --drop, or merge the rare ones"
            )


def _in_order(codes: Floats, texts: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Category numbers by the order of the texts instead of first appearance."""
    order = sorted(range(len(texts)), key=lambda place: texts[place])
    rank = np.empty(len(texts) + 1)
    rank[order] = np.arange(len(texts))
    rank[-1] = np.nan
    absent = np.isnan(codes)
    return rank[np.where(absent, len(texts), codes).astype(np.int64)], tuple(texts[place] for place in order)


def _refuse_decimals(labels: Any, target: str) -> None:
    """Refuse labels that are many numbers, not whole: these are measured, not named."""
    texts = sorted(set(labels.tolist())) if labels.dtype.kind == "U" else []
    if len(texts) <= FEW_CLASSES:
        return
    try:
        decimals = [text for text in texts if not float(text.replace(",", ".")).is_integer()]
    except ValueError:
        return
    if decimals:
        raise InvalidData(
            f"column {target!r} has {len(texts)} different numbers, as {decimals[0]!r}; labels of more than "
            f"{FEW_CLASSES} classes are whole numbers or words: cut what is measured into ranges, or take "
            f"every number as a class with --categorical {target!r}"
        )


def _labels(codes: Floats, coder: LearningCoder, target: str) -> Any:
    if not len(codes):
        raise InvalidData(f"no row has a label in column {target!r}")
    classes = labels_of(list(coder.code))
    if len(set(classes)) < 2:
        raise InvalidData(f"column {target!r} has one class only, {classes[0]!r}; give rows of at least two")
    return np.array(classes)[codes.astype(np.int64)]
