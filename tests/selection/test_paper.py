"""Examples and promises that the paper prints."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from budgetforest import ThresholdPairs
from budgetforest.growing.impurity import ThresholdPairs as Pairs
from budgetforest.growing.impurity import compiled, value_of
from budgetforest.trees.tree import family
from trees import nested, one_tree


def pairs(counts, alpha, offset=True):
    return value_of(compiled(Pairs(alpha, offset), len(counts)), np.array(counts, float))


def test_the_toy_example_as_printed_leaves_out_the_offset():
    printed = [(30, 30), (30, 10), (0, 20), (15, 15)]
    assert [pairs(n, 0) for n in printed] == [900, 300, 0, 225]
    assert [pairs(n, 8, offset=False) for n in printed] == [484, 44, 0, 49]


def test_the_toy_example_by_equation_7_is_a_tie():
    assert [pairs(n, 8) for n in [(30, 30), (30, 10), (0, 20), (15, 15)]] == [420, 0, 0, 0]


@pytest.mark.parametrize(
    ("impurity", "chosen"),
    [(ThresholdPairs(0), 1), (ThresholdPairs(8, offset=False), 0), (ThresholdPairs(8), 0)],
)
def test_alpha_changes_the_feature_of_the_toy_example(impurity, chosen):
    """t1 parts 20 rows of class 2 from the rest; t2 halves both classes."""
    y = np.repeat([0, 1], 30)
    t1 = (np.arange(60) >= 40).astype(float)
    t2 = (np.arange(60) % 2).astype(float)
    model = one_tree(np.column_stack([t1, t2]), y, impurity=impurity, alpha="auto")
    assert nested(model)[1] == chosen


@pytest.fixture(scope="module")
def synthetic():
    """1024 rows, 10 binary features, 4 classes; rows 0, 256, 512 and 768 belong to the next class."""
    number = np.arange(1024)
    X = (number[:, None] >> np.arange(9, -1, -1)) & 1
    y = number // 256 + 1
    y[::256] = [2, 3, 4, 1]
    return X.astype(float), y


def test_the_synthetic_example_is_almost_solved_by_two_features(synthetic):
    model = one_tree(*synthetic, alpha=1)
    assert model.certificates_[0].max_cost == 2
    assert (model.predict(synthetic[0]) != synthetic[1]).sum() == 4
    assert family(model.forest_.nodes, model.forest_.roots[:-1]).depth.max() == 2


def test_the_synthetic_example_needs_all_ten_features_for_no_error(synthetic):
    model = one_tree(*synthetic, alpha=0)
    assert model.score(*synthetic) == 1
    assert model.certificates_[0].max_cost == 10
    assert family(model.forest_.nodes, model.forest_.roots[:-1]).depth.max() == 10


def optimum(rows, labels, costs, impurity, used=frozenset()):
    """Least max-cost of any tree with pure leaves that uses no feature twice; infinite if none."""
    n_classes = max(labels) + 1
    if impurity([*reference.count(labels, n_classes), 0, 0, 0]) <= 0:
        return 0.0
    best = math.inf
    for t, cost in enumerate(costs):
        if t in used:
            continue
        for cut in reference.thresholds([row[t] for row in rows]):
            worst = 0.0
            for way in (True, False):
                part = [i for i, row in enumerate(rows) if (row[t] <= cut) == way]
                worst = max(
                    worst,
                    optimum([rows[i] for i in part], [labels[i] for i in part], costs, impurity, used | {t}),
                )
            best = min(best, cost + worst)
    return best


@st.composite
def solvable(draw):
    """Distinct binary rows, so that a perfect tree exists and uses no feature twice."""
    m = draw(st.integers(2, 4))
    rows = draw(
        st.lists(st.sampled_from(list(itertools.product([0.0, 1.0], repeat=m))), min_size=3, unique=True)
    )
    labels = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    costs = draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=m, max_size=m))
    labels = np.unique(labels, return_inverse=True)[1].tolist()
    return rows, labels, costs


@pytest.mark.usefixtures("quiet")
@given(solvable())
def test_greedy_is_within_the_theorems_factor_of_the_optimum(example):
    rows, labels, costs = example
    if len(set(labels)) < 2:
        return
    model = one_tree(np.array(rows), labels, costs=costs)
    certificate = model.certificates_[0]
    best = optimum(rows, labels, costs, reference.pairs(0))
    whole = reference.pairs(0)(reference.count(labels, max(labels) + 1))
    assert certificate.factor == pytest.approx(math.log(whole) + 1)
    assert best <= certificate.max_cost <= best * certificate.factor + 1e-9
    assert certificate.lower_bound <= best + 1e-9
    assert certificate.ratio == pytest.approx(certificate.max_cost / certificate.lower_bound)
