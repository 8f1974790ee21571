"""Sums of doubles that are not rounded, so that neither order nor blocks matter."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from budgetforest.arrays import Floats


def exact_sum(values: Floats) -> Fraction:
    """The sum, not rounded; rounded it is that of ``math.fsum``.

    >>> float(exact_sum(np.full(10, 0.1)))
    1.0
    """
    share, power = np.frexp(values)
    whole = (share * 2.0**53).astype(np.int64)
    total = Fraction(0)
    for each in np.unique(power):
        part = whole[power == each]
        # high and low half apart: neither sum overflows
        number = (int((part >> 26).sum()) << 26) + int((part & (2**26 - 1)).sum())
        total += number * Fraction(2) ** (int(each) - 53)
    return total
