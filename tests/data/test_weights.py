"""Weights as whole numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from budgetforest.data.weights import in_units, scale_for


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50))
def test_weights_are_rounded_to_the_nearest_unit(weights):
    weight = np.array(weights)
    scale = scale_for(False, len(weight), weight.sum())
    wanted = weight * scale.factor / scale.unit
    assert (np.abs(in_units(weight, scale) - wanted) <= 0.5).all()


def test_no_row_loses_its_weight():
    weight = np.array([1e-12, 1.0])
    assert in_units(weight, scale_for(False, 2, weight.sum()))[0] == 1
