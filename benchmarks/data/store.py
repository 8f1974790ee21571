"""Where tables lie: the folder named by BUDGETFOREST_DATA, then a cache in scikit-learn's data home.

Both hold one parquet file per data set, of features, `target` and, for ranking, `query`.
"""

import os
from pathlib import Path

import pandas as pd
from sklearn.datasets import get_data_home


class Absent(Exception):
    """A data set that is not here and could not be fetched; the message says why and what to do."""


class Mismatch(ValueError):
    """A table that is not the one expected; the message names what was expected and what was found."""


def folder() -> Path | None:
    """The reader's own data, if a folder is named."""
    named = os.environ.get("BUDGETFOREST_DATA")
    if named and not Path(named).is_dir():
        raise NotADirectoryError(f"BUDGETFOREST_DATA names {named!r}, which is not a folder")
    return Path(named) if named else None


def cache() -> Path:
    """What was fetched and prepared before."""
    return Path(get_data_home()) / "budgetforest"


def find(file: str) -> Path | None:
    """The first place that has ``file``; nothing is made or fetched."""
    own = folder()
    if own and (own / file).exists():
        return own / file
    return cache() / file if (cache() / file).exists() else None


def keep(table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Write to the cache by a rename, so that a reader finds all of a file or nothing."""
    cache().mkdir(parents=True, exist_ok=True)
    part = cache() / f"{file}.{os.getpid()}.part"
    table.to_parquet(part, compression="zstd", index=False)
    part.replace(cache() / file)
    return table
