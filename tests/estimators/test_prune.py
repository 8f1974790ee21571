"""Any fitted forest, pruned to a budget."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from budgetforest import (
    BudgetForestClassifier,
    BudgetTooSmall,
    InvalidData,
    InvalidParameter,
    load,
    prune,
    save,
)


@pytest.fixture(scope="module")
def three_parts():
    X, y = make_classification(900, 12, n_informative=6, n_classes=3, flip_y=0.05, random_state=3)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    return frame[:300], y[:300], frame[300:600], y[300:600], frame[600:], y[600:]


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_forest_of_scikit_learn_is_pruned_to_a_budget(kind, three_parts):
    X, y, rows, labels, test, truth = three_parts
    theirs = kind(20, random_state=0).fit(X, y)
    costs = {f"f{j}": 1 + j % 4 for j in range(12)}
    whole = prune(theirs, rows, labels, budget=100, costs=costs)
    np.testing.assert_array_equal(whole.predict(test), theirs.predict(test))
    assert whole.path_[0].recipe.pruned == 0
    before = whole.acquisition_cost(rows).mean()
    errors = []
    for share in (0.75, 0.5, 0.25):
        cheap = prune(theirs, rows, labels, budget=share * before, costs=costs)
        assert 0 < cheap.acquisition_cost(rows).mean() <= share * before
        errors.append((cheap.predict(test) != truth).mean())
    assert errors[0] < errors[-1] < 0.6
    assert "pruned at" in str(cheap.path_[0])
    with pytest.warns(BudgetTooSmall, match="raise the budget"):
        assert not prune(theirs, rows, labels, budget=0.5, costs=costs).acquisition_cost(rows).any()


def test_a_pruned_model_is_saved_and_asked_like_any_other(three_parts, tmp_path):
    X, y, rows, labels, test, _ = three_parts
    cheap = prune(RandomForestClassifier(10, random_state=0).fit(X, y), rows, labels, budget=3)
    save(cheap, tmp_path / "cheap.safetensors")
    again = load(tmp_path / "cheap.safetensors")
    np.testing.assert_array_equal(again.predict(test), cheap.predict(test))
    decision = again.predict_one(lambda feature: test[feature].iloc[0])
    assert decision.label == cheap.predict(test[:1])[0]
    assert decision.spent == cheap.acquisition_cost(test[:1])[0]


@pytest.mark.parametrize("how", [{"method": "paper", "alpha": 0}, {"method": "auto"}])
def test_our_forests_are_pruned_too(how, three_parts):
    X, y, rows, labels, *_ = three_parts
    model = BudgetForestClassifier(8, max_trees=10, random_state=0, **how).fit(X, y)
    budgets = [p.cost for p in model.path_ if not p.recipe.scores and p.cost > 1]
    model = model.at_budget(budgets[-1])
    half = model.acquisition_cost(rows).mean() / 2
    assert prune(model, rows, labels, budget=half).acquisition_cost(rows).mean() <= half


def test_what_cannot_be_pruned_is_refused(three_parts):
    X, y, rows, labels, *_ = three_parts
    theirs = RandomForestClassifier(5, random_state=0)
    with pytest.raises(InvalidParameter, match="is not fitted yet"):
        prune(theirs, rows, labels, budget=3)
    theirs.fit(X, y)
    with pytest.raises(InvalidParameter, match="budget"):
        prune(theirs, rows, labels, budget=0)
    with pytest.raises(InvalidData, match="label 7"):
        prune(theirs, rows, labels + 7, budget=3)
    with pytest.raises(InvalidData, match="300 rows in X and 299 labels"):
        prune(theirs, rows, labels[1:], budget=3)
    boosted = BudgetForestClassifier(20, max_trees=8, random_state=0).fit(X, y)
    steps = [p.cost for p in boosted.path_ if p.recipe.scores]
    with pytest.raises(InvalidParameter, match="boosted"):
        prune(boosted.at_budget(steps[-1]), rows, labels, budget=1)
    with pytest.raises(InvalidParameter, match="leave them out"):
        prune(boosted, rows, labels, budget=1, costs=[1] * 12)
