"""A trained model as a file, ``*.safetensors``: plain arrays and a JSON document. No code, no pickle.

Protocol 5, described in docs/modelfile.md. Who changes what is written raises ``PROTOCOL``, keeps reading
the older ones, and keeps a test file of each. ``load`` reads (``container``), checks and builds
(``decode``); what follows from the trees is computed again, not stored.
"""

from __future__ import annotations

import math
import os
import reprlib
from typing import Any

import numpy as np

from budgetforest import __version__
from budgetforest.data.seen import Seen
from budgetforest.runtime.errors import InvalidData, NewerModelFile, NotAModelFile
from budgetforest.selection.estimate import key
from budgetforest.selection.result import TrainingResult
from budgetforest.storage import container
from budgetforest.storage.container import Array, ArrayKind
from budgetforest.storage.decode import rebuilt
from budgetforest.storage.fields import Entries, refuse_unless, storable, storable_categories
from budgetforest.trees.tree import Tree, empty_tree

PROTOCOL = 5

ARRAYS = {
    **dict.fromkeys(
        ("feature", "left", "right", "weight", "branches", "tree_nodes", "tree_branches"), ArrayKind("I32")
    ),
    **dict.fromkeys(("threshold", "impurity", "floor"), ArrayKind("F64")),
    "route": ArrayKind("U8"),
    "counts": ArrayKind("I32", 2),
    "prior": ArrayKind("I64"),
    **dict.fromkeys(("cost", "discount"), ArrayKind("F64")),
    "group": ArrayKind("I32"),
    **dict.fromkeys(("point_recipe", "point_trees", "path", "surest"), ArrayKind("I32")),
    **dict.fromkeys(("point_cost", "point_error", "point_threshold"), ArrayKind("F64")),
    **dict.fromkeys(("point_wrong", "point_weight"), ArrayKind("F64", 2)),
    "estimate": ArrayKind("F64", 2),
    "confusion": ArrayKind("I64", 2),
    **dict.fromkeys(("low", "high"), ArrayKind("F64")),
    "sketch": ArrayKind("U64"),
}
"""The arrays of a file."""
SINCE = {
    "weight": 2,
    **dict.fromkeys(("point_wrong", "point_weight", "estimate", "confusion", "low", "high", "sketch"), 3),
}
"""The protocol that brought an array, where it is not the first."""


def write_result(trained: TrainingResult, budget: float, path: str | os.PathLike[str]) -> None:
    """Write what was trained, and the budget in use."""
    arrays, document = _arrays(trained), _document(trained, budget)
    try:
        rebuilt(arrays, Entries(document))
    except NotAModelFile as error:
        raise InvalidData(f"the model cannot be saved, since it could not be loaded: {error}") from None
    container.write(path, arrays, document)


def read_result(path: str | os.PathLike[str]) -> tuple[TrainingResult, float | None]:
    """What was trained, and the budget in use."""
    try:
        arrays, document = container.read(path, _kinds_of)
        return rebuilt(arrays, Entries(document))
    except NotAModelFile as error:
        hint = "" if isinstance(error, NewerModelFile) else "; save the model again"
        raise type(error)(f"{os.fspath(path)!r} cannot be loaded: {error}{hint}") from None


def _kinds_of(document: dict[str, Any]) -> dict[str, ArrayKind]:
    """The arrays of a file of this document's protocol."""
    protocol: Any = document.get("protocol")
    refuse_unless(type(protocol) is int and protocol >= 1, f"its protocol is {reprlib.repr(protocol)}")
    if protocol > PROTOCOL:
        version = reprlib.repr(document.get("version"))
        raise NewerModelFile(
            f"version {version} wrote it in protocol {protocol}, and this version {__version__} knows "
            f"protocols up to {PROTOCOL}; upgrade: pip install --upgrade budgetforest"
        )
    return {name: kind for name, kind in ARRAYS.items() if protocol >= SINCE.get(name, 1)}


def _arrays(trained: TrainingResult) -> dict[str, Array]:
    trees = [tree for candidate in trained.candidates for tree in candidate.trees]
    parts = trees or [empty_tree(0, len(trained.context.prior))._replace(floor=np.empty(0))]
    nodes = Tree._make(np.concatenate(part) for part in zip(*parts, strict=True))
    points = [point for candidate in trained.candidates for point in candidate.points]
    number = {key(point): at for at, point in enumerate(points)}
    n_folds = len(points[0].folds) if points else 0
    folds = np.array([point.folds for point in points], np.float64).reshape(len(points), n_folds, 2)
    seen = trained.seen or Seen(np.empty(0), np.empty(0), np.empty(0, np.uint64))
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
            np.arange(len(trained.candidates), dtype=np.int32),
            [len(candidate.points) for candidate in trained.candidates],
        ),
        "point_trees": np.array([point.trees for point in points], np.int32),
        "point_cost": np.array([point.cost for point in points], np.float64),
        "point_error": np.array([point.error for point in points], np.float64),
        "point_threshold": np.array([point.threshold for point in points], np.float64),
        "path": np.array([number[key(point)] for point in trained.path if careful], np.int32),
        "surest": np.array([number[key(point)] for point in careful], np.int32),
        "point_wrong": np.ascontiguousarray(folds[:, :, 0]),
        "point_weight": np.ascontiguousarray(folds[:, :, 1]),
        "estimate": np.array(trained.estimates, np.float64).reshape(-1, 4),
        "confusion": np.empty((0, 0), np.int64) if trained.confusion is None else trained.confusion,
        "low": seen.low,
        "high": seen.high,
        "sketch": seen.sketch,
    }


def _document(trained: TrainingResult, budget: float) -> dict[str, Any]:
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
        "judged": trained.judged,
        "prior_error": None if math.isnan(trained.prior_error) else trained.prior_error,
        "recipes": [
            {
                **candidate.recipe._asdict(),
                "weights": list(candidate.recipe.weights),
                "trees": len(candidate.trees),
                "patience": candidate.patience,
            }
            for candidate in trained.candidates
        ],
        "training": trained.summary,
    }
