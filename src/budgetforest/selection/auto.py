"""``method="auto"``: search for the forest of least error at every budget.

*Pools* of features, each a part of the one before, are found by backward elimination: what saves boosted
trees least per price leaves first. On every pool there is a *blend* (``blend``) of a forest with random cuts
(``entropy_trees``) and boosted trees that know the prices (``boosting``). For small budgets there are smaller
forests: one with the best cuts, and a few trees boosted at a rate so high that rows acquire only what pays.
Rows leave each of them by probable exit at a ladder of thresholds. All are measured on validation rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from budgetforest.data.costs import Costs
from budgetforest.data.rows import Totals
from budgetforest.growing.entropy_trees import Growth
from budgetforest.runtime.arrays import LEAF, Counts, Flags, Floats
from budgetforest.runtime.errors import UnusualData, warn
from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.backend import Backend
from budgetforest.selection.blend import blended, weights_for
from budgetforest.selection.candidates import Candidate, Point, Recipe, thresholds
from budgetforest.selection.crossfit import Record, judged_by
from budgetforest.selection.crossfit import n_turns as turns_for
from budgetforest.selection.evaluation import error_without
from budgetforest.selection.path import without_hopeless
from budgetforest.selection.recipes import (
    SMALL,
    boosting_policies,
    leaf_for,
    members_of,
    n_bundles,
    random_forest,
    small_forest,
)
from budgetforest.selection.result import context_for
from budgetforest.selection.settings import Settings, context_of, n_rows
from budgetforest.selection.step_cache import StepCache, no_cache
from budgetforest.trees.forest import Answer, Context, Voting, end_to_end
from budgetforest.trees.tree import Tree, family


class Allowed(NamedTuple):
    """How often labels may differ from those of certain exit."""

    disagreement: float
    confidence: float
    forests: int
    """How many forests are tested."""

    @property
    def risk(self) -> float:
        """Of one of them."""
        return (1 - self.confidence) / self.forests


KEPT = 0.75
"""Share of a pool's features that stays in the next."""
FEW = 8
"""The last feature is chosen among so many, by error."""
FORESTS = 5
"""How many are measured of a pool, at most: the blend, and two sizes of the small forest and of the trees
boosted at the full rate."""
STEPS = 7
"""Of a pool, as people are told: three steps of growth, three forests measured, the end."""


def auto_candidates(
    backend: Backend, settings: Settings, tell: ProgressCallback = quiet, cache: StepCache = no_cache
) -> list[Candidate]:
    """Every candidate, with all its exits measured; trees that cannot be needed are let go."""
    # pools are counted by prices, not by columns: the columns of a sensor have one price
    pools = n_pools(n_bundles(np.ones(len(settings.costs.cost), bool), settings.costs))
    n_turns = turns_for(backend.train, validation_of(backend), settings)
    headway, record = Headway(tell, pools * (n_turns + 1)), Record()
    # few validation rows: the same search on other parts of the rows, only to be measured (``crossfit``)
    for turn, other in enumerate(backend.turns(), 1):
        kept = partial(named, cache, f"turn-{turn}")
        pools_of_turn = grow_pools(other, None, Record(), settings, headway.now, kept)
        for pool, found in enumerate(headway.of(pools_of_turn)):
            # no probable exit is ruled out here: the kept search may look up any threshold
            record.add(pool, found)
    allowed = None
    if settings.disagreement is not None:
        allowed = Allowed(settings.disagreement, settings.confidence, FORESTS * pools)
        warn_of_few(allowed, validation_of(backend), settings)
    n_judged = n_rows(judged_by(backend.train, validation_of(backend), settings), settings)
    candidates: list[Candidate] = []
    # then the search whose forests are kept
    grown = grow_pools(backend, allowed, record, settings, headway.now, cache)
    for pool, found in enumerate(headway.of(grown)):
        candidates += record.corrected(pool, found)
        # pool by pool, so that trees without a chance do not take memory until the end
        candidates = without_hopeless(candidates, n_judged)
    return candidates


def validation_of(backend: Backend) -> Totals:
    """The validation rows, which this method always has."""
    assert backend.validation is not None
    return backend.validation


class Headway:
    """How far the pools of all trainings have come, for people."""

    def __init__(self, tell: ProgressCallback, pools: int) -> None:
        self.tell, self.done, self.total = tell, 0, STEPS * pools

    def now(self, what: str) -> None:
        """What is being done next; the last step of a pool is its end."""
        self.tell("steps", self.done, self.total, what)
        # held before a pool's last step, which ``of`` counts when the pool is complete
        if (self.done + 1) % STEPS:
            self.done += 1

    def of(self, pools: Iterable[list[Candidate]]) -> Iterator[list[Candidate]]:
        """The same pools, counted."""
        for found in pools:
            self.done += STEPS - self.done % STEPS
            self.tell("steps", self.done, self.total)
            yield found


