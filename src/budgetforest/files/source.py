"""What every source of rows offers, whatever it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from budgetforest.runtime.arrays import Flags, Floats


class Numbers(NamedTuple):
    """Cells of some columns as numbers."""

    values: Floats
    """(n, columns) NaN where missing; anything in columns that were not asked for."""
    other: Flags
    """(n, columns) cells that are neither a number nor missing."""


class SourceBlock(Protocol):
    """Some rows, as many as fit well into memory."""

    upto: int
    """How much of the source has been read, in the units of its ``size``."""

    def __len__(self) -> int:
        """The number of rows."""

    def numbers(
        self, columns: Sequence[int], missing: tuple[str, ...], asked: Flags | None = None
    ) -> Numbers:
        """Some columns as numbers; of those not ``asked`` for, if given, only whether they are numbers."""

    def raw(self, column: int) -> list[Any]:
        """One column as it is in the source: bytes, texts, numbers or None."""

    def where(self, row: int) -> str:
        """Where a row is, for people: ``line 7``."""


class Source(Protocol):
    """Rows that can be read block by block, again and again; those of a pipe once."""

    name: str
    """What it is, for people."""
    names: tuple[str, ...]
    """Its columns."""
    size: int | None
    """How much there is to read, None if that is unknown."""

    def is_text(self, column: int) -> bool | None:
        """Whether a column holds texts (True) or numbers (False); None if only its cells can tell."""

    def blocks(self) -> Iterator[SourceBlock]:
        """All rows."""
