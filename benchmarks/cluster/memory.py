"""What a worker holds at most when rows are spread, for growing numbers of workers and of blocks."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import dask.array as da
import numpy as np
from distributed import Client
from rich.progress import track

import budgetforest.dask
from benchmarks.cluster.rows import forest, workers
from benchmarks.speed.peak import RESET, held
from benchmarks.speed.turns import Criterion

ROWS, FEATURES, TREES = 1_600_000, 50, 2
BOTH = {"workers": 2, "blocks": 16}
"""While the other varies."""
CASES = ((1, 16), (2, 16), (4, 16), (2, 2), (2, 4), (2, 8), (2, 32))
"""Workers and blocks."""
TURNS = 3
"""Trainings of each case: when Dask frees what, differs."""


def measure(quick: bool) -> dict:
    """The most that any worker takes for a training, above what it held before."""
    if not RESET.exists():
        return {"runs": [], "absent": [f"memory: this system has no {RESET}"]}
    cases = ((1, 16), (2, 16)) if quick else CASES
    n_rows, turns = (40_000, 1) if quick else (ROWS, TURNS)
    found = []
    for n_workers, n_blocks in track(cases, "memory"):
        peaks = [peak(n_workers, n_blocks, n_rows) for _ in range(turns)]
        found.append({"workers": n_workers, "blocks": n_blocks, "rows": n_rows, "peaks": peaks})
    return {"runs": found, "absent": []}


def peak(n_workers: int, n_blocks: int, n_rows: int) -> float:
    """Megabytes of one training on rows that the workers make when they are asked for."""
    with workers(n_workers) as client:
        before = client.run(forget)
        fit(client, n_rows, n_blocks)
        after = client.run(held, "VmHWM")
    return max(after[worker] - before[worker] for worker in before)


def fit(client: Client, n_rows: int, n_blocks: int) -> None:
    """Rows spread."""
    chunks = (-(-n_rows // n_blocks), FEATURES)
    X = da.random.default_rng(0).random((n_rows, FEATURES), dtype=np.float32, chunks=chunks)
    y = (X[:, :5].sum(axis=1) > 2.5).astype(np.int32)
    budgetforest.dask.fit(forest(TREES), X, y, client=client, spread="rows")


def forget() -> float:
    """Begin a new peak; megabytes that this process holds now."""
    RESET.write_text("5")
    return held("VmRSS")


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for what, same in (("workers", "blocks"), ("blocks", "workers")):
        some = [run for run in figures["runs"] if run[same] == BOTH[same]]
        if len(some) > 1:
            some = sorted(some, key=lambda run: run[what])
            told = f"memory of a worker falls from {' to '.join(str(run[what]) for run in some)} {what}"
            most = [median(run["peaks"]) for run in some]
            falls = all(later < before for before, later in pairwise(most))
            yield told, f"{', '.join(f'{each:,.0f}' for each in most)} MB", falls


def draw(figures: dict, docs: Path) -> None:
    """A table is enough."""


def section(figures: dict) -> str:
    """One table."""
    lines = ["## Memory of a worker", "", *figures["absent"]]
    if figures["runs"]:
        rows = figures["runs"][0]["rows"]
        lines += [
            f"{rows:,} x {FEATURES} rows of float32 ({4 * rows * FEATURES / 2**20:,.0f} MB), which the workers make themselves, {TREES} trees, rows spread. The most that any",
            "worker takes above what it held before, in each of some trainings on a new cluster.",
            "",
            "| workers | blocks | trainings | median MB | least to most |",
            "|---" * 5 + "|",
        ]
        for run in figures["runs"]:
            peaks = run["peaks"]
            lines.append(
                f"| {run['workers']} | {run['blocks']} | {len(peaks)} | {median(peaks):,.0f} | {min(peaks):,.0f} to {max(peaks):,.0f} |"
            )
    return "\n".join(lines) + "\n"
