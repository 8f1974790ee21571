"""From rows to offers: hold out validation rows, grow a forest within the budget for every alpha.

The functional core of ``fit``: plain functions of checked input, for whoever trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Floats, Ids, Keys, Matrix
from budgetforest.binning import to_columns
from budgetforest.budget import Offer, Recipe, growing_alphas, within_budget
from budgetforest.charge import Meter
from budgetforest.costs import Costs
from budgetforest.draws import in_order
from budgetforest.forest import Answer, Context, Voting
from budgetforest.grow import Sample, stream_of_trees
from budgetforest.impurity import compiled, is_admissible, is_symmetric
from budgetforest.room import Plan
from budgetforest.split import Measure, Splitter
from budgetforest.table import Schema
from budgetforest.tree import Tree

MOST_WEIGHT = 2**30
"""Counts of a node must fit 32 bits."""


LABEL_PATIENCE = 4
"""Measured forests in a row that may pass the budget before growing stops, when rows pay for labels."""


class Rows(NamedTuple):
    """Labelled rows, checked."""

    X: Matrix
    """(n, m)"""
    label: Ids
    """(n) class codes."""
    weight: Counts
    """(n) whole numbers of units, all positive."""
    hashes: Keys
    """(n) what each row contains."""

    def take(self, index: Ids) -> Rows:
        """Some of the rows."""
        return Rows._make(part[index] for part in self)


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
    free_riders: bool
    """Whether trees that reuse what is paid, after the first quarter, use nothing else."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def chooses(self) -> bool:
        """Whether there are several alphas to choose from."""
        return self.alphas is None or len(self.alphas) > 1


def n_rows(rows: Rows, settings: Settings) -> int:
    """How many rows there are, a row of weight 2 counted twice."""
    return max(1, round(float(rows.weight.sum()) * settings.unit))


def in_units(weight: Floats) -> tuple[Counts, float]:
    """Weights as whole numbers of a unit: 1 if they are whole, else a power of two as fine as fits.

    Integers add up exactly in any order, which is what makes forests identical on any machine. Weights that
    are not whole are scaled to a mean of 1, since what they sum to means nothing.

    >>> units, unit = in_units(np.array([0.25, 0.75]))
    >>> (units * unit).tolist()
    [0.5, 1.5]
    """
    if (weight == np.round(weight)).all():
        return weight.astype(np.int64), 1.0
    unit = 2.0 ** np.ceil(np.log2(len(weight) / MOST_WEIGHT))
    return np.round(weight * (len(weight) / weight.sum()) / unit).astype(np.int64), unit


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[Ids, Ids]:
    """Training and validation rows: of every class about ``fraction`` is held out.

    Equal rows stay together, so nothing leaks, a weight of 2 is the row twice, and the order of the
    rows does not matter. A class of a single distinct row is for training.
    """
    order = in_order(rows.hashes, seed)
    held = np.zeros(len(order), bool)
    for label in np.unique(rows.label):
        members = order[rows.label[order] == label]
        _, first, group = np.unique(rows.hashes[members], return_index=True, return_inverse=True)
        weight = np.bincount(group, rows.weight[members])
        by_place = np.argsort(first)
        middle = np.cumsum(weight[by_place]) - weight[by_place] / 2
        chosen = np.zeros(len(weight), bool)
        chosen[by_place] = middle < fraction * weight.sum()
        chosen[by_place[-1]] = False
        held[members] = chosen[group]
    return order[~held[order]], order[held[order]]


Step = Callable[[], list[Offer]]
"""A part of a training."""
Keep = Callable[[str, Step], list[Offer]]
"""From the name of a step and the step to its offers: made now, or kept from before."""


def make(name: str, step: Step) -> list[Offer]:
    """Keep nothing."""
    return step()


def grow_offers(
    train: Rows,
    validation: Rows | None,
    settings: Settings,
    pool: Executor,
    ahead: int,
    tell: Callable[[str, int], None] = lambda what, trees: None,
    keep: Keep = make,
) -> Iterator[Offer]:
    """A forest within the budget for every alpha, dearest first. ``tell`` hears of every tree."""
    sample = sample_of(train, settings, pool)
    for alpha in settings.alphas or growing_alphas():
        plan = plan_of(alpha, settings)
        trees = stream_of_trees(sample, plan, settings.seed, pool, ahead)
        first = next(trees)
        splits = int((first.feature != LEAF).sum())
        if splits or settings.alphas:
            meter = _meter(validation, context_of(train, settings), settings, alpha, pool, tell)
            growth = partial(
                within_budget,
                chain([first], trees),
                meter,
                settings.budget,
                settings.max_trees,
                Recipe(alpha),
                patience=1 if settings.answer == Answer.PROBA else LABEL_PATIENCE,
            )
            yield from keep(f"alpha-{alpha!r}", lambda growth=growth: [growth()])  # type: ignore[misc]
        trees.close()
        if settings.alphas is None and splits <= 1:
            return  # no larger alpha gives a cheaper tree


def context_of(train: Rows, settings: Settings) -> Context:
    """What all forests of a training share."""
    return Context(
        prior=np.bincount(train.label, train.weight, settings.n_classes).astype(np.int64),
        costs=settings.costs,
        schema=settings.schema,
        classes=settings.classes,
        voting=settings.voting,
        unit=1.0 if settings.bootstrap else settings.unit,
    )


def sample_of(train: Rows, settings: Settings, pool: Executor) -> Sample:
    """Training rows in the form that trees are grown on."""
    columns = to_columns(
        train.X,
        train.weight,
        settings.schema,
        ranked=settings.splitter != Splitter.BINNED,
        max_bins=settings.max_bins,
        pool=pool,
    )
    draws = max(1, round(train.weight.sum() * settings.unit)) if settings.bootstrap else 0
    narrow = train.label.astype(np.min_scalar_type(train.label.max()))  # sorted by radix
    by_class = np.argsort(narrow, kind="stable").astype(np.int32)
    return Sample(columns, train.label, train.weight, in_order(train.hashes, 0), by_class, draws)


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


def _meter(
    validation: Rows | None,
    context: Context,
    settings: Settings,
    alpha: float,
    pool: Executor,
    tell: Callable[[str, int], None],
) -> Callable[[Tree], tuple[float, float] | None]:
    """Cost and error of a growing forest; without validation rows nobody knows."""
    trees = 0
    meter = None
    if validation is not None:
        weight = validation.weight.astype(np.float64)
        meter = Meter(
            validation.X,
            validation.label,
            weight,
            context,
            settings.answer,
            settings.max_trees,
            pool,
        )

    def add(tree: Tree) -> tuple[float, float] | None:
        nonlocal trees
        trees += 1
        tell(f"alpha {alpha:g}", trees)
        return meter.add(tree) if meter else (np.nan, np.nan)

    return add
