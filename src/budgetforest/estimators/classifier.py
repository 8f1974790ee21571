"""The scikit-learn face: ``BudgetForestClassifier``.

Parameters and ``fit``; rows are checked in ``intake``, what a fitted forest answers is ``prediction``.
"""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Self

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from budgetforest import __version__
from budgetforest import impurity as impurities
from budgetforest import settings as check
from budgetforest.arrays import Anything, Matrix
from budgetforest.budget import Offer, careful_path, only_used, path_of, surest, without_idle_trees
from budgetforest.checkpoint import checkpoint as checkpoint_in
from budgetforest.costs import read_costs
from budgetforest.crossfit import judged_by
from budgetforest.errors import UnusualData
from budgetforest.forest import CHOICES, Answer
from budgetforest.frontier import grow_frontier
from budgetforest.ground import OwnGround
from budgetforest.grow import stream_of_trees
from budgetforest.intake import (
    constants,
    held_out,
    later_rows,
    training_rows,
    validation_rows,
    warn_of_constants,
)
from budgetforest.outcome import error_without
from budgetforest.prediction import Prediction
from budgetforest.progress import progress
from budgetforest.split import Splitter
from budgetforest.table import Schema
from budgetforest.train import (
    Keep,
    Settings,
    Totals,
    context_of,
    grow_offers,
    make,
    meter_of,
    n_rows,
    sample_of,
    totals_of,
)
from budgetforest.trained import Trained, plain, warn_of_idle

