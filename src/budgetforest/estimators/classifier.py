"""The scikit-learn face: ``BudgetForestClassifier``.

What a fitted forest answers is in ``base``, the steps of ``fit`` in ``fitting``.
"""

from __future__ import annotations

import os
from typing import Self

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from budgetforest.data.validation import later_rows
from budgetforest.estimators.base import Prediction
from budgetforest.estimators.fitting import fit_here
from budgetforest.runtime.arrays import Anything, Matrix


class BudgetForestClassifier(Prediction, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A random forest whose average cost of acquiring features stays within a budget.

    Parameters
    ----------
    budget : float or None
        Allowed mean cost of a row, measured on validation rows. None: no limit but ``max_trees``.
    costs : None, array, dict, Series, dataframe or path
        Price of each feature, by column order or by name; None = 1 each. A dataframe or CSV has the
        columns ``feature,cost`` and optionally ``group,discount_cost``.
    groups : None, list or dict
        Features bought together, by column order or by name. Later members of a group cost their
        ``discount_cost``, or their full price where that is empty; nothing if no member has one (a sensor,
        with one price for all).
    method : "auto" or "paper"
        "auto": blends of a forest and boosted trees, and small forests, on pools of features, with probable
        exit; at every budget the one that errs least on validation rows. "paper": Algorithm 1, with the
        parameters ``alpha`` to ``voting``, which "auto" does not use.
    max_disagreement : float or None
        Of "auto": how often a label may differ from the full forest's, with ``confidence``. None: as
        often as is best at the budget. 0: never.
    confidence : float
        How sure ``max_disagreement`` must be, of all forests on offer together; the less it allows, the more
        validation rows that takes (a warning says how many).
    rate : float or None
        Of "auto": what a unit of cost is worth to boosted trees, in nats a row. None: such that
        half the price of a pool is worth all there is to know.
    max_features : float or None
        Of "auto": the share of a pool's features that a node of its forests tries. None: 2 / sqrt(features).
        Thresholds are drawn, one a feature, in the forest that is blended.
    refit : bool
        Of "auto": grow the chosen forests again on training and validation rows together, with exits at
        which they cost as much. False: validation rows only measure. Without effect if ``max_disagreement``
        is given, which is promised of the forest that was measured.
    alpha : "auto", float or list
        Threshold of the impurity: larger gives shallower, cheaper trees. Chosen on validation rows
        at equal budget; "auto" tries the paper's ten values and larger ones.
    impurity : "pairs", "powers", "entropy", "gini", an impurity object, terms or a function
        How mixed a node is. A function of the class counts is compiled with numba.
    splitter : "binned", "exact" or "random"
        Thresholds tried: the edges of ``max_bins`` quantile bins, every distinct value, or
        the paper's 80/40/20 random stumps.
    criterion : "minimax" or "expected"
        A split is as good as its worst child (the paper) or as its children's mean.
    max_bins : int
        Quantile bins of a column, at most 256; boosting takes 64.
    max_trees : int
        Of a forest; those of "auto" have at most 30. Boosting, whose trees are small, goes on while it helps,
        up to three times ``max_trees`` or 300.
    bootstrap : bool
        Grow each tree on rows drawn with replacement.
    voting : "majority", "soft" or "counts"
        One vote per tree, mean leaf frequencies, or summed leaf counts (for ranking).
    answer : "label" or "proba"
        What a row pays for, and so what the budget counts: its label, which stops as soon as no further
        feature can change it, or every score, which needs all trees (the paper's accounting).
    validation_fraction : float
        Part of the rows held out, by class, when validation rows are needed and not given.
    categorical_features : None, list of names or positions, or boolean mask
        Nominal features besides the categorical and string columns of dataframes.
    class_weight : None, "balanced" or dict
    n_jobs : int or None
        Threads; the forest never depends on it. None is 1, -1 all cores.
    random_state : int, RandomState or None
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    path_ : list of (recipe, trees, cost, error, threshold): a forest for every smaller budget
    alpha_, forest_, costs_, classes_, n_features_in_, feature_names_in_, n_trees_
    training_ : dict of version, rows, validation_rows, seed, parameters

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BudgetForestClassifier(budget=4, random_state=0).fit(X, y)
    >>> bool(model.acquisition_cost(X).mean() < 5)
    True
    """

    def __init__(
        self,
        budget: float | None = None,
        *,
        costs: Anything = None,
        groups: Anything = None,
        method: str = "auto",
        max_disagreement: float | None = None,
        confidence: float = 0.95,
        rate: float | None = None,
        max_features: float | None = None,
        refit: bool = True,
        alpha: Anything = "auto",
        impurity: Anything = "pairs",
        splitter: str = "binned",
        criterion: str = "minimax",
        max_bins: int = 256,
        max_trees: int = 100,
        bootstrap: bool = True,
        voting: str = "majority",
        answer: str = "label",
        validation_fraction: float = 0.3,
        categorical_features: Anything = None,
        class_weight: Anything = None,
        n_jobs: int | None = None,
        random_state: Anything = None,
        verbose: int = 0,
    ) -> None:
        self.budget = budget
        self.costs = costs
        self.groups = groups
        self.method = method
        self.max_disagreement = max_disagreement
        self.confidence = confidence
        self.rate = rate
        self.max_features = max_features
        self.refit = refit
        self.alpha = alpha
        self.impurity = impurity
        self.splitter = splitter
        self.criterion = criterion
        self.max_bins = max_bins
        self.max_trees = max_trees
        self.bootstrap = bootstrap
        self.voting = voting
        self.answer = answer
        self.validation_fraction = validation_fraction
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Anything,
        y: Anything,
        *,
        validation: Anything = None,
        sample_weight: Anything = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Grow the forest. ``validation=(X, y)`` gives the rows that measure cost and choose the forest.

        Otherwise a part of the rows is held out, if a budget or a choice needs it. A
        ``sample_weight`` of 2 counts as the row twice, also in validation; weights that are not whole are
        scaled to a mean of 1. In the folder ``checkpoint`` a long training keeps what it has done; the same
        call resumes it there, to the same forest.
        """
        with self._threads() as (pool, n_jobs):
            fit_here(self, X, y, validation, sample_weight, checkpoint, pool, pool, n_jobs)
        return self

    def _matrix(self, X: Anything) -> Matrix:
        return later_rows(self, X, self._trained.context.schema)

    def _check_trained(self) -> None:
        check_is_fitted(self)

    def _repr_html_inner(self) -> str:
        """In notebooks: scikit-learn's picture of the parameters, and the summary once fitted."""
        told = self.summary()._repr_html_() if hasattr(self, "_trained") else ""
        return str(super()._repr_html_inner()) + told

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
