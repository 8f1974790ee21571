"""budgetforest as it is by default: ``method="auto"``, one fit, and its own choice at every budget.

Its chosen forests are grown again on training and validation rows, as the estimator does it unasked; with ``refit=False``
they stay as they were measured: then validation rows only tune, as for all peers.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.methods import Model, Task
from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import ladder
from budgetforest.selection.candidates import Point


def models(task: Task, *, refit: bool = True) -> Iterator[Model]:
    """What one fit offers."""
    return offers(fitted(task, refit=refit))


def one_of_both(task: Task, *, refit: bool) -> Iterator[Model]:
    """The same with one search for both."""
    return offers(both(task)[refit])


@lru_cache(maxsize=1)
def both(task: Task) -> dict[bool, BudgetForestClassifier]:
    """The model with and without a refit; the search is kept in between."""
    with TemporaryDirectory() as folder:
        return {refit: fitted(task, refit=refit, checkpoint=folder) for refit in (False, True)}


def fitted(task: Task, *, refit: bool, checkpoint: str | None = None) -> BudgetForestClassifier:
    """The model for all budgets."""
    model = BudgetForestClassifier(
        task.costs.total,
        costs=task.costs,
        answer="label" if task.train.query is None else "proba",
        max_trees=10 if task.quick else 100,
        random_state=task.seed,
        refit=refit,
    )
    return model.fit(task.train.X, task.train.y, validation=task.validation[:2], checkpoint=checkpoint)


def offers(model: BudgetForestClassifier) -> Iterator[Model]:
    """The forests of the path; of two, the estimator prefers the later one if the budget allows it."""
    exits = Exits(model)
    for place, point in enumerate(model.path_):
        if not point.cost:
            continue  # on offer anyway
        judge = exits.judge if model.answer == "label" else partial(all_scores, model)
        # rows that a forest has seen say too little of what others pay
        yield Model(str(point), partial(judge, point), rank=-place, cost=point.cost)


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


METHODS = {
    "budgetforest": partial(one_of_both, refit=True),
    "budgetforest, refit=False": partial(one_of_both, refit=False),
}
