"""What travels when rows are spread, for growing numbers of rows."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import dask
import matplotlib.pyplot as plt
from dask.utils import key_split
from distributed import Client, Worker
from rich.progress import track

import budgetforest.dask
from benchmarks.cluster.rows import WORKERS, blocks_of, check_same, forest, workers
from benchmarks.speed.sets import made
from benchmarks.speed.turns import Criterion
from budgetforest.dask import level_growth

ROWS = (50_000, 100_000, 200_000, 400_000, 800_000)
FEATURES, TREES = 20, 4
COUNTS, PICKED = ("count", "added", "itself", "choose"), ("pick", "getitem")
"""Tasks whose results are the counts and splits of levels, and those that bring rows together."""
LONG_LOG = {"distributed.admin.low-level-log-length": 10**6}
MORE = 1.1
"""Bytes of a level may grow by this factor from the fewest rows to the most: which worker adds up is left to Dask."""


def measure(quick: bool) -> dict:
    """Bytes that arrived at the workers in one training of each size."""
    with dask.config.set(LONG_LOG), workers() as client:
        return {"runs": [sizes(client, n) for n in track((5_000, 10_000) if quick else ROWS, "sent")]}


def sizes(client: Client, n: int) -> dict[str, float]:
    """One training, whose forest is that of one machine."""
    rows = made(n, FEATURES)
    before, model = arrived(client), forest(TREES)
    with patch.object(level_growth, "all_splits", wraps=level_growth.all_splits) as level:
        budgetforest.dask.fit(model, *blocks_of(client, rows, 2 * WORKERS), client=client, spread="rows")
    check_same(model, forest(TREES).fit(rows.X, rows.y))
    sent = arrived(client) - before
    of_levels = sum(sent[kind] for kind in COUNTS)
    return {
        "rows": n,
        "levels": level.call_count,
        "level": of_levels / level.call_count,
        "tree": sum(sent[kind] for kind in PICKED) / TREES,
    }


def arrived(client: Client) -> Counter[str]:
    """Bytes that workers received so far, by the kind of task that made them."""
    return sum(client.run(received).values(), Counter())


def received(dask_worker: Worker) -> Counter[str]:
    """The same at one worker."""
    total: Counter[str] = Counter()
    log = dask_worker.transfer_incoming_log
    if len(log) == log.maxlen:
        raise RuntimeError(f"more than {log.maxlen:,} transfers: some are forgotten")
    for entry in log:
        for key, size in entry["keys"].items():
            total[key_split(key)] += size
    return total


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    first, *_, last = figures["runs"]
    times, found = last["rows"] / first["rows"], last["level"] / first["level"]
    yield (
        f"bytes of a level with {times:g} times the rows: at most {MORE} times as many",
        f"{found:.2f}",
        found <= MORE,
    )


def draw(figures: dict, docs: Path) -> None:
    """Bytes against rows."""
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    rows = [run["rows"] for run in figures["runs"]]
    for what, style, label in (
        ("level", "o-", "counts and splits, a level"),
        ("tree", "s--", "rows of small nodes, a tree"),
    ):
        ax.plot(rows, [run[what] for run in figures["runs"]], style, label=label)
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="bytes sent")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(docs / "cluster.svg", metadata={"Date": None})
    plt.close(figure)


def section(figures: dict) -> str:
    """A picture and its figures."""
    lines = [
        "## What is sent",
        "",
        f"Rows spread in {2 * WORKERS} blocks over {WORKERS} workers, {FEATURES} features, 256 bins, two classes, {TREES} trees; every forest was compared, array by",
        "array, with that of `fit` on one machine.",
        "",
        "![Bytes sent against rows: those of a level stay, those of rows grow with the rows](cluster.svg)",
        "",
        "| rows | levels | bytes of a level | bytes of rows, a tree |",
        "|---" * 4 + "|",
    ]
    lines += [
        f"| {run['rows']:,} | {run['levels']} | {run['level']:,.0f} | {run['tree']:,.0f} |"
        for run in figures["runs"]
    ]
    return "\n".join(lines) + "\n"
