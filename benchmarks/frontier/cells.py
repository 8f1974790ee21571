"""The cells of one data set: what every method errs at every budget, and how far it is from budgetforest."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.data import Data, split
from benchmarks.methods import Method, Task
from benchmarks.methods import measure as measure_method
from benchmarks.tasks import costs_of, task_of
from budgetforest.data.costs import Costs
from budgetforest.report.curve import interval

OURS, MEASURED = "budgetforest", "budgetforest, refit=False"
"""Grown again on validation rows, too, as by default; and as it was measured on them."""
OWN = (OURS, MEASURED)
BUDGETS = 8
LEAST, MOST = 0.02, 0.4
"""The outer budgets, as shares of the price of everything."""
TESTED, SPLITS = 2_000, 5
"""Splits are repeated until so many test rows were judged, but not more often than that."""


class Run(NamedTuple):
    """One method on one split."""

    loss: np.ndarray
    """(budgets, n) of every test row, or query."""
    what: list[str]
    """(budgets) which model it was."""
    points: list[tuple[float, float]]
    """Cost and error of all its models that are ever taken."""
    seconds: float


StepCache = Callable[[str, int, Callable[[], Run]], Run]
"""The run of a method (its title) on a split (its seed): as it was kept, or made and kept."""
Methods = Mapping[str, Method]
Job = Future[dict[str, Run]]


def make(title: str, seed: int, run: Callable[[], Run]) -> Run:
    """A ``StepCache`` that keeps nothing."""
    return run()


def begin(
    data: Data, together: Sequence[Methods], pool: Executor, *, quick: bool = False, keep: StepCache = make
) -> list[Job]:
    """Methods on all splits of a data set, a job for each split and each of the groups of methods."""
    tasks = [task_of(data, seed=seed, quick=quick) for seed in range(splits_of(data, quick=quick))]
    return [pool.submit(runs_of, methods, task, keep) for task in tasks for methods in together]


def runs_of(methods: Methods, task: Task, keep: StepCache) -> dict[str, Run]:
    """One job."""
    return {
        title: keep(title, task.seed, partial(run_of, title, method, task))
        for title, method in methods.items()
    }


def gather(data: Data, jobs: Sequence[Job]) -> dict:
    """What came of them, as plain figures."""
    runs: dict[str, list[Run]] = {}
    for job in jobs:
        for title, run in job.result().items():
            runs.setdefault(title, []).append(run)
    parts, costs = split(data, 0), costs_of(data)
    tested = [test_units(data, seed) for seed in range(len(runs[OURS]))]
    losses = {title: mean_losses([run.loss for run in line], tested) for title, line in runs.items()}
    return {
        "title": data.title,
        "note": data.note,
        "rows": [len(rows) for rows in parts],
        "splits": len(tested),
        "budgets": ladder(costs),
        "methods": {
            title: {
                "at": [interval(loss) for loss in losses[title]],
                "apart": {
                    own: [interval(d) for d in losses[title] - losses[own]] for own in OWN if own in losses
                },
                "what": line[0].what,
                "points": line[0].points,
                "seconds": round(sum(run.seconds for run in line), 1),
            }
            for title, line in runs.items()
        },
    }


def run_of(title: str, method: Method, task: Task) -> Run:
    """Measure a method on a split; its seconds are those of all threads."""
    start = process_time()
    curve = measure_method(title, method, task)
    taken = [curve.taken(budget) for budget in ladder(task.costs)]
    return Run(
        curve.loss[taken],
        [curve.what[place] for place in taken],
        list(zip(curve.cost.tolist(), curve.error.tolist(), strict=True)),
        process_time() - start,
    )


def splits_of(data: Data, *, quick: bool = False) -> int:
    """Few test rows say little: these are split again and again."""
    return min(2 if quick else SPLITS, math.ceil(TESTED / len(split(data, 0).test)))


def ladder(costs: Costs) -> list[float]:
    """Budgets in equal ratios; below the cheapest feature all methods are the same."""
    cheapest = costs.cost[costs.cost > 0].min()
    return np.geomspace(max(LEAST * costs.total, cheapest), MOST * costs.total, BUDGETS).tolist()


def test_units(data: Data, seed: int) -> np.ndarray:
    """What losses belong to: test rows, or in a ranking their queries."""
    rows = split(data, seed).test
    return rows if data.query is None else np.unique(data.query[rows])


def mean_losses(losses: Sequence[np.ndarray], tested: Sequence[np.ndarray]) -> np.ndarray:
    """(budgets, n) the loss of every row that was ever tested, averaged over the splits that tested it.

    A row that was tested twice is still one row: intervals come from different rows only.
    """
    units, place = np.unique(np.concatenate(tested), return_inverse=True)
    times = np.bincount(place)
    at_budgets = np.concatenate(losses, axis=1)
    return np.array([np.bincount(place, loss, len(units)) / times for loss in at_budgets])
