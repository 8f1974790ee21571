"""Weights as whole numbers of a small unit: integers add up exactly in any order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from budgetforest.runtime.arrays import MOST_WEIGHT, Floats, Ids


class Scale(NamedTuple):
    """How weights become whole numbers: multiplied, then rounded to a unit."""

    factor: float
    unit: float


def scale_for(whole: bool, n: int, total: float) -> Scale:
    """The scale of ``n`` weights that sum to ``total``: 1 if they are whole, else as fine as fits.

    Integers add up exactly in any order, which is what makes forests identical on any machine. Weights that
    are not whole are scaled to a mean of 1, since what they sum to means nothing.
    """
    return Scale(1.0, 1.0) if whole else Scale(n / total, 2.0 ** math.ceil(math.log2(n / MOST_WEIGHT)))


def in_units(weight: Floats, scale: Scale) -> Ids:
    """Weights as whole numbers, all positive.

    >>> scale = scale_for(False, 2, 1.0)
    >>> (in_units(np.array([0.25, 0.75]), scale) * scale.unit).tolist()
    [0.5, 1.5]
    """
    return np.maximum(np.round(weight * scale.factor / scale.unit).astype(np.int32), 1)
