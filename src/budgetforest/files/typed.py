"""Sources that know their types: Parquet, Arrow and Feather files, and the rows of a SQL query.

Files are read by pyarrow, queries answered by DuckDB (its own files, Postgres, or any file that it reads) and
by Python's sqlite3. All of them arrive as Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from budgetforest.files.coding import text_of
from budgetforest.files.delimited import numeric
from budgetforest.files.header import unique
from budgetforest.files.source import Numbers
from budgetforest.runtime.arrays import Flags
from budgetforest.runtime.errors import InvalidData, MissingExtra

BATCH = 1 << 15
"""Rows of a batch, at most."""
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}


class Typed:
    """Rows as Arrow batches."""

    def __init__(self, name: str, schema: Any, size: int | None, read: Callable[[], Iterable[Any]]) -> None:
        self.name = name
        self.names = unique(schema.names, name)
        self.size = size
        self._types = schema.types
        self._read = read

    def is_text(self, column: int) -> bool | None:
        """By the type of the column."""
        kind = self._types[column]
        if not _is_numeric(kind) and not _is_text(kind):
            raise InvalidData(
                f"column {self.names[column]!r} holds values of type {kind}; features are numbers, booleans "
                "or texts: leave it out with --drop"
            )
        return _is_text(kind)

    def blocks(self) -> Iterator[TypedBlock]:
        """All rows, batch by batch."""
        rows = 0
        for batch in self._read():
            if batch.num_rows:
                yield TypedBlock(batch, rows)
            rows += batch.num_rows


class TypedBlock:
    """Rows of one batch."""

    def __init__(self, batch: Any, before: int) -> None:
        self.batch = batch
        self.before = before
        self.upto = before + batch.num_rows

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def where(self, row: int) -> str:
        """The number of a row, from 1."""
        return f"row {self.before + row + 1}"

    def raw(self, column: int) -> list[Any]:
        """The values of a column."""
        return self.batch.column(column).to_pylist()  # type: ignore[no-any-return]

    def numbers(
        self, columns: Sequence[int], missing: tuple[str, ...], asked: Flags | None = None
    ) -> Numbers:
        """Some columns as numbers, all of them; texts are read as in a file."""
        values = np.empty((len(self), len(columns)))
        other = np.zeros(values.shape, bool)
        for c, column in enumerate(columns):
            array = self.batch.column(column)
            if _is_numeric(array.type):
                values[:, c] = _doubles(array)
            else:
                read = [_number(text_of(value), missing) for value in array.to_pylist()]
                other[:, c] = [number is None for number in read]
                values[:, c] = [np.nan if number is None else number for number in read]
        other |= np.isinf(values)
        for marker in numeric(missing):
            values[values == marker] = np.nan
        return Numbers(values, other)


def _doubles(array: Any) -> Any:
    from pyarrow import types

    if types.is_decimal(array.type):  # cast directly they round twice, and differ from what a CSV gives
        array = array.cast("string")
    return array.cast("float64").to_numpy(zero_copy_only=False)


def _number(text: str, missing: tuple[str, ...]) -> float | None:
    if text.strip() in missing:
        return np.nan
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or (types.is_dictionary(kind) and _is_text(kind.value_type))
    )


def open_file(path: Path) -> Typed:
    """A Parquet, Arrow or Feather file."""
    _needs("pyarrow", f"{path.suffix} files")
    import pyarrow as pa
    from pyarrow import dataset

    try:
        data = dataset.dataset(path, format=FORMATS[path.suffix.lower()])
        rows = data.count_rows()
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidData(f"cannot read {str(path)!r}: {error}") from error
    return Typed(str(path), data.schema, rows, lambda: data.to_batches(batch_size=BATCH, batch_readahead=2))


def open_query(sql: str, database: str | None) -> Typed:
    """The rows of a query against ``app.duckdb``, ``sqlite:app.db``, ``postgres://...``, or files."""
    _needs("pyarrow", "SQL queries")
    if database is not None and database.startswith("sqlite:"):
        path = database.removeprefix("sqlite:").removeprefix("//")
        return _from_batches(sql, lambda: _sqlite_batches(sql, path))
    _needs("duckdb", "SQL queries")
    return _from_batches(sql, lambda: _duckdb_batches(sql, database))


def _from_batches(sql: str, read: Callable[[], Iterator[Any]]) -> Typed:
    first = next(read(), None)
    if first is None:
        raise InvalidData(f"the query gives no rows: {sql}")
    return Typed(sql, first.schema, None, read)


def _duckdb_batches(sql: str, database: str | None) -> Iterator[Any]:
    import duckdb

    try:
        remote = database is not None and database.startswith(("postgres:", "postgresql:"))
        connection = duckdb.connect(
            ":memory:" if remote or database is None else database,
            read_only=not remote and database is not None,
        )
        with connection:
            if remote:
                quoted = str(database).replace("'", "''")
                connection.execute(f"attach '{quoted}' as remote (type postgres, read_only)")
                connection.execute("use remote")
            yield from connection.sql(sql).to_arrow_reader(BATCH)
    except duckdb.Error as error:
        raise InvalidData(f"the query failed: {_without_password(str(error), database)}") from None


def _without_password(message: str, database: str | None) -> str:
    """A message of DuckDB, which quotes what it was told to connect to."""
    from urllib.parse import urlsplit

    password = urlsplit(database or "").password
    return message.replace(f":{password}@", ":***@") if password else message


def _sqlite_batches(sql: str, path: str) -> Iterator[Any]:
    import sqlite3

    import pyarrow as pa

    if not Path(path).is_file():
        raise InvalidData(f"there is no SQLite file {path!r}; write --from sqlite:path/to/file.db")
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    try:
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(BATCH):
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            yield pa.record_batch(columns, names=names)
    except (sqlite3.Error, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidData(f"the query failed: {error}") from error
    finally:
        connection.close()


def _needs(package: str, what: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingExtra(f'{what} need {package}: pip install "budgetforest[data]"')
