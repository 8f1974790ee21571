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

from budgetforest.estimators.classifier import BudgetForestClassifier
from budgetforest.inference.predict import charge
from budgetforest.runtime.errors import MissingExtra, UnusualData
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Answer

TREES = (1, 2, 3, 5, 10, 25, 100)
STORY_BUDGET = 16
REPORT = "demo-report.html"


class CostAndError(NamedTuple):
    """Mean cost and error on test rows."""

    cost: float
    error: float


def run(console: Console, folds: int = 3) -> list[dict[str, float]]:
    """Train, compare, decide one row; everything is measured while you watch. Returns the comparison."""
    data = load_digits()
    X, y = data.data, data.target
    console.print(
        f"\nHandwritten digits, shipped with scikit-learn: {len(y)} rows, {X.shape[1]} pixels at a cost of "
        f"1 each, {folds} folds.\nThe first run on a machine compiles for some seconds.\n"
    )
    measured: dict[int, list[tuple[CostAndError, CostAndError]]] = {trees: [] for trees in TREES}
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
    for train, test in track(splits, "training", console=console, transient=True):
        model = BudgetForestClassifier(max_trees=30, random_state=0, n_jobs=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusualData)  # some pixels of the border are always blank
            model.fit(X[train], y[train])
        for trees in TREES:
            forest = RandomForestClassifier(trees, random_state=0, n_jobs=-1).fit(X[train], y[train])
            paid = charge(from_sklearn(forest, model.costs_), X[test], Answer.LABEL).spent.mean()
            at = model.at_budget(paid)
            mine = CostAndError(at.acquisition_cost(X[test]).mean(), 1 - at.score(X[test], y[test]))
            measured[trees].append((mine, CostAndError(paid, 1 - forest.score(X[test], y[test]))))
    compared = [_compared(trees, pairs) for trees, pairs in measured.items()]
    console.print(_table(compared))
    chosen = model.at_budget(STORY_BUDGET)
    _decide_one_row(console, chosen, X[test], y[test], data)
    _write_report(console, chosen, X[test], y[test], forest)
    return compared


def _write_report(console: Console, model: BudgetForestClassifier, X: Any, y: Any, plain: Any) -> None:
    """The same forest beside a plain one as a page, where the extra is there."""
    try:
        path = model.report(X, y, title="Handwritten digits", baseline=plain).save(REPORT)
    except MissingExtra as missing:
        console.print(f"\nNo report: {missing}")
    else:
        console.print(f"\nThe report is in [bold]{path.resolve()}[/bold]: open it in a browser.")


def _compared(trees: int, pairs: list[tuple[CostAndError, CostAndError]]) -> dict[str, float]:
    """Means over the folds."""
    (cost, error), (budget, plain_error) = np.mean(pairs, axis=0).tolist()
    return {"trees": trees, "budget": budget, "plain_error": plain_error, "cost": cost, "error": error}


def _table(compared: list[dict[str, float]]) -> Table:
    table = Table(title="test error when both may acquire as many features for an average row")
    for head in ("RandomForest", "features", "error", "", "budgetforest", "features", "error"):
        table.add_column(head, justify="right")
    for row in compared:
        theirs = [f"{row['trees']} trees", f"{row['budget']:.1f}", f"{row['plain_error']:.3f}", ""]
        table.add_row(*theirs, f"budget {row['budget']:.1f}", f"{row['cost']:.1f}", f"{row['error']:.3f}")
    return table


def _decide_one_row(console: Console, model: BudgetForestClassifier, X: Any, y: Any, data: Any) -> None:
    """The story of the test row that pays nearest to the average."""
    cost = model.acquisition_cost(X)
    row = int(np.abs(cost - cost.mean()).argmin())
    console.print(f"\nOne test row at budget {STORY_BUDGET}, decided by {model.n_trees_} trees:\n")
    names = model.forest_.schema.names
    decision = model.predict_one(lambda feature: X[row, names.index(feature)])
    for step in decision.trace:
        pixel = data.feature_names[names.index(step.feature)]
        waited = f"{step.trees} trees used it"
        console.print(f"  [bold]{pixel}[/bold] = {step.value:g} (cost {step.cost:g}, {waited})")
    truth = "right" if decision.label == y[row] else "wrong"
    sure = "certain" if decision.certain else f"believed to {max(decision.belief):.0%}"
    everything = model.acquisition_cost(X, answer="proba")[row]
    console.print(
        f"\n  Answer: [bold]{decision.label}[/bold] ({truth}), {sure}."
        f"\n  {decision.spent:g} of {X.shape[1]} paid; asking every tree would have cost {everything:g}.\n"
    )
