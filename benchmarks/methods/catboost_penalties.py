"""CatBoost with its own penalties for the use of features.

"First-use" takes the price off the score of a split when the feature first enters the model, "per-row" the price for
each row that has not met the feature yet. In symmetric trees, CatBoost's own kind, all rows meet all splits and the two
are one, so per-row penalties are tried on the other kinds only. Its ``feature_weights`` scale every use of a feature,
paid for or not, and are left alone. CatBoost does not know of groups: every feature has its own price.

Swept: the trade-off between cost and score, kind and depth of trees, learning rate, and rounds, as prefixes of
one model. Neighbouring trade-offs take turns in the rest; every trade-off has as many turns as time allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.methods import Model, Task
from benchmarks.methods.boosting import staged_models
from budgetforest.runtime.errors import MissingExtra
from budgetforest.trees.convert import from_catboost

ROUNDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
BINS = 64


class Penalty(NamedTuple):
    """One of CatBoost's penalties, and how it is swept."""

    parameter: str
    score: str
    """Of a split; only L2 grows with rows as the per-row penalty does."""
    trade_offs: np.ndarray
    """Price of the mean feature in units of the score of all rows; at the last, hardly any feature is bought."""
    styles: tuple[tuple[str, int, float], ...]
    """Kind of trees, depth and learning rate."""


FIRST_USE = Penalty(
    "first_feature_use_penalties",
    "Cosine",
    10 ** np.arange(-2.75, 0.3, 0.25),
    (
        ("SymmetricTree", 6, 0.2),
        ("SymmetricTree", 4, 0.3),
        ("Depthwise", 5, 0.1),
        ("SymmetricTree", 8, 0.2),
        ("SymmetricTree", 3, 0.3),
    ),
)
PER_ROW = Penalty(
    "per_object_feature_penalties",
    "L2",
    10 ** np.arange(-4.5, -0.4, 0.25),
    (("Depthwise", 6, 0.1), ("Depthwise", 4, 0.3), ("Lossguide", 8, 0.2), ("Depthwise", 2, 0.3)),
)
WORK = 3e8
"""Rows x features x classes x fits that take about two minutes on two cores."""


def penalised(penalty: Penalty, task: Task) -> Iterator[Model]:
    """Models of all trade-offs."""
    for setting in settings_of(penalty, task):
        model = fit(task, penalty, *setting)
        trade_off, kind, depth, rate = setting
        what = f"trade-off {trade_off:.1e}, {kind}, depth {depth}, rate {rate}"
        raw = partial(raw_scores, model)
        yield from staged_models(what, from_catboost(model, task.costs), 1, rounds_of(task), raw)


def settings_of(penalty: Penalty, task: Task) -> list[tuple[float, str, int, float]]:
    """Trade-offs with as many kinds, depths and rates as there is time for; if time is short, fewer trade-offs."""
    affordable = WORK / (task.train.X.size * task.n_classes * len(penalty.trade_offs))
    turns = 1 if task.quick else int(np.clip(round(affordable), 1, len(penalty.styles)))
    step = 4 if task.quick else max(1, round(1 / affordable))
    return [
        (trade_off, *penalty.styles[(place + turn) % len(penalty.styles)])
        for turn, (place, trade_off) in product(range(turns), enumerate(penalty.trade_offs[::-step]))
    ]


def fit(task: Task, penalty: Penalty, trade_off: float, kind: str, depth: int, rate: float) -> Any:
    """A classifier of as many rounds as the longest prefix has."""
    cost, n = task.costs.cost, len(task.train.y)
    all_rows = {"Cosine": n**0.5, "L2": n}[penalty.score]  # as the score of all rows grows with them
    rows = n if penalty is PER_ROW else 1
    parameters = {
        "loss_function": "MultiClass" if task.n_classes > 2 else "Logloss",
        "iterations": rounds_of(task)[-1],
        "grow_policy": kind,
        "depth": depth,
        "learning_rate": rate,
        "score_function": penalty.score,
        "border_count": BINS,
        penalty.parameter: cost.tolist(),
        "penalties_coefficient": trade_off * all_rows / rows / (cost.mean() or 1.0),
        "random_seed": task.seed,
        "thread_count": 1,
        "allow_writing_files": False,
        "verbose": False,
    }
    return _catboost().CatBoostClassifier(**parameters).fit(task.train.X, task.train.y)


def rounds_of(task: Task) -> tuple[int, ...]:
    return ROUNDS[:5] if task.quick else ROUNDS


def raw_scores(model: Any, X: np.ndarray, first: int, last: int) -> np.ndarray:
    """What some rounds add to the scores."""
    return model.predict(
        X, prediction_type="RawFormulaVal", ntree_start=first, ntree_end=last, thread_count=1
    )


def _catboost() -> Any:
    try:
        import catboost
    except ImportError:
        raise MissingExtra('this peer needs catboost: pip install "budgetforest[bench]"') from None
    return catboost


METHODS = {
    "CatBoost, first-use penalties": partial(penalised, FIRST_USE),
    "CatBoost, per-row penalties": partial(penalised, PER_ROW),
}
