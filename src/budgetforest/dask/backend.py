"""The backend whose rows are spread over workers: trees by levels, sums over blocks.

Of rows only what pruning looks at comes to the client: about a thousand, whatever their number. Few rows come
there as a whole, and forests are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial

import numpy as np
from distributed import Future

from budgetforest.dask.binning import coded
from budgetforest.dask.cluster import Cluster
from budgetforest.dask.evaluation import meter_on
from budgetforest.dask.forests import boosted_trees, entropy_trees, spread_trees
from budgetforest.dask.global_order import turns_of
from budgetforest.dask.growers import Growers
from budgetforest.dask.level_growth import are_few
from budgetforest.dask.validation import part_of, rest_of, totals
from budgetforest.data.holdout import some_of
from budgetforest.data.rows import Rows
from budgetforest.data.validation import constants
from budgetforest.growing.boosting import Boost
from budgetforest.growing.entropy_trees import Growth
from budgetforest.growing.workspace import Plan
from budgetforest.runtime.arrays import Counts, Flags
from budgetforest.selection.backend import (
    Backend,
    Boosted,
    BoostingPolicy,
    LocalBackend,
    TreeMeter,
)
from budgetforest.selection.blend import Member, MemberScores, scores_of
from budgetforest.selection.crossfit import n_turns
from budgetforest.selection.evaluation import Outcome, added, confusion_of, error_of, outcomes_of
from budgetforest.selection.settings import Settings, matched_share
from budgetforest.trees.forest import Answer, Context, join
from budgetforest.trees.tree import Tree


def backend_on(
    cluster: Cluster, train: list[Future], judged: list[Future], settings: Settings, pool: Executor
) -> tuple[Backend, Flags]:
    """A backend on rows in blocks, and which features are constant.

    For ``method="auto"`` one worker would have all of few rows for every tree, so they come here once, and
    forests are tasks.
    """
    if settings.auto and are_few(totals(cluster, train + judged, settings.n_classes).rows):
        rows, others = (all_of(cluster.values(blocks)) for blocks in (train, judged))
        ahead = 2 * cluster.n_threads
        return LocalBackend(rows, others, settings, pool, Growers(cluster), ahead), constants(rows)
    backend = DaskBackend(cluster, train, judged, settings)
    return backend, backend.constant


class DaskBackend:
    """Rows in blocks on workers; of the paper's method only their codes."""

    def __init__(
        self, cluster: Cluster, train: list[Future], judged: list[Future], settings: Settings
    ) -> None:
        k = settings.n_classes
        self.train = totals(cluster, train, k)
        self.validation = totals(cluster, judged, k) if judged else None
        self.cluster, self.judged, self.settings = cluster, judged, settings
        self.rows, self.constant = coded(cluster, train, self.train, settings.for_growing)
        self.blocks = train if settings.auto else []

    @property
    def _weight(self) -> int:
        """Of all validation rows."""
        assert self.validation is not None
        return int(self.validation.counts.sum())

    def greedy_trees(self, plan: Plan) -> Generator[Tree, None, None]:
        """Trees of Algorithm 1."""
        return spread_trees(self.cluster, self.rows, self.settings.seed, self.settings.max_trees, plan)

    def meter(self, context: Context) -> TreeMeter:
        """Sums over blocks."""
        return meter_on(self.cluster, self.judged, self.validation, context, self.settings)

    def turns(self) -> Iterator[Backend]:
        """Other parts of the rows."""
        assert self.validation is not None
        cluster, parts = self.cluster, n_turns(self.train, self.validation, self.settings)
        turn = turns_of(cluster, self.blocks, self.train, parts) if parts else []
        for part in range(parts):
            rest = cluster.each(rest_of, self.blocks, turn, part)
            judged = cluster.each(part_of, self.blocks, turn, part)
            if totals(cluster, judged, self.settings.n_classes).rows:
                yield DaskBackend(cluster, rest + self.judged, judged, self.settings)

    def whole(self) -> Backend:
        """All rows."""
        some = self.cluster.each(some_of, self.blocks, matched_share(self.train, self.settings))
        return DaskBackend(self.cluster, self.blocks + self.judged, some, self.settings)

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """Several trees at a time."""
        draws = self.rows.draws if bootstrap else 0
        return entropy_trees(self.cluster, self.rows, growth, draws, self.settings.seed, number)

    def boosted(self, policy: BoostingPolicy) -> Callable[[], Boosted]:
        """One tree after the other, when they are asked for."""

        def trees(boost: Boost) -> Iterator[Tree]:
            return boosted_trees(self.cluster, self.rows, boost, self.settings.costs, self.settings.seed)

        return partial(policy, trees, self._error)

    def _error(self, trees: list[Tree], context: Context) -> float:
        weight, there = self._weight, self._held(trees)
        given = weight, there, context, self.settings.answer
        return float(sum(self.cluster.values(self.cluster.each(error_in, self.judged, *given))))

    def member_scores(self, members: Sequence[Member]) -> list[MemberScores]:
        """A block of scores for every block of rows."""
        trees = self.cluster.hold([self._held(member.trees) for member in members])
        contexts = tuple(member.context for member in members)  # a list would have an entry for each block
        found: list[MemberScores] = self.cluster.values(
            self.cluster.each(scores_in, self.judged, trees, contexts)
        )
        return found

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """Sums over blocks."""
        given = self._held(trees), context, tuple(sizes), tuple(ends), self.settings.answer
        found = self.cluster.values(self.cluster.each(outcomes_of, self.judged, *given))
        return [added(blocks) for blocks in zip(*found, strict=True)]

    def confusion(self, trees: list[Tree], context: Context, fold: int) -> Counts:
        """Sums over blocks."""
        given = self._held(trees), context, fold
        found: list[Counts] = self.cluster.values(self.cluster.each(confusion_of, self.judged, *given))
        total: Counts = np.sum(found, axis=0)
        return total

    def _held(self, trees: list[Tree]) -> Future:
        """Trees on the cluster, each sent by itself."""
        return self.cluster.hold([self.cluster.hold(tree) for tree in trees])


def error_in(rows: Rows, weight: int, trees: list[Tree], context: Context, answer: Answer) -> Fraction:
    """What a block adds to the error of some trees."""
    return error_of(rows, weight, join(trees, context), answer)


def scores_in(rows: Rows, trees: list[list[Tree]], contexts: tuple[Context, ...]) -> MemberScores:
    """What the members of a blend say of a block."""
    return scores_of(rows, list(map(Member, trees, contexts)))


def all_of(blocks: list[Rows]) -> Rows:
    """The rows of several blocks."""
    return Rows._make(np.concatenate(columns) for columns in zip(*blocks, strict=True))
