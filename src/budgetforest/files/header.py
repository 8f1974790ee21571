"""The first line of a delimited file: what separates its cells and what its columns are called."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from budgetforest.data.costs import delimiter_of
from budgetforest.runtime.errors import InvalidData, near

BOM = b"\xef\xbb\xbf"
LONGEST = 1 << 26
"""No row has more bytes; a quote that is never closed is found before memory runs out."""


class NotText(InvalidData):
    """Bytes that are no UTF-8."""

    def __init__(self, raw: bytes, what: str) -> None:
        shown = raw.decode("latin-1").strip()[:40]
        super().__init__(
            f"{what} is not UTF-8 ({shown!r} if it were Latin-1); say what it is, as --encoding latin-1, or "
            "convert the file: iconv -f latin1 -t utf-8 old.csv > new.csv"
        )


class Header(NamedTuple):
    """What the first line says."""

    names: tuple[str, ...]
    delimiter: str
    size: int
    """Bytes up to the first row."""
    lines: int
    """Lines up to the first row."""
    ends: str
    """How its line ends."""


def read_header(path: Path, name: str) -> Header:
    """The header of a file of that name."""
    with open_text(path) as file:
        return header_of(file, name)


def open_text(path: Path) -> BinaryIO:
    """A file of texts, which may be compressed."""
    import gzip  # not worth its time where it is not used

    return gzip.GzipFile(path) if is_compressed(path) else path.open("rb")  # type: ignore[return-value]


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed, by its ending."""
    return path.suffix.lower() == ".gz"


def header_of(file: BinaryIO, name: str) -> Header:
    """The header of an open file, read up to its first row; empty lines and a byte order mark are skipped."""
    lines = size = 0
    while line := file.readline(LONGEST):
        lines += 1
        size += len(line)
        if line.removeprefix(BOM).strip():
            break
    text = _decoded(line.removeprefix(BOM), name)
    if not text.strip():
        raise InvalidData(f"{name!r} is empty; its first line must name the columns")
    if text.count('"') % 2:
        raise InvalidData(f"a quote in the header of {name!r} is not closed; names stay on one line")
    delimiter = delimiter_of(text)
    names = [
        cell.strip() or f"column {number}" for number, cell in enumerate(_cells(text, delimiter, name), 1)
    ]
    ends = "\r\n" if text.endswith("\r\n") else "\n"
    return Header(unique(names, f"{name}, line {lines}"), delimiter, size, lines, ends)


def _cells(text: str, delimiter: str, name: str) -> list[str]:
    """The cells of the first line; DuckDB would take a wrong quote for one that spans all rows."""
    tight = re.sub(rf'" +(?=[{re.escape(delimiter)}\r\n]|$)', '"', text)
    try:
        return next(csv.reader([tight], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        raise InvalidData(
            f"the header of {name!r} has text between a closing quote and the next delimiter; write a quote "
            "in a name twice"
        ) from None


def _decoded(line: bytes, name: str) -> str:
    if b"\0" in line or line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidData(
            f"{name!r} is not a text in UTF-8 (UTF-16, or no text at all); try --encoding utf-16"
        )
    if line.endswith(b"\r") or b"\r" in line.rstrip(b"\r\n"):
        raise InvalidData(
            f"{name!r} ends its lines with a carriage return alone; save it with the line ends of today"
        )
    return decoded(line, f"the header of {name!r}")


def decoded(raw: bytes, what: str) -> str:
    """Bytes as text; what is not UTF-8 is refused with a hint."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise NotText(raw, what) from None


def unique(names: Sequence[str], where: str) -> tuple[str, ...]:
    """The names, if no two columns share one."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name in first:
            raise InvalidData(
                f"{where}: columns {first[name]} and {number} are both called {name!r}; rename one of them"
            )
        first[name] = number
    return tuple(names)


def place_of(name: str, names: Sequence[str], what: str, where: str) -> int:
    """The position of a column; an unknown one lists the near names."""
    if name not in names:
        raise InvalidData(f"{where}: there is no column {name!r}, {what}; {near(name, names)}")
    return list(names).index(name)
