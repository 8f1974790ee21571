"""What tasks take on a worker, and what that makes of many more rows, on paper."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from dask.utils import key_split
from distributed import Client

import budgetforest.dask
from benchmarks.cluster.rows import WORKERS, blocks_of, forest, workers
from benchmarks.speed.sets import made
from benchmarks.speed.turns import Criterion
from budgetforest.dask import level_growth

ROWS, FEATURES, TREES = 2_000_000, 20, 4
BLOCKS = 2 * WORKERS
DRAWN = 0.632
"""The share of rows that a bootstrap draws."""
EDGES = ("sketch", "merge", "weigh", "add", "brackets", "look_inside", "merge_all", "find", "encoded")
EMPTY = 2_000
"""Tasks that do nothing."""
MANY, WIDE, MACHINES = 10**9, 100, 100
"""Rows, features and workers on paper."""
CODES, CLASSES, BYTES = 256, 2, 4
SMALL = level_growth.MOST_CELLS // WIDE
"""Rows of a node that one worker grows."""
LEVELS = (MANY // SMALL).bit_length()


def measure(quick: bool) -> dict:
    """Seconds of the tasks of one training, by kind, and of tasks that do nothing."""
    rows = made(10_000 if quick else ROWS, FEATURES)
    with (
        workers() as client,
        patch.object(level_growth, "split_large", wraps=level_growth.split_large) as level,
    ):
        loaded = blocks_of(client, rows, BLOCKS)
        client.get_task_stream()  # from now on
        begun = time.time()
        budgetforest.dask.fit(forest(TREES), *loaded, client=client, spread="rows")
        taken = seconds_by_kind(client, begun)
        counted = sum(limb.weight for call in level.call_args_list for limb in call.args[2].large)
        return {
            "rows": len(rows.y),
            "levels": level.call_count,
            "counted": counted,
            "taken": taken,
            "task": seconds_of_a_task(client, 100 if quick else EMPTY),
        }


def seconds_by_kind(client: Client, begun: float) -> dict[str, float]:
    """Seconds that workers computed since then."""
    taken: Counter[str] = Counter()
    for task in client.get_task_stream():
        for step in task["startstops"]:
            if step["action"] == "compute" and step["start"] > begun:
                taken[key_split(task["key"])] += step["stop"] - step["start"]
    return dict(taken)


def seconds_of_a_task(client: Client, n: int) -> float:
    """By the clock, of many at once; the scheduler shares the cores with its workers here."""
    begun = time.perf_counter()
    client.gather(client.map(float, range(n), pure=False))
    return (time.perf_counter() - begun) / n


def units(figures: dict) -> dict[str, float]:
    """Seconds of single things."""
    rows, taken = figures["rows"], figures["taken"]
    cells, drawn = rows * FEATURES, DRAWN * rows * TREES
    return {
        "find edges and encode a cell": sum(taken.get(kind, 0) for kind in EDGES) / cells,
        "test a draw": taken["stand"] / (rows * BLOCKS * TREES),
        "count a drawn row in a feature of a level": taken["count"] / (DRAWN * figures["counted"] * FEATURES),
        "pick a drawn row of a small node, for each feature": taken["pick"] / (drawn * FEATURES),
        "grow what is below, for each row and feature": taken["finish"] / (drawn * FEATURES),
    }


def criteria(figures: dict) -> Iterator[Criterion]:
    """Nothing is asked."""
    yield from ()


def draw(figures: dict, docs: Path) -> None:
    """A table is enough."""


def section(figures: dict) -> str:
    """Constants, and the sum."""
    edges, test, count, pick, grow = units(figures).values()
    own, drawn = MANY // MACHINES, DRAWN * MANY // MACHINES
    nodes = MANY // SMALL
    counts = nodes * WIDE * (CODES + 1) * CLASSES * BYTES
    travels = drawn * (WIDE + 12)
    rows = [
        ("find edges and encode, once for all trees", f"{own * WIDE * edges:,.0f} s"),
        (f"test all {MANY:,} draws for its own rows", f"{MANY * test:,.0f} s"),
        (f"count {drawn:,.0f} drawn rows in {WIDE} features of {LEVELS} levels, until nodes have {SMALL:,} rows", f"{drawn * WIDE * LEVELS * count:,.0f} s"),
        ("pick the rows of small nodes", f"{drawn * WIDE * pick:,.0f} s"),
        (f"grow subtrees of {drawn:,.0f} rows", f"{drawn * WIDE * grow:,.0f} s"),
        (f"send counts of at most {nodes:,} nodes in the last level, half of that in the one before, ...", f"{2 * counts / 1e9:.1f} GB"),
        ("send and receive rows of small nodes", f"{travels / 1e9:.1f} GB each way"),
        (f"have the scheduler pass on at least {MACHINES * nodes:,} parts of picked rows, beside the rest", f"{MACHINES * nodes * figures['task']:,.0f} s"),
    ]  # fmt: skip
    lines = [
        "## A thousand million rows, on paper",
        "",
        f"Seconds that {WORKERS} workers computed in one training, {figures['rows']:,} x {FEATURES} rows in {BLOCKS} blocks, {TREES} trees, {figures['levels']} levels,",
        "and what they come to for a single thing.",
        "",
        "| to | takes ns |",
        "|---" * 2 + "|",
        *(f"| {what} | {1e9 * took:.1f} |" for what, took in units(figures).items()),
        f"| have the scheduler pass a task on, workers and all on the same cores | {1e9 * figures['task']:,.0f} |",
        "",
        f"From these, for {MANY:,} x {WIDE} rows in {CODES} bins, {CLASSES} classes, on {MACHINES} workers of one thread, for each tree unless said otherwise:",
        "",
        "| a worker has to | that is |",
        "|---" * 2 + "|",
        *(f"| {what} | {much} |" for what, much in rows),
    ]
    return "\n".join(lines) + "\n"
