"""The data sets that are measured: of the folder BUDGETFOREST_DATA if they are there, else fetched and cached.

What is absent is said to be absent, and what is a part of the published rows says so in its title. All that is known
of a set is its entry in `sets.py`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError

import numpy as np
import pandas as pd

from benchmarks.data import store
from benchmarks.data.sets import SETS, Entry
from benchmarks.data.splits import Parts
from benchmarks.data.store import Absent, Mismatch
from budgetforest.runtime.errors import near

__all__ = ["Absent", "Data", "Mismatch", "Parts", "load", "names", "present", "split"]


class Data(NamedTuple):
    name: str
    title: str
    """For plots and tables."""
    X: pd.DataFrame
    y: np.ndarray
    costs: Path | np.ndarray | None = None
    """A price list, prices, or None for a cost of 1 each."""
    query: np.ndarray | None = None
    """Of ranking sets, the query of each row."""
    note: str = ""
    """What a reader must know: a part of the rows, a derived price."""


def names() -> list[str]:
    """All that ``load`` knows, here or not."""
    return list(SETS)


def load(name: str) -> Data:
    """A data set, checked by rows, columns and class counts; raises ``Absent``."""
    entry = _entry(name)
    path = store.find(f"{entry.table or name}.parquet")
    table = _checked(name, entry, pd.read_parquet(path)) if path else _fetched(name, entry)
    query = table.pop("query").to_numpy() if "query" in table else None
    y = entry.labels(table.pop("target").to_numpy())
    costs = _prices(entry)
    notes = [entry.note] if entry.note else []
    if entry.prices and costs is None:
        notes.append(f"prices absent (costs/{entry.prices}.csv of the data folder), 1 each instead")
    return Data(name, entry.title, table.astype(np.float32), y, costs, query, "; ".join(notes))


def _prices(entry: Entry) -> Path | np.ndarray | None:
    if callable(entry.prices):
        return entry.prices(entry.columns)
    return store.find(f"costs/{entry.prices}.csv") if entry.prices else None


def present(wanted: Iterable[str]) -> Iterator[Data]:
    """Those of the wanted sets that can be had; of the others is printed why not."""
    for name in wanted:
        try:
            yield load(name)
        except Absent as absent:
            print(absent)


def split(data: Data, seed: int) -> Parts:
    """Training, validation and test rows: the published parts or sizes where there are any."""
    return _entry(data.name).split(data.y, data.query, np.random.default_rng(seed))


def _entry(name: str) -> Entry:
    if name not in SETS:
        raise LookupError(f"no data set {name!r}; {near(name, SETS)}")
    return SETS[name]


def _fetched(name: str, entry: Entry) -> pd.DataFrame:
    """From the source to the cache; only what passes the check is kept."""
    if entry.fetch is None:
        raise _absent(name, entry, "there is no source to fetch it from")
    try:
        raw = entry.fetch()
    except FileNotFoundError as error:
        why = f"there is no file {Path(error.filename).name}" if error.filename else str(error)
        raise _absent(name, entry, why) from error
    except URLError as error:
        raise _absent(name, entry, f"its source cannot be reached ({error.reason})") from error
    except (OSError, ValueError) as error:  # OpenML's own errors are ValueErrors
        raise _absent(name, entry, f"{type(error).__name__}, {error}") from error
    return store.keep(_checked(name, entry, entry.prepare(raw)), f"{entry.table or name}.parquet")


def _absent(name: str, entry: Entry, why: str) -> Absent:
    where = f"Set BUDGETFOREST_DATA to a folder with {entry.table or name}.parquet."
    return Absent(f"{name} is absent: {why}. {where} {entry.obtain}".rstrip())


def _checked(name: str, entry: Entry, table: pd.DataFrame) -> pd.DataFrame:
    """The table, if it is the one of the entry."""
    columns = len(table.columns.drop(["target", "query"], errors="ignore"))
    classes = {int(label): int(rows) for label, rows in table["target"].value_counts().sort_index().items()}
    expected = entry.rows, entry.columns, entry.classes or classes
    if (len(table), columns, classes) != expected:
        raise Mismatch(
            f"{name}: expected {expected[0]} rows, {expected[1]} features and classes {expected[2]}, "
            f"found {len(table)} rows, {columns} features and classes {classes}"
        )
    return table
