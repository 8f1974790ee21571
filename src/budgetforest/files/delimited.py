"""CSV and its relatives, block by block: compiled, with nothing but numpy and numba."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from budgetforest.files.cells import (
    LF,
    RAGGED,
    STRAY,
    UNCLOSED,
    UNEVEN,
    Cells,
    Split,
    split_plain,
    split_rows,
)
from budgetforest.files.digits import NUMBER, OTHER, UNSURE, pack, read_numbers
from budgetforest.files.header import LONGEST, Header, read_header
from budgetforest.files.source import Numbers
from budgetforest.runtime.arrays import Flags
from budgetforest.runtime.errors import InvalidData

CHUNK = 1 << 21
"""Bytes read at a time: enough rows to predict at full speed, little memory."""


class Delimited:
    """A file of texts with a delimiter between them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.header: Header = read_header(path)
        self.names = self.header.names
        self.size: int | None = path.stat().st_size

    def is_text(self, column: int) -> bool | None:
        """Only the cells can tell."""
        return None

    def blocks(self) -> Iterator[TextBlock]:
        """All rows, about ``CHUNK`` bytes at a time."""
        lines, read, left = self.header.lines + 1, self.header.size, b""
        with self._rows() as file:
            while True:
                chunk = file.read(max(CHUNK, len(left)))
                read += len(chunk)
                text, final = left + chunk, not chunk
                block, split = self._split(text, final, lines, read)
                if len(block):
                    yield block
                if split.problem:
                    raise InvalidData(self._problem(split))
                if final:
                    return
                left, lines = text[split.consumed :], split.lines
                if len(left) > LONGEST:
                    raise InvalidData(
                        f"{self.name}: the row on line {lines} has more than {LONGEST >> 20} MB; "
                        "probably a quote in it is not closed"
                    )

    @contextmanager
    def _rows(self) -> Iterator[BinaryIO]:
        """The file, at its first row."""
        with self.path.open("rb") as file:
            file.seek(self.header.size)
            yield file

    def _split(self, raw: bytes, final: bool, lines: int, upto: int) -> tuple[TextBlock, Split]:
        text = np.frombuffer(raw, np.uint8)
        ends = np.count_nonzero(text == LF) + 1
        room = np.count_nonzero(text == ord(self.header.delimiter)) + ends + len(self.names)
        cells = Cells(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(ends, np.int32))
        width, delimiter = len(self.names), ord(self.header.delimiter)
        split = Split(0, 0, lines, UNEVEN, 0)
        if width > 1 and b'"' not in raw and (raw.endswith(b"\n") or not final):
            split = split_plain(text, delimiter, width, lines, cells)
        if split.problem == UNEVEN:
            split = split_rows(text, final, delimiter, width, lines, cells)
        used = split.rows * width
        cells = Cells(cells.start[:used], cells.stop[:used], cells.line[: split.rows])
        return TextBlock(raw, cells, width, self.header.delimiter != ",", upto), split

    def _problem(self, split: Split) -> str:
        """What is wrong with the row that ended the splitting."""
        what = {
            RAGGED: f"has {split.found} cells, the header {len(self.names)} columns; "
            "quote cells that contain the delimiter",
            STRAY: "has text between a closing quote and the next delimiter; write a quote in a cell twice",
            UNCLOSED: "opens a quote that is never closed; write a quote in a cell twice",
        }[split.problem]
        return f"{self.name}: the row on line {split.lines} {what}"


class TextBlock:
    """Rows of a delimited file."""

    def __init__(self, text: bytes, cells: Cells, width: int, comma: bool, upto: int) -> None:
        self.text = text
        self.cells = cells
        self.width = width
        self.comma = comma
        self.upto = upto

    def __len__(self) -> int:
        return len(self.cells.line)

    def where(self, row: int) -> str:
        """The line on which a row begins."""
        return f"line {self.cells.line[row]}"

    def raw(self, column: int) -> list[bytes]:
        """The bytes of a column's cells."""
        text, cells = self.text, slice(column, None, self.width)
        bounds = zip(self.cells.start[cells].tolist(), self.cells.stop[cells].tolist(), strict=True)
        return [text[start:stop] for start, stop in bounds]

    def numbers(
        self, columns: Sequence[int], missing: tuple[str, ...], asked: Flags | None = None
    ) -> Numbers:
        """Some columns as numbers; ``true`` and ``false`` are 1 and 0."""
        values = np.empty((len(self), len(columns)))
        kinds = np.empty(values.shape, np.uint8)
        places = np.array(columns, np.int32)
        text = np.frombuffer(self.text, np.uint8)
        left = read_numbers(
            text,
            self.cells,
            self.width,
            places,
            np.ones(len(columns), bool) if asked is None else asked,
            self.comma,
            pack(missing),
            values,
            kinds,
        )
        for i, c in zip(*np.nonzero(kinds >= UNSURE), strict=True) if left else ():
            number = self._slowly(int(i) * self.width + columns[c], kinds[i, c])
            kinds[i, c] = OTHER if number is None else NUMBER
            values[i, c] = np.nan if number is None else number
        for marker in numeric(missing):
            values[values == marker] = np.nan
        return Numbers(values, kinds == OTHER)

    def _slowly(self, cell: int, kind: int) -> float | None:
        """A cell that the compiled loop leaves to Python; None if it is no number after all."""
        raw = self.text[self.cells.start[cell] : self.cells.stop[cell]].strip()
        if kind == OTHER:
            return TRUTH.get(raw.lower())
        number = float(raw.replace(b",", b"."))
        return number if np.isfinite(number) else None


TRUTH = {b"true": 1.0, b"false": 0.0}


def numeric(missing: tuple[str, ...]) -> list[float]:
    """Those missing markers that are numbers."""
    found = []
    for marker in missing:
        try:
            found.append(float(marker))
        except ValueError:
            continue
    return [number for number in found if number == number]
