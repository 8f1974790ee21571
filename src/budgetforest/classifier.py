"""The scikit-learn face: ``BudgetForestClassifier``.

Input is checked here, at the door; the steps themselves are the functions of the files below.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_array, check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_is_fitted,
    validate_data,
)

from budgetforest import impurity as impurities
from budgetforest import settings as check
from budgetforest.arrays import Anything, Flags, Floats, Ids, Matrix
from budgetforest.binning import hash_rows, single_valued
from budgetforest.budget import (
    Point,
    best_at,
    careful_path,
    only_used,
    path_of,
    surest,
    without_idle_trees,
)
from budgetforest.certificate import Certificate, certify
from budgetforest.charge import charge, labels, scores
from budgetforest.costs import read_costs
from budgetforest.errors import BudgetTooSmall, InvalidData, InvalidParameter, UnusualData
from budgetforest.forest import Answer, Voting, join, tree_of
from budgetforest.forest import importances as importances_of
from budgetforest.frame import to_dataframe
from budgetforest.frontier import context_for, grow_frontier
from budgetforest.ledger import Ledger
from budgetforest.live import LiveAcquisition
from budgetforest.progress import progress
from budgetforest.report import TITLE, Report, report
from budgetforest.split import Splitter
from budgetforest.table import as_frame, learn_schema, to_matrix
from budgetforest.train import MOST_WEIGHT, Rows, Settings, context_of, grow_offers, hold_out, in_units
from budgetforest.tree import Tree

PAPER_ONLY = ("alpha", "impurity", "splitter", "criterion", "bootstrap", "voting")
"""Parameters of the paper's method alone."""


