"""Rows where they are: Dask arrays, Dask dataframes or a folder of Parquet files, as blocks on workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask.base import is_dask_collection
from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.runtime.arrays import Anything
from budgetforest.runtime.errors import InvalidData, near


class Raw(NamedTuple):
    """Some rows as the caller has them."""

    X: Any
    y: Any
    weight: Any


def is_spread(X: Anything) -> bool:
    """Whether rows are not at hand."""
    return is_dask_collection(X) or isinstance(X, str | os.PathLike)


def blocks_of(cluster: Cluster, X: Anything, y: Anything, weight: Anything) -> list[Future]:
    """Blocks of rows on the workers, those without rows left out; rows at hand are one block."""
    if isinstance(X, str | os.PathLike):
        named_columns(y, weight)
        blocks = [cluster.run(read_file, os.fspath(path), y, weight) for path in files_in(X)]
    elif not is_spread(X):
        blocks = [cluster.hold(Raw(X, y, weight))]
    elif isinstance(y, str):
        named_columns(y, weight)
        if not hasattr(X, "columns"):
            raise InvalidData(
                f"y={y!r} is the name of a column, and X, a Dask array, has no names; pass y itself"
            )
        blocks = cluster.each(with_target, cluster.computed(partitions(X, "X")), y, weight)
    else:
        names = ("X", "y", "sample_weight")
        given = zip(names, (X, y, weight), strict=True)
        aligned = [each if each is None else like(each, X, name) for name, each in given]
        parts = [None if e is None else partitions(e, n) for e, n in zip(aligned, names, strict=True)]
        counts = {name: len(part) for name, part in zip(names, parts, strict=True) if part}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} {n}" for name, n in counts.items())
            raise InvalidData(f"blocks of rows do not match: {found}; repartition them alike")
        futures = [None if part is None else cluster.computed(part) for part in parts]
        blocks = [
            cluster.run(Raw, *(None if part is None else part[at] for part in futures))
            for at in range(counts["X"])
        ]
    sizes = cluster.values(cluster.each(n_rows_of, blocks))
    kept = [block for block, size in zip(blocks, sizes, strict=True) if size]
    if not kept:
        raise InvalidData("X has no rows; a forest needs some to learn from")
    return kept


def named_columns(y: Anything, weight: Anything) -> None:
    """Refuse labels or weights of another kind where rows bring their own, in columns."""
    for name, column in (("y", y), ("sample_weight", weight)):
        if not isinstance(column, str) and not (name == "sample_weight" and column is None):
            raise InvalidData(
                f"{name} is a {type(column).__name__}; where X is a folder, or y a name, it is the name of a "
                "column of X"
            )


def partitions(collection: Anything, name: str) -> list[Any]:
    """The blocks of a collection, to be computed."""
    if not is_dask_collection(collection) or not hasattr(collection, "to_delayed"):
        raise InvalidData(
            f"{name} is a {type(collection).__name__}; rows on a cluster are Dask arrays or dataframes, or a "
            "folder of Parquet files whose labels are a column"
        )
    if getattr(collection, "numblocks", (1, 1))[1:] not in ((), (1,)):
        collection = collection.rechunk({1: -1})
    parts: list[Any] = np.ravel(collection.to_delayed()).tolist()
    return parts


def like(collection: Anything, X: Anything, name: str) -> Anything:
    """An array in the blocks of X, where both are known."""
    sizes = getattr(X, "chunks", ((np.nan,),))[0]
    own = getattr(collection, "chunks", ((np.nan,),))[0]
    if np.isnan(sizes).any() or np.isnan(own).any():
        return collection
    if sum(own) != sum(sizes):
        raise InvalidData(f"{name} has {sum(own):,} rows and X {sum(sizes):,}; they must have the same")
    return collection.rechunk({0: sizes})


def files_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files of a folder, by name."""
    found = sorted(Path(folder).glob("*.parquet"))
    if not found:
        what = "holds no *.parquet" if Path(folder).is_dir() else "is no folder"
        raise InvalidData(
            f"{os.fspath(folder)!r} {what}; name a folder of Parquet files that all workers can read"
        )
    return found


def read_file(path: str, target: str, weight: str | None) -> Raw:
    """The rows of a file."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InvalidData(
            f"a worker cannot read {path!r} ({error}); the folder must be there for all workers, and hold "
            "Parquet files"
        ) from None
    return with_target(frame, target, weight)


def with_target(frame: Any, target: str, weight: str | None) -> Raw:
    """A dataframe whose labels, and weights if there are any, are columns."""
    named = {"y": target} if weight is None else {"y": target, "sample_weight": weight}
    for name, column in named.items():
        if column not in frame.columns:
            raise InvalidData(f"{name}={column!r} is no column of X; {near(column, map(str, frame.columns))}")
    rows = frame.drop(columns=list(named.values()))
    return Raw(rows, frame[target], None if weight is None else frame[weight])


def n_rows_of(raw: Raw) -> int:
    """How many rows a block has, of everything."""
    n = int(raw.X.shape[0])
    for name, part in (("y", raw.y), ("sample_weight", raw.weight)):
        if part is not None and len(part) != n:
            raise InvalidData(
                f"a block has {n:,} rows of X and {len(part):,} of {name}; repartition them alike"
            )
    return n


def n_bytes_of(raw: Raw) -> int:
    """What a block takes in memory."""
    return int(raw.X.nbytes if hasattr(raw.X, "nbytes") else raw.X.memory_usage(deep=True).sum())


def at_hand(cluster: Cluster, blocks: list[Future]) -> Raw:
    """All rows, brought here."""
    parts = cluster.values(blocks)
    return Raw(*(concatenated(column) for column in zip(*parts, strict=True)))


def concatenated(parts: tuple[Any, ...]) -> Any:
    """One array or dataframe."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pandas as pd

    first = list(getattr(parts[0], "columns", ()))
    for part in parts:
        if list(getattr(part, "columns", ())) != first:
            raise InvalidData(
                f"blocks differ in their columns: {first} and {list(part.columns)}; they must have the same"
            )
    return pd.concat(parts)


def by_blocks(function: Callable[[Any, Any], Any], model: Any, X: Anything, like: Any) -> Any:
    """What a function of the model and rows gives for every block of X, as a Dask collection; lazy.

    Columns that the model does not know, those of labels and weights perhaps, are left out.
    """
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    names = model.forest_.schema.names
    meta = pd.Series(like, dtype=like.dtype)
    if hasattr(X, "map_partitions"):  # keeps the divisions, so that the answers can become a column
        return only_known(X, names).map_partitions(partial(function, model), meta=meta)
    in_files = isinstance(X, str | os.PathLike)
    read = dask.delayed(read_known)
    parts = [read(path, names) for path in files_in(X)] if in_files else partitions(X, "X")
    there, call = dask.delayed(model), dask.delayed(function)
    answers = [call(there, part) for part in parts]
    if in_files:
        return dd.from_delayed(answers, meta=meta)
    sizes = zip(answers, X.chunks[0], strict=True)
    return da.concatenate([da.from_delayed(answer, (size,), dtype=like.dtype) for answer, size in sizes])


def only_known(rows: Any, names: tuple[str, ...]) -> Any:
    """The columns that a model learnt, if all are there; else it will say what is wrong."""
    return rows[list(names)] if set(names) < set(rows.columns) else rows


def read_known(path: str | os.PathLike[str], names: tuple[str, ...]) -> Any:
    """The same of a file."""
    import pandas as pd

    return only_known(pd.read_parquet(path), names)
