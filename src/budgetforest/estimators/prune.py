"""BUDGETPRUNE for any fitted forest: its best part within a budget.

``closure`` finds what is best at a rate. Trees share what they ask for, so that from one rate to the next a
whole forest may fall; the first half of its trees, a quarter, ... reach the budgets between.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from budgetforest import __version__
from budgetforest.data.costs import read_costs
from budgetforest.data.table import names_of, read_rows
from budgetforest.estimators.base import Prediction
from budgetforest.estimators.model import Model
from budgetforest.inference.predict import labels, spent
from budgetforest.runtime import params as check
from budgetforest.runtime.arrays import Anything, Ids, Matrix
from budgetforest.runtime.errors import BudgetTooSmall, InvalidData, InvalidParameter, warn
from budgetforest.runtime.progress import late_progress
from budgetforest.selection.candidates import Candidate, Point, Recipe
from budgetforest.selection.min_cut import best_part, closure_of, pruned
from budgetforest.selection.result import TrainingResult, best_within
from budgetforest.trees.convert import check_forest, from_sklearn
from budgetforest.trees.forest import Answer, Context, Forest, Voting, first_trees, join, tree_of
from budgetforest.trees.tree import Tree

FIRST, STEP, HALVINGS = 2.0**-10, 4.0, 6
"""The first rate, as a share of what all is worth; how much larger the next; then steps closer."""


def prune(
    model: Any, X: Anything, y: Anything, *, budget: float, costs: Anything = None, groups: Anything = None
) -> Model:
    """The part of a fitted forest that errs least on given rows and costs them at most a budget on average.

    Parameters
    ----------
    model : a fitted BudgetForestClassifier, a loaded Model, or scikit-learn's RandomForestClassifier,
        ExtraTreesClassifier or DecisionTreeClassifier; boosted trees, which correct each other, cannot be cut
    X, y : rows to prune on, best not those that it was fitted on
    budget : allowed mean cost of these rows
    costs, groups : for a forest of scikit-learn, as BudgetForestClassifier takes them; ours have their own

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    >>> cheap = prune(forest, X[1::2], y[1::2], budget=3)
    >>> bool(cheap.acquisition_cost(X[1::2]).mean() <= 3)
    True
    """
    whole = _whole(model, costs, groups)
    limit = check.positive_budget(budget)
    rows, label = read_rows(X, whole.context.schema), _codes(y, whole.context.classes)
    if len(rows) != len(label) or not len(rows):
        raise InvalidData(
            f"there are {len(rows)} rows in X and {len(label)} labels in y; give as many, one or more"
        )
    n = whole.forest.n_trees
    parts = []
    with late_progress("pruning", n.bit_length()) as tell:
        for step in range(n.bit_length()):  # all trees, half of them, ...
            parts.append(_within(first_trees(whole.forest, n >> step), whole, rows, label, limit))
            tell(len(parts))
            if not parts[-1].point.recipe.pruned:
                break  # uncut: fewer trees are not needed
    best = min(parts, key=lambda part: (part.point.error, part.point.cost))
    if all(len(tree.feature) == 1 for tree in best.trees):
        warn(
            f"no part of the forest is worth its price within budget {limit:g}: what is left predicts the "
            "most common class at no cost; raise the budget",
            BudgetTooSmall,
        )
    trained = TrainingResult(
        context=whole.context._replace(threshold=math.inf),
        candidates=[Candidate(best.point.recipe, best.trees, [best.point], 1)],
        path=[best.point],
        surest=best.point,
        budget=limit,
        answer=whole.answer,
        unit=whole.unit,
        proven=False,
        prior_error=float(1 - np.bincount(label).max() / len(label)),
        summary=whole.summary | {"validation_rows": len(label)},
    )
    return Model(trained, limit)


class Whole(NamedTuple):
    """A forest before it is pruned."""

    forest: Forest
    recipe: Recipe
    answer: Answer
    unit: float
    """Weight of one count of a training row."""
    summary: dict[str, Any]

    @property
    def context(self) -> Context:
        """All but the trees."""
        return Context._make(getattr(self.forest, field) for field in Context._fields)


def _whole(model: Any, costs: Anything, groups: Anything) -> Whole:
    """A forest of ours or of scikit-learn's."""
    if not isinstance(model, Prediction):
        check_forest(model)
        names = names_of(model, model.n_features_in_)
        forest = from_sklearn(model, read_costs(costs, groups, names))
        rows = int(forest.prior.sum())
        summary = {"version": __version__, "rows": rows, "validation_rows": 0, "seed": 0, "parameters": {}}
        return Whole(forest, Recipe(features=model.n_features_in_), Answer.LABEL, 1.0, summary)
    model._check_trained()
    if costs is not None or groups is not None:
        raise InvalidParameter("costs and groups are those that the model was trained with; leave them out")
    point = best_within(model._trained, model._within)
    if point is None:
        raise InvalidParameter(
            f"the model has no trees at its budget {model.budget}; there is nothing to prune"
        )
    if model.forest_.voting == Voting.SCORES:
        raise InvalidParameter(
            f"the model is of boosted trees ({point}), which correct each other and cannot be cut; prune a "
            "forest: method='paper', or a budget at which path_ has one"
        )
    trained = model._trained
    return Whole(model.forest_, point.recipe, trained.answer, trained.unit, trained.summary)


def _codes(y: Anything, classes: tuple[Any, ...]) -> Ids:
    """(n) the number of each row's class."""
    number = {label: code for code, label in enumerate(classes)}
    unknown = [label for label in np.unique(np.asarray(y)).tolist() if label not in number]
    if unknown:
        raise InvalidData(
            f"y has the label {unknown[0]!r}, which is not a class of the forest: {list(classes)}"
        )
    return np.array([number[label] for label in np.asarray(y).tolist()], np.int32)


class Part(NamedTuple):
    """Of a forest, measured on the rows that it was pruned on."""

    point: Point
    trees: list[Tree]


def _within(forest: Forest, whole: Whole, X: Matrix, label: Ids, budget: float) -> Part:
    """What is kept at the least rate at which it fits the budget, to a few percent."""

    def measured(trees: list[Tree], rate: float) -> Part:
        cut = join(trees, whole.context)
        cost = float(spent(cut, X, whole.answer).mean())
        error = float((labels(cut, X) != label).mean())
        recipe = whole.recipe._replace(pruned=rate)
        return Part(Point(recipe, len(trees), cost, error, whole.context.threshold), trees)

    part = measured([tree_of(forest, number) for number in range(forest.n_trees)], 0.0)
    if part.point.cost <= budget:
        return part
    problem = closure_of(forest, X, label, np.ones(len(label), np.int32))
    kept = np.ones(len(problem.gain), bool)  # at lower rates
    low, high = 0.0, FIRST * float(problem.gain.clip(min=0).sum()) / float(problem.price.sum())
    while (
        part := measured(pruned(forest, less := best_part(problem, high, kept)), high)
    ).point.cost > budget:
        low, high, kept = high, STEP * high, less
    for _ in range(HALVINGS):
        rate = math.sqrt(max(low, high / STEP) * high)
        less = best_part(problem, rate, kept)
        fewer = measured(pruned(forest, less), rate)
        if fewer.point.cost <= budget:
            high, part = rate, fewer
        else:
            low, kept = rate, less
    return part
