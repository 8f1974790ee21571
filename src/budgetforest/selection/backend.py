"""Where trees are grown and measured: on rows at hand, or spread over the workers of a cluster.

``paper`` and ``auto`` say which trees there are. A *backend* has the rows; it is asked for trees, and for
sums over validation rows, which are exact: it never matters who has which rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from typing import Protocol, TypeAlias

import numpy as np

from budgetforest.data.binning import to_columns
from budgetforest.data.holdout import some_of
from budgetforest.data.rows import Rows, Totals, joined, totals_of
from budgetforest.growing.boosting import Boost, boosted_trees
from budgetforest.growing.entropy_trees import Growth, grow_one
from budgetforest.growing.greedytree import Sample, stream_of_trees
from budgetforest.growing.split import Splitter
from budgetforest.growing.workspace import Plan
from budgetforest.runtime.arrays import Counts
from budgetforest.runtime.random import in_order
from budgetforest.runtime.threads import while_awaited
from budgetforest.selection.blend import Member, MemberScores, scores_of
from budgetforest.selection.candidates import Recipe
from budgetforest.selection.crossfit import turns
from budgetforest.selection.evaluation import Measured, Meter, Outcome, confusion_of, error_of, outcomes_of
from budgetforest.selection.settings import Settings, draws_of, matched_share
from budgetforest.trees.forest import Context, join
from budgetforest.trees.tree import Tree

Boosted: TypeAlias = tuple[Recipe, list[Tree]]
"""Boosted trees, and how they were grown."""
BoostingPolicy: TypeAlias = Callable[
    [Callable[[Boost], Iterator[Tree]], Callable[[list[Tree], Context], float]], Boosted
]
"""Decides how many rounds: takes a source of endless trees, and their error on validation rows."""
TreeMeter: TypeAlias = Callable[[Tree], Measured | None]
"""Adds a tree to a forest: its mean cost and error on validation rows, None where they are not measured."""


class Backend(Protocol):
    """Training and validation rows, and who grows trees on them."""

    train: Totals

    @property
    def validation(self) -> Totals | None:
        """Of the rows that measure; None if nothing is measured."""
        ...

    def greedy_trees(self, plan: Plan) -> Generator[Tree, None, None]:
        """Trees of GREEDYTREE 0, 1, 2, ..., as many as may be asked for."""
        ...

    def meter(self, context: Context) -> TreeMeter:
        """Cost and error of a forest that grows tree by tree."""
        ...

    def turns(self) -> Iterator[Backend]:
        """Other parts of the rows, where validation rows are few (``crossfit``)."""
        ...

    def whole(self) -> Backend:
        """Training and validation rows together to grow trees on, measured on some of the former."""
        ...

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """So many trees of largest entropy drop, which do not depend on each other, in order."""
        ...

    def boosted(self, policy: BoostingPolicy) -> Callable[[], Boosted]:
        """Begin to boost trees as a policy says; a call waits for them."""
        ...

    def member_scores(self, members: Sequence[Member]) -> list[MemberScores]:
        """What the members of a blend say of all validation rows, in blocks."""
        ...

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """Of the first so many trees, for each of ``sizes``, on all validation rows."""
        ...

    def confusion(self, trees: list[Tree], context: Context, fold: int) -> Counts:
        """(k, k) the labels of the validation rows of a fold, by true class."""
        ...


class LocalBackend:
    """Rows at hand: trees are grown by ``growers``, ``ahead`` of them at a time, all else by ``pool``."""

    def __init__(
        self,
        train: Rows,
        validation: Rows | None,
        settings: Settings,
        pool: Executor,
        growers: Executor,
        ahead: int,
    ) -> None:
        self.train = totals_of(train, settings.n_classes)
        self.validation = None if validation is None else totals_of(validation, settings.n_classes)
        self.judged, self.settings = validation, settings
        self.pool, self.growers, self.ahead = pool, growers, ahead
        self.sample = sample_of(train, settings.for_growing, pool)
        # of the paper's method codes are enough, so that the rows need not stay in memory
        self.rows = train if settings.auto else None

    def greedy_trees(self, plan: Plan) -> Generator[Tree, None, None]:
        """Trees of Algorithm 1."""
        settings = self.settings
        return stream_of_trees(self.sample, plan, settings.seed, self.growers, self.ahead, settings.max_trees)

    def meter(self, context: Context) -> TreeMeter:
        """Measured by all threads."""
        return meter_of(self.judged, context, self.settings, self.pool)

    def turns(self) -> Iterator[Backend]:
        """Other parts of the rows."""
        assert self.rows is not None
        assert self.judged is not None
        for rest, judged in turns(self.rows, self.judged, self.settings):
            yield LocalBackend(rest, judged, self.settings, self.pool, self.growers, self.ahead)

    def whole(self) -> Backend:
        """All rows."""
        assert self.rows is not None
        assert self.judged is not None
        rows = joined(self.rows, self.judged)
        some = some_of(self.rows, matched_share(self.train, self.settings))
        return LocalBackend(rows, some, self.settings, self.pool, self.growers, self.ahead)

    def independent(self, growth: Growth, number: int, bootstrap: bool) -> Iterator[Tree]:
        """Trees of any order, delivered in theirs."""
        seed = self.settings.seed
        futures = [
            self.growers.submit(grow_one, self.sample, growth, seed, at, bootstrap) for at in range(number)
        ]
        for future in futures:
            yield future.result()

    def boosted(self, policy: BoostingPolicy) -> Callable[[], Boosted]:
        """Trees that depend on those before are the work of one thread."""
        assert self.judged is not None
        return self.growers.submit(boost_here, policy, self.sample, self.judged, self.settings).result

    def member_scores(self, members: Sequence[Member]) -> list[MemberScores]:
        """One block."""
        assert self.judged is not None
        return [scores_of(self.judged, members, self.pool)]

    def outcomes(
        self, trees: list[Tree], context: Context, sizes: Sequence[int], ends: Sequence[float]
    ) -> list[Outcome]:
        """On all validation rows."""
        assert self.judged is not None
        return outcomes_of(self.judged, trees, context, sizes, ends, self.settings.answer, self.pool)

    def confusion(self, trees: list[Tree], context: Context, fold: int) -> Counts:
        """By all threads."""
        assert self.judged is not None
        return confusion_of(self.judged, trees, context, fold, self.pool)


def sample_of(train: Rows, settings: Settings, pool: Executor) -> Sample:
    """Training rows in the form that trees are grown on: sorted by class, else as they come."""
    order = in_order(train.hashes, 0)
    narrow = train.label.astype(np.min_scalar_type(train.label.max()))  # sorted by radix
    place = np.empty_like(order)
    # rows are numbered by class: counting the classes of a node needs no labels
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
    # a draw by weight: where the running sum of weights passes a random number
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


def meter_of(
    validation: Rows | None, context: Context, settings: Settings, pool: Executor | None
) -> TreeMeter:
    """Cost and error of a growing forest; without validation rows nobody knows."""
    if validation is None:
        return lambda tree: Measured(math.nan, math.nan, ())
    weight = int(validation.weight.sum())
    return Meter(validation, weight, context, settings.answer, settings.max_trees, pool).add


def boost_here(policy: BoostingPolicy, sample: Sample, validation: Rows, settings: Settings) -> Boosted:
    """Boosted trees on rows at hand."""

    def trees(boost: Boost) -> Iterator[Tree]:
        return while_awaited(boosted_trees(sample, boost, settings.costs, settings.seed))

    def error(grown: list[Tree], context: Context) -> float:
        weight = int(validation.weight.sum())
        return float(error_of(validation, weight, join(grown, context), settings.answer))

    return policy(trees, error)
