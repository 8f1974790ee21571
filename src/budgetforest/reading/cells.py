"""Bytes to cells to numbers, compiled: the rules of a delimited file are these two loops.

Cells are separated by the delimiter, rows by line ends (LF or CRLF). A cell that starts with a quote
ends at the next single one; two quotes stand for one; delimiters and line ends inside belong to the cell.
Spaces around a cell are not part of it. Lines without any cell are skipped. Every row has as many cells as
the header.

A number is digits with at most one decimal mark, a sign and an exponent. It becomes the double that is
nearest, as in Python: by one exact operation, by two doubles where they suffice, and else by Python itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.arrays import Floats, Ids
from budgetforest.jit import inner, kernel

Bytes = NDArray[np.uint8]

QUOTE, COMMA, DOT, SPACE, TAB, LF, CR = (ord(sign) for sign in '",. \t\n\r')
PLUS, MINUS, ZERO, NINE = (ord(sign) for sign in "+-09")
LOWER, EXPONENT = 32, ord("e")

FINE, RAGGED, STRAY, UNCLOSED = range(4)
"""What ended the splitting: the end of the text, or a row that breaks the rules."""

NUMBER, MISSING, UNSURE, OTHER = range(4)
"""What a cell is; unsure is a number that needs Python."""

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that are doubles."""
SPLITTER = 134217729.0
"""2**27 + 1, cuts a double into two halves whose products are exact."""


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
    return sign in (SPACE, CR) or (sign == TAB and delimiter != TAB)


@inner
def _past_spaces(text: Bytes, at: int, delimiter: int) -> int:
    while at < len(text) and _is_space(text[at], delimiter):
        at += 1
    return at


@kernel
def read_numbers(
    text: Bytes,
    cells: Cells,
    width: int,
    columns: Ids,
    comma: bool,
    markers: NDArray[np.uint64],
    values: Floats,
    kinds: Bytes,
) -> None:
    """Fill ``values`` and ``kinds``, (n, columns); ``comma``: it is a decimal mark, as is the dot."""
    for i in range(len(values)):
        for c in range(len(columns)):
            cell = i * width + columns[c]
            value, kind = _number(text, cells.start[cell], cells.stop[cell], comma)
            if kind == OTHER and _is_marker(text, cells.start[cell], cells.stop[cell], markers):
                kind = MISSING
            values[i, c] = value
            kinds[i, c] = kind


@inner
def _is_marker(text: Bytes, start: int, stop: int, markers: NDArray[np.uint64]) -> bool:
    """Whether a cell of up to eight bytes is one of these, packed as ``pack`` does."""
    packed = np.uint64(0)
    for at in range(start, min(stop, start + 8)):
        packed = (packed << np.uint64(8)) | np.uint64(text[at])
    found = False
    for marker in markers:
        found |= marker == packed
    return found and stop - start <= 8


@inner
def _number(text: Bytes, at: int, stop: int, comma: bool) -> tuple[float, int]:
    """A cell as a number, and what it is."""
    while at < stop and text[at] == SPACE:
        at += 1
    while stop > at and text[stop - 1] == SPACE:
        stop -= 1
    if at == stop:
        return np.nan, MISSING
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    digits, exponent, seen, marked, sure = np.uint64(0), 0, False, False, True
    while at < stop:
        if ZERO <= text[at] <= NINE:
            seen = True
            if digits < np.uint64(100_000_000_000_000_000):
                digits = digits * np.uint64(10) + np.uint64(text[at] - ZERO)
                exponent -= marked
            else:
                sure = False  # more digits than two doubles hold
        elif not marked and (text[at] == DOT or (comma and text[at] == COMMA)):
            marked = True
        else:
            break
        at += 1
    power, valid = _power(text, at, stop)
    exponent += power
    if not seen or not valid:
        return np.nan, OTHER
    if not sure or abs(exponent) > 22:
        return np.nan, UNSURE
    value, sure = _scaled(digits, exponent)
    return -value if negative else value, NUMBER if sure else UNSURE


@inner
def _power(text: Bytes, at: int, stop: int) -> tuple[int, bool]:
    """The exponent that ends a number, 0 without one, and whether it is well formed."""
    if at == stop:
        return 0, True
    if text[at] | LOWER != EXPONENT:
        return 0, False
    at += 1
    down = at < stop and text[at] == MINUS
    if at < stop and (down or text[at] == PLUS):
        at += 1
    start, power = at, 0
    while at < stop and ZERO <= text[at] <= NINE:
        power = min(power * 10 + int(text[at]) - ZERO, 9999)
        at += 1
    return -power if down else power, start < at == stop


@inner
def _scaled(digits: np.uint64, exponent: int) -> tuple[float, bool]:
    """``digits`` times ten to the ``exponent``, rounded once, and whether that is sure.

    The result is a rounded double plus what it misses. The miss is known to many more bits than matter,
    unless the sum lies next to the middle of two doubles: then a little more and a little less differ.
    """
    power = POWERS[abs(exponent)]
    high = float(digits)
    if digits <= np.uint64(9007199254740992):
        return (high * power if exponent > 0 else high / power), True
    low = float(np.int64(digits) - np.int64(high))
    if exponent > 0:
        near, rest = _product(high, power)
        miss = rest + low * power
    else:
        near = high / power
        whole, rest = _product(near, power)
        miss = ((high - whole) - rest + low) / power
    doubt = near * 1e-28
    return near + miss, near + (miss - doubt) == near + (miss + doubt)


@inner
def _product(a: float, b: float) -> tuple[float, float]:
    """The product as a double and what it misses, exactly."""
    big = SPLITTER * a
    a_high = big - (big - a)
    big = SPLITTER * b
    b_high = big - (big - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def pack(markers: tuple[str, ...]) -> NDArray[np.uint64]:
    """Texts of up to eight bytes as numbers."""
    raw = [marker.encode() for marker in markers]
    return np.array([int.from_bytes(m, "big") for m in raw if 0 < len(m) <= 8], np.uint64)
