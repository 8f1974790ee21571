"""Rows, labels and weights as a scikit-learn caller gives them, checked at the door of training."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, validate_data

from budgetforest.arrays import Anything, Ids, Matrix
from budgetforest.binning import hash_rows, single_valued
from budgetforest.errors import InvalidData, UnusualData
from budgetforest.table import Schema, Table, as_frame, learn_schema, to_matrix
from budgetforest.train import MOST_WEIGHT, Rows, hold_out, in_units


class Intake(NamedTuple):
    """Training rows, and what was learnt about the table they came in."""

    rows: Rows
    schema: Schema
    classes: Any
    """(k) the labels, sorted."""
    unit: float
    """Weight of one count."""


def training_rows(estimator: Any, X: Anything, y: Anything, weight: Anything) -> Intake:
    """Rows to learn from; those without weight are left out."""
    if y is None:
        raise InvalidData("fit requires y to be passed, but the target y is None; give a label for each row")
    X = _accepted(estimator, X, learn=True)
    schema = _learnt(estimator, X)
    X = _numbers(estimator, X, schema)
    y = _check_y(y, estimator=estimator)
    check_classification_targets(y)
    check_consistent_length(X, y)
    weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
    weight = weight * compute_sample_weight(estimator.class_weight, y)
    used = np.flatnonzero(weight)
    classes, label = np.unique(y[used], return_inverse=True)
    if len(classes) < 2:
        raise InvalidData(
            f"y has one class ({classes.tolist()}) among the rows of positive weight; "
            "a classifier needs at least two classes"
        )
    if weight.sum() > MOST_WEIGHT:
        raise InvalidData(
            f"sample_weight sums to {weight.sum():g}, more than {MOST_WEIGHT:g} rows; a weight of 2 "
            f"counts as the row twice: divide the weights by {weight.sum() / len(used):g}"
        )
    units, unit = in_units(weight[used])
    if len(used) < len(y):
        X = X[used]
    codes: Ids = label.astype(np.int32)
    return Intake(Rows(X, codes, np.maximum(units, 1), hash_rows(X, codes, schema)), schema, classes, unit)


def later_rows(estimator: Any, X: Anything, schema: Schema) -> Matrix:
    """Rows as numbers, by the names and categories of the training rows."""
    return _numbers(estimator, _accepted(estimator, X, learn=False), schema)


def validation_rows(estimator: Any, validation: Anything, intake: Intake) -> Rows:
    """The caller's own validation rows."""
    try:
        X, y = validation
    except (TypeError, ValueError):
        raise InvalidData(f"validation is a {type(validation).__name__}; it must be a pair (X, y)") from None
    X = later_rows(estimator, X, intake.schema)
    y = _check_y(y, estimator=estimator)
    check_consistent_length(X, y)
    classes = intake.classes
    label = np.searchsorted(classes, y).clip(max=len(classes) - 1).astype(np.int32)
    unknown = np.unique(y[classes[label] != y])
    if len(unknown):
        raise InvalidData(
            f"validation has the label {unknown.tolist()[0]!r}, which is not among the training "
            f"classes {classes.tolist()}; leave its rows out or add some to training"
        )
    _warn_of_absent_classes(label, classes)
    return Rows(X, label, np.ones(len(label), np.int64), hash_rows(X, label, intake.schema))


def held_out(intake: Intake, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Training rows without a part of them, and that part for validation."""
    rows = intake.rows
    train, held = hold_out(rows, fraction, seed)
    if not len(held):
        raise InvalidData(
            f"validation_fraction={fraction} of {len(rows.label)} rows holds out none, since equal rows "
            "stay together and each class keeps one in training; give more distinct rows, a larger "
            "fraction, or validation=(X, y)"
        )
    _warn_of_absent_classes(rows.label[held], intake.classes)
    return rows.take(train), rows.take(held)


def warn_of_constants(rows: Rows, schema: Schema) -> None:
    """Point out features that cannot tell anything."""
    # most features differ within a few rows
    same = single_valued(rows.X[:64])
    same[same] = single_valued(rows.X[:, same])
    constant = [name for name, flag in zip(schema.names, same, strict=True) if flag]
    if constant:
        warnings.warn(
            f"{len(constant)} of {len(same)} features are constant in training and will never be "
            f"acquired: {', '.join(map(repr, constant[:5]))}" + ", ..." * (len(constant) > 5),
            UnusualData,
            stacklevel=3,
        )


def _accepted(estimator: Any, X: Anything, *, learn: bool) -> Anything:
    """A table that scikit-learn's own checks accept; they learn names when training, enforce them later."""
    if hasattr(X, "collect"):
        raise InvalidData(f"X is a {type(X).__name__}, which is not computed yet; pass X.collect()")
    if isinstance(X, Table):
        estimator.n_features_in_ = X.shape[1]
        estimator.feature_names_in_ = np.array(X.schema.names, dtype=object)
        return X
    if as_frame(X) is not None:
        validate_data(estimator, X, reset=learn, skip_check_array=True)
        return X
    text = estimator.categorical_features is not None and np.asarray(X).dtype.kind in "OUS"
    return validate_data(estimator, X, reset=learn, **_rules(text))


def _rules(text: bool = False) -> dict[str, Any]:
    """What an array may hold; categories may be strings."""
    return {"dtype": None if text else [np.float64, np.float32], "ensure_all_finite": "allow-nan"}


def _learnt(estimator: Any, X: Anything) -> Schema:
    names = getattr(estimator, "feature_names_in_", None)
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else list(map(str, names))
    return learn_schema(X, names, estimator.categorical_features)


def _numbers(estimator: Any, X: Anything, schema: Schema) -> Matrix:
    matrix: Matrix = to_matrix(X, schema)
    if matrix is not X:
        matrix = check_array(matrix, estimator=estimator, input_name="X", **_rules())
    return matrix


def _warn_of_absent_classes(label: Ids, classes: Any) -> None:
    absent = np.setdiff1d(np.arange(len(classes)), label)
    if len(absent):
        warnings.warn(
            f"no validation row has the class {classes[absent].tolist()[0]!r} "
            f"({len(absent)} of {len(classes)} classes are absent): "
            "its errors do not count in the choice of the forest",
            UnusualData,
            stacklevel=4,
        )
