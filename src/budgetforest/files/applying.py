"""Later rows, read by the schema of a model: a cell that does not fit is named with its column and line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.table import Schema, Table
from budgetforest.files.coding import UNSEEN, Coder, brief
from budgetforest.files.header import place_of
from budgetforest.files.learning import Labelled, ProgressCallback, coded
from budgetforest.files.source import Block, Source
from budgetforest.files.thousands import GROUPED, Doubts, refuse_thousands, sign_of
from budgetforest.runtime.arrays import Floats
from budgetforest.runtime.errors import InvalidData, InvalidValue


class Piece(NamedTuple):
    """Some rows of a source."""

    table: Table
    block: Block


class Reader:
    """Reads the features of a model from a source, wherever its columns stand; others are passed over.

    Of features ``asked`` for, if these are named, the others need not be there, and are not looked at.
    ``unseen`` takes categories that training did not have as missing instead of refusing them. Columns of
    ``texts`` come along as they are.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        *,
        asked: Collection[int] | None = None,
        unseen: bool = False,
        texts: Sequence[int] = (),
    ) -> None:
        self.source = source
        self.schema = schema
        self.unseen = unseen
        self.columns = {
            c: place_of(name, source.names, "which the model needs", source.name)
            for c, name in enumerate(schema.names)
            if asked is None or c in asked
        }
        self._numeric = [c for c in self.columns if schema.categories[c] is None]
        self._coders = {
            c: Coder(names, schema.missing)
            for c, names in enumerate(schema.categories)
            if names is not None and c in self.columns
        }
        self._texts = list(dict.fromkeys([*(self.columns[c] for c in self._coders), *texts]))

    def blocks(self) -> Iterator[Block]:
        """All rows as they are, block by block."""
        numeric = [self.columns[c] for c in self._numeric]
        refuse_thousands(self.source, Doubts(numeric))
        return self.source.blocks(numeric, self._texts, self.schema.missing)

    def pieces(self) -> Iterator[Piece]:
        """All rows, block by block."""
        for block in self.blocks():
            yield Piece(Table(self.matrix(block), self.schema), block)

    def matrix(self, block: Block) -> Floats:
        """The features of some rows as numbers."""
        for place, odd in block.odd.items():
            for row, text in odd.items():
                raise self._mismatch(block, row, self.columns[self._numeric[place]], text, None)
        m = len(self.schema.names)
        if len(self._numeric) == m:
            return block.numbers
        matrix = np.full((len(block.numbers), m), np.nan)
        matrix[:, self._numeric] = block.numbers
        for c, coder in self._coders.items():
            codes = coded(block, self.columns[c], coder)
            if not self.unseen:
                self.refuse_unseen(block, codes, self.columns[c], coder)
            matrix[:, c] = np.where(codes == UNSEEN, np.nan, codes)
        return matrix

    def refuse_unseen(self, block: Block, codes: Floats, column: int, coder: Coder) -> None:
        """Name the first category that training did not have, if there is one."""
        for row in np.flatnonzero(codes == UNSEEN).tolist():
            raise self._mismatch(block, row, column, block.texts[column][row] or "", coder)

    def _mismatch(self, block: Block, row: int, column: int, value: str, coder: Coder | None) -> InvalidValue:
        rule = "is not a finite number" if coder is None else "was not there in training"
        words = ", ".join(marker for marker in self.schema.missing if marker)
        hint = f"it is a number in this model; missing is an empty cell, or one of {words}"
        if coder is not None:
            hint = coder.hint(value)
        elif GROUPED.fullmatch(value) and self.source.decimal is None:
            sign = sign_of(value)
            hint += f"; if {sign!r} parts thousands, say so with --thousands {sign!r}"
        return InvalidValue(
            f"{self.source.name}, {block.where(row)}: {self.source.names[column]!r} is {brief(value)!r}, "
            f"which {rule}; {hint}"
        )


def labelled_rows(
    source: Source,
    schema: Schema,
    target: str,
    classes: Sequence[Any],
    *,
    asked: Collection[int] | None = None,
    unseen: bool = False,
    tell: ProgressCallback = lambda upto: None,
) -> Labelled:
    """All rows that have a label, with it."""
    column = place_of(target, source.names, "which should be the target", source.name)
    reader = Reader(source, schema, asked=asked, unseen=unseen, texts=[column])
    coder = Coder(classes, schema.missing)
    tables: list[Any] = []
    codes: list[Floats] = []
    rows = 0
    for table, block in reader.pieces():
        label = coded(block, column, coder)
        reader.refuse_unseen(block, label, column, coder)
        kept = ~np.isnan(label)
        tables.append(table.matrix[kept])
        codes.append(label[kept])
        rows += len(label)
        tell(block.upto)
    if not sum(map(len, codes)):
        raise InvalidData(f"no row of {source.name} has a label in column {target!r}")
    labels = np.array(classes)[np.concatenate(codes).astype(np.int64)]
    return Labelled(Table(np.concatenate(tables), schema), labels, rows - len(labels))
