"""BudgetRF, Algorithm 1 of the paper, under its own accounting and with certain exit: the same trees.

As in the paper: threshold-Pairs, its ten alphas and larger ones until trees are single splits, so that small
budgets are served, forests of up to 40 trees; for rankings alpha 0, up to 140 trees, and summed leaf counts whose
ratio is the score. Splits are binned.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from benchmarks.methods import Model, Task, forest_model
from budgetforest import BudgetForestClassifier
from budgetforest.selection.paper import ALPHAS, growing_alphas
from budgetforest.trees.forest import Answer, Forest, first_trees

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 60, 90, 140)


def models(task: Task, answer: Answer, **growth) -> Iterator[Model]:
    """Forests of 1, 2, 3, 4, 6, ... trees for every alpha; ``growth`` as for ``forests``."""
    for alpha, forest in forests(task, **growth).items():
        for trees in SIZES:
            if trees <= forest.n_trees:
                offered = forest_model(f"alpha {alpha:g}, {trees} trees", first_trees(forest, trees), answer)
                yield offered if task.train.query is None else offered._replace(judge=ratio(offered))


def ratio(model: Model):
    """The paper's confidence of relevance: a class's share of the rows in all leaves."""

    def judge(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts, spent = model.judge(X)
        return counts / counts.sum(axis=1, keepdims=True), spent

    return judge


@lru_cache(maxsize=1)
def forests(task: Task, alphas: tuple[float, ...] = (), **parameters) -> dict[float, Forest]:
    """A forest for every alpha, by default the paper's; ``parameters`` are those of the estimator."""
    ranking = task.train.query is not None
    grown: dict[float, Forest] = {}
    for alpha in alphas or (ALPHAS[:1] if ranking else ALPHAS[::3] if task.quick else growing_alphas()):
        model = BudgetForestClassifier(
            method="paper",
            alpha=alpha,
            costs=task.costs,
            max_trees=8 if task.quick else 140 if ranking else 40,
            voting="counts" if ranking else "majority",
            random_state=task.seed,
            **parameters,
        )
        forest = model.fit(task.train.X, task.train.y).forest_
        if not alphas and len(forest.nodes.feature) == forest.n_trees:
            break  # no tree splits
        grown[alpha] = forest
    return grown


METHODS = {
    "BudgetRF": partial(models, answer=Answer.PROBA),
    "BudgetRF, certain exit": partial(models, answer=Answer.LABEL),
}
