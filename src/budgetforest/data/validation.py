"""Rows, labels and weights as a scikit-learn caller gives them, checked at the door of training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, validate_data

from budgetforest.data.binning import hash_rows, single_valued
from budgetforest.data.holdout import hold_out
from budgetforest.data.rows import Rows
from budgetforest.data.table import Schema, Table, as_frame, learn_schema, names_of, to_matrix
from budgetforest.data.weights import in_units, scale_for
from budgetforest.runtime.arrays import (
    FEW_CLASSES,
    MAX_CODES,
    MOST_WEIGHT,
    Anything,
    Counts,
    Flags,
    Floats,
    Ids,
    Matrix,
)
from budgetforest.runtime.errors import InvalidData, UnusualData, warn

LEAST_WEIGHT = 1e-100
"""Of a row on average: what is smaller cannot be scaled to 1."""


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
    X = accepted(estimator, X, learn=True)
    schema = learn_schema(X, names_of(estimator, X.shape[1]), estimator.categorical_features)
    X = _numbers(estimator, X, schema)
    y = _check_y(y, estimator=estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of many classes: check_totals has a word for it
        check_classification_targets(y)
    check_consistent_length(X, y)
    weight = weights_of(estimator, weight, X, y)
    if weight is not None and not weight.all():
        used = np.flatnonzero(weight)
        X, y, weight = X[used], y[used], weight[used]
    classes = np.unique(y)
    check_totals(classes, len(y), float(len(y)) if weight is None else sum_of(weight))
    units, unit = whole_weights(weight, len(y))
    label: Any = np.searchsorted(classes, y).astype(np.int32)
    rows = Rows(X, label, units, hash_rows(X, label, schema))
    return Intake(rows, schema, classes, unit)


def weights_of(estimator: Any, given: Anything, X: Matrix, y: Anything) -> Floats | None:
    """(n) what each row weighs; None: 1."""
    if given is None and estimator.class_weight is None:
        return None
    weight = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):  # check_totals refuses what is infinite
        weighed: Floats = weight * compute_sample_weight(estimator.class_weight, y)
    return weighed


def sum_of(weights: Iterable[float | Fraction]) -> float:
    """The sum, infinite if it is too large for a number."""
    try:
        return math.fsum(weights)
    except OverflowError:
        return math.inf


def whole_weights(weight: Floats | None, n: int) -> tuple[Ids, float]:
    """(n) the weights as whole numbers, and the weight of 1."""
    if weight is None:
        return np.broadcast_to(np.int32(1), n), 1.0
    scale = scale_for(bool((weight == np.round(weight)).all()), n, math.fsum(weight))
    return in_units(weight, scale), scale.unit


def check_totals(classes: Any, n: int, weight: float) -> None:
    """Refuse a single class, and more weight than can be counted; point out classes that may be none."""
    if len(classes) < 2:
        raise InvalidData(
            f"y has one class ({classes.tolist()}) among the rows of positive weight; "
            "a classifier needs at least two classes"
        )
    if weight == n > MOST_WEIGHT:
        raise InvalidData(f"X has {n:,} rows, more than {MOST_WEIGHT:,} can be counted; take some of them")
    if weight < n * LEAST_WEIGHT:
        raise InvalidData(
            f"sample_weight sums to {weight:g} over {n} rows, too little to be told from nothing; "
            "multiply the weights by a large number"
        )
    if not weight <= MOST_WEIGHT:
        mean = f"{weight / n:g}" if math.isfinite(weight) else "their mean"
        raise InvalidData(
            f"sample_weight sums to {weight:g}, more than {MOST_WEIGHT:g} rows; a weight of 2 "
            f"counts as the row twice: divide the weights by {mean}"
        )
    warn_of_many_classes(classes, n)


def warn_of_many_classes(classes: Any, n: int) -> None:
    """Point out labels that look like measurements, or like names of the rows."""
    k, numbers = len(classes), classes.dtype.kind in "iuf"
    scarce = k > FEW_CLASSES and n < (5 if numbers else 2) * k
    if scarce or (numbers and k >= MAX_CODES):
        what = "different numbers" if numbers else "classes"
        hint = "if they measure something, cut them into ranges" if numbers else "are they the right ones?"
        warn(
            f"the labels of {n} rows are {k} {what}, which a classifier learns one by one; {hint}",
            UnusualData,
        )


def later_rows(estimator: Any, X: Anything, schema: Schema) -> Matrix:
    """Rows as numbers, by the names and categories of the training rows."""
    return _numbers(estimator, accepted(estimator, X), schema)


def validation_rows(estimator: Any, validation: Anything, intake: Intake) -> Rows:
    """The caller's own validation rows."""
    try:
        X, y = validation
    except (TypeError, ValueError):
        raise InvalidData(f"validation is a {type(validation).__name__}; it must be a pair (X, y)") from None
    rows = known_rows(estimator, X, y, intake.schema, intake.classes, intake.unit)
    warn_of_absent_classes(np.bincount(rows.label, minlength=len(intake.classes)), intake.classes)
    return rows


