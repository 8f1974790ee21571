"""Trees of linear classifiers that know of costs: CSTC (2013) and ASTC (2014), see ``benchmarks.baselines``.

Missing values are replaced by the training median. Swept for CSTC: ``lam``, the price of cost in its objective,
and the steepness of its sigmoid; being slow, it learns from at most 5,000 training rows, drawn at random, in at
most 10 cycles. Swept for ASTC: the budget of a path, 2 to 60 % of the price of everything, and the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits

from benchmarks.baselines.astc import ASTC
from benchmarks.baselines.cstc import CSTC
from benchmarks.methods import Model, Task
from budgetforest.data.costs import Costs

LAM = (10, 5, 2.5, 1.5, 1, 0.7, 0.5, 0.3, 0.2, 0.1, 0.03)
"""For a mean price of 1; from about 2 on, no feature of that price is bought."""
SLOPES = (1, 10, 30)
SHARES = (0.02, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.45, 0.6)
"""Budgets, in prices of everything."""
DEPTHS = (1, 2, 3, 4, 6)


def cstc(task: Task) -> Iterator[Model]:
    """One tree for each steepness and price of cost."""
    prices, unit = price_list(task.costs), task.costs.cost.mean() or 1.0
    trees = {
        f"lam {lam}, slope {slope}": CSTC(3, lam / unit, costs=prices, slope=slope, tol=1e-3, max_cycles=10)
        for slope, lam in product(SLOPES[1:2] if task.quick else SLOPES, LAM[3::4] if task.quick else LAM)
    }
    return fitted(trees, CSTC.decision_function, task, most=5_000)


def astc(task: Task) -> Iterator[Model]:
    """One tree for each depth and budget."""
    prices, total = price_list(task.costs), task.costs.cost.sum()
    trees = {
        f"{share:.0%} of all, depth {depth}": ASTC(share * total, depth, costs=prices)
        for depth, share in product(
            DEPTHS[::2] if task.quick else DEPTHS, SHARES[1::4] if task.quick else SHARES
        )
    }
    return fitted(trees, ASTC.class_scores, task, most=len(task.train.y))


def price_list(costs: Costs) -> pd.DataFrame:
    """Prices and groups as estimators take them."""
    return pd.DataFrame(
        {
            "feature": [f"x{j}" for j in range(len(costs.cost))],
            "cost": costs.cost,
            "group": [f"group {g}" for g in costs.group],
            "discount_cost": costs.discount,
        }
    )


def fitted(
    trees: dict[str, Any], scores_of: Callable[[Any, np.ndarray], np.ndarray], task: Task, most: int
) -> Iterator[Model]:
    """Trees fitted to so many training rows."""
    filler = SimpleImputer(strategy="median", keep_empty_features=True).fit(task.train.X)
    rows = np.sort(np.random.default_rng(task.seed).permutation(len(task.train.y))[:most])
    X, y = filler.transform(task.train.X[rows]), task.train.y[rows]

    def judge_by(model: Any) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        def judge(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            X = filler.transform(X)
            scores = np.full((len(X), task.n_classes), -np.inf)  # a rare class may not be among the rows
            scores[:, model.classes_] = scores_of(model, X)
            return scores, model.acquisition_cost(X)

        return judge

    for what, tree in trees.items():
        with threadpool_limits(1):
            model = tree.fit(X, y)
        yield Model(what, judge_by(model))


METHODS = {"CSTC": cstc, "ASTC": astc}
