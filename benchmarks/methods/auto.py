"""budgetforest as it is by default: ``method="auto"``, one fit, and its own choice at every budget."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.methods import Model, Task
from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import ladder
from budgetforest.selection.candidates import Point


def models(task: Task) -> Iterator[Model]:
    """The forests of the path; of two, the estimator prefers the later one if the budget allows it."""
    model = BudgetForestClassifier(
        task.costs.total,
        costs=task.costs,
        answer="label" if task.train.query is None else "proba",
        max_trees=10 if task.quick else 100,
        random_state=task.seed,
    )
    model.fit(task.train.X, task.train.y, validation=task.validation[:2])
    exits = Exits(model)
    for place, point in enumerate(model.path_):
        if not point.cost:
            continue  # on offer anyway
        judge = exits.judge if model.answer == "label" else partial(all_scores, model)
        yield Model(str(point), partial(judge, point), rank=-place)


class Exits:
    """Labels and costs of rows at every exit of a forest that the path uses, in one pass."""

    def __init__(self, model: BudgetForestClassifier) -> None:
        self.model = model
        self.known: dict = {}

    def judge(self, point: Point, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels of rows as scores, and what they cost."""
        key = (point.recipe, point.trees, id(X))
        if key not in self.known:
            same = [p for p in self.model.path_ if (p.recipe, p.trees) == key[:2]]
            ends = sorted({p.threshold for p in same})
            found = ladder(self.model.at_budget(point.cost).forest_, X, ends)
            self.known[key] = ends, found
        ends, found = self.known[key]
        place = ends.index(point.threshold)
        return np.eye(len(self.model.classes_))[found.labels[:, place]], found.spent[:, place]


def all_scores(model: BudgetForestClassifier, point: Point, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and what they cost."""
    taken = model.at_budget(point.cost)
    return taken.predict_proba(X), taken.acquisition_cost(X)


METHODS = {"budgetforest": models}
