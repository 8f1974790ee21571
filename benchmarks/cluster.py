"""What a training on a cluster sends and computes, for growing numbers of rows: ``docs/cluster.svg``."""

import json
import os
import time
from collections import Counter
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.utils import key_split
from distributed import Client, LocalCluster

import budgetforest.dask
from benchmarks.speed import RESULTS
from budgetforest import BudgetForestClassifier
from budgetforest.dask import levels

ROWS = tuple(int(n) for n in os.environ.get("BUDGETFOREST_ROWS", "50000 100000 200000 400000").split())
FEATURES, TREES, WORKERS = 20, 4, 2
PICTURE = Path(__file__).parent.parent / "docs" / "cluster.svg"
COUNTS = ("count", "added", "itself", "choose")
"""Tasks whose results are the counts and splits of levels; ``pick`` brings rows together."""


def run() -> None:
    """Train on two workers with one thread each and here with two threads; print, draw, keep the figures."""
    workers = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0")
    with workers, Client(workers) as client:
        measure(client, 5_000)  # compiles
        found = [measure(client, n) for n in ROWS]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cluster.json").write_text(json.dumps(found, indent=1) + "\n")
    for row in found:
        print(row)
    draw(found)


def measure(client: Client, n: int) -> dict[str, float]:
    """One training: bytes that arrived at workers, and seconds of processors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    y = (X[:, :4].sum(axis=1) + rng.normal(0, 1, n) > 0).astype(int)
    blocks = da.from_array(X, chunks=(-(-n // (2 * WORKERS)), FEATURES)).persist()
    labels = da.from_array(y, chunks=-(-n // (2 * WORKERS))).persist()
    parameters = {"method": "paper", "alpha": 0, "max_trees": TREES, "random_state": 0}
    start = time.process_time()
    here = BudgetForestClassifier(n_jobs=WORKERS, **parameters).fit(X, y)
    local = time.process_time() - start
    steps = Counter()
    whole = levels.all_splits

    def counted(*arguments):
        steps["levels"] += 1
        return whole(*arguments)

    levels.all_splits = counted
    before = [sum(client.run(time.process_time).values()) + time.process_time(), arrived(client)]
    there = BudgetForestClassifier(**parameters)
    budgetforest.dask.fit(there, blocks, labels, client=client, spread="rows")
    after = [sum(client.run(time.process_time).values()) + time.process_time(), arrived(client)]
    levels.all_splits = whole
    for mine, its in zip(here.forest_.nodes, there.forest_.nodes, strict=True):
        np.testing.assert_array_equal(mine, its)
    sent = after[1] - before[1]
    counts = sum(sent[kind] for kind in COUNTS)
    return {
        "rows": n,
        "levels": steps["levels"],
        "bytes per level": counts / steps["levels"],
        "bytes of rows per tree": sent["pick"] / TREES,
        "cpu here": local,
        "cpu there": after[0] - before[0],
    }


def arrived(client: Client) -> Counter:
    """Bytes that workers received so far, by the kind of task that made them."""
    total = Counter()
    for log in client.run(received).values():
        total.update(log)
    return total


def received(dask_worker) -> Counter:
    """The same at one worker."""
    total = Counter()
    for entry in dask_worker.transfer_incoming_log:
        for key, size in entry["keys"].items():
            total[key_split(key)] += size
    return total


def draw(found: list[dict[str, float]]) -> None:
    """Bytes against rows."""
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    rows = [row["rows"] for row in found]
    ax.plot(rows, [row["bytes per level"] for row in found], "o-", label="counts and splits, a level")
    ax.plot(
        rows, [row["bytes of rows per tree"] for row in found], "s--", label="rows of small nodes, a tree"
    )
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="bytes sent")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)
