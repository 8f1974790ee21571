"""Fitted models to files and back, and to other formats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from budgetforest.estimators.base import Prediction
from budgetforest.estimators.model import Model
from budgetforest.runtime.errors import InvalidParameter
from budgetforest.storage.modelfile import read_result, write_result
from budgetforest.storage.to_json import forest_to_json

if TYPE_CHECKING:
    from onnx import ModelProto

PICKLES = (".pkl", ".pickle", ".joblib")
"""Endings that promise another kind of file."""


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
    if Path(path).suffix.lower() in PICKLES:
        raise InvalidParameter(
            f"path is {str(path)!r}; a model file is no pickle: name it '{Path(path).stem}.safetensors'"
        )
    write_result(model._trained, model._within, path)


def load(path: str | os.PathLike[str]) -> Model:
    """The model of a file that ``save`` wrote.

    It answers as before without scikit-learn. A file that is damaged, hostile or none of ours raises
    ``NotAModelFile``.
    """
    return Model(*read_result(path))


def to_json(model: Prediction) -> str:
    """The forest in use as a JSON text.

    >>> import json
    >>> from sklearn.datasets import load_wine
    >>> from budgetforest import BudgetForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BudgetForestClassifier(budget=4, max_trees=8, random_state=0).fit(X, y)
    >>> len(json.loads(to_json(model))["trees"]) == model.n_trees_
    True
    """
    model._check_trained()
    return forest_to_json(model.forest_, model._answer(None))


def to_onnx(model: Prediction) -> ModelProto:
    """The forest in use as an ONNX model: input ``X``, outputs ``label`` and ``probabilities``.

    ``X`` is a matrix of doubles, NaN where a value is missing. A nominal feature is the number of its
    category, NaN for an unseen one; the metadata ``features`` lists the categories. Probabilities are those
    of ``predict_proba``, the label is the likeliest class. Exits, and so costs, are not part of the graph.
    """
    from budgetforest.storage.to_onnx import forest_to_onnx

    model._check_trained()
    return forest_to_onnx(model.forest_)
