"""Cost against error: what a method errs at every budget, measured on rows it has not seen.

A method offers *choices*: fitted models, each with a mean cost and error on validation rows. At a budget
the choice of least validation error among those that fit is taken, and judged on test rows. Every figure is a
mean over test rows, so one bootstrap of rows gives every interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Anything, Flags, Floats, Ids
from budgetforest.runtime.errors import InvalidData, InvalidParameter, MissingExtra
from budgetforest.runtime.progress import late_progress
from budgetforest.selection.candidates import Point

RESAMPLES = 500
"""Bootstrap repetitions behind an interval."""


class Interval(NamedTuple):
    """A mean over rows and where it would lie on other rows of the same kind."""

    mean: float
    low: float
    high: float


class Choice(NamedTuple):
    """A fitted model on offer."""

    what: str
    """Which one it is, for people."""
    cost: float
    """Mean cost of the validation rows."""
    error: float
    """Mean loss of the validation rows."""
    measure: Callable[[], tuple[Floats, Floats]]
    """What each test row pays, and its loss; called only if the choice is ever taken."""


@dataclass(frozen=True)
class Curve:
    """Error at every budget. Made by ``cost_error_curve`` for a model, by ``curve_of`` for any method.

    >>> budget, spent, loss = np.array([0.0, 2.0]), np.array([[0.0], [3.0]]), np.array([[1.0], [0.0]])
    >>> curve = Curve("", ("none", "all"), budget, spent, loss)
    >>> curve.at(1).mean, curve.at(2).mean, curve.area(0, 4).mean
    (1.0, 0.0, 0.5)
    """

    name: str
    what: tuple[str, ...]
    """(k) which model is taken."""
    budget: Floats
    """(k) the budget from which on it is taken: its mean cost on validation rows, ascending."""
    spent: Floats
    """(k, n) what each test row pays."""
    loss: Floats
    """(k, n) 1 where a test row is labelled wrongly, else 0; any other loss will do."""

    @property
    def cost(self) -> Floats:
        """(k) mean cost of the test rows."""
        mean: Floats = self.spent.mean(axis=1)
        return mean

    @property
    def error(self) -> Floats:
        """(k) mean loss of the test rows."""
        mean: Floats = self.loss.mean(axis=1)
        return mean

    def taken(self, budget: float) -> int:
        """Which of the models is taken at a budget."""
        place = int(np.searchsorted(self.budget, budget, side="right")) - 1
        if place < 0:
            raise InvalidParameter(
                f"budget {budget:g} is below {self.budget[0]:g}, the cheapest model of {self.name!r}"
            )
        return place

    def at(self, budget: float) -> Interval:
        """Error on test rows at a budget."""
        return interval(self.loss[self.taken(budget)])

    def area(self, low: float, high: float) -> Interval:
        """Area under the curve between two budgets over their distance: the mean error there."""
        return interval(self.mean_loss(low, high))

    def mean_loss(self, low: float, high: float) -> Floats:
        """(n) loss of every row, averaged over the budgets between two."""
        if not low < high:
            raise InvalidParameter(f"an area needs low < high; got {low:g} and {high:g}")
        self.taken(low)
        edges = np.clip(np.append(self.budget, np.inf), low, high)
        averaged: Floats = np.diff(edges) @ self.loss / (high - low)
        return averaged

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw mean error against mean cost of the test rows; returns matplotlib's axes."""
        if ax is None:
            ax = _pyplot().subplots(layout="constrained")[1]
            ax.set(xlabel="mean cost of a test row", ylabel="test error")
            ax.spines[["top", "right"]].set_visible(False)
        order = np.argsort(self.cost, kind="stable")
        ax.plot(self.cost[order], self.error[order], **{"marker": ".", "label": self.name} | style)
        return ax