PAPER_ONLY = ("alpha", "impurity", "splitter", "criterion", "bootstrap", "voting")
"""Parameters of the paper's method alone."""
AUTO_ONLY = ("max_disagreement", "confidence", "rate", "max_features", "free_riders")
"""Parameters of the other."""
EXITS_ONLY = ("max_disagreement", "confidence")
"""Parameters of probable exit, which rows take that pay for their label alone."""
KEPT_ELSEWHERE = ("costs", "groups", "categorical_features", "n_jobs", "verbose")
"""Parameters that the costs and the schema tell, or that do not matter after training."""


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
        "auto": forests and boosted trees that reuse what is paid, on pools of features, with probable
        exit; at every budget the one that errs least on validation rows. "paper": Algorithm 1, with the
        parameters ``alpha`` to ``voting``, which "auto" does not use.
    max_disagreement : float or None
        Of "auto": how often a label may differ from the full forest's, with ``confidence``. None: as
        often as is best at the budget. 0: never.
    confidence : float
        How sure ``max_disagreement`` must be, of all forests on offer together; the less it allows, the more
        validation rows that takes (a warning says how many).
    rate : float or None
        Of "auto": what a unit of cost is worth, in nats a row, where trees know what is paid. None: such that
        half the price of a pool is worth all there is to know.
    max_features : float or None
        Of "auto": the share of a pool's features that a node of its forests tries. None: 2 / sqrt(features).
        Thresholds are drawn, one a feature, in one forest of every pool, and searched in the others.
    free_riders : bool
        Of "auto": where trees reuse what is paid, three of four use nothing else.
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
        Of a forest; those of "auto" have at most 60, boosting, whose trees are small, up to five times
        ``max_trees`` while they help.
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
        free_riders: bool = False,
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
        self.free_riders = free_riders
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
            return self._fit(X, y, validation, sample_weight, checkpoint, pool, n_jobs, pool)

    def _fit(
        self,
        X: Anything,
        y: Anything,
        validation: Anything,
        sample_weight: Anything,
        checkpoint: str | os.PathLike[str] | None,
        pool: Executor,
        ahead: int,
        growers: Executor,
    ) -> Self:
        """The same, ``ahead`` trees at a time grown by others than our threads, perhaps a cluster."""
        intake = training_rows(self, X, y, sample_weight)
        self.classes_ = intake.classes
        settings = self._settings(intake.schema, intake.unit)
        rows = intake.rows
        if validation is not None:
            validation = validation_rows(self, validation, intake)
        elif settings.measures:
            fraction = check.share("validation_fraction", self.validation_fraction)
            rows, validation = held_out(intake, fraction, settings.seed)
        warn_of_constants(constants(rows), intake.schema)
        del intake
        train = totals_of(rows, settings.n_classes)
        measured = None if validation is None else totals_of(validation, settings.n_classes)
        keep = self._keep(checkpoint, train, measured, settings)
        with progress(self.verbose) as tell:
            tell("rows", 0, 1, "edges and codes")
            if settings.auto:
                ground = OwnGround(rows, validation, settings, pool, growers)
                tell("rows", 1, 1)
                offers = grow_frontier(ground, settings, tell, keep)
            else:
                sample = sample_of(rows, settings, pool)
                tell("rows", 1, 1)
                del rows
                trees = partial(
                    stream_of_trees,
                    sample,
                    seed=settings.seed,
                    pool=growers,
                    ahead=ahead,
                    most=settings.max_trees,
                )
                meter = partial(meter_of, validation, context_of(train, settings), settings, pool)
                offers = list(grow_offers(trees, meter, settings, tell, keep))
                del sample, trees
        return self._conclude(offers, train, measured, settings)

    def _keep(
        self,
        folder: str | os.PathLike[str] | None,
        train: Totals,
        validation: Totals | None,
        settings: Settings,
    ) -> Keep:
        """What keeps the steps of a training, if there is a folder for them."""
        if folder is None:
            return make
        return checkpoint_in(folder, train, validation, settings)

    def _conclude(
        self, offers: list[Offer], train: Totals, validation: Totals | None, settings: Settings
    ) -> Self:
        """Put the best of the offers to use."""
        trained = self._trained_from(offers, train, validation, settings)
        best = self._use(trained, settings.budget)
        warn_of_idle(trained, settings.budget, best)
        return self

    def _settings(self, schema: Schema, unit: float) -> Settings:
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
            voting=check.one_of("voting", self.voting, CHOICES),
            answer=check.one_of("answer", self.answer, Answer),
            costs=read_costs(self.costs, self.groups, schema.names),
            schema=schema,
            classes=tuple(self.classes_.tolist()),
            unit=unit,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            auto=self._is_auto(),
            disagreement=check.disagreement(self.max_disagreement),
            confidence=check.share("confidence", self.confidence),
            rate=check.rate(self.rate),
            max_features=check.part("max_features", self.max_features),
            free_riders=bool(self.free_riders),
        )

    def _is_auto(self) -> bool:
        """Whether the method is "auto"; parameters without effect are pointed out."""
        auto = check.is_auto(self.method)
        if not auto:
            self._warn_of_effectless(AUTO_ONLY, "on method='paper'; take method='auto'")
            return False
        self._warn_of_effectless(PAPER_ONLY, "on method='auto'; take method='paper'")
        if self.answer == "proba":
            self._warn_of_effectless(EXITS_ONLY, "on answer='proba'; take answer='label'")
        elif not self.max_disagreement:
            self._warn_of_effectless(["confidence"], "unless max_disagreement is given, above 0")
        return True

    def _warn_of_effectless(self, names: Sequence[str], where: str) -> None:
        """Point out those parameters that are not as they come."""
        own = inspect.signature(BudgetForestClassifier).parameters
        given = {name: getattr(self, name) for name in names}
        idle = [f"{name}={value!r}" for name, value in given.items() if value != own[name].default]
        if idle:
            warnings.warn(f"{', '.join(idle)}: without effect {where}", UnusualData, stacklevel=6)

    def _trained_from(
        self, offers: list[Offer], train: Totals, validation: Totals | None, settings: Settings
    ) -> Trained:
        """What is kept of a training: the path and the trees that it needs."""
        context = context_of(train, settings)
        best, judged = None, validation
        if settings.auto:
            assert validation is not None
            judged = judged_by(train, validation, settings)
            path = careful_path(offers, n_rows(judged, settings))
            path = [point for point in path if point.cost <= settings.budget]
            best = surest(offers)
            kept = only_used(offers, [*path, best])
        else:
            path = path_of(offers, settings.budget)
            kept = without_idle_trees(offers, settings.budget)
        chosen = impurities.compiled(settings.impurity, settings.n_classes)
        prior_error = math.nan if judged is None else error_without(context, judged, settings)
        return Trained(
            context=context,
            offers=kept,
            path=path,
            surest=best,
            budget=settings.budget,
            answer=settings.answer,
            unit=settings.unit,
            proven=impurities.is_admissible(chosen) and not (settings.expected or settings.auto),
            prior_error=prior_error,
            summary={
                "version": __version__,
                "rows": train.rows,
                "validation_rows": 0 if validation is None else validation.rows,
                "seed": settings.seed,
                "parameters": {
                    name: plain(value)
                    for name, value in self.get_params(deep=False).items()
                    if name not in KEPT_ELSEWHERE
                },
            },
        )

    def _matrix(self, X: Anything) -> Matrix:
        return later_rows(self, X, self._trained.context.schema)

    def _check_trained(self) -> None:
        check_is_fitted(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
