"""Rows in blocks, checked on the workers: what ``data.validation`` does for rows at hand, to the same end."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from sklearn.base import clone
from sklearn.utils import check_consistent_length
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y

from budgetforest.dask.cluster import Cluster
from budgetforest.dask.inputs import Raw
from budgetforest.data.binning import hash_rows
from budgetforest.data.rows import Rows, Totals, together, totals_of
from budgetforest.data.table import Schema, learn_schema, merged_schema
from budgetforest.data.validation import accepted, check_totals, known_rows, later_rows, learn_names, sum_of
from budgetforest.data.weights import Scale, in_units, scale_for
from budgetforest.runtime.arrays import Counts, Floats
from budgetforest.selection.evaluation import exact_sum


class SpreadIntake(NamedTuple):
    """Training rows on workers, and what was learnt about their table."""

    blocks: list[Future]
    """Of ``Rows``."""
    estimator: Future
    """The estimator with its columns learnt, for checks of other rows."""
    schema: Schema
    classes: Any
    unit: float


def spread_rows(cluster: Cluster, classifier: Any, blocks: list[Future]) -> SpreadIntake:
    """Rows to learn from; those without weight are left out."""
    names = learn_names(classifier, cluster.values(cluster.run(first_row, blocks[0])))
    bare = clone(classifier)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(classifier, name):
            setattr(bare, name, getattr(classifier, name))
    estimator = cluster.hold(bare)
    schema = schema_of(cluster, blocks, estimator, tuple(names))
    known, counts = labels_in(cluster, blocks, estimator)
    worth = class_weights(classifier.class_weight, known, counts)
    weighed = cluster.each(weights_for, blocks, estimator, known, worth)
    classes, whole, n, total = zip(
        *cluster.values(cluster.each(sum_up, blocks, weighed, estimator)), strict=True
    )
    kept = np.unique(np.concatenate(classes))
    check_totals(kept, sum(n), sum_of(total))
    scale = scale_for(all(whole), sum(n), float(sum(total)))
    checked = cluster.each(checked_rows, blocks, weighed, estimator, schema, kept, scale)
    return SpreadIntake(checked, estimator, schema, kept, scale.unit)


def totals(cluster: Cluster, blocks: list[Future], n_classes: int) -> Totals:
    """What is remembered of all blocks."""
    return together(cluster.values(cluster.each(totals_of, blocks, n_classes)))


def schema_of(cluster: Cluster, blocks: list[Future], estimator: Future, names: tuple[str, ...]) -> Schema:
    """The schema of all rows; a column that is nominal in one block is in all."""
    found = cluster.values(cluster.each(look, blocks, estimator, names, None))
    nominal = np.any([schema.nominal for schema in found], axis=0)
    if any((schema.nominal != nominal).any() for schema in found):
        found = cluster.values(cluster.each(look, blocks, estimator, names, nominal))
    return merged_schema(found)


def labels_in(cluster: Cluster, blocks: list[Future], estimator: Future) -> tuple[Any, Counts]:
    """All labels, sorted, and how many rows have each."""
    found = cluster.values(cluster.each(count_labels, blocks, estimator))
    known, place = np.unique(np.concatenate([labels for labels, _ in found]), return_inverse=True)
    counts = np.zeros(len(known), np.int64)
    np.add.at(counts, place, np.concatenate([each for _, each in found]))
    return known, counts


def class_weights(given: Any, known: Any, counts: Counts) -> Floats:
    """(labels) what a row of each label weighs, as scikit-learn has it."""
    if isinstance(given, str) and given == "balanced":
        balanced: Floats = counts.sum() / (len(counts) * counts.astype(np.float64))
        return balanced
    return np.asarray(compute_class_weight(given, classes=known, y=known), np.float64)


# What tasks do ---------------------------------------------------------------------------------


def first_row(raw: Raw) -> Any:
    """A row, to learn the columns from."""
    return raw.X.iloc[:1] if hasattr(raw.X, "iloc") else raw.X[:1]


def look(raw: Raw, estimator: Any, names: tuple[str, ...], categorical: Any) -> Schema:
    """The schema of a block; nominal are the columns that the estimator lists, or those listed here."""
    listed = estimator.categorical_features if categorical is None else categorical
    return learn_schema(accepted(estimator, raw.X), names, listed)


def count_labels(raw: Raw, estimator: Any) -> tuple[Any, Counts]:
    """The labels of a block, and how many rows have each."""
    y = _check_y(raw.y, estimator=estimator)
    check_classification_targets(y)
    check_consistent_length(raw.X, y)
    labels, counts = np.unique(y, return_counts=True)
    return labels, counts


def weights_for(raw: Raw, estimator: Any, known: Any, worth: Floats) -> Floats:
    """The weight of each row of a block."""
    y = _check_y(raw.y, estimator=estimator)
    weight = _check_sample_weight(raw.weight, raw.X, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):  # check_totals refuses what is infinite
        weighed: Floats = weight * worth[np.searchsorted(known, y)]
    return weighed


def sum_up(raw: Raw, weight: Floats, estimator: Any) -> tuple[Any, bool, int, Fraction]:
    """Labels of positive weight, whether all weights are whole, how many are positive, their sum."""
    used = weight > 0
    labels = np.unique(_check_y(raw.y, estimator=estimator)[used])
    return labels, bool((weight == np.round(weight)).all()), int(used.sum()), exact_sum(weight)


def checked_rows(
    raw: Raw, weight: Floats, estimator: Any, schema: Schema, classes: Any, scale: Scale
) -> Rows:
    """The training rows of a block."""
    used = np.flatnonzero(weight)
    X = later_rows(estimator, raw.X, schema)
    X = X if len(used) == len(X) else X[used]  # no copy of what is there
    label = np.searchsorted(classes, _check_y(raw.y, estimator=estimator)[used]).astype(np.int32)
    return Rows(X, label, in_units(weight[used], scale), hash_rows(X, label, schema))


def other_rows(raw: Raw, estimator: Any, schema: Schema, classes: Any, unit: float) -> Rows:
    """The validation rows of a block."""
    return known_rows(estimator, raw.X, raw.y, schema, classes, unit)


def part_of(rows: Rows, turn: Any, part: int) -> Rows:
    """The rows whose turn it is."""
    return rows.take(turn == part)


def rest_of(rows: Rows, turn: Any, part: int) -> Rows:
    """The other rows."""
    return rows.take(turn != part)
