"""From the arrays and the document of a model file to what was trained, if all of it is sound."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.costs import LARGEST_COST, LEAST_COST, Costs, are_prices
from budgetforest.data.seen import SKETCH, Seen
from budgetforest.data.table import Schema
from budgetforest.runtime.arrays import Counts, Flags, Floats, Ids
from budgetforest.selection.candidates import Candidate, Folds, Point, Recipe
from budgetforest.selection.estimate import N_FOLDS, Estimate
from budgetforest.selection.path import path_of
from budgetforest.selection.result import TrainingResult
from budgetforest.storage.checks import Sizes, check_trees
from budgetforest.storage.container import Array
from budgetforest.storage.fields import Entries, is_text, refuse_unless
from budgetforest.trees.forest import CHOICES, Answer, Context, Voting
from budgetforest.trees.odds import leaves_alike
from budgetforest.trees.tree import Tree, weighed


def rebuilt(arrays: dict[str, Array], read: Entries) -> tuple[TrainingResult, float | None]:
    """What was trained, and the budget in use."""
    context = _context(arrays, read)
    budget, limit = read.budget("budget"), read.budget("trained_budget")
    refuse_unless(budget <= limit, "its budget is larger than the one it was trained for")
    proven = read.flag("proven")
    recipes = _recipes(read, len(arrays["tree_nodes"]))
    boosted = np.repeat([made.recipe.scores for made in recipes], [made.trees for made in recipes])
    trees = _trees(arrays, context, proven, boosted)
    candidates = _candidates(arrays, recipes, trees)
    points = [point for candidate in candidates for point in candidate.points]
    available = {candidate.recipe: len(candidate.trees) for candidate in candidates}
    path = _taken(arrays["path"], points, available, "path")
    surest = _taken(arrays["surest"], points, available, "surest")
    refuse_unless(len(surest) == 1 or not (surest or path), "its path needs one surest forest")
    refuse_unless(all(a.cost <= b.cost for a, b in pairwise(path)), "its path is not in the order of cost")
    trained = TrainingResult(
        context=context,
        candidates=candidates,
        path=path if surest else path_of(candidates, limit),
        surest=surest[0] if surest else None,
        budget=limit,
        answer=Answer[read.one_of("answer", [answer.name.lower() for answer in Answer]).upper()],
        unit=read.positive("row_unit"),
        proven=proven,
        prior_error=math.nan if read["prior_error"] is None else read.number("prior_error"),
        summary=_summary(Entries(read.mapping("training"), "its training")),
        estimates=_estimates(arrays.get("estimate", np.empty((0, 4)))),
        judged=read.whole("judged") if read["protocol"] > 2 else 0,
        confusion=_confusion(arrays.get("confusion", np.empty((0, 0), np.int64)), len(context.classes)),
        seen=_seen(arrays, len(context.schema.names)),
    )
    return trained, None if budget == math.inf else budget


def _estimates(rows: Array) -> tuple[Estimate, ...]:
    refuse_unless(rows.shape[1] == 4, "'estimate' has not four columns")
    found = tuple(Estimate._make(row) for row in rows.tolist())
    sound = all(0 <= each.low <= each.error <= each.high <= 1 and each.budget >= 0 for each in found)
    refuse_unless(sound, "an estimate is no share within its interval")
    refuse_unless(all(a.budget <= b.budget for a, b in pairwise(found)), "estimates are not in order")
    return found


def _confusion(counts: Array, k: int) -> Counts | None:
    refuse_unless(counts.shape in ((0, 0), (k, k)), "'confusion' has not a row and a column per class")
    refuse_unless((counts >= 0).all(), "'confusion' counts less than nothing")
    return counts.copy() if counts.size else None


def _seen(arrays: dict[str, Array], n_features: int) -> Seen | None:
    """What is remembered of the training rows; files of older protocols say nothing."""
    if "sketch" not in arrays or not len(arrays["low"]):
        return None
    low, high, sketch = (arrays[name].copy() for name in ("low", "high", "sketch"))
    refuse_unless(len(low) == len(high) == n_features, "ranges are not one per feature")
    refuse_unless(not (np.isnan(low) | np.isnan(high)).any(), "a range is not a number")
    refuse_unless(len(sketch) <= SKETCH and (sketch[1:] > sketch[:-1]).all(), "'sketch' does not ascend")
    return Seen(low, high, sketch)


def _summary(read: Entries) -> dict[str, Any]:
    counts = {name: read.whole(name) for name in ("rows", "validation_rows", "seed")}
    parameters = read.mapping("parameters")
    read.checked(
        "parameters", is_text(json.dumps(parameters, ensure_ascii=False)), "text that can be written"
    )
    return {"version": read.text("version"), **counts, "parameters": parameters}


def _context(arrays: dict[str, Array], read: Entries) -> Context:
    classes = read.labels("classes")
    alike = len(classes) >= 2 and len({type(label) for label in classes}) == 1
    refuse_unless(alike, "'classes' in its document must be two or more of one type")
    schema = _schema(read)
    prior = arrays["prior"].copy()
    refuse_unless(len(prior) == len(classes), "'prior' has not one count per class")
    refuse_unless((prior >= 0).all() and prior.any(), "'prior' counts no rows")
    refuse_unless((prior < 2**31).all(), "'prior' has more rows of a class than can be counted")
    return Context(
        prior=prior,
        costs=_costs(arrays, read.texts("groups"), len(schema.names)),
        schema=schema,
        classes=classes,
        voting=Voting[read.one_of("voting", [voting.name.lower() for voting in CHOICES]).upper()],
        unit=read.positive("unit"),
    )


def _schema(read: Entries) -> Schema:
    features = read.objects("features")
    names = [feature.text("name") for feature in features]
    refuse_unless(names, "it has no features")
    refuse_unless(len(set(names)) == len(names), "two features have the same name")
    categories = [None if f["categories"] is None else f.labels("categories") for f in features]
    target = None if read["target"] is None else read.text("target")
    return Schema(tuple(names), tuple(categories), tuple(read.texts("missing")), target)


def _costs(arrays: dict[str, Array], names: Sequence[str], n_features: int) -> Costs:
    cost, discount, group = (arrays[name].copy() for name in ("cost", "discount", "group"))
    refuse_unless(len(cost) == len(discount) == len(group) == n_features, "costs are not one per feature")
    for prices in (cost, discount):
        refuse_unless(
            are_prices(prices).all(), f"a cost is neither 0 nor from {LEAST_COST:g} to {LARGEST_COST:g}"
        )
        prices += 0.0  # not -0.0, by which kernels would divide
    refuse_unless((discount <= cost).all(), "a discount is more than its cost")
    refuse_unless((group >= 0).all() and (group < len(names)).all(), "a feature is in no group")
    refuse_unless(len(names) <= n_features, "there are more groups than features")
    shared = [names[number] for number in np.flatnonzero(np.bincount(group) > 1).tolist()]
    refuse_unless(len(set(shared)) == len(shared), "two groups have the same name")
    return Costs(cost, discount, group, tuple(names))


def _trees(arrays: dict[str, Array], context: Context, proven: bool, boosted: Flags) -> list[Tree]:
    told = "weight" in arrays
    none = np.zeros(len(arrays["feature"]), np.int32)
    nodes = Tree._make(arrays.get(name, none) for name in Tree._fields)
    sizes = Sizes(arrays["tree_nodes"], arrays["tree_branches"])
    refuse_unless(nodes.counts.shape[1] == len(context.classes), "'counts' has not one column per class")
    check_trees(nodes, sizes, context.schema, proven=proven, boosted=boosted)
    node, branch = _ends(sizes.nodes), _ends(sizes.branches)
    trees = [
        Tree._make(
            [
                *(part[node[t] : node[t + 1]] for part in nodes[:-2]),
                nodes.branches[branch[t] : branch[t + 1]],
                nodes.floor[t : t + 1],
            ]
        )
        for t in range(len(sizes.nodes))
    ]
    if told:
        return trees
    # of a boosted tree nobody knows: its leaves count alike
    return [
        leaves_alike(tree) if scored else weighed(tree) for tree, scored in zip(trees, boosted, strict=True)
    ]


def _ends(sizes: Ids) -> list[int]:
    return list(accumulate(sizes.tolist(), initial=0))


def _candidates(arrays: dict[str, Array], recipes: Sequence[Made], trees: list[Tree]) -> list[Candidate]:
    points = _points(arrays, [made.recipe for made in recipes])
    tree = list(accumulate((made.trees for made in recipes), initial=0))
    point = np.searchsorted(arrays["point_recipe"], np.arange(len(recipes) + 1)).tolist()
    return [
        Candidate(recipe, trees[tree[at] : tree[at + 1]], points[point[at] : point[at + 1]], patience)
        for at, (recipe, _, patience) in enumerate(recipes)
    ]


class Made(NamedTuple):
    """A recipe, its number of trees, and its patience."""

    recipe: Recipe
    trees: int
    patience: int


def _recipes(read: Entries, n_trees: int) -> list[Made]:
    recipes = [_made(entry, read.whole("protocol")) for entry in read.objects("recipes")]
    refuse_unless(len({made.recipe for made in recipes}) == len(recipes), "two recipes are the same")
    refuse_unless(sum(made.trees for made in recipes) == n_trees, "recipes do not add up to the trees")
    return recipes


def _made(entry: Entries, protocol: int) -> Made:
    alpha = -1.0 if entry["alpha"] == -1 else entry.number("alpha")
    cuts = entry.one_of("cuts", ("best", "random", "boosted", "blend"))
    rate, pruned = entry.number("rate"), entry.number("pruned")
    recipe = Recipe(alpha, entry.whole("features"), cuts, rate, pruned)
    if protocol > 4:
        recipe = recipe._replace(weights=tuple(entry.numbers("weights")), refit=entry.flag("refit"))
    return Made(recipe, entry.whole("trees"), entry.whole("patience", 1))


def _points(arrays: dict[str, Array], recipes: Sequence[Recipe]) -> list[Point]:
    names = ("recipe", "trees", "cost", "error", "threshold")
    recipe, trees, cost, error, threshold = (arrays[f"point_{name}"] for name in names)
    same = len({len(part) for part in (recipe, trees, cost, error, threshold)}) == 1
    refuse_unless(same, "arrays of points differ in length")
    refuse_unless((recipe >= 0).all() and (recipe < len(recipes)).all(), "a point has no recipe")
    refuse_unless((np.diff(recipe) >= 0).all(), "points are not in the order of recipes")
    refuse_unless((trees >= 1).all(), "a point has no trees")
    for measured, most in ((cost, math.inf), (error, 1.0)):
        refuse_unless(not (measured < 0).any() and not (measured > most).any(), "a point is out of range")
    _check_thresholds(threshold)
    columns = (part.tolist() for part in (recipe, trees, cost, error, threshold))
    return [
        Point(recipes[at], *rest)._replace(folds=folds)
        for (at, *rest), folds in zip(zip(*columns, strict=True), _folds(arrays, len(recipe)), strict=True)
    ]


def _folds(arrays: dict[str, Array], n_points: int) -> list[Folds]:
    """Of the steps of a training; a whole one has none."""
    none = np.empty((n_points, 0))
    wrong, weight = (arrays.get(f"point_{name}", none) for name in ("wrong", "weight"))
    fits = len(wrong) == n_points and wrong.shape == weight.shape
    refuse_unless(fits and wrong.shape[1] in (0, N_FOLDS), "folds of points differ in number")
    sound = np.isfinite(weight).all() and (wrong >= 0).all() and (wrong <= weight).all()
    refuse_unless(sound, "a fold of a point is out of range")
    return [tuple(zip(*each, strict=True)) for each in zip(wrong.tolist(), weight.tolist(), strict=True)]


def _check_thresholds(threshold: Floats) -> None:
    within = (threshold > 0) & ((threshold <= 1) | (threshold == math.inf))
    refuse_unless(within.all(), "a point exits at a belief outside (0, 1]")


def _taken(numbers: Ids, points: Sequence[Point], available: dict[Recipe, int], what: str) -> list[Point]:
    """Points by number, whose trees must all be there."""
    refuse_unless((numbers >= 0).all() and (numbers < len(points)).all(), f"{what!r} names no point")
    taken = [points[at] for at in numbers.tolist()]
    there = all(point.trees <= available[point.recipe] for point in taken)
    refuse_unless(there, f"{what!r} needs trees that are absent")
    return taken
