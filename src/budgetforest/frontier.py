"""``method="auto"``: forests that err least at every budget, whoever's idea they are.

*Pools* of features, each a part of the one before, are found by backward elimination: the features that
save least per price leave first. On every pool forests grow by saving (``saving``): with the best cuts, with
random ones, and with a rate that makes rows reuse what they have; and trees are boosted (``boost``), with and
without such a rate. Rows leave each of them by probable exit at a ladder of thresholds. All are measured on
validation rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from budgetforest.arrays import LEAF, Flags, Floats, Ids
from budgetforest.boost import Boost, boosted_trees
from budgetforest.budget import Offer, Point, Recipe, without_hopeless
from budgetforest.charge import charge, ladder
from budgetforest.forest import Answer, Context, Voting, first_trees, join
from budgetforest.grow import Sample
from budgetforest.prune import best_part, closure_of, pruned
from budgetforest.saving import Growth, Owned, grow_one, grow_saving
from budgetforest.split import Splitter
from budgetforest.train import Keep, Rows, Settings, context_of, make, n_rows, sample_of, totals_of
from budgetforest.trained import context_for
from budgetforest.tree import Tree, family


class Allowed(NamedTuple):
    """How often labels may differ from those of certain exit."""

    disagreement: float
    confidence: float
    forests: int
    """How many forests are tested."""


KEPT = 0.75
"""Share of a pool's features that stays in the next."""
MOST_TREES, MOST_ROUNDS = 60, 100
"""Trees of a forest, more of them gain little; and of boosting."""
PRUNED_ON = 1000
"""Rows that forests are pruned on, at most."""
PRUNED_AT = (0.1, 0.5)
"""Rates of pruning: what the price of a whole pool is worth, as a share of the error without features."""
FORESTS = 14
"""How many are measured of a pool, at most: seven, each in two sizes."""
THRESHOLDS = 32
"""Exits tried of every forest."""


def grow_frontier(
    train: Rows,
    validation: Rows,
    settings: Settings,
    pool: Executor,
    growers: Executor,
    tell: Callable[[str, int], None] = lambda what, trees: None,
    keep: Keep = make,
) -> list[Offer]:
    """Every forest on offer, with all its exits measured; trees that cannot be needed are let go.

    Trees are grown by ``growers``, all else is done by the threads of ``pool``.
    """
    sample = sample_of(train, settings._replace(bootstrap=True, splitter=Splitter.BINNED), pool)
    context = context_of(totals_of(train, settings.n_classes), settings)._replace(voting=Voting.SOFT)
    n_validation = n_rows(totals_of(validation, settings.n_classes), settings)
    features = np.ones(len(settings.costs.cost), bool)
    allowed = None
    if settings.disagreement is not None:
        allowed = Allowed(settings.disagreement, settings.confidence, FORESTS * n_pools(len(features)))
    offers: list[Offer] = []
    while features.any():
        step = partial(
            offers_of, features, sample, context, allowed, train, validation, settings, pool, growers, tell
        )
        found = keep(f"pool-{features.sum()}", step)
        features = smaller_pool(features, savings(found[0].trees, len(features)), settings.costs.cost)
        offers = without_hopeless([*offers, *found], n_validation)
    return offers


def offers_of(
    features: Flags,
    sample: Sample,
    context: Context,
    allowed: Allowed | None,
    train: Rows,
    validation: Rows,
    settings: Settings,
    pool: Executor,
    growers: Executor,
    tell: Callable[[str, int], None],
) -> list[Offer]:
    """The forests of one pool, that of best cuts first, with all their exits measured."""
    found = dict(grow_pool(sample, features, settings, growers, tell))
    found |= prune_forest(next(iter(found.values())), features, context, train, settings)
    return [
        Offer(recipe, forest, measure(forest, recipe, context, validation, settings.answer, allowed, pool), 1)
        for recipe, forest in found.items()
    ]


