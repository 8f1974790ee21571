"""Rows of a file or a query, block by block: parsed and cast by DuckDB, handed over as numpy arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Flags, Floats
from budgetforest.runtime.errors import InvalidData

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

TRUTH = {"true": 1.0, "false": 0.0}
WHOLE = ("tinyint", "smallint", "integer", "bigint", "hugeint")
NUMBERS = frozenset(
    {*WHOLE, *(f"u{kind}" for kind in WHOLE), "boolean", "float", "double", "decimal", "null"}
)
TEXTS = frozenset({"varchar", "enum"})
"""DuckDB's types of numbers and of texts; columns of other types are no features."""


class Block(NamedTuple):
    """Some rows, as many as fit well into memory."""

    numbers: Floats
    """(n, numeric columns) NaN where missing."""
    odd: dict[int, dict[int, str]]
    """Cells that are neither a number nor missing: their texts by column of ``numbers``, then by row."""
    texts: dict[int, list[str | None]]
    """The columns that were asked for as texts."""
    upto: int
    """Rows of the source up to the end of this block."""
    where: Callable[[int], str]
    """Where a row of this block is, for people: ``line 7``."""


class Wanted(NamedTuple):
    """Which columns are read, and how."""

    numeric: tuple[int, ...]
    texts: tuple[int, ...]
    missing: tuple[str, ...]
    as_doubles: bool = False
    """Whether numeric columns come as doubles, and nothing is said of cells that are none."""


class Rows(NamedTuple):
    """What DuckDB is asked for rows."""

    connection: Connection
    query: str
    columns: Sequence[str]
    """The names of its columns, as DuckDB takes them."""


class Source:
    """Rows that DuckDB gives, again and again; those of a pipe once.

    Parameters
    ----------
    name : str
        What it is, for people.
    names : tuple of str
        Its columns.
    types : sequence of DuckDB types
        Theirs; None if all cells are texts and only they can tell.
    size : int or None
        About how many rows there are.
    decimal_comma : bool
        Whether ``0,5`` is a number.
    decimal : {".", ","} or None
        The decimal sign, if somebody says so; the other one then parts thousands.
    """

    def __init__(
        self,
        name: str,
        names: tuple[str, ...],
        types: Sequence[Any] | None,
        size: int | None,
        *,
        decimal_comma: bool = False,
        decimal: str | None = None,
    ) -> None:
        self.name = name
        self.names = names
        self.size = size
        self.decimal_comma, self.decimal = decimal_comma, decimal
        self._types = types

    def is_text(self, column: int) -> bool | None:
        """Whether a column holds texts (True) or numbers (False); None if only its cells can tell."""
        if self._types is None:
            return None
        kind = self._types[column]
        if kind.id not in NUMBERS | TEXTS:
            raise InvalidData(
                f"column {self.names[column]!r} holds values of type {kind}; features are numbers, booleans "
                "or texts: leave it out with --drop"
            )
        return kind.id in TEXTS

    def blocks(
        self, numeric: Sequence[int], texts: Sequence[int], missing: tuple[str, ...]
    ) -> Iterator[Block]:
        """All rows: some columns as numbers, some as texts."""
        return self._read(Wanted(tuple(numeric), tuple(texts), missing))

    def opened(self, wanted: Wanted) -> AbstractContextManager[Rows]:
        """The rows, from the beginning."""
        raise NotImplementedError

    def _read(self, wanted: Wanted, before: int = 0) -> Iterator[Block]:
        """The rows after some of them."""
        import duckdb
        import nanoarrow

        try:
            with self.opened(wanted) as rows:
                query = self._query(rows, wanted) + (f" offset {before}" if before else "")
                for batch in nanoarrow.ArrayStream(rows.connection.sql(query)):
                    block = self._block(batch, wanted, before)
                    yield block
                    before = block.upto
        except (duckdb.Error, RuntimeError) as error:  # nanoarrow's is a RuntimeError
            raise self.problem(str(error)) from None

    def where(self, row: int) -> str:
        """Where a row is, counted from 0."""
        return f"row {row + 1}"

    def problem(self, message: str) -> InvalidData:
        """What DuckDB says, in our words."""
        return InvalidData(f"cannot read {self.name!r}: {message}")

    def _block(self, batch: Any, wanted: Wanted, before: int) -> Block:
        """The rows of an Arrow batch, whose columns are those of ``_query``."""
        columns = iter(batch.iter_children())
        numbers = np.empty((len(batch), len(wanted.numeric)))
        for c in range(numbers.shape[1]):
            column = next(columns)
            numbers[:, c] = np.asarray(column.buffer(1))
            numbers[~_is_given(column), c] = np.nan
        odd = {}
        for c in range(0 if wanted.as_doubles else numbers.shape[1]):
            if found := _settle(numbers[:, c], next(columns), wanted.missing):
                odd[c] = found
        for marker in _numeric(wanted.missing):
            numbers[numbers == marker] = np.nan
        cells = {j: next(columns).to_pylist() for j in wanted.texts}
        return Block(numbers, odd, cells, before + len(batch), lambda row: self.where(before + row))

    def _query(self, rows: Rows, wanted: Wanted) -> str:
        """Numbers, then the texts of those that are none, then texts.

        With ten thousand columns much that SQL offers is slow: aliases, ``coalesce``, nested relations.
        """
        numeric, texts = wanted.numeric, wanted.texts
        names = {j: '"' + rows.columns[j].replace('"', '""') + '"' for j in {*numeric, *texts}}
        numbers = [f"{names[j] if wanted.as_doubles else self._number(j, names[j])} as d{j}" for j in numeric]
        cells = [f"d{j}" for j in numeric]
        if not wanted.as_doubles:
            cells += [f"case when isfinite(d{j}) then null else {names[j]}::varchar end" for j in numeric]
        cells += [self._text(j, names[j]) for j in texts]
        return (
            f"select {', '.join(f'{cell} as o{n}' for n, cell in enumerate(cells)) or '1'} "
            f"from (select {', '.join([*names.values(), *numbers]) or '1'} from ({rows.query}\n))"
        )

    def _number(self, column: int, name: str) -> str:
        if self._types is None or self._types[column].id in TEXTS:
            return f"try_cast({self._with_point(name)} as double)"
        if self._types[column].id == "decimal":  # cast directly they round twice, and differ from a CSV's
            return f"{name}::varchar::double"
        return f"{name}::double"

    def _with_point(self, name: str) -> str:
        """A text whose decimal sign is a point, and which has no sign between thousands if that is known."""
        if self.decimal == ".":
            return f"replace({name}, ',', '')"
        whole = f"replace({name}, '.', '')" if self.decimal else name
        return f"replace({whole}, ',', '.')" if self.decimal or self.decimal_comma else name

    def _text(self, column: int, name: str) -> str:
        if self._types is not None and self._types[column].id == "boolean":  # as Python writes it
            return f"case {name} when true then 'True' when false then 'False' end"
        return f"trim({name}, e' \\t')" if self._types is None else f"{name}::varchar"


