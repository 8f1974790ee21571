"""Cost-error curves and their measures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from budgetforest import (
    BudgetForestClassifier,
    Choice,
    Curve,
    InvalidData,
    InvalidParameter,
    cost_error_curve,
)
from budgetforest.report.curve import curve_of, envelope, interval, precision_at

COSTS = st.floats(0, 10)


def choice(cost, error):
    return Choice(f"{cost}", cost, error, lambda: (np.full(2, cost), np.full(2, error)))


@given(st.lists(st.tuples(COSTS, COSTS), min_size=1, max_size=12))
def test_envelope_holds_what_errs_less_than_all_that_is_cheaper(points):
    choices = [choice(*point) for point in points]
    kept = envelope(choices)
    for offered in choices:
        fitting = [c.error for c in choices if c.cost <= offered.cost]
        assert min(c.error for c in kept if c.cost <= offered.cost) == min(fitting)
    assert [c.cost for c in kept] == sorted({c.cost for c in kept})
    assert [c.error for c in kept] == sorted({c.error for c in kept}, reverse=True)


@given(st.lists(st.tuples(COSTS, COSTS), max_size=8), st.floats(0, 5), st.floats(0.1, 5))
def test_area_is_the_mean_error_over_budgets(points, low, width):
    curve = curve_of("", [choice(0.0, 11.0), *(choice(*point) for point in points)])
    budgets = low + (np.arange(4000) + 0.5) / 4000 * width
    mean = np.mean([curve.error[curve.taken(b)] for b in budgets])
    assert curve.area(low, low + width).mean == pytest.approx(mean, abs=0.05)


def test_choices_are_taken_by_validation_and_judged_by_test_rows():
    lucky = Choice("lucky", 1.0, 0.1, lambda: (np.array([1.0, 3.0]), np.array([1.0, 0.0])))
    better = Choice("better", 1.0, 0.2, lambda: pytest.fail("not taken, so never judged"))
    curve = curve_of("m", [lucky, better])
    assert curve.what == ("lucky",)
    assert (curve.at(1).mean, curve.cost[0]) == (0.5, 2.0)


def test_curve_of_a_model_is_that_of_its_smaller_budgets():
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(6, max_trees=10, random_state=0).fit(X[::2], y[::2])
    curve = cost_error_curve(model, X[1::2], y[1::2])
    assert curve.cost[0] == 0
    assert curve.error[0] == np.mean(y[1::2] != np.bincount(y[::2]).argmax())
    for budget in (1.5, 3.0, 6.0):
        at = model.at_budget(budget)
        assert curve.at(budget).mean == pytest.approx(1 - at.score(X[1::2], y[1::2]))
        assert curve.cost[curve.taken(budget)] == at.acquisition_cost(X[1::2]).mean()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_interval_covers_the_truth_as_often_as_it_says(share):
    draws = np.random.default_rng(0)
    rows = (draws.random((300, 200)) < share).astype(float)
    covered = [(i := interval(row, level=0.9)).low <= share <= i.high for row in rows]
    assert 0.84 <= np.mean(covered) <= 0.96


def test_interval_is_that_of_drawing_rows_again():
    values = np.random.default_rng(1).random(50)
    draws = np.random.default_rng(2)
    means = [values[draws.integers(50, size=50)].mean() for _ in range(20_000)]
    low, high = np.quantile(means, [0.025, 0.975])
    found = interval(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(low, abs=0.012)
    assert found.high == pytest.approx(high, abs=0.012)


def plain_precision(relevant):
    """The paper's words: 1 if all of the first five are relevant, else (j - 1) / 5."""
    for j, is_relevant in enumerate(relevant[:5], start=1):
        if not is_relevant:
            return (j - 1) / 5
    return 1.0


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30))
def test_precision_is_as_the_paper_defines_it(documents):
    query = np.array([q for q, _ in documents])
    relevant = np.array([r for _, r in documents])
    score = np.random.default_rng(0).permutation(len(query)) / len(query)  # no ties
    ranked = np.argsort(-score)
    expected = [plain_precision(relevant[ranked][query[ranked] == q]) for q in np.unique(query)]
    assert precision_at(score, relevant, query).tolist() == expected


def test_equal_scores_gain_nothing_from_the_order_of_the_file():
    relevant = np.tile([True] * 5 + [False] * 5, 400)
    query = np.repeat(np.arange(400), 10)
    found = precision_at(np.zeros(4000), relevant, query).mean()
    first = [plain_precision(np.random.default_rng(s).permutation(relevant[:10])) for s in range(4000)]
    assert found == pytest.approx(np.mean(first), abs=0.03)


def test_what_cannot_be_drawn_or_asked_is_said():
    curve = curve_of("ours", [choice(2.0, 0.1)])
    with pytest.raises(InvalidParameter, match="budget 1 is below 2, the cheapest model of 'ours'"):
        curve.at(1)
    with pytest.raises(InvalidParameter, match="low < high"):
        curve.area(3, 3)
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(4, max_trees=2, random_state=0).fit(X, y)
    with pytest.raises(InvalidData, match="178 rows and y 5 labels"):
        cost_error_curve(model, X, y[:5])


def test_plot_shows_mean_cost_and_error():
    pytest.importorskip("matplotlib").use("svg")
    curve = Curve(
        "ours", ("a", "b"), np.array([0.0, 2.0]), np.array([[0, 0], [1, 3]]), np.array([[1, 1], [0, 1]])
    )
    ax = curve.plot(color="black")
    assert ax.lines[0].get_xydata().tolist() == [[0, 1], [2, 0.5]]
    assert ax.lines[0].get_label() == "ours"
    assert curve.plot(ax) is ax
    assert len(ax.lines) == 2
