"""From the parameters of an estimator to the settings of a training."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from sklearn.utils import check_random_state

from budgetforest.data.costs import read_costs
from budgetforest.data.table import Schema
from budgetforest.growing import impurity as impurities
from budgetforest.growing.split import Splitter
from budgetforest.runtime import params as check
from budgetforest.runtime.errors import UnusualData, warn
from budgetforest.selection.settings import Settings, alphas_for
from budgetforest.trees.forest import CHOICES, Answer

PAPER_ONLY = ("alpha", "impurity", "splitter", "criterion", "bootstrap", "voting")
"""Parameters of the paper's method alone."""
AUTO_ONLY = ("max_disagreement", "confidence", "rate", "max_features", "refit")
"""Parameters of the other."""
EXITS_ONLY = ("max_disagreement", "confidence")
"""Parameters of probable exit, which rows take that pay for their label alone."""


def settings_of(estimator: Any, schema: Schema, classes: Any, unit: float) -> Settings:
    """The parameters of an estimator, checked, and what was learnt about its rows."""
    chosen = impurities.choose(estimator.impurity)
    return Settings(
        budget=check.positive_budget(estimator.budget),
        alphas=alphas_for(estimator.alpha, chosen),
        impurity=chosen,
        splitter=check.one_of("splitter", estimator.splitter, Splitter),
        expected=check.is_expected(estimator.criterion),
        max_bins=check.bins(estimator.max_bins),
        max_trees=check.whole("max_trees", estimator.max_trees, 1),
        bootstrap=bool(estimator.bootstrap),
        voting=check.one_of("voting", estimator.voting, CHOICES),
        answer=check.one_of("answer", estimator.answer, Answer),
        costs=read_costs(estimator.costs, estimator.groups, schema.names),
        schema=schema,
        classes=tuple(classes.tolist()),
        unit=unit,
        seed=int(check_random_state(estimator.random_state).randint(2**31 - 1)),
        auto=_is_auto(estimator),
        disagreement=check.disagreement(estimator.max_disagreement),
        confidence=check.share("confidence", estimator.confidence),
        rate=check.rate(estimator.rate),
        max_features=check.part("max_features", estimator.max_features),
        refit=check.flag("refit", estimator.refit),
    )


def _is_auto(estimator: Any) -> bool:
    """Whether the method is "auto"; parameters without effect are pointed out."""
    if not check.is_auto(estimator.method):
        _warn_of_effectless(estimator, AUTO_ONLY, "on method='paper'; take method='auto'")
        return False
    _warn_of_effectless(estimator, PAPER_ONLY, "on method='auto'; take method='paper'")
    if estimator.answer == "proba":
        _warn_of_effectless(estimator, EXITS_ONLY, "on answer='proba'; take answer='label'")
    elif not estimator.max_disagreement:
        _warn_of_effectless(estimator, ["confidence"], "unless max_disagreement is given, above 0")
    return True


def _warn_of_effectless(estimator: Any, names: Sequence[str], where: str) -> None:
    """Point out those parameters that are not as they come."""
    defaults = {name: each.default for name, each in inspect.signature(type(estimator)).parameters.items()}
    given = {name: getattr(estimator, name) for name in names}
    idle = [f"{name}={value!r}" for name, value in given.items() if value != defaults.get(name, value)]
    if idle:
        warn(f"{', '.join(idle)}: without effect {where}", UnusualData)
