"""BUDGETRF of Algorithm 1: add trees while the mean validation cost stays within the budget.

Every alpha offers such a forest; at a given budget the one of least validation error is taken. The *path*
is the lower envelope of what the offers cost and how they err, for all budgets at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from budgetforest.tree import Tree

ALPHAS = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 25.0, 35.0, 45.0)
"""The paper's thresholds."""


class Recipe(NamedTuple):
    """How the trees of a forest were grown."""

    alpha: float = -1.0
    """The paper's method with this threshold; -1 for growth by saving, which the rest describes."""
    features: int = 0
    """How many features were in the pool."""
    cuts: str = "best"
    """How nodes are cut: "best" of every feature tried, "random", or "boosted", best for the loss so far."""
    rate: float = 0.0
    """What a unit of cost was worth while growing, in nats per row."""
    pruned: float = 0.0
    """What it was worth in errors per row when the forest was pruned; 0: it was not."""

    def __str__(self) -> str:
        pruned = f", pruned at {self.pruned:.2g}" if self.pruned else ""
        if self.alpha >= 0:
            return f"alpha {self.alpha:g}{pruned}"
        rate = f", rate {self.rate:.2g}" if self.rate else ""
        how = "boosted" if self.cuts == "boosted" else f"{self.cuts} cuts"
        return f"pool of {self.features}, {how}{rate}{pruned}"


PLAIN = Recipe(alpha=0.0)


class Point(NamedTuple):
    """A forest on the path."""

    recipe: Recipe
    trees: int
    cost: float
    """Mean cost of the validation rows."""
    error: float
    """Share of the validation rows that are labelled wrongly; where these are few, of all (``crossfit``).
    Of scores that ``method="auto"`` chooses, their Brier score."""
    threshold: float = math.inf
    """The mean belief at which a label is taken; infinite: when it is certain."""

    @property
    def alpha(self) -> float:
        """The paper's threshold, NaN for growth by saving."""
        return self.recipe.alpha if self.recipe.alpha >= 0 else math.nan

    def __str__(self) -> str:
        exit_at = "" if self.threshold == math.inf else f", exit at {self.threshold:.3g}"
        return f"{self.recipe}, {self.trees} trees{exit_at}"


class Offer(NamedTuple):
    """The trees of one recipe, and every forest of the first of them that was measured."""

    recipe: Recipe
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
    recipe: Recipe = PLAIN,
    patience: int = 1,
) -> Offer:
    """BUDGETRF: trees until the first that takes the mean cost past the budget, which is dropped.

    ``meter`` adds a tree to its forest and returns the forest's mean cost and error on validation rows, or
    None where it does not measure. The cost of labels may fall again (a tie is settled sooner than a
    single tree), hence ``patience``; the cost of scores never does.
    """
    grown: list[Tree] = []
    offer = Offer(recipe, grown, [], patience)
    for tree in islice(trees, most):
        grown.append(tree)
        measured = meter(tree)
        if measured is not None:
            offer.points.append(Point(recipe, len(grown), *measured))
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
    return min(chain(*fitting), key=lambda p: (p.error, p.cost, p.recipe), default=None)


def path_of(offers: Sequence[Offer], budget: float) -> list[Point]:
    """The lower envelope up to a budget: forests that err less than any that is cheaper."""
    path: list[Point] = []
    points = chain(*(within(offer, budget) for offer in offers))
    for point in sorted(points, key=lambda p: (p.cost, p.error, p.recipe)):
        if not path or point.error < path[-1].error:
            path.append(point)
    return path


def without_idle_trees(offers: Sequence[Offer], budget: float) -> list[Offer]:
    """The offers without the trees that are best at no budget up to this one."""
    best = [best_at(offers, cost) for cost in _costs(offers, budget)]
    return only_used(offers, [point for point in best if point])


def only_used(offers: Sequence[Offer], points: Iterable[Point]) -> list[Offer]:
    """The offers without the trees that no point needs."""
    used = {offer.recipe: 0 for offer in offers}
    for point in points:
        used[point.recipe] = max(used[point.recipe], point.trees)
    return [offer._replace(trees=offer.trees[: used[offer.recipe]]) for offer in offers]


def surest(offers: Sequence[Offer]) -> Point:
    """The forest of least error that never exits before it is certain."""
    certain = [p for offer in offers for p in offer.points if p.threshold == math.inf]
    return min(certain, key=lambda p: (p.error, p.cost, p.recipe, p.trees))


STEP = 1.06
"""Neighbours on the careful path that err alike differ so much in cost."""


def careful_path(offers: Sequence[Offer], n_rows: int) -> list[Point]:
    """For every budget the dearest forest that errs no more than the best, but for noise.

    Of hundreds of forests measured on few rows the luckiest seems best, often a cheap one that errs more on
    other rows. Within a third of a standard error the one that asks for more is the better bet, and one
    whose trees are in use already, if it asks for about as much.
    """
    path: list[Point] = []
    used: set[Recipe] = set()
    points = _by_cost(offers)
    for last, near in _budgets(points, n_rows):
        dearest_first = (p for p in reversed(points[: last + 1]) if p.error <= near)
        taken = next(dearest_first)
        if taken.recipe not in used:
            again = next((p for p in dearest_first if p.recipe in used), taken)
            taken = again if again.cost * STEP**2 >= taken.cost else taken
        if not path or (
            taken.cost > path[-1].cost and (taken.error < path[-1].error or taken.cost > path[-1].cost * STEP)
        ):
            path.append(taken)
            used.add(taken.recipe)
    return path


def without_hopeless(offers: Sequence[Offer], n_rows: int) -> list[Offer]:
    """The offers without the trees that can be on no careful path, whatever is still to be offered.

    More offers only lower what is near the best: a forest that errs too much at its own cost stays out.
    """
    points = _by_cost(offers)
    hopeful, first = {surest(offers).recipe}, 0
    for last, near in _budgets(points, n_rows):
        hopeful.update(p.recipe for p in points[first : last + 1] if p.error <= near)
        first = last + 1
    return [offer if offer.recipe in hopeful else offer._replace(trees=[]) for offer in offers]


def _by_cost(offers: Sequence[Offer]) -> list[Point]:
    points = (p for offer in offers for p in offer.points)
    return sorted(points, key=lambda p: (p.cost, p.error, p.recipe, p.trees))


def _budgets(points: Sequence[Point], n_rows: int) -> Iterator[tuple[int, float]]:
    """Every cost as a budget: the last point within it, and the largest error that is near the best."""
    best = 1.0
    for last, point in enumerate(points):
        best = min(best, point.error)
        if last + 1 == len(points) or points[last + 1].cost > point.cost:
            yield last, best + math.sqrt(best * (1 - best) / n_rows) / 3


def _costs(offers: Sequence[Offer], budget: float) -> list[float]:
    """All costs within the budget at which the best forest can change, and the budget itself."""
    costs = {p.cost for offer in offers for p in offer.points if not p.cost > budget}
    return [*sorted(costs), budget]
