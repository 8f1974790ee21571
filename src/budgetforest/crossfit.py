"""Few validation rows: training rows take their turn, so that forests are chosen by all rows.

Of a thousand forests measured on a hundred rows the luckiest seems best, and is not. So forests are also
grown on other parts of the rows, only to be measured on the rest; the error of a forest is then that of all
those grown alike, on all rows together. What it costs is still measured on the validation rows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
    pruned: int
    """Which of the rates of pruning; 0: none."""
    whole: bool
    """All of its trees, not a part of them."""
    threshold: float


class Missed(NamedTuple):
    """Rows that were labelled wrongly, of how many."""

    wrong: int = 0
    rows: int = 0


def turns(train: Rows, validation: Rows, settings: Settings) -> Iterator[tuple[Rows, Rows]]:
    """Other parts into rows to train on and rows to judge by, until every training row was judged once.

    Classes are spread evenly, and equal rows stay together, so that a weight of 2 is the row twice.
    """
    if n_rows(totals_of(validation, settings.n_classes), settings) >= ENOUGH:
        return
    ratio = float(train.weight.sum()) / float(validation.weight.sum())
    parts = min(MOST_TURNS, max(2, round(ratio)))
    _, first, alike = np.unique(train.hashes, return_index=True, return_inverse=True)
    turn = np.empty(len(first), np.int32)
    turn[np.argsort(train.label[first], kind="stable")] = np.arange(len(first)) % parts
    for part in range(parts):
        judged = turn[alike] == part
        if judged.any():
            whole = validation._replace(X=validation.X[:])
            rest = (np.concatenate(parts) for parts in zip(train.take(~judged), whole, strict=True))
            yield Rows._make(rest), train.take(judged)


def judged_by(train: Totals, validation: Totals, settings: Settings) -> Totals:
    """The totals of the rows that errors come from."""
    return validation if n_rows(validation, settings) >= ENOUGH else together([train, validation])


class Record:
    """How often forests of every kind have erred so far."""

    def __init__(self) -> None:
        self.missed: dict[Kind, Missed] = {}

    def add(self, offers: Sequence[Offer], judged: Rows) -> None:
        """Note the errors of one training."""
        for kind, point in kinds(offers):
            self.missed[kind] = self._sum(kind, point, judged)

    def corrected(self, offers: Sequence[Offer], judged: Rows) -> list[Offer]:
        """The offers with the errors of their kinds, those of the others included."""
        found = {point: self._sum(kind, point, judged) for kind, point in kinds(offers)}
        return [
            offer._replace(points=[p._replace(error=found[p].wrong / found[p].rows) for p in offer.points])
            for offer in offers
        ]

    def _sum(self, kind: Kind, point: Point, judged: Rows) -> Missed:
        rows = int(judged.weight.sum())
        before = self.missed.get(kind, Missed())
        return Missed(before.wrong + round(point.error * rows), before.rows + rows)


def kinds(offers: Sequence[Offer]) -> Iterator[tuple[Kind, Point]]:
    """Every forest on offer with its kind."""
    pruned: Counter[int] = Counter()
    for offer in offers:
        recipe = offer.recipe
        pruned[recipe.features] += recipe.pruned > 0
        alike = Kind(
            recipe.features,
            recipe.cuts,
            recipe.rate > 0,
            pruned[recipe.features] if recipe.pruned else 0,
            whole=False,
            threshold=0.0,
        )
        most = max(point.trees for point in offer.points)
        for point in offer.points:
            yield alike._replace(whole=point.trees == most, threshold=point.threshold), point