def _settle(numbers: Floats, unsure: Any, missing: tuple[str, ...]) -> dict[int, str]:
    """Fill in the numbers of ``true`` and ``false``; returns the cells that are not missing either."""
    odd = {}
    for row, text in _present(unsure):
        word = text.strip()
        number = np.nan if word in missing else TRUTH.get(word.lower())
        if number is None:
            odd[row] = text
        else:
            numbers[row] = number
    return odd


def _present(column: Any) -> Iterator[tuple[int, str]]:
    """The texts of an Arrow column that are not null, and their rows; most columns have none."""
    given = _is_given(column)
    texts = column.to_pylist() if given.any() else ()
    return ((row, text) for row, text in enumerate(texts) if text is not None)


def _is_given(column: Any) -> Flags:
    """(n) where an Arrow column is not null."""
    bits = np.asarray(column.buffer(0)).view(np.uint8)
    if not len(bits):
        return np.ones(len(column), bool)
    given: Flags = np.unpackbits(bits, bitorder="little", count=len(column)).view(bool)
    return given


def _numeric(missing: tuple[str, ...]) -> list[float]:
    """Those missing markers that are numbers."""
    found = []
    for marker in missing:
        try:
            found.append(float(marker))
        except ValueError:
            continue
    return [number for number in found if number == number]


@cache
def _memory() -> Connection:
    import duckdb

    return duckdb.connect()


def connected() -> Connection:
    """A connection of one's own to a database in memory; a new database would take 10 ms each time."""
    return _memory().cursor()


def literal_path(path: Path) -> str:
    """A path in a query, of which no sign is part of a pattern."""
    exact = re.sub(r"([*?\[])", r"[\1]", str(path.absolute())).replace("'", "''")
    return f"'{exact}'"
