"""Everything that decides a training, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

from budgetforest.data.costs import Costs
from budgetforest.data.rows import Totals
from budgetforest.data.table import Schema
from budgetforest.growing import impurity as impurities
from budgetforest.growing.impurity import compiled, is_admissible, is_symmetric
from budgetforest.growing.split import Measure, Splitter
from budgetforest.growing.workspace import Plan
from budgetforest.runtime.arrays import Anything
from budgetforest.runtime.errors import InvalidParameter, UnusualData, warn
from budgetforest.runtime.params import as_float
from budgetforest.trees.forest import Answer, Context, Voting


class Settings(NamedTuple):
    """Everything that decides a training, checked."""

    budget: float
    """Allowed mean cost; infinite for no limit."""
    alphas: tuple[float, ...] | None
    """Thresholds to try; None for the paper's and upwards."""
    impurity: Any
    """An impurity object or a user's function."""
    splitter: Splitter
    expected: bool
    max_bins: int
    max_trees: int
    bootstrap: bool
    voting: Voting
    answer: Answer
    """What rows pay for, in the budget and on the path."""
    costs: Costs
    schema: Schema
    classes: tuple[Any, ...]
    unit: float
    """Weight of one count."""
    seed: int
    auto: bool
    """Whether the best method is looked for, instead of the paper's."""
    disagreement: float | None
    """How often probable exit may differ from certain exit; None: as is best at the budget."""
    confidence: float
    """How sure that must be."""
    rate: float | None
    """What a unit of cost is worth while growing; None: to be found for every pool."""
    refit: bool
    """Whether the chosen forests are grown again on training and validation rows together."""
    max_features: float | None
    """Share of a pool's features that a node of a forest tries; None: fewer, the larger the pool."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def for_growing(self) -> Settings:
        """How rows are prepared; method "auto" always takes bins, and as many draws as rows."""
        if not self.auto:
            return self
        return self._replace(bootstrap=True, splitter=Splitter.BINNED)

    @property
    def measures(self) -> bool:
        """Whether validation rows are needed: for a budget, or for a choice."""
        return self.auto or self.budget < math.inf or self.alphas is None or len(self.alphas) > 1


def n_rows(totals: Totals, settings: Settings) -> int:
    """How many rows there are, a row of weight 2 counted twice."""
    return max(1, round(float(totals.counts.sum()) * settings.unit))


ENOUGH_MEASURED = 8192
"""Validation rows of method "auto" at most: more of them take time and tell little more."""


def measured_share(weight: float, settings: Settings) -> float:
    """The share of rows of this weight, in units, that is enough to measure on."""
    return min(1.0, ENOUGH_MEASURED / (weight * settings.unit)) if settings.auto else 1.0


ENOUGH_MATCHED = 1024
"""Training rows at most on which a forest that is grown again is matched with the measured one."""


def matched_share(train: Totals, settings: Settings) -> float:
    """The share of the training rows that is enough for that."""
    return min(1.0, ENOUGH_MATCHED / n_rows(train, settings))


def context_of(train: Totals, settings: Settings) -> Context:
    """What all forests of a training share."""
    return Context(
        prior=train.counts,
        costs=settings.costs,
        schema=settings.schema,
        classes=settings.classes,
        voting=settings.voting,
        unit=1.0 if settings.bootstrap else settings.unit,
    )


def draws_of(weight: int, settings: Settings) -> int:
    """Rows to draw for a tree from rows of this weight, 0 for no bootstrap."""
    return max(1, round(weight * settings.unit)) if settings.bootstrap else 0


def plan_of(alpha: float, settings: Settings) -> Plan:
    """How trees of one alpha grow."""
    impurity = compiled(settings.impurity, settings.n_classes, alpha)
    measure = Measure(
        impurity,
        settings.expected,
        is_admissible(impurity) and not settings.expected,
        is_symmetric(impurity),
        1.0 if settings.bootstrap else settings.unit,
    )
    costs = settings.costs
    return Plan(measure, int(settings.splitter), costs.cost, costs.least, settings.n_classes)


def alphas_for(alpha: Anything, chosen: Any) -> tuple[float, ...] | None:
    """The thresholds to try: None for the paper's and upwards, as only threshold-Pairs needs them."""
    own = getattr(chosen, "alpha", None)
    if isinstance(alpha, str):
        if alpha != "auto":
            raise InvalidParameter(f"alpha={alpha!r} is unknown; take a number, a list or 'auto'")
        pairs = isinstance(chosen, impurities.ThresholdPairs) and own is None
        return None if pairs else (float(own or 0.0),)
    given = tuple(alpha) if isinstance(alpha, Iterable) else (alpha,)
    if not given:
        raise InvalidParameter("alpha is an empty list; give at least one threshold")
    for value in given:
        if not isinstance(value, Real) or not 0 <= as_float(value) < math.inf:
            raise InvalidParameter(
                f"alpha is {value!r}; it must be a finite number, zero or more, a list, or 'auto'"
            )
    if impurities.takes_alpha(chosen):
        return tuple(sorted({float(value) for value in given}))
    if own is not None and given != (own,):
        raise InvalidParameter(f"alpha={alpha!r} contradicts impurity={chosen!r}; leave one of them out")
    if own is None and any(given):
        warn(
            f"alpha={alpha!r} has no effect with impurity={chosen!r}, which has no threshold",
            UnusualData,
        )
    return (float(own or 0.0),)
