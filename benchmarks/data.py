"""Real rows from the folder named by BUDGETFOREST_DATA; what is absent is said to be absent."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification


class Data(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray
    costs: object = None
    """A price list, None for a cost of 1 each."""


def folder() -> Path | None:
    """Where the data are, if anywhere."""
    named = os.environ.get("BUDGETFOREST_DATA")
    return Path(named) if named else None


def load(name: str) -> Data | None:
    """A data set of the folder with its published prices, None if it is not there."""
    path = folder() and folder() / f"{name}.parquet"
    if not path or not path.exists():
        print(f"{name}: absent; set BUDGETFOREST_DATA to a folder with {name}.parquet")
        return None
    table = pd.read_parquet(path)
    prices = path.parent / "costs" / f"{name}.csv"
    X = table.drop(columns="target")
    return Data(name, X.astype(np.float32), table["target"].to_numpy(), prices if prices.exists() else None)


def covertype(rows: int) -> Data:
    """A random part of Covertype; without the folder, synthetic rows of the same shape, named so."""
    data = load("covtype")
    if data is None:
        X, y = make_classification(
            rows, 54, n_informative=20, n_classes=7, n_clusters_per_class=3, random_state=0
        )
        return Data(f"synthetic {rows:,} x 54", X.astype(np.float32), y)
    part = np.random.default_rng(0).permutation(len(data.y))[:rows]
    return Data(f"Covertype {rows:,} x 54", data.X.to_numpy()[part], data.y[part])
