"""Cells to numbers, compiled.

A number is digits with at most one decimal mark, a sign and an exponent. It becomes the double that is
nearest, as in Python: by one exact operation, by two doubles where they suffice, and else by Python itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetforest.files.cells import SPACE, Bytes, Cells
from budgetforest.runtime.arrays import Flags, Floats, Ids
from budgetforest.runtime.jit import inner, kernel

COMMA, DOT, PLUS, MINUS, ZERO, NINE = (ord(sign) for sign in ",.+-09")
LOWER, EXPONENT = 32, ord("e")

NUMBER, MISSING, UNSURE, OTHER = range(4)
"""What a cell is; unsure is a number that needs Python."""

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that are doubles."""
TEN_DIGITS, SEVENTEEN_DIGITS = np.uint64(10**10), np.uint64(10**17)
"""Below these eight more digits, or one, make at most eighteen."""
SPLITTER = 134217729.0
"""2**27 + 1, cuts a double into two halves whose products are exact."""


@kernel
def read_numbers(
    text: Bytes,
    cells: Cells,
    width: int,
    columns: Ids,
    asked: Flags,
    comma: bool,
    markers: NDArray[np.uint64],
    values: Floats,
    kinds: Bytes,
) -> int:
    """Fill ``values`` and ``kinds``, (n, columns); ``comma``: it is a decimal mark, as is the dot.

    Of columns that are not ``asked`` for only the kind is told. Returns how many cells are left to Python.
    """
    left = 0
    for i in range(len(values)):
        for c in range(len(columns)):
            cell = i * width + columns[c]
            start, stop = int(np.int64(cells.start[cell])), int(np.int64(cells.stop[cell]))
            value, kind = _whole(text, start, stop)
            if kind == OTHER and not asked[c] and _is_decimal(text, start, stop):
                kind = NUMBER
            if kind == OTHER:
                value, kind = _number(text, start, stop, comma)
            if kind == OTHER and _is_marker(text, start, stop, markers):
                kind = MISSING
            left += kind >= UNSURE
            values[i, c] = value
            kinds[i, c] = kind
    return left


@inner
def _whole(text: Bytes, start: int, stop: int) -> tuple[float, int]:
    """A cell of up to 15 digits and nothing else, which most are; anything else is ``OTHER`` here."""
    digits, at = 0, start
    while at < stop and ZERO <= text[at] <= NINE:
        digits = digits * 10 + int(text[at]) - ZERO
        at += 1
    return float(digits), NUMBER if start < stop == at and stop - start <= 15 else OTHER


@inner
def _is_decimal(text: Bytes, at: int, stop: int) -> bool:
    """Whether a cell is digits with a dot among them, not so many that they could be too large."""
    if stop - at > 300:
        return False
    if at < stop and text[at] == MINUS:
        at += 1
    seen = marked = False
    while at < stop:
        if marked and at + 8 <= stop and _eight_digits(text, at)[1]:
            seen = True
            at += 8
        elif ZERO <= text[at] <= NINE:
            seen = True
            at += 1
        elif not marked and text[at] == DOT:
            marked = True
            at += 1
        else:
            return False
    return seen


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
        if marked and at + 8 <= stop and digits < TEN_DIGITS:
            eight, all_digits = _eight_digits(text, at)
            if all_digits:
                digits = digits * np.uint64(100_000_000) + eight
                exponent -= 8
                seen = True
                at += 8
                continue
        if ZERO <= text[at] <= NINE:
            seen = True
            if digits < SEVENTEEN_DIGITS:
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
def _eight_digits(text: Bytes, at: int) -> tuple[np.uint64, bool]:
    """Eight bytes as a number, all at once, and whether all of them are digits.

    Neighbours are joined three times: digits to pairs, pairs to fours, fours to eight.
    """
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(text[np.uint64(at + place)]) << np.uint64(8 * place)
    high = np.uint64(0xF0F0F0F0F0F0F0F0)
    all_digits = word & (word + np.uint64(0x0606060606060606)) & high == np.uint64(0x3030303030303030)
    word &= ~high
    word = (word * np.uint64(10 * 2**8 + 1)) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100 * 2**16 + 1)) >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF)
    return (word * np.uint64(10_000 * 2**32 + 1)) >> np.uint64(32), all_digits


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