def grow_pool(
    sample: Sample,
    features: Flags,
    settings: Settings,
    pool: Executor,
    tell: Callable[[str, int], None],
) -> Iterator[tuple[Recipe, list[Tree]]]:
    """Forests that use only these features."""
    size = int(features.sum())
    costs, seed = settings.costs, settings.seed
    n_trees, n_rounds = min(settings.max_trees, MOST_TREES), min(settings.max_trees, MOST_ROUNDS)
    rate = rate_for(features, settings, sample)
    plain = Growth(features, 0.0, min(1.0, 2 / math.sqrt(size)), False, 1, settings.n_classes)
    steps = Boost(features, 0.0, settings.n_classes, tries=min(1.0, 4 / math.sqrt(size)))

    in_turn: dict[Recipe, Future[list[Tree]]] = {
        Recipe(features=size, cuts="boosted", rate=each): pool.submit(
            in_succession, n_rounds, boosted_trees, sample, steps._replace(rate=each), costs, seed
        )
        for each in dict.fromkeys((0.0, rate))
    }
    if rate:
        careful = plain._replace(rate=rate)
        in_turn[Recipe(features=size, rate=rate)] = pool.submit(
            in_succession, n_trees, grow_saving, sample, careful, costs, seed, True
        )
    nothing = Owned(np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.uint8))
    kinds = (("best", plain, True), ("random", plain._replace(random_cuts=True), False))
    for cuts, growth, bootstrap in kinds:
        futures = [
            pool.submit(grow_one, sample, growth, costs, nothing, seed, number, bootstrap)
            for number in range(n_trees)
        ]
        recipe = Recipe(features=size, cuts=cuts)
        grown = []
        for future in futures:
            grown.append(future.result())
            tell(str(recipe), len(grown))
        yield recipe, grown
    for recipe, trees in in_turn.items():
        grown = trees.result()
        yield recipe, grown
        tell(str(recipe), len(grown))


def in_succession(number: int, grow: Callable[..., Iterator[Tree]], *arguments: Any) -> list[Tree]:
    """So many trees, each of which depends on those before: the work of one thread."""
    return list(islice(grow(*arguments), number))


def prune_forest(
    trees: list[Tree], features: Flags, context: Context, train: Rows, settings: Settings
) -> dict[Recipe, list[Tree]]:
    """A quarter of the forest of best cuts, pruned at two rates on some of its rows."""
    price = float(context.costs.least[features].sum())
    if not price or features.sum() == 1:
        return {}
    forest = join(trees[: quarter(trees)], context)
    rows = few_rows(train, settings.unit)
    problem = closure_of(forest, train.X[rows], train.label[rows], train.weight[rows])
    error = 1 - context.prior.max() / context.prior.sum()
    kept, found = None, {}
    for worth in PRUNED_AT:
        rate = worth * float(error) / price
        kept = best_part(problem, rate, kept)
        if kept.any():
            found[Recipe(features=int(features.sum()), pruned=rate)] = pruned(forest, kept)
    return found


def few_rows(train: Rows, unit: float) -> Ids:
    """About ``PRUNED_ON`` rows; equal ones stay together, so that a weight of 2 is the row twice."""
    order = np.argsort(train.hashes, kind="stable").astype(np.int32)
    upto = np.cumsum(train.weight[order]) * unit
    last = min(int(np.searchsorted(upto, PRUNED_ON)), len(order) - 1)
    chosen: Ids = order[train.hashes[order] <= train.hashes[order[last]]]
    return chosen


def rate_for(features: Flags, settings: Settings, sample: Sample) -> float:
    """What a unit of cost is worth: at half the pool's price, all the entropy there is."""
    share = np.bincount(sample.label, sample.weight, settings.n_classes) / sample.weight.sum()
    nats = -float((share * np.log(np.where(share > 0, share, 1.0))).sum())
    price = float(settings.costs.least[features].sum())
    return nats / (2 * price) if price and features.sum() > 1 else 0.0


