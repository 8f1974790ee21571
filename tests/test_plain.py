"""The same code without the compiler: a reduced set for NUMBA_DISABLE_JIT=1."""

import numpy as np
import pytest
from hypothesis import given, settings

import reference
from budgetforest import BudgetForestClassifier, check_admissible
from trees import as_rows, labelled_rows, nested, one_tree

pytestmark = pytest.mark.usefixtures("quiet")


@settings(max_examples=15)
@given(data=labelled_rows(max_rows=20, missing=True))
def test_tree_equals_the_papers(data):
    X, y = data
    expected = reference.greedy_tree(
        as_rows(X, [0]), y.tolist(), y.max() + 1, [1.0] * X.shape[1], reference.pairs(0), nominal=[0]
    )
    assert nested(one_tree(X, y, categorical_features=[0])) == expected


@pytest.mark.parametrize("splitter", ["binned", "exact", "random"])
def test_a_small_forest_predicts_and_pays(splitter):
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)
    model = BudgetForestClassifier(budget=3, alpha=[0, 2], max_trees=3, splitter=splitter, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.acquisition_cost(X).max() <= 3
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert all(c.ratio >= 1 - 1e-9 for c in model.certificates_)


def test_own_impurity_function_is_called():
    assert check_admissible(lambda n: n[0] * n[1], 2, trials=20)
