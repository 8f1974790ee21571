"""Which features a node tries, in which order: a random share of the pool, then the rest if none splits."""

from __future__ import annotations

import numpy as np

from budgetforest.runtime.arrays import Flags, Keys
from budgetforest.runtime.jit import inner, passage
from budgetforest.runtime.random import mix, uniform

TRIES = np.uint64(0x74726965)
"""Key of the draw that decides whether a feature is tried first."""

START = -1
"""The step before the first feature."""


@passage
def next_step(step: int, found: bool, key: np.uint64, features: Keys, pool: Flags, tries: float) -> int:
    """The step after this one, -1 when there is none; step s tries feature s % m.

    Steps 0 to m - 1 pass through the features drawn to be tried first, steps m to 2 m - 1 through the others,
    which are not tried if a split was ``found`` by then. ``features`` are the keys of all m.
    """
    m = len(pool)
    step += 1
    while step < 2 * m and not (step == m and found):
        j = step if step < m else step - m
        # drawn again in the second pass instead of remembered: the draw depends on its key alone
        if pool[j] and is_drawn(key, features[j], tries) == (step < m):
            return step
        step += 1
    return -1


@inner
def is_drawn(key: np.uint64, feature: np.uint64, tries: float) -> bool:
    """Whether a feature is among those that the node of this key tries first."""
    # keyed by the feature's name, so the order of columns does not matter
    return uniform(mix(mix(key, TRIES), feature)) < tries