def named(cache: StepCache, name: str, what: str, step: Callable[[], list[Candidate]]) -> list[Candidate]:
    """Checkpoints under a name of their own."""
    return cache(f"{name}-{what}", step)


def warn_of_few(allowed: Allowed, validation: Totals, settings: Settings) -> None:
    """Say so if no probable exit can be proven on so few rows, even if no label ever differed."""
    risk, n = allowed.risk, n_rows(validation, settings)
    if allowed.disagreement and most_likely_share(0, n, risk) > allowed.disagreement:
        # no difference on n rows bounds the share by 1 - risk ** (1 / n)
        enough = math.ceil(math.log(risk) / math.log1p(-allowed.disagreement))
        warn(
            f"max_disagreement={allowed.disagreement:g} at confidence {allowed.confidence:g} cannot be shown "
            f"on {n} validation rows, it takes {enough}: rows exit only when their label is certain",
            UnusualData,
        )


def grow_pools(
    backend: Backend,
    allowed: Allowed | None,
    record: Record,
    settings: Settings,
    now: Callable[[str], None],
    cache: StepCache,
) -> Iterator[list[Candidate]]:
    """The forests of every pool, all features first."""
    context = context_of(backend.train, settings)._replace(voting=Voting.SOFT)
    features = few = np.ones(len(settings.costs.cost), bool)
    for pool in count():
        if not (n := n_bundles(features, settings.costs)):
            return
        weigh = partial(record.weights_with, pool)
        step = partial(candidates_of, features, backend, context, allowed, weigh, settings, now)
        found = cache(f"pool-{n}", step)
        yield [candidate._replace(pool=features) for candidate in found if candidate.points]
        # backward elimination: what saves boosted trees least per price leaves
        boosted = next(candidate.trees for candidate in found if candidate.recipe.cuts == "boosted")
        features = smaller_pool(features, feature_gains(boosted, len(features)), settings.costs)
        if n_bundles(few, settings.costs) > FEW:
            few = features
        # the last feature is chosen among the few before it, by error instead of entropy
        if n_bundles(features, settings.costs) == 1:
            features = best_alone(few, features, backend, context, settings)


def candidates_of(
    features: Flags,
    backend: Backend,
    context: Context,
    allowed: Allowed | None,
    weigh: Callable[[Floats], Floats],
    settings: Settings,
    now: Callable[[str], None],
) -> list[Candidate]:
    """The small forest and the blend of one pool, with all their exits measured, and what was boosted."""
    size = int(features.sum())
    # boosting begins first: it is the work of one thread, while others grow independent trees
    boosted = [backend.boosted(policy) for policy in boosting_policies(features, backend, context, settings)]
    best, random = Recipe(features=size), Recipe(features=size, cuts="random")
    now(str(best))
    few = small_forest(backend, features, min(settings.max_trees, SMALL), settings)
    now(str(random))
    many = random_forest(backend, features, leaf_for(backend.train, settings), settings)
    now(f"pool of {size}, boosted")
    (recipe, rounds), *at_full_rate = (wait() for wait in boosted)
    members = members_of(many, rounds, context, settings.unit)
    weights = weigh(weights_for(backend.member_scores(members), settings.unit))
    offers = [
        (best, few),
        # where no split is worth the full rate there is nothing to offer
        *((kind, trees) for kind, trees in at_full_rate if kind.rate),
        (recipe._replace(cuts="blend", weights=tuple(weights.tolist())), blended(members, weights)),
    ]
    candidates = [Candidate(recipe, rounds, [], 1)]
    for kind, trees in offers:
        now(f"{kind}: errors")
        # the same size is measured once; weights of a blend are those of all its trees
        sizes = [len(trees)] if kind.cuts == "blend" else sorted({quarter(len(trees)), len(trees)})
        points = measure(backend, trees, sizes, kind, context, settings, allowed)
        candidates.append(Candidate(kind, trees, points, 1))
    return candidates


