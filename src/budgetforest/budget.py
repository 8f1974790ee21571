"""BUDGETRF of Algorithm 1: add trees while the mean validation cost stays within the budget.

Every alpha offers such a forest; at a given budget the one of least validation error is taken. The *path*
is the lower envelope of what the offers cost and how they err, for all budgets at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from budgetforest.tree import Tree

ALPHAS = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 25.0, 35.0, 45.0)
"""The paper's thresholds."""


class Point(NamedTuple):
    """A forest on the path."""

    alpha: float
    trees: int
    cost: float
    """Mean cost of the validation rows."""
    error: float
    """Share of the validation rows that are labelled wrongly."""


class Offer(NamedTuple):
    """The trees of one alpha within the budget, and the forest after each of them."""

    alpha: float
    trees: list[Tree]
    points: list[Point]
    refused: float
    """Mean cost with the tree that was dropped; infinite if none was."""


def within_budget(
    trees: Iterable[Tree],
    meter: Callable[[Tree], tuple[float, float]],
    budget: float,
    most: int,
    alpha: float = 0.0,
) -> Offer:
    """BUDGETRF: trees until the first that takes the mean cost past the budget, which is dropped.

    ``meter`` adds a tree to its forest and returns the forest's mean cost and error on validation rows.
    """
    kept: list[Tree] = []
    points: list[Point] = []
    for tree in islice(trees, most):
        cost, error = meter(tree)
        if cost > budget:
            return Offer(alpha, kept, points, refused=cost)
        kept.append(tree)
        points.append(Point(alpha, len(kept), cost, error))
    return Offer(alpha, kept, points, refused=math.inf)


def growing_alphas() -> Iterator[float]:
    """The paper's thresholds, then doubled without end: dearer trees first, ever cheaper ones."""
    yield from ALPHAS
    for doublings in count(1):
        yield ALPHAS[-1] * 2**doublings


def best_at(offers: Sequence[Offer], budget: float) -> Point | None:
    """The offer to take at a budget: least error, then least cost, then the smallest alpha.

    Each alpha stands for all of its trees that fit, exactly as if trained for this budget. An unknown
    cost (NaN, there were no validation rows) fits.
    """
    fitting = [[p for p in offer.points if not p.cost > budget] for offer in offers]
    last = [points[-1] for points in fitting if points]
    return min(last, key=lambda p: (p.error, p.cost, p.alpha), default=None)


def path_of(offers: Sequence[Offer]) -> list[Point]:
    """The lower envelope: what is best at some budget and errs less than anything cheaper."""
    path: list[Point] = []
    for budget in sorted({point.cost for offer in offers for point in offer.points}):
        best = best_at(offers, budget)
        if best and (not path or best.error < path[-1].error):
            path.append(best)
    return path


def without_idle_trees(offers: Sequence[Offer]) -> list[Offer]:
    """The offers without the trees that are best at no budget."""
    budgets = {point.cost for offer in offers for point in offer.points}
    used = dict.fromkeys((offer.alpha for offer in offers), 0)
    for best in (best_at(offers, budget) for budget in budgets):
        if best:
            used[best.alpha] = max(used[best.alpha], best.trees)
    return [offer._replace(trees=offer.trees[: used[offer.alpha]]) for offer in offers]
