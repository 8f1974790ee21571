"""What a training leaves: every forest of its path, and what is known about them.

Plain data and no compiled code: the estimator keeps one, and a model file holds one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from budgetforest.data.seen import Seen
from budgetforest.runtime.arrays import Counts
from budgetforest.runtime.errors import BudgetTooSmall, UnusualData, warn
from budgetforest.selection.candidates import Candidate, Point
from budgetforest.selection.estimate import Estimate, estimate_at, interval
from budgetforest.selection.path import best_at, path_of
from budgetforest.trees.forest import Answer, Context, Forest, Voting, join
from budgetforest.trees.tree import Tree


class TrainingResult(NamedTuple):
    """The result of a training."""

    context: Context
    candidates: list[Candidate]
    """Every recipe, with the trees that the path needs and all measured forests."""
    path: list[Point]
    """A forest for every budget up to the one it was trained for."""
    surest: Point | None
    """Of method "auto": the forest to take without a budget. None for the paper's method."""
    budget: float
    """Allowed mean cost; infinite for no limit."""
    answer: Answer
    """What rows pay for."""
    unit: float
    """Weight of one count of a training row."""
    proven: bool
    """Whether the lemma's bound holds, so that trees have certificates."""
    prior_error: float
    """Share of the rows judged by that the most common class labels wrongly; NaN if there were none."""
    summary: dict[str, Any]
    """For people: parameters, rows, validation rows, seed, version."""
    estimates: tuple[Estimate, ...] = ()
    """The error to expect on new rows, for the budgets of the path."""
    confusion: Counts | None = None
    """(k, k) labels by true class at the budget, in units of weight; each row had no part in the choice."""
    judged: int = 0
    """How many rows these are worth; half of all where training rows took their turn (``crossfit``)."""
    seen: Seen | None = None
    """What is remembered of the training rows."""


def path_within(trained: TrainingResult, budget: float) -> list[Point]:
    """The part of the path up to a budget."""
    if trained.surest is None:
        return path_of(trained.candidates, budget)
    return [point for point in trained.path if point.cost <= budget]


def best_within(trained: TrainingResult, budget: float) -> Point | None:
    """The forest to take: without a budget one that never exits before it is certain."""
    if trained.surest is None:
        return best_at(trained.candidates, budget)
    if budget == math.inf:
        return trained.surest
    path = path_within(trained, budget)
    useful = path and (path[-1].cost > 0 or (trained.context.costs.cost == 0).any())
    return path[-1] if useful else None


def expected(trained: TrainingResult, budget: float, point: Point) -> Estimate | None:
    """The error to expect on new rows of the forest that a budget takes; None if nothing was measured."""
    if not trained.estimates:
        return None
    # a single alpha: costs alone decide, so its error owes nothing to luck
    if len(trained.candidates) == 1:
        return Estimate(budget, point.error, *interval(point.error, trained.judged))
    # the careful path has a forest for each of its costs; the paper's choice is made at budgets
    by_cost = trained.surest is not None and budget < math.inf
    return estimate_at(trained.estimates, point.cost if by_cost else budget)


def shown(trained: TrainingResult, point: Point) -> Point:
    """A point of the path as people see it: with the error to expect on new rows."""
    found = expected(trained, point.cost, point)
    return point._replace(error=found.error, low=found.low, high=found.high) if found else point


def forest_at(trained: TrainingResult, point: Point | None) -> Forest:
    """The forest of a point; without one, that of no trees."""
    if point is None:
        return join([], trained.context)
    return join(trees_at(trained, point), context_for(point, trained.context, trained.unit))


def trees_at(trained: TrainingResult, point: Point) -> list[Tree]:
    """The trees of a point."""
    return next(candidate.trees for candidate in trained.candidates if candidate.recipe == point.recipe)[
        : point.trees
    ]


def context_for(point: Point, context: Context, unit: float) -> Context:
    """What the forest of a point needs to know: forests of "auto" vote softly, and may exit."""
    if point.recipe.alpha >= 0:
        return context
    if point.recipe.scores:
        return context._replace(voting=Voting.SCORES, unit=1.0, threshold=point.threshold)
    unit = unit if point.recipe.cuts == "random" else 1.0  # the others count rows that were drawn
    return context._replace(voting=Voting.SOFT, unit=unit, threshold=point.threshold)


def plain(value: Any) -> Any:
    """A parameter as what a JSON document can hold: itself, or its text."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    fits = value is None or isinstance(value, bool | int | str)
    return value if fits or (isinstance(value, float) and math.isfinite(value)) else repr(value)


def warn_of_idle(trained: TrainingResult, budget: float, best: Point | None) -> None:
    """Say so when the forest at a budget is no better than an answer that costs nothing."""
    kind: type[Warning] = UnusualData
    paid = [p.cost for candidate in trained.candidates for p in candidate.points if p.cost > 0]
    if best is None and not paid:
        hint = (
            "no feature lowers the impurity, so no tree splits: the forest predicts the most common "
            "class at no cost; check that the features tell the classes apart"
        )
    elif best is None and min(paid) <= budget:
        hint = (
            f"no forest that fits budget {budget:g} is expected to be better than the most common class, "
            "which it predicts at no cost: give more rows, or features that tell the classes apart"
        )
    elif best is None:
        kind = BudgetTooSmall
        hint = (
            f"no useful tree fits budget {budget:g}: the cheapest costs {min(paid):g} on average. "
            "The forest predicts the most common class at no cost; raise the budget"
        )
    elif best.alpha > 0 and all(len(tree.feature) == 1 for tree in trees_at(trained, best)):
        hint = f"alpha={best.alpha:g} is so large that no tree splits; take a smaller one"
    elif best.cost > 0 and (found := expected(trained, budget, best)) and found.error >= trained.prior_error:
        remedy = "give more rows" if trained.surest else "try method='auto'"
        hint = (
            f"{found.error:.1%} of labels are expected to be wrong, no less than if all were the most common "
            f"class: raise the budget, or {remedy}"
        )
    else:
        return
    warn(hint, kind)
