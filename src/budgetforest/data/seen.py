"""What a model remembers of its training rows: the range of every feature, and which rows they were.

The latter as a sketch, the smallest keys of all rows. Other rows whose keys lie in its range can be compared:
the share of them that it holds estimates the share of all that were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from budgetforest.runtime.arrays import Floats, Keys

SKETCH = 4096
"""Keys that are kept, 32 kB."""
ENOUGH_KEYS = 5
"""Rows that must be comparable before a share of them means something."""


class Seen(NamedTuple):
    """What is remembered of rows; of blocks of rows it adds up."""

    low: Floats
    """(m) the least value of each feature, infinite where it has none,"""
    high: Floats
    """(m) and the largest."""
    sketch: Keys
    """The ``SKETCH`` smallest keys of the rows, ascending."""


def seen_together(parts: Sequence[Seen]) -> Seen:
    """What is remembered of all blocks."""
    low, high, sketches = zip(*parts, strict=True)
    return Seen(np.min(low, axis=0), np.max(high, axis=0), smallest(np.concatenate(sketches)))


def smallest(keys: Keys) -> Keys:
    """The smallest different keys, as many as a sketch has."""
    return np.unique(keys)[:SKETCH]


def share_seen(seen: Seen, keys: Keys) -> float:
    """The share of rows with these keys that were seen, as far as the sketch tells; NaN if it cannot."""
    if len(seen.sketch) == SKETCH:
        keys = keys[keys <= seen.sketch[-1]]  # of larger keys the sketch says nothing
        if len(keys) < ENOUGH_KEYS:
            return float("nan")
    return float(np.isin(keys, seen.sketch).mean()) if len(keys) else float("nan")
