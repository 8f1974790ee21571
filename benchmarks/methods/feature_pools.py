"""Feature pools: features are dropped a quarter at a time, then extra trees or LightGBM learn on what is left.

Backward elimination: LightGBM, fitted to the training rows of a pool, says how much each feature gains; those of least
gain for their price leave, and it is fitted again without them, down to a single feature. Where prices differ this is
done twice, by gain per price and per root of price, which keeps dear features longer. Free features leave last. (Gini
importance of extra trees chose worse pools.) A row pays for what it meets in the trees, which may be less than its pool.

Swept: the pool, features a split and depth of extra trees, leaves and learning rate of LightGBM, and trees or rounds, as
prefixes of one model; as many of these as time allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.methods import Model, Task, forest_model
from benchmarks.methods.boosting import boosted, fit, setting
from budgetforest.data.costs import read_costs
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Forest, first_trees

DROP = 0.25
POWERS = (1.0, 0.5)
JUDGE = {"num_leaves": 31, "learning_rate": 0.3, "lambda_l2": 1.0}
"""Says what is important, after 20 rounds."""
TREES = (1, 2, 3, 5, 8, 12, 20, 40)
FORESTS = (("sqrt", None), ("sqrt", 8), (0.5, None), (0.5, 5))
"""Features a split and depth."""
BOOSTERS = ((31, 0.1), (8, 0.3), (127, 0.3))
"""Leaves and learning rate."""
WORK = {"forests": 6e6, "boosters": 2.5e7}
"""Rows x features x styles of all pools (and x classes of boosters) that take two minutes on two cores."""


@lru_cache(maxsize=1)
def pools(task: Task) -> list[tuple[int, ...]]:
    """All features, then ever fewer, each pool once; the classifiers share them."""
    gains: dict[tuple[int, ...], np.ndarray] = {}
    for power in powers_of(task):
        pool = tuple(range(len(task.costs.cost)))
        while pool:
            if pool not in gains:
                X = only(pool, task.train.X)
                gains[pool] = fit(task, X, JUDGE, rounds=20).feature_importance("gain")[list(pool)]
            pool = without_least(pool, gains[pool], task.costs.cost[list(pool)] ** power)
    return list(gains)


def powers_of(task: Task) -> tuple[float, ...]:
    return POWERS if np.ptp(task.costs.cost) else POWERS[:1]


def only(pool: tuple[int, ...], X: np.ndarray) -> np.ndarray:
    """The rows with other features made constant, which LightGBM never splits."""
    return np.where(np.isin(np.arange(X.shape[1]), pool), X, 0)


def without_least(pool: tuple[int, ...], gain: np.ndarray, price: np.ndarray) -> tuple[int, ...]:
    """The pool without those of least gain for their price."""
    worth = np.divide(gain, price, out=np.full(len(pool), np.inf), where=price > 0)
    staying = np.lexsort((gain, worth))[max(1, int(DROP * len(pool))) :]
    return tuple(np.array(pool)[np.sort(staying)].tolist())


def turns_of(task: Task, affordable: float, most: int) -> int:
    """How many styles every pool is tried with."""
    turns = affordable / (task.train.X.size * len(powers_of(task)))
    return 1 if task.quick else int(np.clip(round(turns), 1, most))


def then_extra_trees(task: Task) -> Iterator[Model]:
    """Forests of 1, 2, 3, ... extra trees on every pool."""
    trees = TREES[:5] if task.quick else TREES
    for pool in pools(task):
        for features, depth in FORESTS[: turns_of(task, WORK["forests"], len(FORESTS))]:
            model = ExtraTreesClassifier(
                trees[-1], max_features=features, max_depth=depth, random_state=task.seed
            )
            forest = on_all_features(model.fit(task.train.X[:, pool], task.train.y), pool, task)
            for t in trees:
                what = f"pool of {len(pool)}, {t} trees, {features} features a split, depth {depth}"
                yield forest_model(what, first_trees(forest, t))


def on_all_features(model: ExtraTreesClassifier, pool: tuple[int, ...], task: Task) -> Forest:
    """A forest that was fitted to a pool, for rows of all features at their prices."""
    forest = from_sklearn(model, read_costs(None, None, [f"x{j}" for j in pool]))
    asked = forest.nodes.feature
    feature = np.where(asked == LEAF, LEAF, np.array(pool)[asked]).astype(asked.dtype)
    return forest._replace(nodes=forest.nodes._replace(feature=feature), costs=task.costs)


def then_lightgbm(task: Task) -> Iterator[Model]:
    """Boosters on every pool."""
    styles = BOOSTERS[: turns_of(task, WORK["boosters"] / task.n_classes, len(BOOSTERS))]
    settings = []
    for pool in pools(task):
        X = only(pool, task.train.X)
        settings += [setting(f"pool of {len(pool)}", X, leaves, rate) for leaves, rate in styles]
    return boosted(settings, task)


METHODS = {"pools, then extra trees": then_extra_trees, "pools, then LightGBM": then_lightgbm}
