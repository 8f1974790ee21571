"""budgetforest as it is by default: ``method="auto"``, one fit, and its own choice at every budget."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.methods import Model, Task
from budgetforest import BudgetForestClassifier


def models(task: Task) -> Iterator[Model]:
    """The forests of the path; of two, the estimator prefers the later one if the budget allows it."""
    model = BudgetForestClassifier(
        task.costs.total,
        costs=task.costs,
        answer="label" if task.train.query is None else "proba",
        max_trees=10 if task.quick else 100,
        random_state=task.seed,
        n_jobs=task.n_jobs,
    )
    model.fit(task.train.X, task.train.y, validation=task.validation[:2])
    for place, point in enumerate(model.path_):
        yield Model(str(point), partial(judge, model, point.cost), rank=-place)


def judge(model: BudgetForestClassifier, cost: float, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels, or for rankings probabilities, and what they cost."""
    at = model.at_budget(cost) if cost else model
    if model.answer == "proba":
        return at.predict_proba(X), at.acquisition_cost(X)
    return np.eye(len(model.classes_))[at.predict(X)], at.acquisition_cost(X)


METHODS = {"budgetforest": models}
