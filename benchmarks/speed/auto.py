"""What it costs to look for the best method, beside the paper's alone."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.progress import track

from benchmarks.data import load
from benchmarks.methods import Task
from benchmarks.speed.turns import Criterion, at_most, seconds, table, take_turns
from benchmarks.tasks import absences, task_of, tasks
from budgetforest import BudgetForestClassifier

SETS = ("wdbc", "miniboone_tiny", "statlog_dna", "covtype")
OURS, PAPER = 'method="auto"', 'method="paper"'
METHODS = {OURS: "auto", PAPER: "paper"}


def measure(quick: bool) -> dict:
    """Seconds of both methods on the same rows, all cores, otherwise as by default."""
    absent: list[str] = []
    found = [task_of(load("wdbc"))] if quick else [task for _, task in tasks(SETS, absent)]
    trees = {"max_trees": 4} if quick else {}
    runs = []
    for task in track(found, "auto beside paper"):
        sides = {title: partial(fit, task, method, **trees) for title, method in METHODS.items()}
        times = take_turns(sides, quick=quick, warm=not runs)  # what is compiled, is compiled by then
        runs.append({"title": task.title, "rows": len(task.train.y), "times": times})
    return {"runs": runs, "absent": absent}


def fit(task: Task, method: str, **parameters: int) -> BudgetForestClassifier:
    """A forest for every budget."""
    model = BudgetForestClassifier(
        task.costs.total, costs=task.costs, method=method, random_state=0, n_jobs=-1, **parameters
    )
    return model.fit(*task.train[:2], validation=task.validation[:2])


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for run in figures["runs"]:
        ratio = seconds(run["times"], OURS) / seconds(run["times"], PAPER)
        yield at_most(f"{run['title']}: auto beside paper", 10, ratio)


def draw(figures: dict, docs: Path) -> None:
    """Tables are enough."""


def section(figures: dict) -> str:
    """A table for every set."""
    lines = [
        '## `method="auto"` beside `method="paper"`',
        "",
        "One fit for all budgets, parameters as by default, all cores.",
    ]
    for run in figures["runs"]:
        lines += [
            "",
            f"### {run['title']}, {run['rows']:,} rows",
            "",
            *table(run["times"], PAPER, "times paper's"),
        ]
    return "\n".join(lines) + "\n" + absences(figures["absent"])
