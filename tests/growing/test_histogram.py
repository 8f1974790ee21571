"""Class counts by code."""

import numba
import numpy as np
import pytest

from budgetforest.growing.histogram import ROWS_PER_CODE, Cells, counter_for, profile_for
from budgetforest.growing.histogram import fill_profile as fill_inner


@numba.njit
def fill_profile(codes, j, n_codes, rows, ends, weight, counter, profile):
    cells = Cells(codes.reshape(-1), codes.shape[1], 1)
    return fill_inner(cells, j, n_codes, rows, ends, weight, counter, profile)


@pytest.mark.parametrize("n", [20, 300, ROWS_PER_CODE * 51 + 1, 5000])
@pytest.mark.parametrize("kinds", [2, 50])
def test_profile_is_the_running_sum_of_class_counts(n, kinds):
    """Few rows are sorted, more are counted, many two at a time; and nothing is left for the next."""
    rng = np.random.default_rng(n)
    codes = rng.integers(0, kinds, (2, n)).astype(np.uint8)
    codes[:, rng.random(n) < 0.1] = 50  # missing
    rows, weight = np.arange(n, dtype=np.int32), rng.integers(1, 4, n).astype(np.int32)
    ends = np.array([n // 3, n // 3, n], np.int32)
    label = np.repeat([0, 2], [n // 3, n - n // 3])
    counter, profile = counter_for(50, 3), profile_for(50, 3)
    for j in range(2):
        size = fill_profile(codes, j, 50, rows, ends, weight, counter, profile)
        counts = np.zeros((51, 3), int)
        np.add.at(counts, (codes[j], label), weight)
        present = np.flatnonzero(counts[:50].any(axis=1))
        np.testing.assert_array_equal(profile.code[:size], present)
        np.testing.assert_array_equal(profile.upto[:size], counts[:50].cumsum(axis=0)[present])
        np.testing.assert_array_equal(profile.missing, counts[50])
    assert not any(part.any() for part in (counter.tally, counter.lines, counter.touched))
