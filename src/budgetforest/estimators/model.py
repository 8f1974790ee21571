"""A trained model without its trainer, as ``load`` gives it: scikit-learn is not needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from budgetforest.data.table import read_rows
from budgetforest.estimators.base import Prediction
from budgetforest.runtime.arrays import Anything, Matrix
from budgetforest.selection.result import TrainingResult


class Model(Prediction):
    """A trained model: it decides single rows and tables, at its budget and all smaller ones.

    It answers like the ``BudgetForestClassifier`` that was saved, with the same attributes, and cannot be
    trained further. Columns of a dataframe must have the names of the training columns, in their order.

    Attributes
    ----------
    budget : the budget in use, None for no limit
    n_jobs : threads that predict tables, None is 1, -1 all cores; may be set
    verbose : 1 shows a progress bar in ``predict_from``; may be set
    path_, forest_, costs_, classes_, alpha_, n_trees_, n_features_in_, feature_names_in_
    training_ : dict of version, rows, validation_rows, seed, parameters
    """

    def __init__(self, trained: TrainingResult, budget: float | None) -> None:
        self.budget = budget
        self.n_jobs: int | None = None
        self.verbose = 0
        self.classes_ = np.array(trained.context.classes)
        self.feature_names_in_ = np.array(trained.context.schema.names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self._use(trained, math.inf if budget is None else budget)

    def _matrix(self, X: Anything) -> Matrix:
        return read_rows(X, self._trained.context.schema)

    def score(self, X: Anything, y: Anything, sample_weight: Anything = None) -> float:
        """The share of rows that are labelled right."""
        right: Any = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        within = "" if self.budget is None else f", budget {self.budget:g}"
        classes = f"{len(self.classes_)} classes"
        return f"Model({self.n_trees_} trees, {self.n_features_in_} features, {classes}{within})"
