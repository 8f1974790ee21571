"""Answers as lines of a CSV, compiled: written one by one they would take longer than to be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.cli.cells import SPECIAL, listed, quoted
from budgetforest.inference.predict import Answers
from budgetforest.runtime.arrays import Flags, Floats
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.forest import Forest

Bytes = NDArray[np.uint8]

QUOTE, COMMA, SEMICOLON, DOT, ZERO, LF = (ord(sign) for sign in '",;.0\n')

DECIMALS = 6
"""Of a share."""


class Texts(NamedTuple):
    """Texts end to end."""

    signs: Bytes
    start: NDArray[np.int64]
    """Where each begins, and where the last one ends."""


def texts_of(texts: Sequence[str]) -> Texts:
    """Put texts end to end."""
    raw = [text.encode() for text in texts]
    start = np.concatenate([[0], np.cumsum([len(text) for text in raw])]).astype(np.int64)
    return Texts(np.frombuffer(b"".join(raw), np.uint8), start)


def csv_header(names: Sequence[str]) -> bytes:
    """The first line."""
    return (",".join(map(quoted, names)) + "\n").encode()


def csv_lines(forest: Forest, kept: Sequence[Sequence[str]], given: Answers) -> memoryview:
    """A line for each row: what was ``kept``, label, cost, features paid for joined by ;, shares."""
    costs, cost = np.unique(given.ledger.spent, return_inverse=True)
    columns = [*kept, list(map(str, forest.classes)), [f"{value:.12g}" for value in costs.tolist()]]
    cells = texts_of([quoted(text) for column in columns for text in column])
    every = np.arange(len(given.label))
    numbers = np.stack([*(every for _ in kept), given.label, cost], axis=1, dtype=np.int64)
    numbers += np.cumsum([0, *(len(column) for column in columns[:-1])])
    in_list = list(map(listed, forest.schema.names))
    names = texts_of([name.replace('"', '""') for name in in_list])
    special = np.array([SPECIAL.search(name) is not None for name in in_list])
    lists = given.ledger.acquired.sum(axis=0) @ (np.diff(names.start) + 1)
    shares = given.share.shape[1] * (DECIMALS + 3)
    room = np.diff(cells.start)[numbers].sum() + lists + len(every) * (numbers.shape[1] + shares + 4)
    out = np.empty(room, np.uint8)
    return out[: fill_lines(cells, numbers, names, special, given.ledger.acquired, given.share, out)].data


@kernel
def fill_lines(
    cells: Texts,
    numbers: NDArray[np.int64],
    names: Texts,
    special: Flags,
    acquired: Flags,
    share: Floats,
    out: Bytes,
) -> int:
    """Write all lines; ``numbers`` (n, columns) are those of the cells that begin a line. Returns the end."""
    at = 0
    for i in range(len(numbers)):
        for c in range(numbers.shape[1]):
            at = _copy(cells, numbers[i, c], out, at)
            out[at] = COMMA
            at += 1
        at = _list(names, special, acquired, i, out, at)
        for c in range(share.shape[1]):
            out[at] = COMMA
            at = _share(share[i, c], out, at + 1)
        out[at] = LF
        at += 1
    return at


@inner
def _copy(texts: Texts, number: int, out: Bytes, at: int) -> int:
    """Write a text; returns where it ends."""
    for place in range(texts.start[number], texts.start[number + 1]):
        out[at] = texts.signs[place]
        at += 1
    return at


@inner
def _list(names: Texts, special: Flags, acquired: Flags, i: int, out: Bytes, at: int) -> int:
    """Write the names of what a row acquired, in quotes if one of them needs it."""
    in_quotes = False
    for j in range(len(special)):
        in_quotes |= special[j] & acquired[i, j]
    if in_quotes:
        out[at] = QUOTE
        at += 1
    start = at
    for j in range(len(special)):
        if acquired[i, j]:
            if at > start:
                out[at] = SEMICOLON
                at += 1
            at = _copy(names, j, out, at)
    if in_quotes:
        out[at] = QUOTE
        at += 1
    return at


@inner
def _share(value: float, out: Bytes, at: int) -> int:
    """Write a number from 0 to 1."""
    rest = int(np.rint(value * 10**DECIMALS))
    for place in range(at + DECIMALS + 1, at + 1, -1):
        tens = rest // 10
        out[place] = ZERO + rest - 10 * tens
        rest = tens
    out[at] = ZERO + rest
    out[at + 1] = DOT
    return at + DECIMALS + 2
