"""CSV and its relatives: read by DuckDB, and what is wrong in them said with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from budgetforest.files.header import LONGEST, Header, NotText, decoded, is_compressed, open_text, read_header
from budgetforest.files.source import Block, Rows, Source, Wanted, connected, literal_path
from budgetforest.runtime.errors import InvalidData

SAMPLED = 1 << 16
"""Bytes that tell how long rows are."""
ENDS = "has line ends of two kinds; make them one: sed 's/\\r$//' old.csv > new.csv"
UNCLOSED = "opens a quote that is never closed; write a quote in a cell twice"
STRAY = "has text between a closing quote and the next delimiter; write a quote in a cell twice"

Opener = Callable[[], BinaryIO]
"""Opens a file at its first row."""


class TextSource(Source):
    """Rows of delimited text in a file, after some lines that are skipped.

    Parameters
    ----------
    name : str
        What it is, for people.
    header : Header
        Its columns and delimiter, and how many lines come before the rows.
    path : Path
        The file that DuckDB reads.
    skip : int
        How many of its lines to skip.
    opened : callable
        Opens the same rows, to look for the line of one.
    size : int or None
        About how many rows there are.
    compression : {"none", "gzip"}
        Of the file.
    """

    def __init__(
        self,
        name: str,
        header: Header,
        path: Path,
        skip: int,
        opened: Opener,
        size: int | None = None,
        compression: str = "none",
        decimal: str | None = None,
    ) -> None:
        comma = header.delimiter != ","
        super().__init__(name, header.names, None, size, decimal_comma=comma, decimal=decimal)
        self.header = header
        self._path = path
        self._skip = skip
        self._opened = opened
        self._compression = compression

    def _read(self, wanted: Wanted, before: int = 0) -> Iterator[Block]:
        """All rows, as doubles as long as DuckDB finds nothing else, which takes two thirds of the time."""
        if self.decimal:  # DuckDB's own is the point
            yield from super()._read(wanted, before)
            return
        try:
            for block in super()._read(wanted._replace(as_doubles=True)):
                if not np.isfinite(block.numbers).all():
                    break
                yield block
                before = block.upto
            else:
                return
        except InvalidData:  # read with care it will be found again, or is none
            pass
        yield from super()._read(wanted, before)

    @contextmanager
    def opened(self, wanted: Wanted) -> Iterator[Rows]:
        """All rows, every cell a text, or a double if it is wanted so.

        DuckDB is told everything, so that it guesses nothing: a path is no pattern, an ending no compression.
        """
        names = [f"n{j}" for j in range(len(self.names))]
        doubles = set(wanted.numeric if wanted.as_doubles else ())
        types = ["double" if j in doubles else "varchar" for j in range(len(names))]
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in zip(names, types, strict=True))
        query = f"""
            from read_csv({literal_path(self._path)}, columns = {{{columns}}}, skip = {self._skip},
                header = false, delim = '{self.header.delimiter}', quote = '"', escape = '"',
                allow_quoted_nulls = false, auto_detect = false, strict_mode = true,
                compression = '{self._compression}')
        """
        if len(self.names) == 1:  # else empty lines would be rows without a value
            query += " where n0 is not null"
        with connected() as connection:
            yield Rows(connection, query, names)

    def where(self, row: int) -> str:
        """The line on which a row begins, which DuckDB does not tell."""
        return f"line {self._line(row, empty=False)}"

    def _line(self, row: int, *, empty: bool) -> int:
        """The line on which a row begins, counted with or without ``empty`` ones."""
        csv.field_size_limit(LONGEST)
        with self._opened() as file:
            text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="")
            reader = csv.reader(text, delimiter=self.header.delimiter, skipinitialspace=True)
            before = 0
            for cells in reader:
                row -= bool(cells) or empty
                if row < 0:
                    break
                before = reader.line_num
        return self.header.lines + before + 1

    def problem(self, message: str) -> InvalidData:
        """What DuckDB found wrong, in our words and with its line."""
        found = re.search(r"Line: (\d+)", message)
        if found is None:
            wrong = ENDS if "invalid state" in message else f"cannot be read: {message}"
            return InvalidData(f"{self.name} {wrong}")
        line = self._line(int(found[1]) - self._skip - 1, empty=True)  # DuckDB counts rows, not lines
        if "utf-8" in message:
            return InvalidData(f"{self.name}, line {line}: {self._not_text(line)}")
        if cells := re.search(r"Found: (\d+)", message):
            number = int(cells[1])
            what = f"has {number} cell{'s' if number != 1 else ''}, the header {len(self.names)} columns"
            if number > len(self.names):
                what += "; quote cells that contain the delimiter"
        elif "unterminated quote" in message:
            what = self._wrong_quote(line)
        elif size := re.search(r"Maximum line size of (\d+)", message):
            what = f"has more than {int(size[1]):,} bytes; probably a quote in it is not closed"
        else:
            what = f"cannot be read: {message}"
        return InvalidData(f"{self.name}: the row on line {line} {what}")

    def _at_line(self, line: int) -> bytes:
        """The text from a line on, as much as a row may be long."""
        with self._opened() as file:
            for _ in range(line - self.header.lines - 1):
                file.readline()
            return file.read(LONGEST)

    def _wrong_quote(self, line: int) -> str:
        text = io.StringIO(self._at_line(line).decode(errors="replace"), newline="")
        try:
            next(csv.reader(text, delimiter=self.header.delimiter, strict=True))
        except csv.Error as error:
            return STRAY if "expected after" in str(error) else UNCLOSED
        return UNCLOSED

    def _not_text(self, line: int) -> str:
        ends = rb"[\r\n" + re.escape(self.header.delimiter.encode()) + rb"]"
        for cell in re.split(ends, self._at_line(line)):
            try:
                decoded(cell, "a cell")
            except NotText as error:
                return str(error)
        return "a cell is not UTF-8"


class Delimited(TextSource):
    """A file of texts with a delimiter between them; one that ends in .gz is compressed."""

    def __init__(self, path: Path, name: str | None = None, decimal: str | None = None) -> None:
        header, compressed = read_header(path, name or str(path)), is_compressed(path)

        def opened() -> BinaryIO:
            file = open_text(path)
            file.seek(header.size)
            return file

        rows = None
        if not compressed:
            with opened() as file:
                sample = file.read(SAMPLED)
            rows = (path.stat().st_size - header.size) * sample.count(b"\n") // max(len(sample), 1)
        compression = "gzip" if compressed else "none"
        super().__init__(name or str(path), header, path, header.lines, opened, rows, compression, decimal)
