"""Later rows, read by the schema of a model: a cell that does not fit is named with its column and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.table import Schema, Table
from budgetforest.files.coding import UNSEEN, Coder, text_of
from budgetforest.files.header import place_of
from budgetforest.files.learning import Labelled, ProgressCallback, coded, placed
from budgetforest.files.source import Source, SourceBlock
from budgetforest.runtime.arrays import Flags, Floats
from budgetforest.runtime.errors import InvalidData, InvalidValue


class Piece(NamedTuple):
    """Some rows of a source."""

    table: Table
    block: SourceBlock


class Reader:
    """Reads the features of a model from a source, wherever its columns stand; others are passed over.

    ``unseen`` takes categories that training did not have as missing instead of refusing them. With ``asked``
    (m) only those features are read; the others are still checked, so that a file fits a model or does not,
    whichever of its forests is used.
    """

    def __init__(
        self, source: Source, schema: Schema, *, unseen: bool = False, asked: Flags | None = None
    ) -> None:
        self.source = source
        self.schema = schema
        self.unseen = unseen
        self.columns = [
            place_of(name, source.names, "which the model needs", source.name) for name in schema.names
        ]
        self._numeric = [c for c, names in enumerate(schema.categories) if names is None]
        self._asked = None if asked is None else asked[self._numeric]
        self._coders = {
            c: Coder(names, schema.missing) for c, names in enumerate(schema.categories) if names is not None
        }

    def pieces(self) -> Iterator[Piece]:
        """All rows, block by block."""
        for block in self.source.blocks():
            yield Piece(Table(self.matrix(block), self.schema), block)

    def labelled(
        self, target: str, classes: Sequence[Any], tell: ProgressCallback = lambda upto: None
    ) -> Labelled:
        """All rows that have a label, with it."""
        column = place_of(target, self.source.names, "which should be the target", self.source.name)
        coder = Coder(classes, self.schema.missing)
        tables: list[Any] = []
        codes: list[Floats] = []
        rows = 0
        for piece in self.pieces():
            label = coded(piece.block, column, coder, self.source.name)
            self._refuse(piece.block, label == UNSEEN, column, coder)
            kept = ~np.isnan(label)
            tables.append(piece.table.matrix[kept])
            codes.append(label[kept])
            rows += len(label)
            tell(piece.block.upto)
        if not sum(map(len, codes)):
            raise InvalidData(f"no row of {self.source.name} has a label in column {target!r}")
        labels = np.array(classes)[np.concatenate(codes).astype(np.int64)]
        return Labelled(Table(np.concatenate(tables), self.schema), labels, rows - len(labels))

    def matrix(self, block: SourceBlock) -> Floats:
        """The features of some rows as numbers."""
        numbers = block.numbers([self.columns[c] for c in self._numeric], self.schema.missing, self._asked)
        for place in np.flatnonzero(numbers.other.any(axis=0)) if numbers.other.any() else ():
            self._refuse(block, numbers.other[:, place], self.columns[self._numeric[place]], None)
        if not self._coders:
            return numbers.values
        matrix = np.empty((len(block), len(self.columns)))
        matrix[:, self._numeric] = numbers.values
        for c, coder in self._coders.items():
            codes = coded(block, self.columns[c], coder, self.source.name)
            if not self.unseen:
                self._refuse(block, codes == UNSEEN, self.columns[c], coder)
            matrix[:, c] = np.where(codes == UNSEEN, np.nan, codes)
        return matrix

    def _refuse(self, block: SourceBlock, wrong: Any, column: int, coder: Coder | None) -> None:
        """Name the first cell that is wrong, if there is one."""
        if not wrong.any():
            return
        row = int(wrong.argmax())
        name, cells = self.source.names[column], block.raw(column)
        with placed(self.source.name, block, cells):
            value = text_of(cells[row])
        rule = "is not a finite number" if coder is None else "was not there in training"
        words = ", ".join(marker for marker in self.schema.missing if marker)
        hint = f"it is a number in this model; missing is an empty cell, or one of {words}"
        if coder is not None:
            hint = coder.hint(value)
        raise InvalidValue(
            f"{self.source.name}, {block.where(row)}: {name!r} is {value!r}, which {rule}; {hint}"
        )