def best_alone(few: Flags, otherwise: Flags, backend: Backend, context: Context, settings: Settings) -> Flags:
    """What one price buys that alone lowers the error most per price; ``otherwise`` if nothing does.

    What saves most entropy beside others may leave every label as it was.
    """
    without = error_without(context, validation_of(backend), settings)
    best, most, paid = otherwise, 0.0, 1.0
    bundle = settings.costs.bundle
    for which in np.unique(bundle[few]):
        alone = bundle == which
        growth = Growth(alone, 1.0, False, 1, settings.n_classes)
        trees = list(backend.independent(growth, SMALL, True))
        outcome = backend.outcomes(trees, context, [len(trees)], [math.inf])[0]
        gain, price = without - outcome.error(0), float(settings.costs.prices(alone).sum())
        # gain / price > most / paid without a division: what is free has price 0
        if gain * paid > most * price:
            best, most, paid = alone, gain, price
    return best


def feature_gains(trees: list[Tree], n_features: int) -> Floats:
    """(m) by how much each feature lowers the loss of boosted trees, in nats of all rows."""
    nodes, roots = end_to_end(trees, trees[0].counts.shape[1])
    parent = family(nodes, roots[:-1]).parent
    # boosted: minus what a node's score saves on all its rows, so that the drops of splits add up
    drop, child = nodes.impurity.copy(), parent >= 0
    np.subtract.at(drop, parent[child], nodes.impurity[child])
    inner = nodes.feature != LEAF
    total: Floats = np.bincount(nodes.feature[inner], drop[inner], n_features).astype(np.float64)
    return total


def n_pools(size: int) -> int:
    """How many pools there are, from so many prices down to one."""
    return 1 + n_pools(smaller(size)) if size > 1 else 1


def smaller(size: int) -> int:
    """How many prices of a pool stay in the next."""
    return min(int(KEPT * size), size - 1)


def smaller_pool(features: Flags, saved: Floats, costs: Costs) -> Flags:
    """The pool without what saves least per price; what is free stays to the end.

    The columns of a sensor leave together. A member of a panel is worth what it saves per reduced price,
    and no more than its whole panel is, whose opening they share.
    """
    bundle = costs.bundle
    members, first, own = np.unique(bundle[features], return_index=True, return_inverse=True)
    gain: Floats = np.bincount(own, saved[features]).astype(np.float64)
    group, discount = costs.group[features][first], costs.discount[features][first]
    # worth of a bundle: what its group saves per root of the group's price; a panel's member maybe less
    price = costs.prices(features)[group]
    worth = np.bincount(group, gain)[group] / np.sqrt(np.where(price > 0, price, 1.0))
    apart = (np.bincount(group)[group] > 1) & (discount > 0)
    worth[apart] = np.minimum(worth[apart], gain[apart] / np.sqrt(discount[apart]))
    # the last key counts first: free, then worth, then gain, then the lowest number
    order = np.lexsort((members, -gain, -worth, price > 0))
    return features & np.isin(bundle, members[order[: smaller(len(members))]])


def measure(
    backend: Backend,
    trees: list[Tree],
    sizes: Sequence[int],
    recipe: Recipe,
    context: Context,
    settings: Settings,
    allowed: Allowed | None,
) -> list[Point]:
    """Mean cost and error on validation rows, at every exit of forests of the first so many trees."""
    ends = thresholds(len(context.classes)) if settings.answer == Answer.LABEL else [math.inf]
    n = n_rows(validation_of(backend), settings)
    own = context_for(Point(recipe, len(trees), 0.0, 0.0), context, 1.0)
    return [
        Point(recipe, size, outcome.cost(at), outcome.error(at), ends[at], folds=outcome.folds(at))
        for size, outcome in zip(sizes, backend.outcomes(trees, own, sizes, ends), strict=True)
        # rounded up to whole rows, on the safe side
        for at in range(first_allowed(np.ceil(outcome.differ * settings.unit), n, allowed), len(ends))
    ]


def quarter(trees: int) -> int:
    """How many trees a smaller forest has: often enough, and cheaper."""
    return max(1, trees // 4)


def first_allowed(differ: Counts | Floats, n: int, allowed: Allowed | None) -> int:
    """The first of ascending thresholds from which on labels differ seldom enough from certain exit's.

    At each ``differ`` of ``n`` rows do. From certainty downwards, each threshold is tested in turn until one
    fails: such a sequence keeps the error rate of a single test (Learn then Test). Since several forests are
    tested, each has a share of it.
    """
    if allowed is None:
        return 0
    # the last threshold is certain exit itself, where nothing differs
    for at in range(len(differ) - 2, -1, -1):
        if most_likely_share(int(differ[at]), n, allowed.risk) > allowed.disagreement:
            return at + 1
    return 0


def most_likely_share(found: int, n: int, risk: float) -> float:
    """The upper bound of Clopper and Pearson on a share of which ``found`` of ``n`` were seen."""
    return 1.0 if found >= n else float(betaincinv(found + 1, n - found, 1 - risk))
