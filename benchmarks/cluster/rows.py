"""Clusters of one machine, and rows in blocks on them."""

from collections.abc import Iterator
from contextlib import contextmanager

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import budgetforest.dask
from benchmarks.speed.sets import Labelled, made
from budgetforest import BudgetForestClassifier

WORKERS = 2
AXES = ("rows", "trees")


@contextmanager
def workers(n: int = WORKERS) -> Iterator[Client]:
    """Processes of one thread each, in which everything is compiled and loaded."""
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as them,
        Client(them) as client,
    ):
        few = blocks_of(client, made(20_000, 10), 2 * n)
        for axis in AXES:
            budgetforest.dask.fit(forest(2 * n), *few, client=client, spread=axis)
        yield client


def blocks_of(client: Client, rows: Labelled, n_blocks: int) -> tuple[da.Array, da.Array]:
    """X and y, loaded by the workers."""
    return tuple(
        da.concatenate(
            [
                da.from_delayed(future, part.shape, part.dtype)
                for future, part in zip(client.scatter(parts), parts, strict=True)
            ]
        )
        for parts in (np.array_split(rows.X, n_blocks), np.array_split(rows.y, n_blocks))
    )


def forest(trees: int, **how: int) -> BudgetForestClassifier:
    """Algorithm 1 without prices, so many trees."""
    return BudgetForestClassifier(method="paper", alpha=0, max_trees=trees, random_state=0, **how)


def check_same(one: BudgetForestClassifier, other: BudgetForestClassifier) -> None:
    """Both forests are the same, every array."""
    for mine, its in zip(one.forest_.nodes, other.forest_.nodes, strict=True):
        np.testing.assert_array_equal(mine, its)
