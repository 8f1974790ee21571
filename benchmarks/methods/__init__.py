"""Every method of the comparison, one file each.

A file has ``METHODS``, a title for each of its methods with a function from a ``Task`` to fitted models, cheap
and dear. It may look at training and validation rows as it likes; which model is taken at a budget is
decided for it, on validation rows, and judged on test rows, for all methods alike. It has one thread: methods run side
by side. Files are found by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pkgutil import iter_modules
from types import ModuleType
from typing import NamedTuple

import numpy as np

from budgetforest import Choice, Curve, curve_of, precision_at
from budgetforest.data.costs import Costs
from budgetforest.inference.predict import charge, scores
from budgetforest.report.curve import envelope
from budgetforest.trees.forest import Answer, Forest


class Part(NamedTuple):
    """Some rows: for training, validation or test."""

    X: np.ndarray
    """(n, m) float32, NaN where missing."""
    y: np.ndarray
    """(n) class codes 0, 1, ...; every class is in training."""
    query: np.ndarray | None = None
    """(n) the query of a document, if this is a ranking."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set to be learnt."""

    title: str
    train: Part
    validation: Part
    test: Part
    costs: Costs
    """``cost`` (m) is each feature's own price; discounts of groups are in there, too."""
    seed: int = 0
    quick: bool = False
    """Try few settings: the whole in seconds, for tests."""

    @property
    def n_classes(self) -> int:
        return int(self.train.y.max()) + 1

    def loss(self, scores: np.ndarray, part: Part) -> np.ndarray:
        """1 for a wrong label; in a ranking, what each query lacks of a precision of 1."""
        if part.query is None:
            return (scores.argmax(axis=1) != part.y).astype(float)
        return 1 - precision_at(scores[:, 1] - scores[:, 0], part.y == 1, part.query)

    def spent(self, per_row: np.ndarray, part: Part) -> np.ndarray:
        """What rows pay; in a ranking by query, so that the mean is still that of a document."""
        if part.query is None:
            return per_row
        _, place = np.unique(part.query, return_inverse=True)
        per_query = np.bincount(place, per_row)
        return per_query * (len(per_query) / len(per_row))


class Model(NamedTuple):
    """A fitted model on offer."""

    what: str
    """Its settings, for people."""
    judge: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """From rows to their scores (n, k), the largest of which is the label, and what each row pays (n)."""
    rank: float | None = None
    """What the method would choose by, least first, if it has something better than validation errors."""
    cost: float | None = None
    """What rows pay on average by its own account, if validation rows cannot tell."""


Method = Callable[[Task], Iterator[Model]]


def methods() -> dict[str, Method]:
    """All methods by title."""
    return {title: method for file in _files() for title, method in file.METHODS.items()}


def described() -> dict[tuple[str, ...], str]:
    """What each file says of its methods, by their titles."""
    return {
        tuple(file.METHODS): " ".join((file.__doc__ or "").replace("``", "`").split()) for file in _files()
    }


def _files() -> list[ModuleType]:
    return [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]


def measure(title: str, method: Method, task: Task) -> Curve:
    """The curve of one method: models are taken on validation rows and judged on test rows."""
    common = np.bincount(task.train.y, minlength=task.n_classes).astype(float)
    free = Model("no feature", lambda X: (np.tile(common, (len(X), 1)), np.zeros(len(X))), rank=1.0)
    taken: list[Choice] = []
    for model in chain([free], method(task)):
        taken = envelope([*taken, _offer(model, task)])  # what cannot be taken any more need not be kept
    return curve_of(title, taken)


def _offer(model: Model, task: Task) -> Choice:
    def judged(part: Part) -> tuple[np.ndarray, np.ndarray]:
        scores, paid = model.judge(part.X)
        return task.spent(paid, part), task.loss(scores, part)

    paid, loss = judged(task.validation)
    error = float(loss.mean()) if model.rank is None else model.rank
    cost = float(paid.mean()) if model.cost is None else model.cost
    return Choice(model.what, cost, error, lambda: judged(task.test))


def forest_model(what: str, forest: Forest, answer: Answer = Answer.PROBA) -> Model:
    """A ``Forest`` on offer; by default rows pay for all that they meet in any tree."""

    return Model(what, lambda X: (scores(forest, X), charge(forest, X, answer).spent))
