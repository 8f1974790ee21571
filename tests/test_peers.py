"""Other forests are charged as ours are."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from budgetforest.charge import charge
from budgetforest.costs import read_costs
from budgetforest.forest import Answer
from budgetforest.ledger import open_ledger
from budgetforest.peers import from_sklearn


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier])
def test_a_row_pays_for_the_features_on_its_decision_paths(kind):
    X, y = load_wine(return_X_y=True)
    model = kind(random_state=0).fit(X, y)
    costs = read_costs(np.arange(13.0), None, [f"x{j}" for j in range(13)])
    met = open_ledger(len(X), costs).acquired
    for tree in getattr(model, "estimators_", [model]):
        path = tree.decision_path(X).toarray().astype(bool)
        for node in np.flatnonzero(tree.tree_.feature >= 0):
            met[path[:, node], tree.tree_.feature[node]] = True
    ledger = charge(from_sklearn(model, costs), X, Answer.PROBA)
    np.testing.assert_array_equal(ledger.acquired, met)
    np.testing.assert_allclose(ledger.spent, met @ np.arange(13.0))
