"""The tables: rows, budgets, and what others printed for them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.data import load

Part = tuple[np.ndarray, np.ndarray]
VALIDATED = 4_000
"""Validation rows of MNIST that are used; the search measures every candidate on all of them."""


class Table(NamedTuple):
    title: str
    protocol: str
    parts: Callable[[bool], tuple[Part, Part, Part]]
    """Training, validation and test rows; few of them for a quick run."""
    budgets: tuple[float, ...]
    printed: Mapping[str, Mapping[float, float]]
    """Accuracy by budget, for each source."""
    groups: Callable[[], Mapping[str, str]] | None = None


def mnist(quick: bool) -> tuple[Part, Part, Part]:
    """50,000 / 4,000 of 10,000 / 10,000 rows in the published order."""
    data = load("mnist")
    X, y = data.X, data.y
    first, last, tested = (400, 50_200, 60_300) if quick else (50_000, 50_000 + VALIDATED, 70_000)
    return tuple((X[rows], y[rows]) for rows in (slice(first), slice(50_000, last), slice(60_000, tested)))


def blocks() -> dict[str, str]:
    """The pixels of MNIST in 2 x 2 blocks."""
    columns = load("mnist").X.columns
    return {name: f"block {at // 56}-{at % 28 // 2}" for at, name in enumerate(columns)}


CLASSES, FEATURES, SIGMA = 8, 20, 0.3


def cube(quick: bool) -> tuple[Part, Part, Part]:
    """CUBE: three features in a row, which depend on the class, lie around a corner of a cube; others are noise."""
    rng = np.random.default_rng(0)
    n = 400 if quick else 20_000
    y = rng.integers(CLASSES, size=n)
    X = rng.random((n, FEATURES))
    corner = (y[:, None] >> np.arange(3)) & 1
    X[np.arange(n)[:, None], y[:, None] + np.arange(3)] = corner + SIGMA * rng.standard_normal((n, 3))
    parts = np.split(np.arange(n), [n // 2, n * 3 // 4])
    return tuple((X[rows], y[rows]) for rows in parts)


def _printed(budgets: tuple[float, ...], accuracy: str) -> dict[float, float]:
    return dict(zip(budgets, (float(each) / 100 for each in accuracy.split()), strict=True))


PIXELS = (5, 10, 15, 20, 25, 30, 40, 50, 80)
GROUPS = tuple(range(1, 11))
TABLES = {
    "mnist_pixels": Table(
        "MNIST, single pixels",
        "784 features of price 1.",
        mnist,
        PIXELS,
        {
            "GDFS (Covert and others, 2023)": _printed(
                PIXELS, "68.98 87.08 92.38 94.43 95.51 96.36 97.05 97.36 97.64"
            )
        },
    ),
    "mnist_blocks": Table(
        "MNIST, blocks of 2 x 2 pixels",
        "196 groups of four pixels, acquired together for 1.",
        mnist,
        GROUPS,
        {
            "GDFS (Covert and others, 2023)": _printed(
                GROUPS, "37.07 57.76 73.20 82.52 87.93 90.74 92.60 93.81 94.61 95.32"
            )
        },
        blocks,
    ),
    "cube": Table(
        "CUBE-20",
        "20 features, 8 classes: of class c the features c, c + 1 and c + 2 are normal around the bits of c with a standard deviation of .3, the others uniform on 0 to 1.",
        cube,
        (2, 3, 4, 5.39, 7, 10),
        {"Shim and others, 2018": {5.39: 0.8734}},
    ),
}
