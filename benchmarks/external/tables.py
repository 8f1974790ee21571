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
    parts: Callable[[bool, int], tuple[Part, Part, Part]]
    """Training, validation and test rows; few of them for a quick run. Another seed is another split."""
    budgets: tuple[float, ...]
    printed: Mapping[str, Mapping[float, float]]
    """Accuracy by budget, for each source."""
    groups: Callable[[], Mapping[str, str]] | None = None
    splits: int = 1
    """Figures are means over so many."""


def mnist(quick: bool, seed: int) -> tuple[Part, Part, Part]:
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


def cube(quick: bool, seed: int) -> tuple[Part, Part, Part]:
    """CUBE-20: what tells nothing is uniform."""
    rng = np.random.default_rng(seed)
    n = 400 if quick else 20_000
    X, y = with_corners(rng.random((n, FEATURES)), rng)
    return cut(X, y, n // 2, n // 4)


def small_cube(quick: bool, seed: int) -> tuple[Part, Part, Part]:
    """CUBE on 1,000 rows: what tells nothing is normal."""
    rng = np.random.default_rng(seed)
    X, y = with_corners(rng.normal(0.5, SIGMA, (1_000, FEATURES)), rng)
    return cut(X, y, 700, 150)


def with_corners(noise: np.ndarray, rng: np.random.Generator) -> Part:
    """Three features in a row, which depend on the class, lie around a corner of a cube."""
    n = len(noise)
    y = rng.integers(CLASSES, size=n)
    corner = (y[:, None] >> np.arange(3)) & 1
    noise[np.arange(n)[:, None], y[:, None] + np.arange(3)] = corner + SIGMA * rng.standard_normal((n, 3))
    return noise, y


def miniboone(quick: bool, seed: int) -> tuple[Part, Part, Part]:
    """Seven tenths of the rows for training, at most 8,192 for validation, three twentieths for test."""
    data = load("miniboone_unique")
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y = data.X.to_numpy(np.float32)[order], data.y[order]
    n = 1_000 if quick else len(y)
    return cut(X[:n], y[:n], n * 7 // 10, n * 3 // 20)


def cut(X: np.ndarray, y: np.ndarray, trained: int, validated: int) -> tuple[Part, Part, Part]:
    """The first rows for training, then those for validation; the rest for test."""
    parts = np.split(np.arange(len(y)), [trained, trained + validated])
    return tuple((X[rows], y[rows]) for rows in parts)


def _printed(budgets: tuple[float, ...], accuracy: str) -> dict[float, float]:
    return dict(zip(budgets, (float(each) / 100 for each in accuracy.split()), strict=True))


PIXELS = (5, 10, 15, 20, 25, 30, 40, 50, 80)
GROUPS = tuple(range(1, 11))
SMALL = (3.9, 6.9, 11.7, 19.6)
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
    "small_cube": Table(
        "CUBE, 1,000 rows",
        "As CUBE-20, but what tells nothing is normal around .5 with a standard deviation of .3. "
        "The budgets of the others are means here, too. How they split their rows is not known to us.",
        small_cube,
        SMALL,
        {"DIME (as printed by AFABench)": _printed(SMALL, "63.4 76.7 81.7 85.4")},
        splits=10,
    ),
    "miniboone": Table(
        "MiniBooNE",
        "The 110,618 distinct rows of 130,064 that can be had, 50 features of price 1. The budgets of DIME "
        "are means, too, those of GDFS are hard; both are read off a plot of AFABench. How they split their "
        "rows is not known to us.",
        miniboone,
        (2.1, 5.1, 10, 14.1),
        {
            "DIME": {2.1: 0.860, 5.1: 0.897, 14.1: 0.920},
            "GDFS": {10: 0.907},
        },
    ),
}
