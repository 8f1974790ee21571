"""A training on two workers of one thread beside one here on two threads, the rows already loaded."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from distributed import Client
from rich.progress import track

import budgetforest.dask
from benchmarks.cluster.rows import AXES, WORKERS, blocks_of, check_same, forest, workers
from benchmarks.speed.sets import Labelled, covertype, made
from benchmarks.speed.turns import Criterion, at_most, seconds, table, take_turns
from benchmarks.tasks import absences
from budgetforest import BudgetForestClassifier

HERE = "here, two threads"
MOST = 2


def measure(quick: bool) -> dict:
    """Both axes, on Covertype and on many made rows."""
    absent: list[str] = []
    with workers() as client:
        found = [
            beside(client, rows, trees, repeats, quick=quick)
            for rows, trees, repeats in track(list(cases(absent, quick=quick)), "clock")
        ]
    return {"sets": found, "absent": absent}


def cases(absent: list[str], *, quick: bool) -> Iterator[tuple[Labelled, int, int]]:
    """Rows, trees and turns."""
    if quick:
        yield made(5_000, 10), 4, 2
        return
    for rows in covertype(absent):
        yield rows, 40, 5
    yield made(10_000_000, 50), 4, 2


def beside(client: Client, rows: Labelled, trees: int, repeats: int, *, quick: bool) -> dict:
    """Seconds of all sides, which grow the same forest."""
    loaded = blocks_of(client, rows, 2 * WORKERS)

    grown: dict[str, BudgetForestClassifier] = {}

    def there(axis: str) -> None:
        grown[axis] = budgetforest.dask.fit(forest(trees), *loaded, client=client, spread=axis)

    def here() -> None:
        grown[HERE] = forest(trees, n_jobs=WORKERS).fit(rows.X, rows.y)

    sides = {HERE: here} | {axis: partial(there, axis) for axis in AXES}
    times = take_turns(sides, quick=quick, warm=False, repeats=repeats)
    for axis in AXES:
        check_same(grown[HERE], grown[axis])
    return {"title": rows.title, "trees": trees, "times": times}


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for found in figures["sets"]:
        for axis in AXES:
            times = seconds(found["times"], axis) / seconds(found["times"], HERE)
            yield at_most(f"{found['title']}: {axis} spread over {WORKERS} workers", MOST, times)


def draw(figures: dict, docs: Path) -> None:
    """A table is enough."""


def section(figures: dict) -> str:
    """A table for every set."""
    lines = [
        "## How long it takes",
        "",
        f"Rows in {2 * WORKERS} blocks, loaded by {WORKERS} workers of one thread each, beside `fit` here with as many threads, in turns; the forests are the same. *CPU* are",
        "seconds of this process, which runs the client and the scheduler.",
    ]
    for found in figures["sets"]:
        lines += ["", f"### {found['title']}, {found['trees']} trees", ""]
        lines += table(found["times"], HERE, "times here")
    return "\n".join(lines) + "\n" + absences(figures["absent"])