def savings(trees: list[Tree], n_features: int) -> Floats:
    """(m) the drop of entropy by each feature in all trees, weighted by rows."""
    total = np.zeros(n_features)
    for tree in trees:
        parent = family(tree, np.zeros(1, np.int32)).parent
        drop = tree.impurity * tree.counts.sum(axis=1)
        np.subtract.at(drop, parent[1:], drop[1:].copy())
        inner = tree.feature != LEAF
        total += np.bincount(tree.feature[inner], drop[inner], n_features)
    return total


def n_pools(size: int) -> int:
    """How many pools there are, from so many features down to one."""
    return 1 + n_pools(smaller(size)) if size > 1 else 1


def smaller(size: int) -> int:
    """How many features of a pool stay in the next."""
    return min(int(KEPT * size), size - 1)


def smaller_pool(features: Flags, saved: Floats, cost: Floats) -> Flags:
    """The pool without the features that save least per price; free ones stay to the end."""
    worth = saved / np.sqrt(np.where(cost > 0, cost, 1.0))
    members = np.flatnonzero(features)
    kept = np.zeros(len(features), bool)
    kept[members[np.lexsort((members, -worth[members], cost[members] > 0))[: smaller(len(members))]]] = True
    return kept


def measure(
    trees: list[Tree],
    recipe: Recipe,
    context: Context,
    validation: Rows,
    answer: Answer,
    allowed: Allowed | None,
    pool: Executor,
) -> list[Point]:
    """Mean cost and error on validation rows at every exit of the forest, and of a quarter of it."""
    weight = validation.weight
    share = (weight / weight.sum()).tolist()
    points = []
    full = join(trees, context_for(Point(recipe, len(trees), 0.0, 0.0), context, 1.0))
    for n in dict.fromkeys((quarter(trees), len(trees))):
        forest = first_trees(full, n)
        ends = thresholds(len(context.classes)) if answer == Answer.LABEL else [math.inf]
        exits = ladder(forest, validation.X, ends, pool)
        if answer == Answer.PROBA:
            exits.spent[:, 0] = charge(forest, validation.X, answer, pool).spent
        first = first_allowed(exits.labels, allowed)
        for at in range(first, len(ends)):
            # exact sums, whatever the order of the rows
            cost = math.fsum(s * paid for s, paid in zip(share, exits.spent[:, at].tolist(), strict=True))
            error = int(weight[exits.labels[:, at] != validation.label].sum()) / int(weight.sum())
            points.append(Point(recipe, n, cost, error, ends[at]))
    return points


def quarter(trees: list[Tree]) -> int:
    """How many trees a smaller forest has: often enough, and cheaper."""
    return max(1, len(trees) // 4)


def first_allowed(labels: Ids, allowed: Allowed | None) -> int:
    """The first of ascending thresholds from which on labels differ seldom enough from certain exit's.

    From certainty downwards, each threshold is tested in turn until one fails: such a sequence keeps the
    error rate of a single test (Learn then Test). Since several forests are tested, each has a share of it.
    """
    n, ends = labels.shape
    if allowed is None:
        return 0
    risk = (1 - allowed.confidence) / allowed.forests
    for at in range(ends - 2, -1, -1):
        differ = int((labels[:, at] != labels[:, -1]).sum())
        if most_likely_share(differ, n, risk) > allowed.disagreement:
            return at + 1
    return 0


def most_likely_share(found: int, n: int, risk: float) -> float:
    """The upper bound of Clopper and Pearson on a share of which ``found`` of ``n`` were seen."""
    return 1.0 if found == n else float(betaincinv(found + 1, n - found, 1 - risk))


def thresholds(n_classes: int) -> list[float]:
    """Beliefs at which rows may exit, from almost any to certainty."""
    even = 1 / n_classes
    return [even + (1 - even) * i / THRESHOLDS for i in range(THRESHOLDS)] + [math.inf]
