"""The ground of ``method="auto"`` with rows spread over workers: trees by levels, sums over blocks.

Of rows only what pruning looks at comes to the client: about a thousand, whatever their number. Few rows come
there as a whole, and forests are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial

import numpy as np
from distributed import Future

from budgetforest.arrays import Flags
from budgetforest.boost import Boost
from budgetforest.crossfit import n_turns
from budgetforest.dask.cluster import Cluster
from budgetforest.dask.coding import coded
from budgetforest.dask.forests import boosted_trees, reusing_trees, saving_trees
from budgetforest.dask.levels import are_few
from budgetforest.dask.places import turns_of
from budgetforest.dask.rows import part_of, rest_of, totals
from budgetforest.dask.trees import Growers
from budgetforest.forest import Answer, Context, join
from budgetforest.ground import Boosted, Ground, OwnGround, boost_pool, first_rows, growing
from budgetforest.intake import constants
from budgetforest.outcome import Outcome, added, error_of, outcomes_of
from budgetforest.saving import Growth
from budgetforest.train import Rows, Settings
from budgetforest.tree import Tree


def ground_on(
    cluster: Cluster, train: list[Future], validation: list[Future], settings: Settings, pool: Executor
) -> tuple[Ground, Flags]:
    """Where forests grow on rows in blocks, and which features are constant.

    One worker would have all of few rows for every tree, so they come here once, and forests are tasks.
    """
    if are_few(totals(cluster, train + validation, settings.n_classes).rows):
        rows, judged = (all_of(cluster.values(blocks)) for blocks in (train, validation))
        return OwnGround(rows, judged, settings, pool, Growers(cluster)), constants(rows)
    ground = SpreadGround(cluster, train, validation, settings)
    return ground, ground.constant


class SpreadGround:
    """Rows in blocks on workers."""

    def __init__(
        self, cluster: Cluster, train: list[Future], validation: list[Future], settings: Settings
    ) -> None:
        self.train, self.validation = (
            totals(cluster, blocks, settings.n_classes) for blocks in (train, validation)
        )
        self.cluster, self.blocks, self.judged, self.settings = cluster, train, validation, settings
        self.rows, self.constant = coded(cluster, train, self.train, growing(settings))

    def turns(self) -> Iterator[Ground]:
        """Other parts of the rows."""
        cluster, parts = self.cluster, n_turns(self.train, self.validation, self.settings)
        turn = turns_of(cluster, self.blocks, self.train, parts) if parts else []
        for part in range(parts):
            rest = cluster.each(rest_of, self.blocks, turn, part)
            judged = cluster.each(part_of, self.blocks, turn, part)
            if totals(cluster, judged, self.settings.n_classes).rows:
                yield SpreadGround(cluster, rest + self.judged, judged, self.settings)

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """Several trees at a time."""
        costs, seed = self.settings.costs, self.settings.seed
        draws = self.rows.draws if bootstrap else 0
        return saving_trees(self.cluster, self.rows, growth, costs, draws, seed, number)

    def reusing(self, growth: Growth, number: int, payers: float) -> Callable[[], list[Tree]]:
        """One tree after the other, when they are asked for."""
        given = self.cluster, self.rows, growth, self.settings.costs, self.settings.seed, number, payers
        return lambda: list(reusing_trees(*given)) if number else []

    def boosted(self, steps: Boost, context: Context, rounds: int) -> Callable[[], Boosted]:
        """The same."""

        def trees(boost: Boost) -> Iterator[Tree]:
            return boosted_trees(self.cluster, self.rows, boost, self.settings.costs, self.settings.seed)

        return partial(boost_pool, trees, self._error, steps, context, rounds, self.settings.unit)

    def _error(self, trees: list[Tree], context: Context) -> float:
        weight, there = int(self.validation.counts.sum()), self._held(trees)
        given = weight, there, context, self.settings.answer
        return float(sum(self.cluster.values(self.cluster.each(error_in, self.judged, *given))))

    def some_rows(self, most: int) -> Rows:
        """The first of each block, and of all these the first."""
        few = partial(first_of, self.settings.unit, most)
        first = self.cluster.each(few, [[block] for block in self.blocks])
        found: Rows = self.cluster.values(self.cluster.total(few, first))
        return found

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """Sums over blocks."""
        weight, there = int(self.validation.counts.sum()), self._held(trees)
        given = weight, there, context, tuple(sizes), tuple(ends), self.settings.answer
        found = self.cluster.values(self.cluster.each(outcomes_of, self.judged, *given))
        return [added(blocks) for blocks in zip(*found, strict=True)]

    def _held(self, trees: list[Tree]) -> Future:
        """Trees on the cluster, each sent by itself."""
        return self.cluster.hold([self.cluster.hold(tree) for tree in trees])


def error_in(rows: Rows, weight: int, trees: list[Tree], context: Context, answer: Answer) -> Fraction:
    """What a block adds to the error of some trees."""
    return error_of(rows, weight, join(trees, context), answer)


def first_of(unit: float, most: int, blocks: list[Rows]) -> Rows:
    """The first rows of several blocks (``ground.first_rows``)."""
    rows = all_of(blocks)
    return rows.take(first_rows(rows, unit, most))


def all_of(blocks: list[Rows]) -> Rows:
    """The rows of several blocks."""
    return Rows._make(np.concatenate(columns) for columns in zip(*blocks, strict=True))