def cost_error_curve(model: Anything, X: Anything, y: Anything, *, name: str = "budgetforest") -> Curve:
    """The curve of a fitted ``BudgetForestClassifier`` on test rows: one fit, every smaller budget.

    >>> from sklearn.datasets import load_wine
    >>> from budgetforest import BudgetForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BudgetForestClassifier(6, max_trees=8, random_state=0).fit(X[::2], y[::2])
    >>> curve = cost_error_curve(model, X[1::2], y[1::2])
    >>> bool(curve.at(6).mean < curve.at(0).mean)
    True
    """
    y = np.asarray(y)
    if not len(y) or len(y) != len(X):
        raise InvalidData(f"X has {len(X)} rows and y {len(y)} labels; give a label for each row, and some")

    def measured(cost: float) -> Callable[[], tuple[Floats, Floats]]:
        def measure() -> tuple[Floats, Floats]:
            at = model.at_budget(cost)
            return at.acquisition_cost(X), (at.predict(X) != y).astype(np.float64)

        return measure

    def idle() -> tuple[Floats, Floats]:
        common = model.classes_[model.forest_.prior.argmax()]
        return np.zeros(len(y)), (y != common).astype(np.float64)

    what = free_forest(model)
    free = Choice(what or NOTHING, 0.0, np.inf, measured(FREE) if what else idle)
    forests = [  # the model's own order decides which is taken
        Choice(str(p), p.cost, -float(place), measured(p.cost))
        for place, p in enumerate(model.path_)
        if p.cost > 0
    ]
    return curve_of(name, [free, *forests])


FREE = math.ulp(0.0)
"""The least budget there is: for it nothing can be bought."""
NOTHING = "no feature"
"""What is used there if no feature is free: the most common class."""


def forest_of(model: Anything, point: Point) -> str:
    """What a point of a model's path uses, for people."""
    return str(point) if point.cost or free_forest(model) else NOTHING


def free_forest(model: Anything) -> str:
    """What a fitted model uses where nothing can be bought: a forest of free features, "" if it has none."""
    free = [point for point in model.path_ if point.cost == 0]
    return str(free[-1]) if free and (model.costs_.cost == 0).any() else ""


def curve_of(name: str, choices: Iterable[Choice]) -> Curve:
    """The curve of any method: choices are taken by validation rows and judged on test rows."""
    taken = envelope(list(choices))
    measured = []
    with late_progress("measuring the curve", len(taken)) as tell:
        for choice in taken:
            measured.append(choice.measure())
            tell(len(measured))
    return Curve(
        name,
        tuple(choice.what for choice in taken),
        np.array([choice.cost for choice in taken]),
        np.array([spent for spent, _ in measured]),
        np.array([loss for _, loss in measured]),
    )


def envelope(choices: Sequence[Choice]) -> list[Choice]:
    """Those that err less than every cheaper one, by ascending cost."""
    lowest: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.cost, c.error)):
        if not lowest or choice.error < lowest[-1].error:
            lowest.append(choice)
    return lowest


def interval(values: Floats, *, level: float = 0.95, seed: int = 0) -> Interval:
    """The mean of a value per row with a bootstrap interval; of a difference per row, a paired one."""
    distinct, times = np.unique(values, return_counts=True)
    n = len(values)
    # how often each value is drawn says all, and there are few distinct ones
    drawn = np.random.default_rng(seed).multinomial(n, times / n, size=RESAMPLES)
    low, high = np.quantile(drawn @ distinct / n, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high))


def precision_at(score: Floats, relevant: Flags, query: Ids, *, k: int = 5, seed: int = 0) -> Floats:
    """The paper's precision of each query: the share of its first ``k`` documents before an irrelevant one.

    Documents are ranked by score; equal scores in an order drawn from ``seed``, not in that of the
    file. A query of fewer documents, all relevant, has a precision of 1.

    >>> precision_at(np.array([.9, .8, .7, .6, .5]), np.array([1, 1, 0, 1, 1], bool), np.zeros(5)).tolist()
    [0.4]
    """
    drawn = np.random.default_rng(seed).permutation(len(score))
    ranked = drawn[np.lexsort((-score[drawn], query[drawn]))]
    first = np.flatnonzero(np.diff(query[ranked], prepend=np.nan) != 0)
    found = []
    for documents in np.split(ranked, first[1:]):
        shown = relevant[documents[:k]]
        found.append(1.0 if shown.all() else float(shown.argmin()) / k)
    return np.array(found)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra('plots need matplotlib: pip install "budgetforest[plot]"') from None
    return plt
