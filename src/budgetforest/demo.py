"""The demonstration: a budgeted forest beside a plain one, and one row decided feature by feature."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from budgetforest.acquire import acquire
from budgetforest.charge import charge
from budgetforest.classifier import BudgetForestClassifier
from budgetforest.errors import UnusualData
from budgetforest.forest import Answer
from budgetforest.peers import from_sklearn

BUDGETS = (4, 6, 8, 12, 16, 24, 32)
TREES = (1, 2, 3, 4, 6, 10, 100)
STORY_BUDGET = 12


class Measured(NamedTuple):
    """Mean cost and error on test rows."""

    cost: float
    error: float


def run(console: Console, folds: int = 5) -> None:
    """Train, compare, decide one row; everything is measured while you watch."""
    data = load_digits()
    X, y = data.data, data.target
    console.print(
        f"\nHandwritten digits, shipped with scikit-learn: {len(y)} rows, {X.shape[1]} pixels at a cost of "
        f"1 each, {folds} folds.\nThe first run on a machine compiles for some seconds.\n"
    )
    ours: dict[float, list[Measured]] = {budget: [] for budget in BUDGETS}
    theirs: dict[int, list[Measured]] = {trees: [] for trees in TREES}
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
    for train, test in track(splits, "training", console=console, transient=True):
        model = BudgetForestClassifier(budget=max(BUDGETS), random_state=0, n_jobs=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusualData)  # some pixels of the border are always blank
            model.fit(X[train], y[train])
        for budget in BUDGETS:
            at = model.at_budget(budget)
            cost = at.acquisition_cost(X[test]).mean()
            ours[budget].append(Measured(cost, 1 - at.score(X[test], y[test])))
        for trees in TREES:
            forest = RandomForestClassifier(trees, random_state=0, n_jobs=-1)
            forest.fit(X[train], y[train])
            paid = charge(from_sklearn(forest, model.costs_), X[test], Answer.LABEL).spent
            theirs[trees].append(Measured(paid.mean(), 1 - forest.score(X[test], y[test])))
    console.print(_table(ours, theirs))
    _decide_one_row(console, model.at_budget(STORY_BUDGET), X[test], y[test], data)


def _table(ours: dict[float, list[Measured]], theirs: dict[int, list[Measured]]) -> Table:
    table = Table(title="features acquired for an average test row, and test error")
    for head in ("budget", "budgetforest", "error", "", "trees", "RandomForest", "error"):
        table.add_column(head, justify="right")
    for (budget, mine), (trees, other) in zip(ours.items(), theirs.items(), strict=True):
        a, b = (np.mean(side, axis=0) for side in (mine, other))
        cells = [f"{budget:g}", f"{a[0]:.1f}", f"{a[1]:.3f}", ""]
        table.add_row(*cells, f"{trees}", f"{b[0]:.1f}", f"{b[1]:.3f}")
    return table


def _decide_one_row(console: Console, model: BudgetForestClassifier, X: Any, y: Any, data: Any) -> None:
    """The story of the test row that pays nearest to the average."""
    cost = model.acquisition_cost(X)
    row = int(np.abs(cost - cost.mean()).argmin())
    console.print(f"\nOne test row at budget {STORY_BUDGET}, decided by {model.n_trees_} trees:\n")
    flow = acquire(model.forest_)
    need = next(flow)
    try:
        while True:
            value = X[row, need.feature]
            console.print(
                f"  tree {need.tree + 1:>2} asks for [bold]{data.feature_names[need.feature]}[/bold] "
                f"(cost {need.cost:g}): {value:g}"
            )
            need = flow.send(value)
    except StopIteration as end:
        decision = end.value
    counted = zip(decision.votes, data.target_names, strict=True)
    votes = ", ".join(f"{n} for {name}" for n, name in counted if n)
    verdict = data.target_names[decision.label]
    truth = "right" if decision.label == y[row] else "wrong"
    console.print(
        f"  votes: {votes}. Answer: [bold]{verdict}[/bold] ({truth}), "
        f"{decision.spent:g} of {X.shape[1]} paid.\n"
    )
