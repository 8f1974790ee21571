"""What rows get and pay, all at once, is what the functions for each part give."""

import numpy as np
import pytest

from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import answerer, charge, labels, ladder, scores, spent
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


@pytest.mark.parametrize("nominal", [False, True])
def test_a_row_exits_alike_whatever_rows_are_beside_it(nominal):
    """Rows are put beside their like, thousands at a time; each has its own answer all the same."""
    X, y = rows(5_000)
    X[:, 4] = np.digitize(X[:, 4], [-1, 0, 1])
    model = BudgetForestClassifier(
        3, categorical_features=[4] if nominal else None, max_trees=5, random_state=0
    ).fit(X[:400], y[:400])
    together = ladder(model.forest_, X, [0.6, 0.9, np.inf])
    shuffled = np.random.default_rng(0).permutation(len(X))
    parts = [ladder(model.forest_, X[part], [0.6, 0.9, np.inf]) for part in np.split(shuffled, [1, 7, 3_000])]
    for name in ("spent", "labels", "belief"):
        apart = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(apart, getattr(together, name)[shuffled])


def test_without_trees_the_prior_answers():
    X, y = rows()
    with pytest.warns(UserWarning, match="raise the budget"):
        model = BudgetForestClassifier(1e-6, random_state=0, **PAPER).fit(X, y)
    given = answerer(model.forest_, Answer.LABEL)(X, None)
    assert np.allclose(given.share, np.bincount(y, minlength=3) / len(y), atol=0.05)
    assert not given.ledger.spent.any()
