"""Rows to be fast on: parts of real sets, and made ones of any size."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from benchmarks.data import Data
from benchmarks.tasks import loaded

PARTS: dict[str, tuple[int | None, ...]] = {
    "covtype": (36_603, None),
    "cifar10_kmeans400": (19_761,),
    "mnist": (20_000,),
}
"""Rows taken of each set, None for all: Covertype and CIFAR-10 as many as in the paper, Covertype also in full."""
CHUNK = 1 << 20


class Labelled(NamedTuple):
    title: str
    X: np.ndarray
    """(n, m) float32."""
    y: np.ndarray
    """(n) class codes."""


def sets(absent: list[str], *, quick: bool) -> Iterator[Labelled]:
    """The real sets that are there, or a made one; of the others ``absent`` gets the reason."""
    if quick:
        yield made(2_000, 10, 3)
        return
    for data in loaded(PARTS, absent):
        _, X, y = whole(data)
        for size in PARTS[data.name]:
            part = np.random.default_rng(0).permutation(len(y))[:size]
            yield Labelled(f"{data.title}, {len(part):,} x {X.shape[1]}", X[part], y[part])


def whole(data: Data) -> Labelled:
    """All rows of a set."""
    X, (_, y) = data.X.to_numpy(np.float32), np.unique(data.y, return_inverse=True)
    return Labelled(f"{data.title}, {len(y):,} x {X.shape[1]}", X, y)


def covertype(absent: list[str]) -> Iterator[Labelled]:
    """All of it, if it is there."""
    for data in loaded(("covtype",), absent):
        yield whole(data)


def made(rows: int, features: int, classes: int = 2) -> Labelled:
    """Random numbers, and classes of about equal size that the sum of five columns and chance decide."""
    rng = np.random.default_rng(0)
    X = np.empty((rows, features), np.float32)
    y = np.empty(rows, np.int32)
    for start in range(0, rows, CHUNK):  # so that no second copy is ever in memory
        part = slice(start, start + CHUNK)
        rng.random(dtype=np.float32, out=X[part])
        told = (X[part, :5].sum(axis=1) - 2.5) / np.sqrt(5 / 12)
        y[part] = classes * ndtr(0.9 * told + np.sqrt(0.19) * rng.normal(size=len(told)))
    return Labelled(f"made, {rows:,} x {features}, {classes} classes", X, y)
