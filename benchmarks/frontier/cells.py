"""The cells of one data set: what every method errs at every budget, and how far it is from budgetforest."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np

from benchmarks.data import Data, split
from benchmarks.methods import Method
from benchmarks.methods import measure as measure_method
from benchmarks.tasks import task_of
from budgetforest.costs import Costs
from budgetforest.curve import Curve, interval

OURS = "budgetforest"
BUDGETS = 8
LEAST, MOST = 0.02, 0.4
"""The outer budgets, as shares of the price of everything."""
TESTED, SPLITS = 2_000, 10
"""Splits are repeated until so many test rows were judged, but not more often than that."""


def measure(
    data: Data, methods: Mapping[str, Method], *, quick: bool = False, tell: Callable[[], None] = lambda: None
) -> dict:
    """Every method on all splits of a data set, as plain figures; ``tell`` is called after each."""
    seeds = range(splits_of(data, quick=quick))
    curves: dict[str, list[Curve]] = {title: [] for title in methods}
    seconds: Counter[str] = Counter()
    for seed in seeds:
        task = task_of(data, seed=seed, quick=quick)
        for title, method in methods.items():
            start = perf_counter()
            curves[title].append(measure_method(title, method, task))
            seconds[title] += perf_counter() - start
            tell()
    budgets = ladder(task.costs)
    tested = [test_units(data, seed) for seed in seeds]
    losses = {title: mean_losses(runs, tested, budgets) for title, runs in curves.items()}
    return {
        "title": data.title,
        "note": data.note,
        "rows": [len(part.y) for part in (task.train, task.validation, task.test)],
        "splits": len(seeds),
        "budgets": budgets,
        "methods": {
            title: {
                "at": [interval(loss) for loss in losses[title]],
                "apart": [interval(d) for d in losses[title] - losses[OURS]],
                "what": [runs[0].what[runs[0].taken(budget)] for budget in budgets],
                "points": list(zip(runs[0].cost.tolist(), runs[0].error.tolist(), strict=True)),
                "seconds": round(seconds[title], 1),
            }
            for title, runs in curves.items()
        },
    }


def steps_of(data: Data, methods: Mapping[str, Method], *, quick: bool = False) -> int:
    """How often ``measure`` will tell."""
    return splits_of(data, quick=quick) * len(methods)


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


def mean_losses(runs: Sequence[Curve], tested: Sequence[np.ndarray], budgets: Sequence[float]) -> np.ndarray:
    """(budgets, n) the loss of every row that was ever tested, averaged over the splits that tested it.

    A row that was tested twice is still one row: intervals come from different rows only.
    """
    units, place = np.unique(np.concatenate(tested), return_inverse=True)
    times = np.bincount(place)
    at = [np.concatenate([run.loss[run.taken(budget)] for run in runs]) for budget in budgets]
    return np.array([np.bincount(place, loss, len(units)) / times for loss in at])
