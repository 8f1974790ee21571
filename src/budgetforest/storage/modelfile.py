"""A trained model as a file, ``*.safetensors``: plain arrays and a JSON document. No code, no pickle.

Protocol 1, described in docs/modelfile.md. Who changes what is written raises ``PROTOCOL``, keeps reading
the older ones, and keeps a test file of each. ``load`` reads (``container``), checks and builds
(``rebuild``); what follows from the trees is computed again, not stored.
"""

from __future__ import annotations

import math
import os
import reprlib
from typing import Any

import numpy as np

from budgetforest import __version__, container
from budgetforest.container import Array, Kind
from budgetforest.entries import Entries, refuse_unless, storable, storable_categories
from budgetforest.errors import InvalidData, InvalidParameter, NewerModelFile, NotAModelFile
from budgetforest.model import Model
from budgetforest.prediction import Prediction
from budgetforest.rebuild import rebuilt
from budgetforest.trained import Trained
from budgetforest.tree import Tree, empty_tree

PROTOCOL = 1

KINDS = {
    **dict.fromkeys(("feature", "left", "right", "branches", "tree_nodes", "tree_branches"), Kind("I32")),
    **dict.fromkeys(("threshold", "impurity", "floor"), Kind("F64")),
    "route": Kind("U8"),
    "counts": Kind("I32", 2),
    "prior": Kind("I64"),
    **dict.fromkeys(("cost", "discount"), Kind("F64")),
    "group": Kind("I32"),
    **dict.fromkeys(("point_recipe", "point_trees", "path", "surest"), Kind("I32")),
    **dict.fromkeys(("point_cost", "point_error", "point_threshold"), Kind("F64")),
}
"""The arrays of a file."""


def save(model: Prediction, path: str | os.PathLike[str]) -> None:
    """Write a fitted ``BudgetForestClassifier`` or a ``Model`` to a file, best named ``*.safetensors``.

    The whole path is kept, so ``at_budget`` works after loading. A kill at any moment leaves the old file or
    the new one.
    """
    if not isinstance(model, Prediction):
        raise InvalidParameter(
            f"model is a {type(model).__name__}; save takes a BudgetForestClassifier or a Model"
        )
    model._check_trained()
    write_trained(model._trained, model._within, path)


def write_trained(trained: Trained, budget: float, path: str | os.PathLike[str]) -> None:
    """Write what was trained, and the budget in use."""
    arrays, document = _arrays(trained), _document(trained, budget)
    try:
        rebuilt(arrays, Entries(document))
    except NotAModelFile as error:
        raise InvalidData(f"the model cannot be saved, since it could not be loaded: {error}") from None
    container.write(path, arrays, document)


def load(path: str | os.PathLike[str]) -> Model:
    """The model of a file that ``save`` wrote.

    It answers as before without scikit-learn. A file that is damaged, hostile or none of ours raises
    ``NotAModelFile``.
    """
    return Model(*read_trained(path))


def read_trained(path: str | os.PathLike[str]) -> tuple[Trained, float | None]:
    """What was trained, and the budget in use."""
    try:
        arrays, document = container.read(path, _kinds_of)
        return rebuilt(arrays, Entries(document))
    except NotAModelFile as error:
        hint = "" if isinstance(error, NewerModelFile) else "; save the model again"
        raise type(error)(f"{os.fspath(path)!r} cannot be loaded: {error}{hint}") from None


def _kinds_of(document: dict[str, Any]) -> dict[str, Kind]:
    """The arrays of a file of this document's protocol."""
    protocol: Any = document.get("protocol")
    refuse_unless(type(protocol) is int and protocol >= 1, f"its protocol is {reprlib.repr(protocol)}")
    if protocol > PROTOCOL:
        version = reprlib.repr(document.get("version"))
        raise NewerModelFile(
            f"version {version} wrote it in protocol {protocol}, and this version {__version__} knows "
            f"protocols up to {PROTOCOL}; upgrade: pip install --upgrade budgetforest"
        )
    return KINDS


def _arrays(trained: Trained) -> dict[str, Array]:
    trees = [tree for offer in trained.offers for tree in offer.trees]
    parts = trees or [empty_tree(0, len(trained.context.prior))._replace(floor=np.empty(0))]
    nodes = Tree._make(np.concatenate(part) for part in zip(*parts, strict=True))
    points = [point for offer in trained.offers for point in offer.points]
    number = {point: at for at, point in enumerate(points)}
    careful = [] if trained.surest is None else [trained.surest]
    return {
        **nodes._asdict(),
        "tree_nodes": np.array([len(tree.feature) for tree in trees], np.int32),
        "tree_branches": np.array([len(tree.branches) for tree in trees], np.int32),
        "prior": trained.context.prior,
        "cost": trained.context.costs.cost,
        "discount": trained.context.costs.discount,
        "group": trained.context.costs.group,
        "point_recipe": np.repeat(
            np.arange(len(trained.offers), dtype=np.int32), [len(offer.points) for offer in trained.offers]
        ),
        "point_trees": np.array([point.trees for point in points], np.int32),
        "point_cost": np.array([point.cost for point in points], np.float64),
        "point_error": np.array([point.error for point in points], np.float64),
        "point_threshold": np.array([point.threshold for point in points], np.float64),
        "path": np.array([number[point] for point in trained.path if careful], np.int32),
        "surest": np.array([number[point] for point in careful], np.int32),
    }


def _document(trained: Trained, budget: float) -> dict[str, Any]:
    context = trained.context
    features = zip(context.schema.names, storable_categories(context.schema), strict=True)
    return {
        "protocol": PROTOCOL,
        "version": __version__,
        "classes": storable(context.classes, "the classes"),
        "features": [{"name": name, "categories": kinds} for name, kinds in features],
        "missing": list(context.schema.missing),
        "target": context.schema.target,
        "groups": list(context.costs.group_names),
        "voting": context.voting.name.lower(),
        "answer": trained.answer.name.lower(),
        "unit": float(context.unit),
        "row_unit": float(trained.unit),
        "budget": None if budget == math.inf else float(budget),
        "trained_budget": None if trained.budget == math.inf else trained.budget,
        "proven": trained.proven,
        "prior_error": None if math.isnan(trained.prior_error) else trained.prior_error,
        "recipes": [
            {**offer.recipe._asdict(), "trees": len(offer.trees), "patience": offer.patience}
            for offer in trained.offers
        ],
        "training": trained.summary,
    }
