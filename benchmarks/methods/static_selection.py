"""The same few features for every row: the best by importance per cost, then LightGBM on these alone.

Importance is the gain of a LightGBM model of all features on training rows; features are ranked by it over
their own price, free ones first. A row pays for what it meets in the trees, which may be less than all k.

Swept: the number of features, leaves of a tree, learning rate, and rounds, as prefixes of one model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.methods import Model, Task
from benchmarks.methods.boosting import boosted, fit, rounds_of, setting

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
STYLES = ((8, 0.3), (31, 0.1), (127, 0.3))
"""Leaves and learning rate."""


def best_then_boosted(task: Task) -> Iterator[Model]:
    """Boosters on the best k features, for a ladder of k."""
    ranked = ranking(task)
    settings = []
    for size in SIZES[:6:2] if task.quick else SIZES:
        if size > len(ranked):
            break
        chosen = np.isin(np.arange(task.train.X.shape[1]), ranked[:size])
        X = np.where(chosen, task.train.X, 0)  # a constant column is never split
        for leaves, rate in STYLES[:1] if task.quick else STYLES:
            settings.append(setting(f"best {size} features", X, leaves, rate))
    return boosted(settings, task)


def ranking(task: Task) -> np.ndarray:
    """Features that have any gain, by gain per price."""
    every = setting("", task.train.X, 31, 0.1)
    gain = fit(task, every.X, every.parameters, rounds_of(task)[-1]).feature_importance("gain")
    per_price = np.divide(gain, task.costs.cost, out=np.full(len(gain), np.inf), where=task.costs.cost > 0)
    order = np.lexsort((-gain, -per_price))
    return order[gain[order] > 0]


METHODS = {"best k features, then LightGBM": best_then_boosted}
