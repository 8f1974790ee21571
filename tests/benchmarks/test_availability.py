"""What missing features cost, measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from benchmarks import availability
from benchmarks.data import Data, Parts

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


@pytest.fixture
def wine(monkeypatch):
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    parts = Parts(order[:80], order[80:110], order[110:])
    monkeypatch.setattr(availability, "split", lambda data, seed: parts)
    return Data("wine", "Wine", pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y)


def test_rows_without_values_are_judged_by_both_rules_and_the_page_tells(wine):
    results = availability.measure(wine, "paper")
    assert [row["lacks"] for row in results] == ["10% of values", "30% of values", "60% of values"]
    assert results[2]["averaged"] != results[2]["routed"]
    page = availability.page(results)
    assert page.count("| Wine | paper |") == 3
    assert f"{results[0]['averaged']['brier']:.3f}" in page


def test_a_sure_and_right_answer_has_no_loss_and_a_coin_is_calibrated():
    truth = np.array([0, 1, 1, 0])
    sure = availability.judge(np.eye(2)[truth], truth)
    assert sure == {"accuracy": 1.0, "brier": 0.0, "calibration": 0.0}
    coin = availability.judge(np.full((4, 2), 0.5), truth)
    assert coin == {"accuracy": 0.5, "brier": 0.25, "calibration": 0.0}


def test_groups_are_lacking_as_a_whole():
    lacks = availability.lacking(50, np.array([0, 0, 1]), np.random.default_rng(0))["30% of groups"]
    assert (lacks[:, 0] == lacks[:, 1]).all()
    assert 0 < lacks.mean() < 1
