"""Figures of the paper and of its authors' program, on real rows."""

import numpy as np
import pandas as pd
import pytest

from budgetforest import BudgetForestClassifier

pytestmark = [pytest.mark.data, pytest.mark.filterwarnings("ignore::budgetforest.UnusualData")]


def read(folder, name):
    table = pd.read_parquet(folder / f"{name}.parquet")
    return table.drop(columns="target").to_numpy(np.float32), table["target"].to_numpy()


def test_covertype_uses_as_few_features_as_the_paper_says(data_folder):
    X, y = read(data_folder, "covtype")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:36_603], order[52_291 : 52_291 + 58_101]
    model = BudgetForestClassifier(
        method="paper", alpha=0, splitter="exact", max_trees=10, random_state=0, n_jobs=-1
    )
    model.fit(X[train], y[train])
    one = BudgetForestClassifier(method="paper", alpha=0, splitter="exact", max_trees=1, random_state=0)
    one.fit(X[train], y[train])
    assert 0.11 <= one.acquisition_cost(X[test], answer="proba").mean() / 54 <= 0.12
    assert 0.21 <= model.acquisition_cost(X[test], answer="proba").mean() / 54 <= 0.24
    assert 0.165 <= 1 - model.score(X[test], y[test]) <= 0.180


@pytest.mark.parametrize(
    ("alpha", "error", "error_slack", "cost", "cost_slack"),
    [(0, 0.104, 0.009, 19.7, 1.7), (8, 0.122, 0.012, 10.2, 2.6)],
)
def test_miniboone_agrees_with_the_authors_program(data_folder, alpha, error, error_slack, cost, cost_slack):
    """Mean of five forests within three standard deviations of 20 runs of the authors' program."""
    X, y = read(data_folder, "miniboone_tiny")
    errors, costs = [], []
    for seed in range(5):
        model = BudgetForestClassifier(
            method="paper", alpha=alpha, splitter="exact", max_trees=10, random_state=seed, n_jobs=-1
        )
        model.fit(X[:2000], y[:2000])
        errors.append(1 - model.score(X[3000:], y[3000:]))
        costs.append(model.acquisition_cost(X[3000:], answer="proba").mean())
    assert abs(np.mean(errors) - error) <= error_slack
    assert abs(np.mean(costs) - cost) <= cost_slack


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("covtype", 4000),
        ("miniboone_tiny", 2000),
        ("cifar10_kmeans400", 1000),
        ("ann_thyroid", 3000),
        ("heart_cleveland", 150),
    ],
)
def test_certain_exit_changes_no_label_and_no_row_pays_more(data_folder, name, rows):
    X, y = read(data_folder, name)
    y = y % 2 if name.startswith("cifar") else y
    prices = data_folder / "costs" / f"{name}.csv"
    names = pd.read_parquet(data_folder / f"{name}.parquet").columns.drop("target")
    X = pd.DataFrame(X, columns=names)[: 2 * rows]
    costs = prices if prices.exists() else None
    model = BudgetForestClassifier(
        method="paper", alpha=0, max_trees=20, costs=costs, random_state=0, n_jobs=-1
    )
    model.fit(X[:rows], y[:rows])
    test = X[rows:]
    bulk = model.predict_from(lambda feature, who: test[feature].loc[who], test.index)
    full = model.acquisition_cost(test, answer="proba")
    np.testing.assert_array_equal(bulk.labels, model.predict(test))
    np.testing.assert_allclose(bulk.spent, model.acquisition_cost(test))
    assert (bulk.spent <= full + 1e-9).all()
    assert bulk.spent.mean() < full.mean()
