"""``method="auto"``: forests that err least at every budget, whoever's idea they are.

*Pools* of features, each a part of the one before, are found by backward elimination: the features that
save least per price leave first. On every pool forests grow by saving (``saving``): with the best cuts, with
random ones, and with a rate that makes rows reuse what they have; and trees are boosted (``boost``) at such a
rate. Rows leave each of them by probable exit at a ladder of thresholds. All are measured on
validation rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from budgetforest.arrays import LEAF, Counts, Flags, Floats, Ids
from budgetforest.boost import Boost, boosted_trees
from budgetforest.budget import Offer, Point, Recipe, without_hopeless
from budgetforest.charge import ladder, scores, spent
from budgetforest.crossfit import Record, judged_by, turns
from budgetforest.forest import Answer, Context, Forest, Voting, first_trees, join
from budgetforest.grow import Sample, labels_of
from budgetforest.prune import best_part, closure_of, pruned
from budgetforest.saving import Growth, Owned, grow_one, grow_saving
from budgetforest.split import Splitter
from budgetforest.sums import exact_sum
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
MOST_TREES = 60
"""Of a forest; more of them gain little."""
ROUNDS, TIMES = 100, 3
"""Boosted trees grow so many at a time, and so often at most."""
PRUNED_ON = 1000
"""Rows that forests are pruned on, at most."""
PRUNED_AT = (0.1, 0.5)
"""Rates of pruning: what the price of a whole pool is worth, as a share of the error without features."""
FORESTS = 12
"""How many are measured of a pool, at most: six, each in two sizes."""
THRESHOLDS = 32
"""Exits tried of every forest."""
MEASURED = 2**16
"""Validation rows whose exits are held at a time."""


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
    record = Record()
    for turn, (rest, judged) in enumerate(turns(train, validation, settings), 1):
        names = named(f"turn {turn}", tell, keep)
        for found in grow_pools(rest, judged, None, settings, pool, growers, *names):
            record.add(found, judged)
    allowed = None
    if settings.disagreement is not None:
        forests = FORESTS * n_pools(len(settings.costs.cost))
        allowed = Allowed(settings.disagreement, settings.confidence, forests)
    totals, others = (totals_of(rows, settings.n_classes) for rows in (train, validation))
    n_judged = n_rows(judged_by(totals, others, settings), settings)
    offers: list[Offer] = []
    for found in grow_pools(train, validation, allowed, settings, pool, growers, tell, keep):
        offers += record.corrected(found, validation)
        offers = without_hopeless(offers, n_judged)
    return offers


def grow_pools(
    train: Rows,
    validation: Rows,
    allowed: Allowed | None,
    settings: Settings,
    pool: Executor,
    growers: Executor,
    tell: Callable[[str, int], None],
    keep: Keep,
) -> Iterator[list[Offer]]:
    """The forests of every pool, all features first."""
    sample = sample_of(train, settings._replace(bootstrap=True, splitter=Splitter.BINNED), pool)
    context = context_of(totals_of(train, settings.n_classes), settings)._replace(voting=Voting.SOFT)
    features = np.ones(len(settings.costs.cost), bool)
    while features.any():
        step = partial(
            offers_of, features, sample, context, allowed, train, validation, settings, pool, growers, tell
        )
        found = keep(f"pool-{features.sum()}", step)
        yield found
        features = smaller_pool(features, savings(found[0].trees, len(features)), settings.costs.cost)


def named(name: str, tell: Callable[[str, int], None], keep: Keep) -> tuple[Callable[[str, int], None], Keep]:
    """Progress and checkpoints under a name of their own."""
    return (
        lambda what, trees: tell(f"{name}, {what}", trees),
        lambda what, step: keep(f"{name.replace(' ', '-')}-{what}", step),
    )


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
    found = dict(grow_pool(sample, features, context, validation, settings, growers, tell))
    found |= prune_forest(next(iter(found.values())), features, context, train, settings)
    return [
        Offer(recipe, forest, measure(forest, recipe, context, validation, settings.answer, allowed, pool), 1)
        for recipe, forest in found.items()
    ]


def grow_pool(
    sample: Sample,
    features: Flags,
    context: Context,
    validation: Rows,
    settings: Settings,
    pool: Executor,
    tell: Callable[[str, int], None],
) -> Iterator[tuple[Recipe, list[Tree]]]:
    """Forests that use only these features."""
    size = int(features.sum())
    costs, seed = settings.costs, settings.seed
    n_trees, n_rounds = min(settings.max_trees, MOST_TREES), min(settings.max_trees, ROUNDS)
    rate = rate_for(features, settings, sample)
    plain = Growth(features, 0.0, min(1.0, 2 / math.sqrt(size)), False, 1, settings.n_classes)
    steps = Boost(features, rate, settings.n_classes, tries=min(1.0, 4 / math.sqrt(size)))

    # trees that depend on those before are the work of one thread
    boosted = pool.submit(boost_pool, sample, steps, context, n_rounds, validation, settings)
    careful, payers = plain._replace(rate=rate), quarter(n_trees) if settings.free_riders else math.inf
    reusing = pool.submit(
        in_succession, n_trees if rate else 0, grow_saving, sample, careful, costs, seed, True, payers
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
    for recipe, grown in (boosted.result(), (Recipe(features=size, rate=rate), reusing.result())):
        if grown:
            yield recipe, grown
            tell(str(recipe), len(grown))


def boost_pool(
    sample: Sample, steps: Boost, context: Context, rounds: int, validation: Rows, settings: Settings
) -> tuple[Recipe, list[Tree]]:
    """Boosted trees at a rate; where no split is worth its price, without."""
    for rate in dict.fromkeys((steps.rate, 0.0)):
        recipe = Recipe(features=int(steps.pool.sum()), cuts="boosted", rate=rate)
        scoring = context_for(Point(recipe, rounds, 0.0, 0.0), context, settings.unit)
        trees = boosted_trees(sample, steps._replace(rate=rate), settings.costs, settings.seed)
        grown = while_better(trees, rounds, scoring, validation)
        if any(len(tree.feature) > 1 for tree in grown):
            break
    return recipe, grown


def while_better(trees: Iterator[Tree], rounds: int, context: Context, validation: Rows) -> list[Tree]:
    """Boosted trees, so many at a time, as long as they lower the error on validation rows."""
    kept: list[Tree] = []
    least = math.inf
    for _ in range(TIMES):
        grown = [*kept, *islice(trees, rounds)]
        label = scores(join(grown, context), validation.X).argmax(axis=1)
        wrong = int(validation.weight[label != validation.label].sum())
        if wrong >= least:
            break
        kept, least = grown, wrong
    return kept


def in_succession(number: int, grow: Callable[..., Iterator[Tree]], *arguments: Any) -> list[Tree]:
    """So many trees, each of which depends on those before."""
    return list(islice(grow(*arguments), number))


def prune_forest(
    trees: list[Tree], features: Flags, context: Context, train: Rows, settings: Settings
) -> dict[Recipe, list[Tree]]:
    """A quarter of the forest of best cuts, pruned at two rates on some of its rows."""
    price = float(context.costs.least[features].sum())
    if not price or features.sum() == 1:
        return {}
    forest = join(trees[: quarter(len(trees))], context)
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
    share = np.bincount(labels_of(sample), sample.weight, settings.n_classes) / sample.weight.sum()
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
    total = int(validation.weight.sum())
    points = []
    full = join(trees, context_for(Point(recipe, len(trees), 0.0, 0.0), context, 1.0))
    ends = thresholds(len(context.classes)) if answer == Answer.LABEL else [math.inf]
    for n in dict.fromkeys((quarter(len(trees)), len(trees))):
        cost, wrong, differ = measure_exits(first_trees(full, n), ends, validation, answer, pool)
        for at in range(first_allowed(differ, len(validation.label), allowed), len(ends)):
            points.append(Point(recipe, n, float(cost[at]), int(wrong[at]) / total, ends[at]))
    return points


def measure_exits(
    forest: Forest, ends: list[float], validation: Rows, answer: Answer, pool: Executor
) -> tuple[list[Fraction], Counts, Counts]:
    """At each threshold: mean cost, the weight of wrong labels, how many are not those of certain exit."""
    total = int(validation.weight.sum())
    cost = [Fraction(0) for _ in ends]
    wrong, differ = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.int64)
    for start in range(0, len(validation.label), MEASURED):
        rows = slice(start, start + MEASURED)
        X, label, weight = validation.X[rows], validation.label[rows], validation.weight[rows]
        exits = ladder(forest, X, ends, pool)
        if answer == Answer.PROBA:
            exits.spent[:, 0] = spent(forest, X, answer, pool)
        paid = exits.spent * (weight / total)[:, None]
        for at in range(len(ends)):
            cost[at] += exact_sum(paid[:, at])
            wrong[at] += weight[exits.labels[:, at] != label].sum()
        differ += (exits.labels != exits.labels[:, -1:]).sum(axis=0)
    return cost, wrong, differ


def quarter(trees: int) -> int:
    """How many trees a smaller forest has: often enough, and cheaper."""
    return max(1, trees // 4)


def first_allowed(differ: Counts, n: int, allowed: Allowed | None) -> int:
    """The first of ascending thresholds from which on labels differ seldom enough from certain exit's.

    ``differ`` tells how many of ``n`` do at each.

    From certainty downwards, each threshold is tested in turn until one fails: such a sequence keeps the
    error rate of a single test (Learn then Test). Since several forests are tested, each has a share of it.
    """
    if allowed is None:
        return 0
    risk = (1 - allowed.confidence) / allowed.forests
    for at in range(len(differ) - 2, -1, -1):
        if most_likely_share(int(differ[at]), n, risk) > allowed.disagreement:
            return at + 1
    return 0


def most_likely_share(found: int, n: int, risk: float) -> float:
    """The upper bound of Clopper and Pearson on a share of which ``found`` of ``n`` were seen."""
    return 1.0 if found == n else float(betaincinv(found + 1, n - found, 1 - risk))


def thresholds(n_classes: int) -> list[float]:
    """Beliefs at which rows may exit, from almost any to certainty."""
    even = 1 / n_classes
    return [even + (1 - even) * i / THRESHOLDS for i in range(THRESHOLDS)] + [math.inf]
