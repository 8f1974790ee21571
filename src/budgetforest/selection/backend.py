"""Where the forests of ``method="auto"`` grow and are measured: on rows at hand, or spread over workers.

``frontier`` says which forests there are. A *ground* has the rows; it is asked for trees, and for sums over
validation rows, which are exact: it never matters who has which rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Protocol

import numpy as np

from budgetforest.arrays import Ids
from budgetforest.boost import Boost, boosted_trees
from budgetforest.budget import Point, Recipe
from budgetforest.costs import Costs
from budgetforest.crossfit import turns
from budgetforest.forest import Context, join
from budgetforest.grow import Sample
from budgetforest.outcome import Outcome, error_of, outcomes_of
from budgetforest.saving import Growth, Owned, grow_one, grow_saving
from budgetforest.split import Splitter
from budgetforest.threads import while_awaited
from budgetforest.train import Rows, Settings, Totals, sample_of, totals_of
from budgetforest.trained import context_for
from budgetforest.tree import Tree

TIMES = 5
"""Boosted trees grow so many at a time, and so often at most."""

Boosted = tuple[Recipe, list[Tree]]
"""Boosted trees, and how they were grown."""


class Ground(Protocol):
    """Training and validation rows, and who grows trees on them."""

    train: Totals
    validation: Totals

    def turns(self) -> Iterator[Ground]:
        """Other parts of the rows, where validation rows are few (``crossfit``)."""
        ...

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """So many trees that do not depend on each other, in order."""
        ...

    def reusing(self, growth: Growth, number: int, payers: float) -> Callable[[], list[Tree]]:
        """Begin to grow so many trees that reuse what is paid (``grow_saving``); a call waits for them."""
        ...

    def boosted(self, steps: Boost, context: Context, rounds: int) -> Callable[[], Boosted]:
        """Begin to boost trees (``boost_pool``); a call waits for them."""
        ...

    def some_rows(self, most: int) -> Rows:
        """Training rows of about this weight, the same ones wherever they are."""
        ...

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """Of the first so many trees, for each of ``sizes``, on all validation rows."""
        ...


class OwnGround:
    """Rows at hand: trees are grown by ``growers``, all else is done by the threads of ``pool``."""

    def __init__(
        self, train: Rows, validation: Rows, settings: Settings, pool: Executor, growers: Executor
    ) -> None:
        self.train, self.validation = (totals_of(rows, settings.n_classes) for rows in (train, validation))
        self.rows, self.judged, self.settings, self.pool, self.growers = (
            train,
            validation,
            settings,
            pool,
            growers,
        )
        self.sample = sample_of(train, growing(settings), pool)

    def turns(self) -> Iterator[Ground]:
        """Other parts of the rows."""
        for rest, judged in turns(self.rows, self.judged, self.settings):
            yield OwnGround(rest, judged, self.settings, self.pool, self.growers)

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """Trees of any order, delivered in theirs."""
        costs, seed = self.settings.costs, self.settings.seed
        nothing = Owned(np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.uint8))
        futures = [
            self.growers.submit(grow_one, self.sample, growth, costs, nothing, seed, at, bootstrap)
            for at in range(number)
        ]
        for future in futures:
            yield future.result()

    def reusing(self, growth: Growth, number: int, payers: float) -> Callable[[], list[Tree]]:
        """Trees that depend on those before are the work of one thread."""
        costs, seed = self.settings.costs, self.settings.seed
        return self.growers.submit(reuse_here, number, self.sample, growth, costs, seed, payers).result

    def boosted(self, steps: Boost, context: Context, rounds: int) -> Callable[[], Boosted]:
        """So are boosted ones."""
        given = self.sample, self.judged, steps, context, rounds, self.settings
        return self.growers.submit(boost_here, *given).result

    def some_rows(self, most: int) -> Rows:
        """Those that come first by their contents."""
        return self.rows.take(first_rows(self.rows, self.settings.unit, most))

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """On all validation rows."""
        weight, answer = int(self.validation.counts.sum()), self.settings.answer
        return outcomes_of(self.judged, weight, trees, context, sizes, ends, answer, self.pool)


def growing(settings: Settings) -> Settings:
    """How rows are prepared for growth by saving: bins, and as many draws as rows."""
    return settings._replace(bootstrap=True, splitter=Splitter.BINNED)


def reuse_here(
    number: int, sample: Sample, growth: Growth, costs: Costs, seed: int, payers: float
) -> list[Tree]:
    """So many trees, each grown in view of those before."""
    return list(islice(while_awaited(grow_saving(sample, growth, costs, seed, True, payers)), number))


def boost_here(
    sample: Sample, validation: Rows, steps: Boost, context: Context, rounds: int, settings: Settings
) -> Boosted:
    """Boosted trees on rows at hand."""

    def trees(boost: Boost) -> Iterator[Tree]:
        return while_awaited(boosted_trees(sample, boost, settings.costs, settings.seed))

    def error(grown: list[Tree], context: Context) -> float:
        weight = int(validation.weight.sum())
        return float(error_of(validation, weight, join(grown, context), settings.answer))

    return boost_pool(trees, error, steps, context, rounds, settings.unit)


def boost_pool(
    trees: Callable[[Boost], Iterator[Tree]],
    error: Callable[[list[Tree], Context], float],
    steps: Boost,
    context: Context,
    rounds: int,
    unit: float,
) -> Boosted:
    """Boosted trees at a rate; where no split is worth its price, without.

    ``trees`` boosts without end; ``error`` is how far from right trees are on validation rows.
    """
    for rate in dict.fromkeys((steps.rate, 0.0)):
        recipe = Recipe(features=int(steps.pool.sum()), cuts="boosted", rate=rate)
        scoring = context_for(Point(recipe, rounds, 0.0, 0.0), context, unit)
        grown = while_better(trees(steps._replace(rate=rate)), rounds, scoring, error)
        if any(len(tree.feature) > 1 for tree in grown):
            break
    return recipe, grown


def while_better(
    trees: Iterator[Tree], rounds: int, context: Context, error: Callable[[list[Tree], Context], float]
) -> list[Tree]:
    """Boosted trees, so many at a time, as long as they lower the error on validation rows."""
    kept: list[Tree] = []
    least = math.inf
    for _ in range(TIMES):
        grown = [*kept, *islice(trees, rounds)]
        found = error(grown, context)
        if found >= least:
            break
        kept, least = grown, found
    return kept


def first_rows(rows: Rows, unit: float, most: int) -> Ids:
    """Rows of about this weight, those of the least hashes; equal rows stay together.

    So a weight of 2 is the row twice, and the rows of blocks are found among the first of each.
    """
    order = np.lexsort((rows.weight, rows.hashes)).astype(np.int32)
    upto = np.cumsum(rows.weight[order]) * unit
    last = rows.hashes[order[np.searchsorted(upto, most).clip(max=len(order) - 1)]] if len(order) else 0
    chosen: Ids = order[rows.hashes[order] <= last]
    return chosen
