"""The prediction half that the estimator and a loaded model share.

Single decisions need nothing compiled; what predicts tables is imported when first used.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from budgetforest.acquisition.live import LiveAcquisition
from budgetforest.data.costs import Costs
from budgetforest.estimators.summary import Summary, summarize
from budgetforest.runtime import params as check
from budgetforest.runtime.arrays import LEAF, Anything, Flags, Floats, Matrix
from budgetforest.runtime.errors import InvalidParameter
from budgetforest.selection.candidates import Point
from budgetforest.selection.result import (
    TrainingResult,
    best_within,
    forest_at,
    path_within,
    shown,
    warn_of_idle,
)
from budgetforest.trees.dataframe import to_dataframe
from budgetforest.trees.forest import Answer, Forest, importances, shares

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from budgetforest.report import Report
    from budgetforest.trees.certificate import Certificate


@contextmanager
def threads_of(model: Any) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """As many threads as a model's ``n_jobs`` says, and how many that are."""
    from joblib import effective_n_jobs

    from budgetforest.runtime.threads import threads

    n_jobs = effective_n_jobs(model.n_jobs)
    with threads(n_jobs) as pool:
        yield pool, n_jobs


def check_trained(model: Any) -> None:
    """Raise if a model has no forest yet."""
    model._check_trained()


