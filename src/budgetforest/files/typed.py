"""Sources that know their types: Parquet, Arrow and Feather files, and the rows of a SQL query.

DuckDB reads Parquet and answers queries (its own files, Postgres, or any file that it reads). Arrow
files come through pyarrow, SQLite's rows through Python's sqlite3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetforest.files.header import unique
from budgetforest.files.source import Rows, Source, Wanted, connected, literal_path
from budgetforest.runtime.errors import InvalidData, MissingExtra

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from duckdb import DuckDBPyConnection as Connection

BATCH = 1 << 15
"""Rows of SQLite that are handed over at a time."""
PARQUET = (".parquet", ".pq")
FORMATS = (*PARQUET, ".arrow", ".feather", ".ipc")
"""Endings of files that know their types; all others are delimited text."""


class Typed(Source):
    """Rows of any types."""

    def __init__(
        self, name: str, opened: Callable[[], AbstractContextManager[Rows]], *, counted: bool
    ) -> None:
        self._opened = opened
        self._is_file = counted
        with opened() as rows:
            given = rows.connection.sql(rows.query)
            size = given.count("*").fetchall()[0][0] if counted else None
            super().__init__(name, unique(given.columns, name), given.types, size)

    def opened(self, wanted: Wanted) -> AbstractContextManager[Rows]:
        """All rows."""
        return self._opened()

    def problem(self, message: str) -> InvalidData:
        """What DuckDB says."""
        return super().problem(message) if self._is_file else InvalidData(f"the query failed: {message}")


def open_file(path: Path) -> Typed:
    """A Parquet, Arrow or Feather file."""
    import duckdb

    try:
        if path.suffix.lower() in PARQUET:
            return Typed(str(path), lambda: _parquet(path), counted=True)
        _needs_pyarrow(f"{path.suffix} files")
        return Typed(str(path), lambda: _arrow(path), counted=True)
    except (duckdb.Error, OSError, ValueError) as error:  # pyarrow's are ValueErrors
        raise InvalidData(f"cannot read {str(path)!r}: {error}") from error


@contextmanager
def _parquet(path: Path) -> Iterator[Rows]:
    with connected() as connection:
        yield _rows(connection, f"from read_parquet({literal_path(path)})")


@contextmanager
def _arrow(path: Path) -> Iterator[Rows]:
    from pyarrow import dataset

    with connected() as connection:
        connection.register("given", dataset.dataset(path, format="ipc"))
        yield _rows(connection, "from given")


def open_query(sql: str, database: str | None) -> Typed:
    """The rows of a query against ``app.duckdb``, ``sqlite:app.db``, ``postgres://...``, or files."""
    if database is not None and database.startswith("sqlite:"):
        _needs_pyarrow("queries of SQLite")
        path = database.removeprefix("sqlite:").removeprefix("//")
        source = Typed(sql, lambda: _sqlite(sql, path), counted=False)
    else:
        source = Typed(sql, lambda: _duckdb(sql, database), counted=False)
    if next(source.blocks((), (), ()), None) is None:
        raise InvalidData(f"the query gives no rows: {sql}")
    return source


@contextmanager
def _duckdb(sql: str, database: str | None) -> Iterator[Rows]:
    import duckdb

    remote = database is not None and database.startswith(("postgres:", "postgresql:"))
    try:
        in_memory = remote or database is None
        with connected() if in_memory else duckdb.connect(database, read_only=True) as connection:
            if remote:
                quoted = str(database).replace("'", "''")
                connection.execute(f"attach '{quoted}' as remote (type postgres, read_only)")
                connection.execute("use remote")
            yield _rows(connection, sql.strip().rstrip("; \n"))
    except duckdb.Error as error:
        raise InvalidData(f"the query failed: {_without_password(str(error), database)}") from None


def _rows(connection: Connection, query: str) -> Rows:
    """The rows of a query; within another one columns of one name have different ones."""
    return Rows(connection, query, connection.sql(f"from ({query}\n)").columns)


def _without_password(message: str, database: str | None) -> str:
    """A message of DuckDB, which quotes what it was told to connect to."""
    from urllib.parse import urlsplit

    password = urlsplit(database or "").password
    return message.replace(f":{password}@", ":***@") if password else message


@contextmanager
def _sqlite(sql: str, path: str) -> Iterator[Rows]:
    import sqlite3

    import pyarrow as pa

    if not Path(path).is_file():
        raise InvalidData(f"there is no SQLite file {path!r}; write --from sqlite:path/to/file.db")
    try:
        uri = f"{Path(path).resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as database:
            batches = _sqlite_batches(database.execute(sql))
            first = next(batches, None)
            if first is None:
                raise InvalidData(f"the query gives no rows: {sql}")

            def every() -> Iterator[Any]:
                yield first
                for batch in batches:
                    yield batch.cast(first.schema)

            with connected() as connection:
                connection.register("given", pa.RecordBatchReader.from_batches(first.schema, every()))
                yield _rows(connection, "from given")
    except (sqlite3.Error, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidData(f"the query failed: {error}") from error


def _sqlite_batches(cursor: Any) -> Iterator[Any]:
    import pyarrow as pa

    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(BATCH):
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        yield pa.record_batch(columns, names=names)


def _needs_pyarrow(what: str) -> None:
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise MissingExtra(f'{what} need pyarrow: pip install "budgetforest[data]"')
