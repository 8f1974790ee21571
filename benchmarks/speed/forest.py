"""The paper's whole Forest experiment beside one large forest of scikit-learn."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sklearn.ensemble import RandomForestClassifier

from benchmarks.data import load
from benchmarks.methods import Task
from benchmarks.speed.turns import Criterion, at_least, seconds, table, take_turns
from benchmarks.tasks import absences, task_of, tasks
from budgetforest import BudgetForestClassifier
from budgetforest.selection.paper import ALPHAS

OURS, THEIRS = "budgetforest, the experiment", "random forest, all features"
TEST = "budgetforest, its path on test rows"
TREES = 40


def measure(quick: bool) -> dict:
    """Seconds of both, on all cores."""
    absent: list[str] = []
    found = [task_of(load("wdbc"))] if quick else [task for _, task in tasks(("covtype",), absent)]
    trees = 2 if quick else TREES
    alphas = ALPHAS[::4] if quick else ALPHAS
    runs = []
    for task in found:
        n_trees = len(alphas) * trees
        theirs = RandomForestClassifier(n_trees, max_features=None, random_state=0, n_jobs=-1)
        sides = {
            OURS: partial(experiment, task, alphas, trees),
            TEST: partial(on_test_rows, task, experiment(task, alphas, trees)),
            THEIRS: partial(theirs.fit, *task.train[:2]),
        }
        sizes = [len(part.y) for part in (task.train, task.validation, task.test)]
        runs.append(
            {"title": task.title, "rows": sizes, "alphas": len(alphas), "trees": trees}
            | {"times": take_turns(sides, quick=quick)}
        )
    return {"runs": runs, "absent": absent}


def experiment(task: Task, alphas: tuple[float, ...], trees: int) -> BudgetForestClassifier:
    """Grow, and measure cost and error of every forest on validation rows.

    Costs are those of labels, so every measurement walks each row to its certain exit.
    """
    model = BudgetForestClassifier(
        task.costs.total, method="paper", alpha=list(alphas), max_trees=trees, random_state=0, n_jobs=-1
    )
    return model.fit(*task.train[:2], validation=task.validation[:2])


def on_test_rows(task: Task, model: BudgetForestClassifier) -> list[tuple[float, float]]:
    """Cost and error of every forest on the path."""
    X, y = task.test[:2]
    taken = [model.at_budget(point.cost) for point in model.path_ if point.cost > 0]
    return [(float(at.acquisition_cost(X).mean()), 1 - at.score(X, y)) for at in taken]


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for run in figures["runs"]:
        ratio = seconds(run["times"], THEIRS) / seconds(run["times"], OURS)
        yield at_least(f"{run['title']}: the whole experiment beside a forest of as many trees", 4, ratio)


def draw(figures: dict, docs: Path) -> None:
    """Two numbers need no picture."""


def section(figures: dict) -> str:
    """A table."""
    lines = [
        "## The paper's experiment",
        "",
        "Ours: the forests of all alphas, cost and error of each after every few trees on validation rows, every row to its",
        "certain exit. Besides, the same of the forests on the path on test rows. Theirs: fitting one forest of as many trees. All cores.",
    ]
    for run in figures["runs"]:
        rows = " / ".join(f"{n:,}" for n in run["rows"])
        lines += [
            "",
            f"### {run['title']}: {run['alphas']} alphas x {run['trees']} trees",
            "",
            f"{rows} rows for training, validation and test.",
            "",
            *table(run["times"], OURS),
        ]
    return "\n".join(lines) + "\n" + absences(figures["absent"])
