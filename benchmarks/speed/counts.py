"""Counting classes by code at the root, beside what plain loops reach on this machine."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numba
import numpy as np

from benchmarks.speed.turns import Criterion, at_most, seconds, table, take_turns
from budgetforest.growing.histogram import Cells, counter_for, tally_rows

OURS, UPDATES, READS = "counts of the root", "plain loop: add 1 by code", "plain loop: sum of the codes"
SHAPES = ((36_603, 54, 7), (581_012, 54, 7), (19_761, 400, 2))
"""Rows, features and classes: Covertype in part and in full, CIFAR-10."""
TURNS = 25
"""Milliseconds each."""


def measure(quick: bool) -> dict:
    """Seconds for all cells of random codes, one thread."""
    runs = []
    for n, m, k in [(2_000, 10, 3)] if quick else SHAPES:
        codes, ends = made_codes(n, m, k)
        counter, plain = counter_for(256, k), np.zeros(256, np.int64)
        rows, ones = np.arange(n, dtype=np.int32), np.ones(n, np.int32)
        sides = {
            OURS: partial(count_classes, codes, rows, ends, ones, counter),
            UPDATES: partial(add_ones, codes, plain),
            READS: partial(add_codes, codes),
        }
        runs.append(
            {"rows": n, "features": m, "classes": k, "times": take_turns(sides, quick=quick, repeats=TURNS)}
        )
    return {"runs": runs}


def made_codes(n: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Random codes (m, n) of rows sorted by class, as growing takes them, and where each class ends."""
    codes = np.random.default_rng(0).integers(0, 256, (m, n), dtype=np.uint8)
    return codes, (np.arange(1, k + 1) * n // k).astype(np.int32)


@numba.njit(nogil=True, error_model="numpy")
def count_classes(codes, rows, ends, weight, counter):
    """The kernel of growing for every feature: class counts by code."""
    cells = Cells(codes.reshape(-1), codes.shape[1], 1)
    for j in range(codes.shape[0]):
        tally_rows(cells, j, rows, ends, weight, counter)


@numba.njit(nogil=True, error_model="numpy")
def add_ones(codes, plain):
    """What any counting must do at least: an update for each cell, in the order of memory."""
    for j in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            plain[codes[j, i]] += 1


@numba.njit(nogil=True, error_model="numpy")
def add_codes(codes):
    """Every byte read once."""
    total = 0
    for j in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            total += codes[j, i]
    return total


def cells_of(run: dict) -> int:
    return run["rows"] * run["features"]


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for run in figures["runs"]:
        limit = cells_of(run) / seconds(run["times"], UPDATES) / 1e9
        ratio = seconds(run["times"], OURS) / seconds(run["times"], UPDATES)
        what = f"{run['rows']:,} x {run['features']}: counts of the root, limit {limit:.2f} billion updates a second"
        yield at_most(what, 2, ratio)


def draw(figures: dict, docs: Path) -> None:
    """Tables are enough."""


def section(figures: dict) -> str:
    """A table for every shape, and the rates."""
    lines = [
        "## Counts at the root",
        "",
        "One thread, random codes of one byte. Ours counts classes by code, rows taken by class. The limits are plain loops",
        "over the same bytes in the order of memory: an update of a counter for every cell, and reading alone.",
    ]
    for run in figures["runs"]:
        rates = [
            f"{title} {cells_of(run) / seconds(run['times'], title) / 1e9:.2f}" for title in run["times"]
        ]
        lines += ["", f"### {run['rows']:,} x {run['features']}, {run['classes']} classes", ""]
        lines += [*table(run["times"], OURS), "", f"Billion cells a second: {', '.join(rates)}."]
    return "\n".join(lines) + "\n"
