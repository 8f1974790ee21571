"""Delimited text from a pipe: read once, as it comes, or copied to a temporary file to be read again."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from budgetforest.files.delimited import TextSource
from budgetforest.files.header import LONGEST, header_of
from budgetforest.files.source import Block, Source
from budgetforest.files.thousands import Doubts, refuse_thousands
from budgetforest.runtime.errors import InvalidData

CHUNK = 1 << 24
"""Bytes read at a time: enough rows for DuckDB to be at full speed, little memory."""
LONGEST_ROW = 2_000_000
"""Bytes of a row that DuckDB takes, at most."""


class Piped(Source):
    """Delimited text in an open file, whose rows are read once.

    Complete rows, about ``CHUNK`` bytes at a time, are written to a temporary file that DuckDB reads.
    """

    def __init__(self, file: BinaryIO, name: str, decimal: str | None = None) -> None:
        self.header = header_of(file, name)
        super().__init__(name, self.header.names, None, None, decimal=decimal)
        self._file = file

    def blocks(
        self, numeric: Sequence[int], texts: Sequence[int], missing: tuple[str, ...]
    ) -> Iterator[Block]:
        """All rows, part by part."""
        upto, doubts = 0, Doubts(numeric)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            for text, lines in self._parts():
                # as in a file, DuckDB learns from a first line how lines end: a quoted cell would mislead it
                path.write_bytes(b"header" + self.header.ends.encode() + text)
                header = self.header._replace(lines=lines)
                opened = partial(io.BytesIO, text)
                part = TextSource(self.name, header, path, 1, opened, decimal=self.decimal)
                refuse_thousands(part, doubts)
                before = upto
                for block in part.blocks(numeric, texts, missing):
                    upto = before + block.upto
                    yield block._replace(upto=upto)

    def _parts(self) -> Iterator[tuple[bytes, int]]:
        """Complete rows, and how many lines came before them."""
        left, lines = b"", self.header.lines
        while chunk := self._file.read(max(CHUNK, len(left))):
            text = left + chunk
            end = last_row_end(text, self.header.delimiter)
            rows, left = text[:end], text[end:]
            if rows and not rows.isspace():
                yield rows, lines
            lines += rows.count(b"\n")
            if len(left) > LONGEST:
                raise InvalidData(
                    f"{self.name}: the row on line {lines + 1} has more than {LONGEST >> 20} MB; "
                    "probably a quote in it is not closed"
                )
        if left.strip():
            yield left, lines


def last_row_end(text: bytes, delimiter: str) -> int:
    """Where the last complete row ends: a line end after an even number of quotes.

    A quote within a cell that has none around it (``5"``) belongs to no pair. Then rows seem to be longer
    than DuckDB takes them, and the csv module counts them.
    """
    end = _after_even_quotes(text)
    if len(text) - end < LONGEST_ROW:
        return end
    csv.field_size_limit(LONGEST)
    lines = text.splitlines(keepends=True)
    reader = csv.reader((line.decode("latin-1") for line in lines), delimiter=delimiter)
    before = complete = 0
    for _ in reader:
        before, complete = complete, reader.line_num
    return sum(map(len, lines[:before]))


def _after_even_quotes(text: bytes) -> int:
    end, quotes = len(text), text.count(b'"')
    while (at := text.rfind(b"\n", 0, end)) >= 0:
        quotes -= text.count(b'"', at, end)
        if quotes % 2 == 0:
            return at + 1
        end = at
    return 0


@contextmanager
def copied(pipe: BinaryIO) -> Iterator[Path]:
    """What a pipe holds, in a temporary file that can be read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(pipe, file, 1 << 20)
        yield path