def known_rows(estimator: Any, X: Anything, y: Anything, schema: Schema, classes: Any, unit: float) -> Rows:
    """Rows under the schema and the classes of the training rows, each of weight 1 in units of theirs."""
    X = later_rows(estimator, X, schema)
    y = _check_y(y, estimator=estimator)
    check_consistent_length(X, y)
    label = np.searchsorted(classes, y).clip(max=len(classes) - 1).astype(np.int32)
    unknown = np.unique(y[classes[label] != y])
    if len(unknown):
        raise InvalidData(
            f"validation has the label {unknown.tolist()[0]!r}, which is not among the training "
            f"classes {classes.tolist()}; leave its rows out or add some to training"
        )
    weight = np.full(len(label), round(1 / unit), np.int32)
    return Rows(X, label, weight, hash_rows(X, label, schema))


def held_out(intake: Intake, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Training rows without a part of them, and that part for validation."""
    rows = intake.rows
    train, held = hold_out(rows, fraction, seed)
    counts = np.bincount(rows.label[held], minlength=len(intake.classes))
    check_held_out(counts, intake.classes, fraction, len(rows.label))
    return rows.pick(train), rows.pick(held)


def check_held_out(counts: Counts, classes: Any, fraction: float, n: int) -> None:
    """Refuse to hold out no row; ``counts`` are those of the classes in ``n`` rows."""
    if not counts.any():
        raise InvalidData(
            f"validation_fraction={fraction} of {n} rows holds out none, since equal rows "
            "stay together and each class keeps one in training; give more distinct rows, or "
            "validation=(X, y)"
        )
    warn_of_absent_classes(counts, classes)


def constants(rows: Rows) -> Flags:
    """(m) which features cannot tell anything."""
    return single_valued(rows.X)


def warn_of_constants(same: Flags, schema: Schema) -> None:
    """Point out features that cannot tell anything."""
    constant = [name for name, flag in zip(schema.names, same, strict=True) if flag]
    if constant:
        warn(
            f"{len(constant)} of {len(same)} features are constant in training and will never be "
            f"acquired: {', '.join(map(repr, constant[:5]))}" + ", ..." * (len(constant) > 5),
            UnusualData,
        )


def accepted(estimator: Any, X: Anything, *, learn: bool = False) -> Anything:
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


def learn_names(estimator: Any, X: Anything) -> list[str]:
    """The names of the columns, which scikit-learn's checks learn from some rows."""
    return names_of(estimator, accepted(estimator, X, learn=True).shape[1])


def _numbers(estimator: Any, X: Anything, schema: Schema) -> Matrix:
    matrix: Matrix = to_matrix(X, schema)
    if matrix is not X:
        matrix = check_array(matrix, estimator=estimator, input_name="X", **_rules())
    return matrix


def warn_of_absent_classes(counts: Counts, classes: Any) -> None:
    """Point out classes without validation rows."""
    absent = np.flatnonzero(counts == 0)
    if len(absent):
        warn(
            f"no validation row has the class {classes[absent].tolist()[0]!r} "
            f"({len(absent)} of {len(classes)} classes are absent): "
            "its errors do not count in the choice of the forest",
            UnusualData,
        )
