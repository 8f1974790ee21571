"""Small models of every kind, the rows they know, and files made of them."""

import functools
import json
import math
import warnings

import numpy as np
import pandas as pd

from budgetforest import BudgetForestClassifier
from budgetforest.storage import container

N = 300


def table():
    """Numbers with holes, a colour, a number that is a name, and classes that depend on them."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=["age", "blood", "ecg", "mri"])
    y = (X["age"] + X["blood"] + 0.5 * X["mri"] > 0).to_numpy().astype(int)
    X = X.mask(rng.random(X.shape) < 0.1)
    X["colour"] = rng.choice(["red", "green", "blue", "rare"], N, p=[0.4, 0.3, 0.29, 0.01])
    X["ward"] = rng.integers(1, 4, N)
    return X, np.where((X["colour"] == "red") & (X["ward"] == 2), 2, y)


PRICES = pd.DataFrame(
    [
        ("age", 1.0, "", None),
        ("blood", 5.2, "draw", 3.1),
        ("ecg", 7.27, "draw", 5.17),
        ("mri", 100.0, "", None),
        ("colour", 0.0, "", None),
        ("ward", 1.0, "", None),
    ],
    columns=["feature", "cost", "group", "discount_cost"],
)
LETTERS = np.array(["ill", "well", "ünsure"])
CLINIC = {"costs": PRICES, "categorical_features": ["ward"]}
KINDS = {
    "auto": (CLINIC | {"budget": 20}, LETTERS),
    "auto without a budget": (CLINIC | {"answer": "proba"}, np.array([1.0, 2.0, 3.0])),
    "paper": (CLINIC | {"method": "paper", "budget": 20}, LETTERS),
    "paper, soft": (
        {"method": "paper", "budget": 4, "voting": "soft", "groups": list("aabbcc"), "bootstrap": False},
        np.array([1, 2, 3], np.int32),
    ),
    "paper, counts": (
        CLINIC | {"method": "paper", "alpha": 0.0, "voting": "counts", "impurity": "entropy"},
        np.array([False, True, True]),
    ),
    "budget too small": ({"budget": 0.01}, LETTERS),
}


@functools.cache
def trained(kind):
    parameters, labels = KINDS[kind]
    X, y = table()
    weight = np.random.default_rng(0).random(N) + 0.5 if "paper" in kind else None
    model = BudgetForestClassifier(**{"max_trees": 8, "random_state": 0} | parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, labels[y], sample_weight=weight)


def later_rows():
    """Rows that no model has seen, with unseen categories and missing values."""
    X, _ = table()
    rng = np.random.default_rng(6)
    X = X.sample(frac=1, random_state=1).reset_index(drop=True)
    X["age"] += rng.normal(size=N)
    X.loc[:20, "colour"] = "purple"
    X.loc[10:30, "mri"] = np.nan
    return X


def source_of(row):
    """Asks a dataframe's row; what it does not know is missing."""
    return lambda feature: row[feature] if row[feature] != "purple" else None


def budgets(model):
    """Every budget of the path at which there is something to choose."""
    return [point.cost for point in model.path_ if 0 < point.cost < math.inf]


def forged(arrays, document):
    """The bytes of a file that says this, its checksum right."""
    return b"".join(container.packed(arrays, json.dumps(document)))
