"""From rows to offers: hold out validation rows, grow a forest within the budget for every alpha.

The functional core of ``fit``: plain functions of checked input, for whoever trains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, MOST_WEIGHT, Counts, Flags, Floats, Ids, Keys
from budgetforest.binning import to_columns
from budgetforest.budget import Offer, Recipe, growing_alphas, within_budget
from budgetforest.charge import Meter
from budgetforest.costs import Costs
from budgetforest.draws import in_order, places
from budgetforest.forest import Answer, Context, Voting
from budgetforest.grow import Sample
from budgetforest.impurity import compiled, is_admissible, is_symmetric
from budgetforest.progress import Tell, quiet
from budgetforest.room import Plan
from budgetforest.split import Measure, Splitter
from budgetforest.table import Numbers, Picked, Schema
from budgetforest.tree import Tree

LABEL_PATIENCE = 4
"""Measured forests in a row that may pass the budget before growing stops, when rows pay for labels."""


class Rows(NamedTuple):
    """Labelled rows, checked."""

    X: Numbers
    """(n, m)"""
    label: Ids
    """(n) class codes."""
    weight: Ids
    """(n) whole numbers of units, all positive."""
    hashes: Keys
    """(n) what each row contains."""

    def take(self, index: Ids | Flags | slice) -> Rows:
        """A copy of some of the rows."""
        return Rows._make(part[index] for part in self)

    def pick(self, index: Ids) -> Rows:
        """Some of the rows, their numbers left where they are."""
        assert not isinstance(self.X, Picked)
        return Rows(Picked(self.X, index), self.label[index], self.weight[index], self.hashes[index])


class Totals(NamedTuple):
    """What is remembered of rows besides what grew on them; totals of blocks of rows add up."""

    rows: int
    counts: Counts
    """(k) weight of each class."""
    mark: int
    """Tells sets of rows apart, whatever their order."""


def totals_of(rows: Rows, n_classes: int) -> Totals:
    """The totals of some rows."""
    counts = np.bincount(rows.label, rows.weight, n_classes).astype(np.int64)
    marks = places(rows.hashes, 0) * (2 * rows.weight.astype(np.uint64) + np.uint64(1))
    return Totals(len(rows.label), counts, int(marks.sum()))


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
    max_features: float | None
    """Share of a pool's features that a node of a forest tries; None: fewer, the larger the pool."""
    free_riders: bool
    """Whether trees that reuse what is paid, after the first quarter, use nothing else."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def measures(self) -> bool:
        """Whether validation rows are needed: for a budget, or for a choice."""
        return self.auto or self.budget < math.inf or self.alphas is None or len(self.alphas) > 1


def together(blocks: Sequence[Totals]) -> Totals:
    """The totals of all blocks."""
    rows, counts, marks = zip(*blocks, strict=True)
    return Totals(sum(rows), np.sum(counts, axis=0), sum(marks) % 2**64)


def n_rows(totals: Totals, settings: Settings) -> int:
    """How many rows there are, a row of weight 2 counted twice."""
    return max(1, round(float(totals.counts.sum()) * settings.unit))


class Scale(NamedTuple):
    """How weights become whole numbers: multiplied, then rounded to a unit."""

    factor: float
    unit: float


def scale_for(whole: bool, n: int, total: float) -> Scale:
    """The scale of ``n`` weights that sum to ``total``: 1 if they are whole, else as fine as fits.

    Integers add up exactly in any order, which is what makes forests identical on any machine. Weights that
    are not whole are scaled to a mean of 1, since what they sum to means nothing.
    """
    return Scale(1.0, 1.0) if whole else Scale(n / total, 2.0 ** math.ceil(math.log2(n / MOST_WEIGHT)))


def in_units(weight: Floats, scale: Scale) -> Ids:
    """Weights as whole numbers, all positive.

    >>> scale = scale_for(False, 2, 1.0)
    >>> (in_units(np.array([0.25, 0.75]), scale) * scale.unit).tolist()
    [0.5, 1.5]
    """
    return np.maximum(np.round(weight * scale.factor / scale.unit).astype(np.int32), 1)


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
    return np.flatnonzero(~held).astype(np.int32), np.flatnonzero(held).astype(np.int32)


Step = Callable[[], list[Offer]]
"""A part of a training."""
Keep = Callable[[str, Step], list[Offer]]
"""From the name of a step and the step to its offers: made now, or kept from before."""


def make(name: str, step: Step) -> list[Offer]:
    """Keep nothing."""
    return step()


Trees = Callable[[Plan], Generator[Tree, None, None]]
"""From a plan to its trees 0, 1, 2, ... as many as may be asked for."""
Measured = Callable[[Tree], tuple[float, float] | None]
"""Adds a tree to a forest: its mean cost and error on validation rows, None where they are not measured."""


def grow_offers(
    trees_of: Trees,
    meter: Callable[[], Measured],
    settings: Settings,
    tell: Tell = quiet,
    keep: Keep = make,
) -> Iterator[Offer]:
    """A forest within the budget for every alpha, dearest first, each with a new meter.

    Who grows the trees and measures them is the caller's: threads here, or a cluster. ``tell`` hears of
    every tree.
    """
    for alpha in settings.alphas or growing_alphas():
        trees = trees_of(plan_of(alpha, settings))
        first = next(trees)
        splits = int((first.feature != LEAF).sum())
        if splits or settings.alphas:
            growth = partial(
                within_budget,
                chain([first], trees),
                _told(meter(), f"alpha {alpha:g}", settings.max_trees, tell),
                settings.budget,
                settings.max_trees,
                Recipe(alpha),
                patience=1 if settings.answer == Answer.PROBA else LABEL_PATIENCE,
            )
            yield from keep(f"alpha-{alpha!r}", lambda growth=growth: [growth()])  # type: ignore[misc]
        trees.close()
        if settings.alphas is None and splits <= 1:
            return  # no larger alpha gives a cheaper tree


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


def sample_of(train: Rows, settings: Settings, pool: Executor) -> Sample:
    """Training rows in the form that trees are grown on: sorted by class, else as they come."""
    order = in_order(train.hashes, 0)
    narrow = train.label.astype(np.min_scalar_type(train.label.max()))  # sorted by radix
    place = np.empty_like(order)
    place[np.argsort(narrow, kind="stable")] = np.arange(len(order), dtype=np.int32)
    columns = to_columns(
        train.X,
        place,
        train.weight,
        settings.schema,
        ranked=settings.splitter != Splitter.BINNED,
        max_bins=settings.max_bins,
        pool=pool,
    )
    total = int(train.weight.sum())
    weight, upto = np.broadcast_to(np.int32(1), len(order)), np.empty(0, np.int64)
    if total > len(order):
        weight, upto = np.empty(len(order), np.int32), np.cumsum(train.weight[order], dtype=np.int64)
        weight[place] = train.weight
    return Sample(
        columns=columns,
        ends=np.cumsum(np.bincount(train.label, minlength=settings.n_classes)),
        weight=weight,
        order=place[order],
        upto=upto,
        draws=draws_of(total, settings),
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


def meter_of(
    validation: Rows | None, context: Context, settings: Settings, pool: Executor | None
) -> Measured:
    """Cost and error of a growing forest; without validation rows nobody knows."""
    if validation is None:
        return lambda tree: (math.nan, math.nan)
    total = math.fsum(validation.weight)
    share = validation.weight.astype(np.float64) / total
    return Meter(
        validation.X, validation.label, share, context, settings.answer, settings.max_trees, pool
    ).add


def _told(measure: Measured, what: str, most: int, tell: Tell) -> Measured:
    """The same, and ``tell`` hears of every tree."""
    trees = count(1)

    def add(tree: Tree) -> tuple[float, float] | None:
        tell(what, next(trees), most)
        return measure(tree)

    return add
