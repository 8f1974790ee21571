"""Random forests and extra trees of scikit-learn, blind to costs: cheap are those of few or shallow trees.

Swept: features a split (8 as in the paper, and the square root), depth, and trees, as prefixes of one forest.
Missing values are scikit-learn's own affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from benchmarks.methods import Model, Task, forest_model
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import first_trees

TREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 40)
DEPTHS = (1, 2, 3, 4, 6, 8, 12, None)


def prefixes(kind: type, task: Task) -> Iterator[Model]:
    """One forest for each depth and number of features a split, offered from its first tree on."""
    trees, depths = (TREES[:4], DEPTHS[1::3]) if task.quick else (TREES, DEPTHS)
    for features, depth in product(dict.fromkeys((min(8, task.train.X.shape[1]), "sqrt")), depths):
        model = kind(trees[-1], max_features=features, max_depth=depth, random_state=task.seed)
        forest = from_sklearn(model.fit(task.train.X, task.train.y), task.costs)
        for t in trees:
            yield forest_model(f"{t} trees, depth {depth}, {features} features", first_trees(forest, t))


METHODS = {
    "random forest": partial(prefixes, RandomForestClassifier),
    "extra trees": partial(prefixes, ExtraTreesClassifier),
}
