"""LightGBM with its own penalties for the cost of features (Peter et al., Cost efficient gradient boosting, 2017).

"Lazy" penalises a split by the price for each row that has not bought the feature yet, "coupled" once, when the
feature first enters the model. Rows pay for what they meet in any tree, as everywhere. LightGBM does not know
of groups: it penalises every feature by its own price.

Swept: the trade-off between cost and loss, leaves of a tree, learning rate, and rounds, as prefixes of one model.
Neighbouring trade-offs take turns in leaves and rate; every trade-off has as many turns as time allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import lightgbm
import numpy as np

from benchmarks.methods import Model, Task
from budgetforest.inference.predict import charge
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.convert import from_lightgbm
from budgetforest.trees.forest import Answer, Forest, first_trees

ROUNDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
STYLES = ((31, 0.1), (4, 0.3), (127, 0.3), (8, 0.3), (31, 0.3))
"""Leaves and learning rate."""
TRADE_OFFS = (1e-5, *10 ** np.arange(-3.5, 1.1, 0.25))
"""Price of the mean feature in units of loss per row; from about 1 on, no feature of that price is bought."""
WORK = {"lazy": 2.8e8, "coupled": 3e8}
"""Rows x features x classes x fits that take a minute or two on two cores."""


Predict = Callable[[np.ndarray, int, int], np.ndarray]
"""From rows, a first round and the one after the last to what these rounds add to the raw scores."""


class Setting(NamedTuple):
    """What a booster is trained on, and how."""

    what: str
    X: np.ndarray
    parameters: dict[str, Any]


def cost_effective(penalty: str, task: Task) -> Iterator[Model]:
    """Boosters of all trade-offs."""
    cost = task.costs.cost
    unit = (len(task.train.y) if penalty == "coupled" else 1) / (cost.mean() or 1.0)
    settings = []
    for turn in range(turns_of(penalty, task)):
        for place, trade_off in enumerate(TRADE_OFFS[::8] if task.quick else TRADE_OFFS):
            leaves, rate = STYLES[(place + turn) % len(STYLES)]
            penalties = {"cegb_tradeoff": trade_off * unit, f"cegb_penalty_feature_{penalty}": cost.tolist()}
            settings.append(setting(f"trade-off {trade_off:.1e}", task.train.X, leaves, rate, penalties))
    return boosted(settings, task)


def turns_of(penalty: str, task: Task) -> int:
    """How many leaves and rates each trade-off is tried with."""
    affordable = WORK[penalty] / (task.train.X.size * task.n_classes * len(TRADE_OFFS))
    return 1 if task.quick else int(np.clip(round(affordable), 1, 4))


def setting(
    what: str, X: np.ndarray, leaves: int, rate: float, others: dict[str, Any] | None = None
) -> Setting:
    """A setting with its name in full. Without lambda, many classes at a high rate diverge."""
    parameters = {"num_leaves": leaves, "learning_rate": rate, "lambda_l2": 1.0, **(others or {})}
    return Setting(f"{what}, {leaves} leaves, rate {rate}", X, parameters)


def boosted(settings: Iterable[Setting], task: Task) -> Iterator[Model]:
    """Models of these settings after 1, 2, ... rounds."""
    for how in settings:
        booster = fit(task, how.X, how.parameters, rounds_of(task)[-1])
        yield from prefixes(how.what, booster, task)


def fit(task: Task, X: np.ndarray, parameters: dict[str, Any], rounds: int) -> lightgbm.Booster:
    """A classifier."""
    several = {"objective": "multiclass", "num_class": task.n_classes}
    objective = several if task.n_classes > 2 else {"objective": "binary"}
    same = {
        "deterministic": True,
        "force_row_wise": True,
        "seed": task.seed,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(X, task.train.y, params={"verbosity": -1, "num_threads": 1})
    return lightgbm.train(objective | same | parameters, data, rounds)


def rounds_of(task: Task) -> tuple[int, ...]:
    return ROUNDS[:5] if task.quick else ROUNDS


def prefixes(what: str, booster: lightgbm.Booster, task: Task) -> Iterator[Model]:
    """A booster on offer from its first round on."""

    def predict(X: np.ndarray, first: int, last: int) -> np.ndarray:
        return booster.predict(X, start_iteration=first, num_iteration=last - first, raw_score=True)

    forest, a_round = from_lightgbm(booster, task.costs), booster.num_model_per_iteration()
    return staged_models(what, forest, a_round, rounds_of(task), predict)


def staged_models(
    what: str, forest: Forest, a_round: int, rounds: Sequence[int], predict: Predict
) -> Iterator[Model]:
    """The models after as many of these rounds as there are, of so many trees each; none if no tree splits."""
    if (forest.nodes.feature == LEAF).all():
        return
    staged = Staged(predict, [n for n in rounds if n * a_round <= forest.n_trees])
    for place, n in enumerate(staged.rounds):
        trees = first_trees(forest, n * a_round)
        yield Model(f"{n} rounds, {what}", partial(judge, staged, place, trees))


class Staged:
    """Raw scores after each of several numbers of rounds, in one pass over all rounds."""

    def __init__(self, predict: Predict, rounds: list[int]) -> None:
        self.predict, self.rounds = predict, rounds
        self.X: np.ndarray | None = None
        self.raw: list[np.ndarray] = []

    def after(self, place: int, X: np.ndarray) -> np.ndarray:
        """(n) or (n, k) raw scores; those of the other numbers of rounds are kept for the same rows."""
        if self.X is not X:
            parts = [self.predict(X, first, last) for first, last in pairwise([0, *self.rounds])]
            self.X, self.raw = X, list(np.cumsum(parts, axis=0))
        return self.raw[place]


def judge(staged: Staged, place: int, trees: Forest, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Raw scores of every class, and what rows pay for them."""
    raw = staged.after(place, X)
    if place == len(staged.rounds) - 1:
        staged.X, staged.raw = None, []  # the last to be asked
    scores = raw if raw.ndim == 2 else np.column_stack([-raw, raw])
    return scores, charge(trees, X, Answer.PROBA).spent


METHODS = {
    "LightGBM, lazy costs": partial(cost_effective, "lazy"),
    "LightGBM, coupled costs": partial(cost_effective, "coupled"),
}