class BudgetForestClassifier(LiveAcquisition, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
        ``discount_cost``, or nothing if the price list has none (a sensor).
    method : "auto" or "paper"
        "auto": forests that reuse what is paid, on pools of features, with probable exit; at every
        budget the one that errs least on validation rows. "paper": Algorithm 1, with the parameters
        ``alpha`` to ``voting``, which "auto" does not use.
    max_disagreement : float or None
        Of "auto": how often a label may differ from the full forest's, with ``confidence``. None: as
        often as is best at the budget. 0: never.
    confidence : float
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
    max_bins, max_trees : int
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
    ) -> Self:
        """Grow the forest. ``validation=(X, y)`` gives the rows that measure cost and choose the forest.

        Otherwise a part of the rows is held out, if a budget or a choice needs it. A
        ``sample_weight`` of 2 counts as the row twice, also in validation; weights that are not whole are
        scaled to a mean of 1.
        """
        rows, unit = self._training_rows(X, y, sample_weight)
        settings = self._settings(unit)
        if validation is not None:
            validation = self._validation_rows(validation)
        elif settings.auto or settings.chooses or settings.budget < math.inf:
            rows, validation = self._hold_out(rows, settings.seed)
        self._warn_of_constants(rows)
        with self._threads() as (pool, n_jobs), progress(self.verbose, settings.max_trees) as tell:
            if settings.auto:
                offers = list(grow_frontier(rows, validation, settings, pool, tell))
            else:
                offers = list(grow_offers(rows, validation, settings, pool, n_jobs, tell))
        self._settings_ = settings
        self.costs_ = settings.costs
        self._context = context_of(rows, settings)
        self._prior_error = math.nan
        if validation is not None:
            missed = validation.label != self._context.prior.argmax()
            self._prior_error = math.fsum(validation.weight[missed]) / math.fsum(validation.weight)
        if settings.auto:
            path = careful_path(offers, len(validation.label))
            self.path_ = [point for point in path if point.cost <= settings.budget]
            self._surest = surest(offers)
            self._offers = only_used(offers, [*self.path_, self._surest])
        else:
            self.path_ = path_of(offers, settings.budget)
            self._offers = without_idle_trees(offers, settings.budget)
        self._take(settings.budget)
        return self

    def at_budget(self, budget: float) -> Self:
        """The fitted classifier for a smaller budget, as if trained for it, without training."""
        check_is_fitted(self)
        if math.isnan(self.path_[-1].cost if self.path_ else 0.0):
            raise InvalidParameter(
                "this forest was trained without validation rows, so its costs are unknown; "
                "fit with a budget, several alphas, or validation=(X, y)"
            )
        limit = self._settings_.budget
        if budget is None or check.positive_budget(budget) > limit:
            raise InvalidParameter(
                f"budget {budget} is larger than {limit}, for which this forest was trained; fit again"
            )
        other = copy.copy(self)
        other.budget = budget
        budget = check.positive_budget(budget)
        if self._settings_.auto:
            other.path_ = [point for point in self.path_ if point.cost <= budget]
        else:
            other.path_ = path_of(self._offers, budget)
        other._take(budget)
        return other

    def _best(self, budget: float) -> Point | None:
        """The forest to take: without a budget one that never exits before it is certain."""
        if not self._settings_.auto:
            return best_at(self._offers, budget)
        if budget == math.inf:
            return self._surest
        useful = self.path_ and self.path_[-1].cost > 0
        return self.path_[-1] if useful else None

    def _take(self, budget: float) -> None:
        """Put the best forest within a budget to use."""
        best = self._best(budget)
        trees = []
        context = self._context
        if best is None and not self._offers:
            warnings.warn(
                "no feature lowers the impurity, so no tree splits: the forest predicts the most common "
                "class at no cost; check that the features tell the classes apart",
                UnusualData,
                stacklevel=3,
            )
        elif best is None:
            costs = [point.cost for offer in self._offers for point in offer.points]
            cheapest = min(cost for cost in costs if cost > 0 or not self._settings_.auto)
            warnings.warn(
                f"no useful tree fits budget {budget:g}: the cheapest costs {cheapest:g} on average. "
                "The forest predicts the most common class at no cost; raise the budget",
                BudgetTooSmall,
                stacklevel=3,
            )
        else:
            trees = next(o.trees for o in self._offers if o.recipe == best.recipe)[: best.trees]
            self._warn_of_idle_trees(best, trees)
            context = context_for(best, context, self._settings_.unit)
        self.alpha_ = best.alpha if best else math.nan
        self.forest_ = join(trees, context)
        self.n_trees_ = len(trees)

    def _warn_of_idle_trees(self, best: Point, trees: list[Tree]) -> None:
        """Say so when the forest is no better than an answer that costs nothing."""
        if best.alpha > 0 and all(len(tree.feature) == 1 for tree in trees):
            hint = f"alpha={best.alpha:g} is so large that no tree splits; take a smaller one"
        elif best.cost > 0 and best.error >= self._prior_error:
            hint = (
                f"the forest errs {best.error:.3f} on validation rows, no less than the most common class; "
                "raise the budget, or take method='auto' if prices are skewed"
            )
        else:
            return
        warnings.warn(hint, UnusualData, stacklevel=4)

    # Input -----------------------------------------------------------------------------------

    def _matrix(self, X: Anything, *, learn: bool = False) -> Matrix:
        """Rows as numbers; learns names and categories when training, enforces them afterwards."""
        rules: dict[str, Any] = {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan",
        }
        if hasattr(X, "collect"):
            raise InvalidData(f"X is a {type(X).__name__}, which is not computed yet; pass X.collect()")
        framed = as_frame(X) is not None
        if framed:
            validate_data(self, X, reset=learn, skip_check_array=True)
        else:
            if self.categorical_features is not None and np.asarray(X).dtype.kind in "OUS":
                rules |= {"dtype": None}  # categories may be strings
            X = validate_data(self, X, reset=learn, **rules)
        if learn:
            names = getattr(self, "feature_names_in_", None)
            names = [f"x{j}" for j in range(X.shape[1])] if names is None else list(map(str, names))
            self._schema = learn_schema(X, names, self.categorical_features)
        matrix: Matrix = to_matrix(X, self._schema)
        if matrix is not X:
            rules |= {"dtype": [np.float64, np.float32]}
            matrix = check_array(matrix, estimator=self, input_name="X", **rules)
        return matrix

    def _training_rows(self, X: Anything, y: Anything, weight: Anything) -> tuple[Rows, float]:
        if y is None:
            raise InvalidData(
                "fit requires y to be passed, but the target y is None; give a label for each row"
            )
        X = self._matrix(X, learn=True)
        y = _check_y(y, estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        weight = weight * compute_sample_weight(self.class_weight, y)
        used = np.flatnonzero(weight)
        self.classes_, label = np.unique(y[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData(
                f"y has one class ({self.classes_.tolist()}) among the rows of positive weight; "
                "a classifier needs at least two classes"
            )
        if weight.sum() > MOST_WEIGHT:
            raise InvalidData(
                f"sample_weight sums to {weight.sum():g}, more than {MOST_WEIGHT:g} rows; a weight of 2 "
                f"counts as the row twice: divide the weights by {weight.sum() / len(used):g}"
            )
        units, unit = in_units(weight[used])
        if len(used) < len(y):
            X = X[used]
        codes: Ids = label.astype(np.int32)
        return Rows(X, codes, np.maximum(units, 1), hash_rows(X, codes, self._schema)), unit

    def _settings(self, unit: float) -> Settings:
        chosen = impurities.choose(self.impurity)
        return Settings(
            budget=check.positive_budget(self.budget),
            alphas=check.alphas_for(self.alpha, chosen),
            impurity=chosen,
            splitter=check.one_of("splitter", self.splitter, Splitter),
            expected=check.is_expected(self.criterion),
            max_bins=check.bins(self.max_bins),
            max_trees=check.whole("max_trees", self.max_trees, 1),
            bootstrap=bool(self.bootstrap),
            voting=check.one_of("voting", self.voting, Voting),
            answer=check.one_of("answer", self.answer, Answer),
            costs=read_costs(self.costs, self.groups, self._schema.names),
            schema=self._schema,
            classes=tuple(self.classes_.tolist()),
            unit=unit,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            auto=self._is_auto(),
            disagreement=check.disagreement(self.max_disagreement),
            confidence=check.share("confidence", self.confidence),
        )

    def _is_auto(self) -> bool:
        """Whether the method is "auto"; parameters that it does not use are pointed out."""
        auto = check.is_auto(self.method)
        own = inspect.signature(BudgetForestClassifier).parameters
        idle = [name for name in PAPER_ONLY if auto and getattr(self, name) != own[name].default]
        if idle:
            warnings.warn(
                f"{', '.join(idle)}: without effect on method='auto'; take method='paper'",
                UnusualData,
                stacklevel=4,
            )
        return auto

    def _validation_rows(self, validation: Anything) -> Rows:
        try:
            X, y = validation
        except (TypeError, ValueError):
            raise InvalidData(
                f"validation is a {type(validation).__name__}; it must be a pair (X, y)"
            ) from None
        X = self._matrix(X)
        y = _check_y(y, estimator=self)
        check_consistent_length(X, y)
        label = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1).astype(np.int32)
        unknown = np.unique(y[self.classes_[label] != y])
        if len(unknown):
            raise InvalidData(
                f"validation has the label {unknown.tolist()[0]!r}, which is not among the training "
                f"classes {self.classes_.tolist()}; leave its rows out or add some to training"
            )
        self._warn_of_absent_classes(label)
        one = np.ones(len(label), np.int64)
        return Rows(X, label, one, hash_rows(X, label, self._schema))

    def _hold_out(self, rows: Rows, seed: int) -> tuple[Rows, Rows]:
        fraction = check.share("validation_fraction", self.validation_fraction)
        train, held = hold_out(rows, fraction, seed)
        if not len(held):
            raise InvalidData(
                f"validation_fraction={fraction} of {len(rows.label)} rows holds out none, since equal rows "
                "stay together and each class keeps one in training; give more distinct rows, a larger "
                "fraction, or validation=(X, y)"
            )
        self._warn_of_absent_classes(rows.label[held])
        return rows.take(train), rows.take(held)

    def _warn_of_absent_classes(self, label: Ids) -> None:
        absent = np.setdiff1d(np.arange(len(self.classes_)), label)
        if len(absent):
            warnings.warn(
                f"no validation row has the class {self.classes_[absent].tolist()[0]!r} "
                f"({len(absent)} of {len(self.classes_)} classes are absent): "
                "its errors do not count in the choice of the forest",
                UnusualData,
                stacklevel=4,
            )

    def _warn_of_constants(self, rows: Rows) -> None:
        # most features differ within a few rows
        same = single_valued(rows.X[:64])
        same[same] = single_valued(rows.X[:, same])
        constant = [name for name, flag in zip(self._schema.names, same, strict=True) if flag]
        if constant:
            warnings.warn(
                f"{len(constant)} of {len(same)} features are constant in training and will never be "
                f"acquired: {', '.join(map(repr, constant[:5]))}" + ", ..." * (len(constant) > 5),
                UnusualData,
                stacklevel=3,
            )

    @contextmanager
    def _threads(self) -> Iterator[tuple[ThreadPoolExecutor, int]]:
        n_jobs = effective_n_jobs(self.n_jobs)
        with ThreadPoolExecutor(n_jobs, "budgetforest") as pool:
            yield pool, n_jobs

    # Prediction ------------------------------------------------------------------------------

    def _scores(self, X: Anything) -> Floats:
        check_is_fitted(self)
        X = self._matrix(X)
        with self._threads() as (pool, _):
            return scores(self.forest_, X, pool)

    def predict(self, X: Anything) -> Any:
        """The label of each row; ties go to the lowest class."""
        check_is_fitted(self)
        X = self._matrix(X)
        with self._threads() as (pool, _):
            return self.classes_[labels(self.forest_, X, pool)]

    def predict_proba(self, X: Anything) -> Floats:
        """(rows, classes): shares of the votes, mean frequencies or shares of counts, by ``voting``."""
        total = self._scores(X)
        share: Floats = total / total.sum(axis=1, keepdims=True)
        return share

    def acquisition_cost(self, X: Anything, *, answer: str | None = None) -> Floats:
        """What each row pays for its label or its scores; ``answer`` is the estimator's by default."""
        return self._charge(X, answer).spent

    def acquired_features(self, X: Anything, *, answer: str | None = None) -> Flags:
        """(rows, features): which features each row pays for."""
        return self._charge(X, answer).acquired

    def _charge(self, X: Anything, answer: str | None) -> Ledger:
        check_is_fitted(self)
        X = self._matrix(X)
        with self._threads() as (pool, _):
            return charge(self.forest_, X, self._answer(answer), pool)

    def _answer(self, answer: str | None) -> Answer:
        return self._settings_.answer if answer is None else check.one_of("answer", answer, Answer)

    # Looking inside --------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Floats:
        """(features) each feature's share in the drop of Gini impurity, weighted by rows."""
        check_is_fitted(self)
        return importances_of(self.forest_)

    @property
    def certificates_(self) -> list[Certificate]:
        """For each tree: max-cost, lower bound of the optimum, their ratio, the theorem's factor."""
        check_is_fitted(self)
        settings = self._settings_
        chosen = impurities.compiled(settings.impurity, settings.n_classes)
        proven = impurities.is_admissible(chosen) and not settings.expected
        return [
            certify(tree_of(self.forest_, t), settings.costs, admissible=proven) for t in range(self.n_trees_)
        ]

    def trees_to_dataframe(self) -> Any:
        """One line per node of every tree, as a pandas dataframe."""
        check_is_fitted(self)
        return to_dataframe(self.forest_)

    def report(self, X: Anything, y: Anything, *, title: str = TITLE, baseline: Any = None) -> Report:
        """A page about the model, measured on rows that training has not seen: ``save`` it, or show it."""
        check_is_fitted(self)
        return report(self, X, y, title=title, baseline=baseline)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
