"""The same forest on a Dask cluster: ``fit``, and ``predict`` and ``acquisition_cost`` by blocks.

``fit`` returns the ordinary fitted classifier, bit for bit that of its own ``fit`` on the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from budgetforest.dask.cluster import Cluster, cluster_of
from budgetforest.dask.fitting import fit_by_rows, fit_by_trees
from budgetforest.dask.inputs import at_hand, blocks_of, by_blocks, is_spread, n_bytes_of
from budgetforest.estimators.base import check_trained
from budgetforest.runtime.errors import ClusterFailed, InvalidParameter
from budgetforest.runtime.progress import progress

if TYPE_CHECKING:
    from distributed import Client, Future

    from budgetforest.estimators.classifier import BudgetForestClassifier
    from budgetforest.runtime.arrays import Anything

__all__ = ["acquisition_cost", "fit", "predict"]

SHARE = 4
"""Rows fit a worker if they take one of so many parts of its memory."""

Classifier = TypeVar("Classifier", bound="BudgetForestClassifier")


def fit(
    classifier: Classifier,
    X: Anything,
    y: Anything,
    *,
    validation: Anything = None,
    sample_weight: Anything = None,
    client: Client | None = None,
    spread: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Classifier:
    """Fit a classifier on a cluster; everything else is as in its own ``fit``.

    Parameters
    ----------
    X, y, sample_weight : Dask arrays or dataframes in the same blocks
        Or X is a folder of Parquet files (``*.parquet``, a block each) that the client and all workers can
        read, or a Dask dataframe, and y the name of the column of labels, sample_weight that of the weights.
        Rows at hand, as ``fit`` takes them, do as well.
    validation : pair (X, y) of the same kinds, or None
    client : the client in use if None
    spread : "rows", "trees" or None
        "rows": blocks stay where they are and count, for rows that fit no machine (up to 4,096 rows are
        brought here for ``method="auto"``).
        "trees": the rows come here, their codes go to every worker, and each grows whole trees. None: trees
        if the rows take at most a quarter of the smallest machine's memory, the client's counted in.
    checkpoint : a folder here, where the training goes on after a loss
    """
    if spread not in (None, "rows", "trees"):
        raise InvalidParameter(f"spread={spread!r} is unknown; take 'rows', 'trees' or None")
    with unchanged_if_lost(classifier), cluster_of(client) as cluster:
        if spread != "rows" and not is_spread(X):
            validation = validation_at_hand(cluster, validation)
            fit_by_trees(cluster, classifier, X, y, validation, sample_weight, checkpoint)
            return classifier
        with progress(classifier.verbose) as tell:
            tell("blocks", 0, 1, "reading")
            blocks = blocks_of(cluster, X, y, sample_weight)
            if by_rows(cluster, blocks, spread):
                tell("blocks", 1, 1)
                fit_by_rows(cluster, classifier, blocks, validation, checkpoint, tell)
                return classifier
            rows = at_hand(cluster, blocks)
            tell("blocks", 1, 1)
            del blocks  # workers need not keep them
        validation = validation_at_hand(cluster, validation)
        fit_by_trees(cluster, classifier, rows.X, rows.y, validation, rows.weight, checkpoint)
        return classifier


@contextmanager
def unchanged_if_lost(classifier: BudgetForestClassifier) -> Iterator[None]:
    """Leave a classifier as it was if the cluster fails, even at the very end."""
    before = dict(classifier.__dict__)
    try:
        yield
    except ClusterFailed:
        classifier.__dict__ = before
        raise


def by_rows(cluster: Cluster, blocks: list[Future], spread: str | None) -> bool:
    """Whether rows are spread, and not trees."""
    if spread:
        return spread == "rows"
    size: int = sum(cluster.values(cluster.each(n_bytes_of, blocks)))
    return size * SHARE > cluster.least_memory


def validation_at_hand(cluster: Cluster, validation: Anything) -> Anything:
    """A pair of validation rows, brought here if it is elsewhere."""
    if isinstance(validation, tuple | list) and len(validation) == 2 and is_spread(validation[0]):
        X, y = validation
        return at_hand(cluster, blocks_of(cluster, X, y, None))[:2]
    return validation


def predict(model: Any, X: Anything) -> Any:
    """The label of each row of a Dask collection or a folder, lazily and by blocks.

    A Dask array gives an array, a dataframe or a folder a series with its index. Columns that the model
    does not know, as labels, are left out.
    """
    check_trained(model)
    return by_blocks(labels_of, model, X, model.classes_[:0])


def acquisition_cost(model: Any, X: Anything) -> Any:
    """What each row of a Dask collection or a folder pays, in the same strategy."""
    check_trained(model)
    return by_blocks(costs_of, model, X, np.zeros(0))


def labels_of(model: Any, part: Any) -> Any:
    """The labels of a block."""
    return in_form(part, model.predict(part) if len(part) else model.classes_[:0])


def costs_of(model: Any, part: Any) -> Any:
    """What the rows of a block pay."""
    return in_form(part, model.acquisition_cost(part) if len(part) else np.zeros(0))


def in_form(part: Any, answer: Any) -> Any:
    """The answer as a series if the rows are a dataframe."""
    if isinstance(part, np.ndarray):
        return answer
    import pandas as pd

    return pd.Series(answer, index=part.index, dtype=answer.dtype)
