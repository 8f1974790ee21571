"""The trees of every recipe of method "auto": grown for the search, and grown again as they were.

Every pool of features has a small forest of best cuts, trees boosted at the full rate, and the two members of
its blend: a forest with random cuts, and trees boosted gently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from budgetforest.data.costs import Costs
from budgetforest.data.rows import Totals
from budgetforest.growing.boosting import Boost
from budgetforest.growing.entropy_trees import Growth
from budgetforest.runtime.arrays import Flags
from budgetforest.selection.backend import Backend, Boosted, BoostingPolicy
from budgetforest.selection.blend import Member, blended
from budgetforest.selection.candidates import Candidate, Point, Recipe
from budgetforest.selection.result import context_for
from budgetforest.selection.settings import Settings, n_rows
from budgetforest.trees.forest import Context
from budgetforest.trees.tree import Tree

BLENDED_TREES = 30
"""Of the forest that is blended; more of them gain little."""
LEAST_ROWS, MANY_ROWS = 3, 8_192
"""Of a leaf of that forest, as long as training rows are fewer than so many; then one row is enough."""
CAREFUL = 25
"""Boosted trees at the full rate."""
SMALL = 16
"""Trees of the small forest; a quarter of them is on offer, too."""
TIMES = 3
"""Boosted trees grow ``ROUNDS`` at a time, and so often at most."""
ROUNDS = 100
"""Boosted trees grow so many at a time."""
GENTLE = 0.25
"""The rate of the boosted trees that are blended, as a share of the full one (``rate_for``)."""


def small_forest(backend: Backend, features: Flags, number: int, settings: Settings) -> list[Tree]:
    """Trees with the best cuts, on rows as drawn."""
    growth = Growth(features, tries_of(features, settings), False, 1, settings.n_classes)
    return list(backend.independent(growth, number, bootstrap=True))


def random_forest(backend: Backend, features: Flags, leaf: int, settings: Settings) -> list[Tree]:
    """Trees with random cuts, on all rows, of which a leaf has ``leaf`` or more."""
    growth = Growth(features, tries_of(features, settings), True, leaf, settings.n_classes)
    return list(backend.independent(growth, min(settings.max_trees, BLENDED_TREES), bootstrap=False))


def leaf_for(train: Totals, settings: Settings) -> int:
    """The least rows of a leaf of the forest that is blended: of few rows a single one may be an accident."""
    return LEAST_ROWS if n_rows(train, settings) < MANY_ROWS else 1


def tries_of(features: Flags, settings: Settings) -> float:
    """The share of a pool that a node of a forest tries: twice the usual sqrt(m) features."""
    return settings.max_features or min(1.0, 2 / math.sqrt(int(features.sum())))


def careful(features: Flags, rate: float, settings: Settings) -> Boost:
    """Boosting on rows as drawn, which acquires only what pays."""
    return Boost(features, rate, settings.n_classes, tries=min(1.0, 4 / math.sqrt(int(features.sum()))))


def gentle(features: Flags, rate: float, settings: Settings) -> Boost:
    """Boosting on all rows, for a blend."""
    return careful(features, rate, settings)._replace(depth=5, share=1.0)


def boosting_policies(
    features: Flags, backend: Backend, context: Context, settings: Settings
) -> Iterator[BoostingPolicy]:
    """How the boosted trees of a pool grow: for the blend, and at the full rate, if there is one."""
    rate, most = rate_for(features, settings, backend.train), settings.max_trees
    policies = [(gentle(features, GENTLE * rate, settings), (min(most, ROUNDS),) * TIMES)]
    if rate:
        policies.append((careful(features, rate, settings), (min(most, CAREFUL),)))
    for steps, rounds in policies:
        yield partial(boost_pool, steps, context, rounds, settings.unit)


def boost_pool(
    steps: Boost,
    context: Context,
    rounds: Sequence[int],
    unit: float,
    trees: Callable[[Boost], Iterator[Tree]],
    error: Callable[[list[Tree], Context], float],
) -> Boosted:
    """Boosted trees at a rate; where no split is worth its price, without.

    ``trees`` boosts without end; ``error`` is how far from right trees are on validation rows.
    """
    # at a high rate no split may be worth its price; then as if everything were free
    for rate in dict.fromkeys((steps.rate, 0.0)):
        recipe = Recipe(features=int(steps.pool.sum()), cuts="boosted", rate=rate)
        # the cost and error of this point are unknown yet: only its recipe tells how trees vote
        scoring = context_for(Point(recipe, 0, 0.0, 0.0), context, unit)
        grown = while_better(trees(steps._replace(rate=rate)), rounds, scoring, error)
        if any(len(tree.feature) > 1 for tree in grown):
            break
    return recipe, grown


def while_better(
    trees: Iterator[Tree],
    rounds: Sequence[int],
    context: Context,
    error: Callable[[list[Tree], Context], float],
) -> list[Tree]:
    """Boosted trees, so many at a time, as long as they lower the error on validation rows."""
    kept: list[Tree] = []
    least = math.inf
    for number in rounds:
        grown = [*kept, *islice(trees, number)]
        found = error(grown, context)
        # the last rounds did not help and are dropped
        if found >= least:
            break
        kept, least = grown, found
    return kept


def members_of(forest: list[Tree], boosted: list[Tree], context: Context, unit: float) -> list[Member]:
    """The members of a blend."""
    kinds = (Recipe(cuts="random"), forest), (Recipe(cuts="boosted"), boosted)
    return [
        Member(trees, context_for(Point(kind, len(trees), 0.0, 0.0), context, unit)) for kind, trees in kinds
    ]


def regrown(
    candidate: Candidate, backend: Backend, context: Context, leaf: int, settings: Settings
) -> list[Candidate]:
    """The candidate with as many trees of its recipe, grown on the rows of a backend."""
    if candidate.recipe.cuts == "blend":
        trees = blended_again(candidate, backend, context, leaf, settings)
    else:
        trees = alone_again(candidate, backend, settings)
    return [candidate._replace(recipe=candidate.recipe._replace(refit=True), trees=trees)]


def alone_again(candidate: Candidate, backend: Backend, settings: Settings) -> list[Tree]:
    """The trees of a small forest, or of boosting at the full rate."""
    recipe, number, pool = candidate.recipe, len(candidate.trees), candidate.pool
    assert pool is not None
    if recipe.cuts == "best":
        return small_forest(backend, pool, number, settings)
    return boosted_again(careful(pool, recipe.rate, settings), number, backend)


def blended_again(
    candidate: Candidate, backend: Backend, context: Context, leaf: int, settings: Settings
) -> list[Tree]:
    """The trees of a blend, with the same weights."""
    recipe, pool = candidate.recipe, candidate.pool
    assert pool is not None
    in_forest, in_boosted = recipe.weights
    forest = random_forest(backend, pool, leaf, settings) if in_forest else []
    rounds = len(candidate.trees) - len(forest) if in_boosted else 0
    boosted = boosted_again(gentle(pool, recipe.rate, settings), rounds, backend)
    return blended(members_of(forest, boosted, context, settings.unit), recipe.weights)


def boosted_again(steps: Boost, rounds: int, backend: Backend) -> list[Tree]:
    """So many boosted trees, whatever validation rows would say."""
    recipe = Recipe(features=int(steps.pool.sum()), cuts="boosted", rate=steps.rate)
    return backend.boosted(lambda trees, error: (recipe, list(islice(trees(steps), rounds))))()[1]


def rate_for(features: Flags, settings: Settings, train: Totals) -> float:
    """What a unit of cost is worth, if nobody said: at half the pool's price, all the entropy there is."""
    share = train.counts / train.counts.sum()
    nats = -float((share * np.log(np.where(share > 0, share, 1.0))).sum())
    # as if a row acquired the whole pool
    price = float(settings.costs.prices(features).sum())
    # nothing to save where all is free, or where there is no choice
    if not price or n_bundles(features, settings.costs) == 1:
        return 0.0
    return nats / (2 * price) if settings.rate is None else settings.rate


def n_bundles(features: Flags, costs: Costs) -> int:
    """How many prices a pool has: the columns of a sensor have one."""
    return len(np.unique(costs.bundle[features]))
