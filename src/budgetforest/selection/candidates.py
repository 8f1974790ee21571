"""Candidates: the forests that a training measures, each with its cost and error on validation rows."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

from budgetforest.runtime.arrays import Flags
from budgetforest.trees.tree import Tree

Folds: TypeAlias = tuple[tuple[float, float], ...]
"""For each fold of the rows judged by: how much of their weight is wrong, and all of it."""


class Recipe(NamedTuple):
    """How the trees of a forest were grown."""

    # fields are compared in this order where forests tie (``path``)
    alpha: float = -1.0
    """The paper's method with this threshold; -1 for method "auto", which the rest describes."""
    features: int = 0
    """How many features were in the pool."""
    cuts: str = "best"
    """How nodes are cut: "best" of every feature tried, "random", or "boosted", best for the loss so far;
    "blend": trees of both of the latter (``blend``)."""
    rate: float = 0.0
    """What a unit of cost was worth while growing, in nats per row."""
    pruned: float = 0.0
    """What it was worth in errors per row when the forest was pruned; 0: it was not."""
    weights: tuple[float, ...] = ()
    """Of a blend: those of its forest and of its boosted trees."""
    refit: bool = False
    """Whether the trees grew on validation rows, too."""

    @property
    def scores(self) -> bool:
        """Whether leaves add scores, not shares of rows."""
        return self.cuts in ("boosted", "blend")

    def __str__(self) -> str:
        pruned = f", pruned at {self.pruned:.2g}" if self.pruned else ""
        if self.alpha >= 0:
            return f"alpha {self.alpha:g}{pruned}"
        rate = f", rate {self.rate:.2g}" if self.rate else ""
        how = self.cuts if self.scores else f"{self.cuts} cuts"
        rows = ", on all rows" if self.refit else ""
        return f"pool of {self.features}, {how}{rate}{pruned}{rows}"


PLAIN = Recipe(alpha=0.0)


class Point(NamedTuple):
    """A forest on the path."""

    recipe: Recipe
    trees: int
    cost: float
    """Mean cost of the validation rows."""
    error: float
    """The share of rows that are labelled wrongly: on the validation rows; where these are few, on all
    (``crossfit``); on a model's ``path_`` the one to expect on new rows (``estimate``). Of scores that
    ``method="auto"`` chooses, their Brier score."""
    threshold: float = math.inf
    """The mean belief at which a label is taken; infinite: when it is certain."""
    low: float = math.nan
    """Where the 95 % interval of that error begins,"""
    high: float = math.nan
    """and ends."""
    folds: Folds = ()
    """The error by folds of the rows, for ``estimate``; empty once training is over."""

    @property
    def alpha(self) -> float:
        """The paper's threshold, NaN for method "auto"."""
        return self.recipe.alpha if self.recipe.alpha >= 0 else math.nan

    def __str__(self) -> str:
        exit_at = "" if self.threshold == math.inf else f", exit at {self.threshold:.3g}"
        return f"{self.recipe}, {self.trees} trees{exit_at}"


class Candidate(NamedTuple):
    """The trees of one recipe, and every forest of the first of them that was measured."""

    recipe: Recipe
    trees: list[Tree]
    """As many as fit the budget."""
    points: list[Point]
    """In the order of growth, also those that did not fit."""
    patience: int
    """After so many in a row that do not fit, no more are grown."""
    pool: Flags | None = None
    """(m) which features the trees may use; None once training is over, and for the paper's method."""


THRESHOLDS = 32
"""Exits tried of every forest."""


def thresholds(n_classes: int, number: int = THRESHOLDS) -> list[float]:
    """So many beliefs at which rows may exit, from almost any up, and certainty."""
    # the leader of k classes never has a share below 1 / k
    even = 1 / n_classes
    return [even + (1 - even) * i / number for i in range(number)] + [math.inf]
