"""The picture of the README: cost against error on scikit-learn's digits, beside a plain forest."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import charge
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Answer

PICTURE = Path(__file__).parent.parent / "docs" / "curve.svg"
BUDGETS = (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40)
TREES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 25)


def run() -> None:
    """Measure both curves over five folds and draw them."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0.4]  # without the pixels that are always blank
    ours, theirs = [], []
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    for train, test in track(folds, "cost-error curve"):
        model = BudgetForestClassifier(budget=max(BUDGETS), random_state=0, n_jobs=-1)
        model.fit(X[train], y[train])
        at = [model.at_budget(b) for b in BUDGETS]
        ours.append([(m.acquisition_cost(X[test]).mean(), 1 - m.score(X[test], y[test])) for m in at])
        line = []
        for trees in TREES:
            forest = RandomForestClassifier(trees, random_state=0).fit(X[train], y[train])
            paid = charge(from_sklearn(forest, model.costs_), X[test], Answer.LABEL).spent.mean()
            line.append((paid, 1 - forest.score(X[test], y[test])))
        theirs.append(line)
    draw(np.mean(ours, axis=0), np.mean(theirs, axis=0), X.shape[1])


def draw(ours: np.ndarray, theirs: np.ndarray, n_features: int) -> None:
    """Write the picture."""
    plt.rcParams["svg.hashsalt"] = "budgetforest"
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.plot(*theirs.T, "o-", color="#999999", label="scikit-learn RandomForest, 1 to 25 trees")
    axes.plot(*ours.T, "o-", color="#1f6f54", label="budgetforest, one fit")
    axes.set(
        xlabel=f"features acquired for an average test row, of {n_features}", ylabel="test error", ylim=0
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})
