"""Real rows from the folder named by BUDGETFOREST_DATA, or made-up ones that say so."""

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


def covertype(rows: int) -> Data:
    """A random part of Covertype; without the folder, synthetic rows of the same shape, named so."""
    folder = os.environ.get("BUDGETFOREST_DATA")
    path = Path(folder or "") / "covtype.parquet"
    if not folder or not path.exists():
        print("BUDGETFOREST_DATA names no folder with covtype.parquet: synthetic rows instead")
        X, y = make_classification(
            rows, 54, n_informative=20, n_classes=7, n_clusters_per_class=3, random_state=0
        )
        return Data(f"synthetic {rows:,} x 54", X.astype(np.float32), y)
    table = pd.read_parquet(path)
    part = np.random.default_rng(0).permutation(len(table))[:rows]
    X = table.drop(columns="target").to_numpy(np.float32)[part]
    return Data(f"Covertype {rows:,} x 54", X, table["target"].to_numpy()[part])
