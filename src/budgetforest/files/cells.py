"""Bytes to cells, compiled: the rules of a delimited file.

Cells are separated by the delimiter, rows by line ends (LF or CRLF). A cell that starts with a quote
ends at the next single one; two quotes stand for one; delimiters and line ends inside belong to the cell.
Spaces around a cell are not part of it. Lines without any cell are skipped. Every row has as many cells as
the header.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.runtime.arrays import Ids
from budgetforest.runtime.jit import inner, kernel

Bytes = NDArray[np.uint8]

QUOTE, SPACE, TAB, LF, CR = (ord(sign) for sign in '" \t\n\r')

FINE, RAGGED, STRAY, UNCLOSED, UNEVEN = range(5)
"""What ended the splitting: the end of the text, a row that breaks the rules, or lines that are not plain."""


class Cells(NamedTuple):
    """Room for the cells of a text, row after row."""

    start: Ids
    stop: Ids
    """One past the last byte; quotes and spaces around the cell left out."""
    line: Ids
    """(n) the line on which a row begins."""


class Split(NamedTuple):
    """How far the splitting came."""

    rows: int
    consumed: int
    """Bytes of complete rows."""
    lines: int
    """Lines up to there."""
    problem: int
    found: int
    """How many cells the row has that ended it."""


@kernel
def split_plain(text: Bytes, delimiter: int, width: int, lines: int, cells: Cells) -> Split:
    """What ``split_rows`` does, several times as fast, if there are no quotes and every line is a row.

    A last row without an end is left over. ``width`` is at least 2, else an empty line is taken for a row.
    """
    ends = _mark_ends(text, delimiter, cells.stop)
    rows, after, plain = ends // width, 0, True
    for row in range(rows):
        cells.line[row] = lines + row
        for column in range(width):
            cell = row * width + column
            start, stop = after, int(np.int64(cells.stop[cell]))
            after = stop + 1
            plain &= text[stop] == (delimiter if column + 1 < width else LF)
            while start < stop and _is_space(text[start], delimiter):
                start += 1
            while start < stop and _is_space(text[stop - 1], delimiter):
                stop -= 1
            cells.start[cell] = start
            cells.stop[cell] = stop
    for cell in range(rows * width, ends):
        plain &= text[cells.stop[cell]] == delimiter
    return Split(rows, after, lines + rows, FINE if plain else UNEVEN, 0)


@inner
def _mark_ends(text: Bytes, delimiter: int, ends: Ids) -> int:
    """Where cells end; without a branch every place is noted, and overwritten unless it is one."""
    found = 0
    for at in range(len(text)):
        ends[found] = at
        found += (text[at] == delimiter) | (text[at] == LF)
    return found


@kernel
def split_rows(text: Bytes, final: bool, delimiter: int, width: int, lines: int, cells: Cells) -> Split:
    """Cut a text into rows of ``width`` cells; without ``final`` a last row without an end is left over."""
    at, rows, consumed, size = 0, 0, 0, len(text)
    while at < size:
        column, line = 0, lines
        filled = False
        while True:
            start, stop, after, inside = _next_cell(text, at, delimiter)
            lines += inside
            if after > size or (after == size and not final):
                return Split(rows, consumed, line, UNCLOSED if final else FINE, 0)
            filled |= stop > start or (start > 0 and text[start - 1] == QUOTE)
            if column < width:
                cells.start[rows * width + column] = start
                cells.stop[rows * width + column] = stop
            column += 1
            at = after + 1
            if after == size or text[after] == LF:
                break
            if text[after] != delimiter:
                return Split(rows, consumed, line, STRAY, 0)
        lines += 1
        if filled or column > 1:
            if column != width:
                return Split(rows, consumed, line, RAGGED, column)
            cells.line[rows] = line
            rows += 1
        consumed = min(at, size)
    return Split(rows, consumed, lines, FINE, 0)


@inner
def _next_cell(text: Bytes, at: int, delimiter: int) -> tuple[int, int, int, int]:
    """Where a cell starts and stops, what follows it (past the end: no closing quote), line ends inside."""
    at, lines = _past_spaces(text, at, delimiter), 0
    if at < len(text) and text[at] == QUOTE:
        start = at + 1
        stop, lines = _closing_quote(text, start)
        return start, stop, max(stop + 1, _past_spaces(text, stop + 1, delimiter)), lines
    start = at
    while at < len(text) and text[at] != delimiter and text[at] != LF:
        at += 1
    stop = at
    while stop > start and _is_space(text[stop - 1], delimiter):
        stop -= 1
    return start, stop, at, lines


@inner
def _closing_quote(text: Bytes, at: int) -> tuple[int, int]:
    """The quote that closes a cell, or the end of the text, and the number of line ends before it."""
    lines = 0
    while at < len(text):
        if text[at] == QUOTE:
            if at + 1 == len(text) or text[at + 1] != QUOTE:
                break
            at += 1
        lines += text[at] == LF
        at += 1
    return at, lines


@inner
def _is_space(sign: int, delimiter: int) -> bool:
    return sign <= SPACE and (sign in (SPACE, CR) or (sign == TAB and delimiter != TAB))


@inner
def _past_spaces(text: Bytes, at: int, delimiter: int) -> int:
    while at < len(text) and _is_space(text[at], delimiter):
        at += 1
    return at
