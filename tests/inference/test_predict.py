"""What rows get and pay, all at once, is what the functions for each part give."""

import numpy as np
import pytest

from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import answerer, charge, labels, scores, spent
from budgetforest.trees.forest import Answer, shares

PAPER = {"method": "paper", "alpha": 0, "max_trees": 7}


def rows(n=120):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 5))
    y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n), [-0.7, 0.7])
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.mark.parametrize("answer", Answer)
@pytest.mark.parametrize(
    "parameters",
    [PAPER, PAPER | {"voting": "soft"}, {"budget": 3}, {"budget": 2, "groups": ["a", "a", "b", "b", None]}],
    ids=str,
)
@pytest.mark.usefixtures("quiet")
def test_answers_are_labels_charges_and_beliefs(parameters, answer):
    X, y = rows()
    model = BudgetForestClassifier(random_state=0, **parameters).fit(X, y)
    forest = model.forest_
    given = answerer(forest, answer)(X, None)
    assert np.array_equal(given.label, labels(forest, X))
    for mine, other in zip(given.ledger, charge(forest, X, answer), strict=True):
        assert np.array_equal(mine, other)
    assert np.array_equal(given.ledger.spent, spent(forest, X, answer))
    if answer == Answer.PROBA:
        assert np.array_equal(given.share, shares(scores(forest, X), forest.voting))
        return
    for row, share in zip(X, given.share, strict=True):
        decision = model.predict_one(lambda name, row=row: row[int(name[1:])], answer="label")
        assert np.allclose(decision.belief, share, atol=1e-6)


def test_without_trees_the_prior_answers():
    X, y = rows()
    with pytest.warns(UserWarning, match="raise the budget"):
        model = BudgetForestClassifier(1e-6, random_state=0, **PAPER).fit(X, y)
    given = answerer(model.forest_, Answer.LABEL)(X, None)
    assert np.allclose(given.share, np.bincount(y, minlength=3) / len(y), atol=0.05)
    assert not given.ledger.spent.any()