class Prediction(LiveAcquisition):
    """What a trained model answers. Who inherits says how a caller's rows become numbers."""

    budget: float | None
    n_jobs: int | None
    classes_: Any
    path_: list[Point]
    costs_: Costs
    alpha_: float
    n_trees_: int
    training_: dict[str, Any]
    _trained: TrainingResult
    _within: float
    """The budget in use."""

    def _matrix(self, X: Anything) -> Matrix:
        """Rows as numbers, checked against the training rows."""
        raise NotImplementedError

    def at_budget(self, budget: float) -> Self:
        """The fitted model for a smaller budget, as if trained for it, without training; 0 pays nothing."""
        self._check_trained()
        if math.isnan(self._trained.path[-1].cost if self._trained.path else 0.0):
            raise InvalidParameter(
                "this forest was trained without validation rows, so its costs are unknown; "
                "train with a budget, several alphas, or validation=(X, y)"
            )
        limit, allowed = self._trained.budget, check.some_budget(budget)
        if allowed > limit:
            raise InvalidParameter(
                f"budget {budget} is larger than {limit}, for which this forest was trained; train again"
            )
        other = copy.copy(self)
        other.budget = budget
        best = other._use(self._trained, allowed)
        if allowed > 0:  # who asks to pay nothing need not be told that nothing fits
            warn_of_idle(self._trained, budget, best)
        return other

    def _use(self, trained: TrainingResult, budget: float) -> Point | None:
        """Put the best forest within a budget to use; returns its place on the path."""
        best = best_within(trained, budget)
        self._trained, self._within = trained, budget
        self.training_ = trained.summary
        self.costs_ = trained.context.costs
        self.path_ = [shown(trained, point) for point in path_within(trained, budget)]
        self.alpha_ = best.alpha if best else math.nan
        self.forest_ = forest_at(trained, best)
        self.n_trees_ = self.forest_.n_trees
        return best

    def summary(self) -> Summary:
        """Say what the model costs, how it errs, and whether it is better than the most common class.

        Returns
        -------
        Summary
            Prints as text. Errors are those to expect on new rows, corrected for the choice of the forest.
        """
        self._check_trained()
        best = best_within(self._trained, self._within)
        return summarize(self._trained, self._within, best, self.n_trees_, len(self.used_features()))

    @property
    def feature_ranges_(self) -> dict[str, tuple[float, float]]:
        """The least and the largest value of each numeric feature in training; empty if unknown."""
        self._check_trained()
        seen, schema = self._trained.seen, self._trained.context.schema
        if seen is None:
            return {}
        ranges = zip(schema.names, schema.categories, seen.low.tolist(), seen.high.tolist(), strict=True)
        return {name: (low, high) for name, kinds, low, high in ranges if kinds is None and low <= high}

    def _threads(self) -> AbstractContextManager[tuple[ThreadPoolExecutor, int]]:
        return threads_of(self)

    # Tables ------------------------------------------------------------------------------------

    def predict(self, X: Anything) -> Any:
        """The label of each row; ties go to the lowest class."""
        from budgetforest.inference.predict import labels

        forest, X = self._forest_and_rows(X)
        with self._threads() as (pool, _):
            return self.classes_[labels(forest, X, pool)]

    def predict_proba(self, X: Anything) -> Floats:
        """(rows, classes): shares of votes, mean frequencies, shares of counts; softmax of boosted scores."""
        from budgetforest.inference.predict import scores

        forest, X = self._forest_and_rows(X)
        with self._threads() as (pool, _):
            return shares(scores(forest, X, pool), forest.voting)

    def acquisition_cost(self, X: Anything, *, answer: str | None = None) -> Floats:
        """What each row pays for its label or its scores; ``answer`` is the estimator's by default."""
        from budgetforest.inference.predict import spent

        found: Floats = self._paid(spent, X, answer)
        return found

    def acquired_features(self, X: Anything, *, answer: str | None = None) -> Flags:
        """(rows, features): which features each row pays for."""
        from budgetforest.inference.predict import charge

        found: Flags = self._paid(charge, X, answer).acquired
        return found

    def _paid(self, how: Callable[..., Any], X: Anything, answer: str | None) -> Any:
        forest, X = self._forest_and_rows(X)
        with self._threads() as (pool, _):
            return how(forest, X, self._answer(answer), pool)

    def _forest_and_rows(self, X: Anything) -> tuple[Forest, Matrix]:
        self._check_trained()
        return self.forest_, self._matrix(X)

    def _answer(self, answer: str | None) -> Answer:
        return self._trained.answer if answer is None else check.one_of("answer", answer, Answer)

    # Looking inside ----------------------------------------------------------------------------

    def used_features(self, *, answer: str | None = None, at_any_budget: bool = False) -> list[int]:
        """The columns that an answer may ask for, at the budget in use or at any up to it."""
        self._check_trained()
        points = self.path_ if at_any_budget else []
        forests = [self.forest_, *(forest_at(self._trained, point) for point in points)]
        label = self._answer(answer) == Answer.LABEL
        asks = (forest.open if label else forest.nodes.feature != LEAF for forest in forests)
        used = (forest.nodes.feature[asked] for forest, asked in zip(forests, asks, strict=True))
        return sorted({int(j) for features in used for j in features})

    @property
    def feature_importances_(self) -> Floats:
        """(features) each feature's share in the drop of Gini impurity, weighted by rows."""
        self._check_trained()
        return importances(self.forest_)

    @property
    def certificates_(self) -> list[Certificate]:
        """For each tree: max-cost, lower bound of the optimum, their ratio, the theorem's factor."""
        from budgetforest.trees.certificate import certify

        self._check_trained()
        forest = self.forest_
        return certify(forest.nodes, forest.roots, forest.costs, admissible=self._trained.proven)

    def trees_to_dataframe(self) -> Any:
        """One line per node of every tree, as a pandas dataframe."""
        self._check_trained()
        return to_dataframe(self.forest_)

    def report(
        self,
        X: Anything,
        y: Anything,
        *,
        title: str | None = None,
        baseline: Any = None,
        currency: str = "",
        row_name: str = "row",
    ) -> Report:
        """Write a page about the model, measured on rows that training has not seen.

        Parameters
        ----------
        X, y : rows and their labels
        title : str or None
            The heading of the page.
        baseline : a fitted classifier or None
            Drawn beside the model: what it errs and what it would pay.
        currency : str
            Stands before every price, as in "EUR 12".
        row_name : str
            What a row is, in the singular: "patient".

        Returns
        -------
        Report
            ``save`` it to a file, or show it in a notebook.
        """
        from budgetforest.report import report

        self._check_trained()
        return report(self, X, y, title=title, baseline=baseline, currency=currency, row_name=row_name)
