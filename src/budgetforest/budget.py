"""BUDGETRF of Algorithm 1: add trees while the mean validation cost stays within the budget.

Every alpha offers such a forest; at a given budget the one of least validation error is taken. The *path*
is the lower envelope of what the offers cost and how they err, for all budgets at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
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
    """The trees of one alpha, and every forest of the first of them that was measured."""

    alpha: float
    trees: list[Tree]
    """As many as fit the budget."""
    points: list[Point]
    """In the order of growth, also those that did not fit."""
    patience: int
    """After so many in a row that do not fit, no more are grown."""


def within_budget(
    trees: Iterable[Tree],
    meter: Callable[[Tree], tuple[float, float] | None],
    budget: float,
    most: int,
    alpha: float = 0.0,
    patience: int = 1,
) -> Offer:
    """BUDGETRF: trees until the first that takes the mean cost past the budget, which is dropped.

    ``meter`` adds a tree to its forest and returns the forest's mean cost and error on validation rows, or
    None where it does not measure. The cost of labels may fall again (a tie is settled sooner than a
    single tree), hence ``patience``; the cost of scores never does.
    """
    grown: list[Tree] = []
    offer = Offer(alpha, grown, [], patience)
    for tree in islice(trees, most):
        grown.append(tree)
        measured = meter(tree)
        if measured is not None:
            offer.points.append(Point(alpha, len(grown), *measured))
            if all(p.cost > budget for p in offer.points[-patience:]) and len(offer.points) >= patience:
                break
    fitting = within(offer, budget)
    return offer._replace(trees=grown[: fitting[-1].trees if fitting else 0])


def within(offer: Offer, budget: float) -> list[Point]:
    """The forests that growing for this budget would have kept; an unknown cost (NaN) fits."""
    fitting, misses = [], 0
    for point in offer.points:
        misses = misses + 1 if point.cost > budget else 0
        if misses == offer.patience:
            break
        if not misses:
            fitting.append(point)
    return fitting


def growing_alphas() -> Iterator[float]:
    """The paper's thresholds, then doubled without end: dearer trees first, ever cheaper ones."""
    yield from ALPHAS
    for doublings in count(1):
        yield ALPHAS[-1] * 2**doublings


def best_at(offers: Sequence[Offer], budget: float) -> Point | None:
    """The forest to take at a budget, exactly as if trained for it.

    A single alpha gives Algorithm 1's forest: all trees that fit. Of several, the forest of least error
    is taken, then of least cost, then of the smallest alpha.
    """
    fitting = [within(offer, budget) for offer in offers]
    if len(fitting) == 1:
        return fitting[0][-1] if fitting[0] else None
    return min(chain(*fitting), key=lambda p: (p.error, p.cost, p.alpha), default=None)


def path_of(offers: Sequence[Offer], budget: float) -> list[Point]:
    """The lower envelope up to a budget: forests that err less than any that is cheaper."""
    path: list[Point] = []
    points = chain(*(within(offer, budget) for offer in offers))
    for point in sorted(points, key=lambda p: (p.cost, p.error, p.alpha)):
        if not path or point.error < path[-1].error:
            path.append(point)
    return path


def without_idle_trees(offers: Sequence[Offer], budget: float) -> list[Offer]:
    """The offers without the trees that are best at no budget up to this one."""
    used = dict.fromkeys((offer.alpha for offer in offers), 0)
    for best in (best_at(offers, cost) for cost in _costs(offers, budget)):
        if best:
            used[best.alpha] = max(used[best.alpha], best.trees)
    return [offer._replace(trees=offer.trees[: used[offer.alpha]]) for offer in offers]


def _costs(offers: Sequence[Offer], budget: float) -> list[float]:
    """All costs within the budget at which the best forest can change, and the budget itself."""
    costs = {p.cost for offer in offers for p in offer.points if not p.cost > budget}
    return [*sorted(costs), budget]
