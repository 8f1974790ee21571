"""The text format of ranking sets: Yahoo LTRC, MSLR and LETOR 4.0.

A line is a document, ``relevance qid:7 1:0.3 5:0.1 # comment``; a feature that is not named is 0.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file


def read(paths: Iterable[Path], ids: Sequence[int], n_ids: int) -> pd.DataFrame:
    """The features ``ids`` (from 1 to ``n_ids``) as f001, f002, ..., then `query` and `target`."""
    return pd.concat([_read(path, np.asarray(ids), n_ids) for path in paths], ignore_index=True)


def _read(path: Path, ids: np.ndarray, n_ids: int) -> pd.DataFrame:
    X, relevance, query = load_svmlight_file(
        str(path), n_features=n_ids, dtype=np.float32, zero_based=False, query_id=True
    )
    names = [f"f{i + 1:03d}" for i in range(len(ids))]
    table = pd.DataFrame(X[:, ids - 1].toarray(), columns=names)
    return table.assign(query=query.astype(np.int32), target=relevance.astype(np.int8))
