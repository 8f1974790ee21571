"""Few validation rows: training rows take their turn, so that forests are chosen by all rows.

Of a thousand forests measured on a hundred rows the luckiest seems best, and is not. So forests are also
grown on other parts of the rows, only to be measured on the rest; the error of a forest is then that of all
those grown alike, on all rows together. What it costs is still measured on the validation rows alone. Where
those grown alike cost much more or less, its threshold means something else: its own error stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from budgetforest.budget import Offer, Point
from budgetforest.train import Rows, Settings, Totals, n_rows, together, totals_of

ENOUGH = 300
"""Validation rows that need no help."""
MOST_TURNS = 4


class Kind(NamedTuple):
    """What forests of two trainings have in common that are grown and left alike."""

    features: int
    cuts: str
    careful: bool
    """Whether there was a rate."""
    pruned: bool
    which: int
    """Of all these of its pool, the first, second, ...: they differ in their rates."""
    part: int
    """0: all of its trees; 1, 2, ...: ever fewer of them."""
    threshold: float


APART = 2.0
"""Forests that are alike cost at most so many times as much."""


class Missed(NamedTuple):
    """The sum of what rows were wrong, labels by 1 and scores in part, what they paid, of how many."""

    wrong: float = 0
    paid: float = 0
    rows: int = 0

    def alike(self, point: Point) -> bool:
        """Whether a forest costs about as much."""
        mean = self.paid / self.rows
        return mean <= APART * point.cost and point.cost <= APART * mean


def turns(train: Rows, validation: Rows, settings: Settings) -> Iterator[tuple[Rows, Rows]]:
    """Other parts into rows to train on and rows to judge by, until every training row was judged once.

    Classes are spread evenly, and equal rows stay together, so that a weight of 2 is the row twice.
    """
    k = settings.n_classes
    parts = n_turns(totals_of(train, k), totals_of(validation, k), settings)
    if not parts:
        return
    _, first, alike = np.unique(train.hashes, return_index=True, return_inverse=True)
    turn = np.empty(len(first), np.int32)
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
    ratio = float(train.counts.sum()) / float(validation.counts.sum())
    return min(MOST_TURNS, max(2, round(ratio)))


def judged_by(train: Totals, validation: Totals, settings: Settings) -> Totals:
    """The totals of the rows that errors come from."""
    return validation if n_rows(validation, settings) >= ENOUGH else together([train, validation])


class Record:
    """How often forests of every kind have erred so far."""

    def __init__(self) -> None:
        self.missed: dict[Kind, Missed] = {}

    def add(self, offers: Sequence[Offer], judged: Totals) -> None:
        """Note the errors of one training."""
        for kind, point in kinds(offers):
            self.missed[kind] = self._sum(kind, point, judged)

    def corrected(self, offers: Sequence[Offer], judged: Totals) -> list[Offer]:
        """The offers with the errors of their kinds, those of the others included."""
        found = {point: self._sum(kind, point, judged) for kind, point in kinds(offers)}
        return [
            offer._replace(
                points=[
                    p._replace(error=found[p].wrong / found[p].rows) if found[p].alike(p) else p
                    for p in offer.points
                ]
            )
            for offer in offers
        ]

    def _sum(self, kind: Kind, point: Point, judged: Totals) -> Missed:
        rows = int(judged.counts.sum())
        before = self.missed.get(kind, Missed())
        wrong, paid = round(point.error * rows, 9), point.cost * rows
        return Missed(before.wrong + wrong, before.paid + paid, before.rows + rows)


def kinds(offers: Sequence[Offer]) -> Iterator[tuple[Kind, Point]]:
    """Every forest on offer with its kind."""
    before: Counter[tuple[int, str, bool, bool]] = Counter()
    for offer in offers:
        recipe = offer.recipe
        same = (recipe.features, recipe.cuts, recipe.rate > 0, recipe.pruned > 0)
        alike = Kind(*same, which=before[same], part=0, threshold=0.0)
        before[same] += 1
        sizes = sorted({point.trees for point in offer.points}, reverse=True)
        for point in offer.points:
            yield alike._replace(part=sizes.index(point.trees), threshold=point.threshold), point
