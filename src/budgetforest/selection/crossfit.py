"""Few validation rows: training rows take their turn, so that forests are chosen by all rows.

Of a thousand forests measured on a hundred rows the luckiest seems best, and is not. So forests are also
grown on other parts of the rows, only to be measured on the rest; the error of a forest is then that of all
those grown alike, on all rows together. What it costs is still measured on the validation rows alone. Where
one grown alike costs much more or less, its threshold means something else: what it gets for as much counts.
The weights of a blend are the means of those found for the blends grown alike, each on its own rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.rows import Rows, Totals, together, totals_of
from budgetforest.runtime.arrays import Floats
from budgetforest.selection.blend import mean_weights
from budgetforest.selection.candidates import Candidate, Point
from budgetforest.selection.estimate import error_in, summed
from budgetforest.selection.settings import Settings, n_rows

ENOUGH = 300
"""Validation rows that need no help."""
MOST_TURNS = 4


class ForestKind(NamedTuple):
    """What forests of two trainings have in common that are grown and left alike."""

    pool: int
    """The first, second, ... of a training."""
    cuts: str
    careful: bool
    """Whether there was a rate."""
    pruned: bool
    which: int
    """Of all these of its pool, the first, second, ...: they differ in their rates."""
    part: int
    """0: all of its trees; 1, 2, ...: ever fewer of them."""


APART = 1.3
"""Forests that are alike cost at most so many times as much."""


class Other(NamedTuple):
    """A forest of another training."""

    exits: list[Point]
    """By cost."""

    def like(self, point: Point) -> Point | None:
        """Its exit at the same threshold, if that costs about as much; or the dearest that costs no more."""
        for own in self.exits:
            # the same threshold means something else to a forest that costs much more there
            near = own.cost <= APART * point.cost and point.cost <= APART * own.cost
            if own.threshold == point.threshold and near:
                return own
        # exits ascend by cost: from the end, the first within the cost of the point
        return next((own for own in reversed(self.exits) if own.cost <= point.cost), None)


def turns(train: Rows, validation: Rows, settings: Settings) -> Iterator[tuple[Rows, Rows]]:
    """Other parts into rows to train on and rows to judge by, until every training row was judged once.

    Classes are spread evenly, and equal rows stay together, so that a weight of 2 is the row twice.
    """
    k = settings.n_classes
    parts = n_turns(totals_of(train, k), totals_of(validation, k), settings)
    if not parts:
        return
    # equal rows have equal hashes, hence one turn
    _, first, alike = np.unique(train.hashes, return_index=True, return_inverse=True)
    turn = np.empty(len(first), np.int32)
    # class by class in turn, so that every part has its share of each
    turn[np.argsort(train.label[first], kind="stable")] = np.arange(len(first)) % parts
    for part in range(parts):
        judged = turn[alike] == part
        if judged.any():
            both: Iterable[Any] = zip(train.take(~judged), validation.take(slice(None)), strict=True)
            yield Rows._make(np.concatenate(parts) for parts in both), train.take(judged)


def n_turns(train: Totals, validation: Totals, settings: Settings) -> int:
    """How many turns there are; none if there are enough validation rows."""
    if n_rows(validation, settings) >= ENOUGH:
        return 0
    # parts of the training rows about as large as the validation rows
    ratio = float(train.counts.sum()) / float(validation.counts.sum())
    return min(MOST_TURNS, max(2, round(ratio)))


def judged_by(train: Totals, validation: Totals, settings: Settings) -> Totals:
    """The totals of the rows that errors come from."""
    return validation if n_rows(validation, settings) >= ENOUGH else together([train, validation])


class Record:
    """What forests of every kind did in other trainings."""

    def __init__(self) -> None:
        self.others: defaultdict[ForestKind, list[Other]] = defaultdict(list)
        self.weights: defaultdict[int, list[tuple[float, ...]]] = defaultdict(list)

    def add(self, pool: int, candidates: Sequence[Candidate]) -> None:
        """Note the forests of a pool of one training."""
        for kind, exits in kinds(pool, candidates):
            self.others[kind].append(Other(sorted(exits, key=lambda p: (p.cost, p.threshold))))
        self.weights[pool] += [blend.recipe.weights for blend in candidates if blend.recipe.weights]

    def weights_with(self, pool: int, own: Floats) -> Floats:
        """The weights of a pool's blend, those of the others included."""
        return mean_weights([own.tolist(), *self.weights[pool]])

    def corrected(self, pool: int, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with the errors of their kinds, those of the others included."""
        # a point is its own key: recipe, trees and threshold tell all exits apart
        found = {
            point: self._with_others(kind, point)
            for kind, exits in kinds(pool, candidates)
            for point in exits
        }
        return [
            candidate._replace(points=[found[point] for point in candidate.points])
            for candidate in candidates
        ]

    def _with_others(self, kind: ForestKind, point: Point) -> Point:
        alike = [like.folds for other in self.others[kind] if (like := other.like(point))]
        if not alike:
            return point
        folds = summed([point.folds, *alike])
        return point._replace(error=error_in(folds), folds=folds)


def kinds(pool: int, candidates: Sequence[Candidate]) -> Iterator[tuple[ForestKind, list[Point]]]:
    """Every candidate with its kind: all its exits."""
    before: Counter[tuple[str, bool, bool]] = Counter()
    for candidate in candidates:
        recipe = candidate.recipe
        same = (recipe.cuts, recipe.rate > 0, recipe.pruned > 0)
        # by rank, not by number: other trainings may have stopped boosting at another number of trees
        sizes = sorted({point.trees for point in candidate.points}, reverse=True)
        for part, size in enumerate(sizes):
            exits = [point for point in candidate.points if point.trees == size]
            yield ForestKind(pool, *same, which=before[same], part=part), exits
        # rates differ between trainings, their order does not
        before[same] += 1
