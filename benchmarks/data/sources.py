"""Where data sets come from, and how each becomes a table like those of the data folder.

First the means of fetching, then one short function per set. Ids and addresses are those of public code that uses
them; they were not tried when this was written, offline. So rows, columns and class counts decide, before any use.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.utils import Bunch

from benchmarks.data import kmeans, letor
from benchmarks.data.store import Mismatch, find, folder

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


def openml(data_id: int) -> Callable[[], Bunch]:
    return lambda: datasets.fetch_openml(data_id=data_id, as_frame=True)


def uci(*files: str, sep: str = ",") -> Callable[[], pd.DataFrame]:
    """Files of the UCI archive below each other; a question mark is a missing value."""

    def fetch() -> pd.DataFrame:
        tables = [pd.read_csv(UCI + file, sep=sep, header=None, na_values="?") for file in files]
        return pd.concat(tables, ignore_index=True)

    return fetch


def texts(*files: str, n_ids: int) -> Callable[[], pd.DataFrame]:
    """LETOR files of the data folder."""

    def fetch() -> pd.DataFrame:
        return letor.read(map(_own, files), range(1, n_ids + 1), n_ids)

    return fetch


def yahoo() -> pd.DataFrame:
    """The training file of set 1; of 700 feature numbers those 519 that its price list names."""
    path = _own("yahoo/set1.train.txt")
    prices = find("costs/yahoo_ltrc_set1.csv")
    if prices is None:
        raise FileNotFoundError("costs/yahoo_ltrc_set1.csv, which names its 519 features, is not there")
    return letor.read([path], pd.read_csv(prices)["original_id"], 700)


def _own(file: str) -> Path:
    own = folder()
    if own is None:
        raise FileNotFoundError("BUDGETFOREST_DATA is not set")
    return own / file


def covtype(raw: Bunch) -> pd.DataFrame:
    # scikit-learn counts Soil_Type_0 to Soil_Type_39, the folder Soil_Type1 to Soil_Type40
    names = [re.sub(r"_(\d+)$", lambda m: str(int(m[1]) + 1), name) for name in raw.feature_names]
    return _table(pd.DataFrame(raw.data, dtype=np.float32), names, raw.target)


def miniboone(raw: Bunch) -> pd.DataFrame:
    names = [f"pid_{i:02d}" for i in range(1, 51)]
    signal = raw.target.astype(str).str.title()
    return _table(raw.data.astype(np.float32), names, _codes(signal, "False", "True"))


def cifar10(raw: Bunch) -> pd.DataFrame:
    """Features of the images, if these come in the official order; this takes minutes."""
    y = raw.target.astype(int).to_numpy()
    images = raw.data.to_numpy(np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    first = [*y[:10], *y[50_000:50_010], *images[0, 0, 0], *images[50_000:, 0, 0].ravel()[:3]]
    official = [6, 9, 9, 4, 1, 1, 2, 7, 8, 3, 3, 8, 8, 0, 6, 6, 1, 6, 3, 1, 59, 62, 63, 158, 112, 49]
    if first != official:
        raise Mismatch(
            f"CIFAR-10: expected first labels and pixels {official}, found {[int(v) for v in first]}"
        )
    dictionary = kmeans.learn(images[:50_000], seed=0)
    return kmeans.features(images, dictionary).astype(np.float16).assign(target=y.astype(np.int8))


def house_votes84(raw: Bunch) -> pd.DataFrame:
    X = raw.data.astype(object).apply(lambda votes: votes.map({"n": 0.0, "y": 1.0}).astype(np.float32))
    names = [name.replace("-", "_") for name in X]
    return _table(X, names, _codes(raw.target, "democrat", "republican"))


def sonar(raw: Bunch) -> pd.DataFrame:
    return _table(raw.data, _numbered(60), _codes(raw.target, "Rock", "Mine"))


def ionosphere(raw: Bunch) -> pd.DataFrame:
    return _table(raw.data, _numbered(34), _codes(raw.target, "b", "g"))


def statlog_dna(raw: Bunch) -> pd.DataFrame:
    return _table(raw.data.astype(np.int8), _numbered(180), _codes(raw.target, "1", "2", "3"))


def boston_housing(raw: Bunch) -> pd.DataFrame:
    """The class is the quartile of the price."""
    quartile = np.searchsorted([17.025, 21.2, 25.0], raw.target.astype(float))
    return _table(raw.data.astype(float), [name.lower() for name in raw.data], quartile)


def soybean_large(raw: pd.DataFrame) -> pd.DataFrame:
    """The class, first in the file, is numbered in the alphabetical order of the diseases."""
    names = (
        "date plant_stand precip temp hail crop_hist area_dam sever seed_tmt germ plant_growth leaves leaf_halo "
        "leaf_marg leaf_size leaf_shread leaf_malf leaf_mild stem lodging stem_cankers canker_lesion "
        "fruiting_bodies ext_decay mycelium int_discolor sclerotia fruit_pods fruit_spots seed mold_growth "
        "seed_discolor seed_size shriveling roots"
    )
    return _table(raw.drop(columns=0), names.split(), pd.Categorical(raw[0]).codes)


def pima_diabetes(raw: Bunch) -> pd.DataFrame:
    names = "pregnant glucose pressure triceps insulin mass pedigree age"
    return _table(raw.data, names.split(), _codes(raw.target, "tested_negative", "tested_positive"))


def wdbc(raw: Bunch) -> pd.DataFrame:
    """Here 1 is malignant."""
    names = [name.replace(" ", "_") for name in raw.feature_names]
    return _table(pd.DataFrame(raw.data), names, 1 - raw.target)


def mammographic_masses(raw: pd.DataFrame) -> pd.DataFrame:
    """Complete rows only."""
    raw = raw.dropna()
    return _table(raw.iloc[:, :-1], ["bi_rads", "age", "shape", "margin", "density"], raw.iloc[:, -1])


def heart_cleveland(raw: pd.DataFrame) -> pd.DataFrame:
    names = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal"
    return _table(raw.iloc[:, :-1], names.split(), raw.iloc[:, -1])


def ann_thyroid(raw: pd.DataFrame) -> pd.DataFrame:
    names = (
        "age sex on_thyroxine query_on_thyroxine on_antithyroid_medication sick pregnant thyroid_surgery "
        "I131_treatment query_hypothyroid query_hyperthyroid lithium goitre tumor hypopituitary psych "
        "TSH T3 TT4 T4U FTI"
    )
    return _table(raw.iloc[:, :-1], names.split(), raw.iloc[:, -1])


def bupa_liver(raw: pd.DataFrame) -> pd.DataFrame:
    """Blood tests against drinking (Turney's target); the last field is no label."""
    return _table(raw.iloc[:, :5], ["mcv", "alkphos", "sgpt", "sgot", "gammagt"], raw[5] >= 3)


def _table(X: pd.DataFrame, names: Sequence[str], target: object) -> pd.DataFrame:
    """Features under the names of the folder; a column too many keeps its own and fails the check."""
    X = X.rename(columns=dict(zip(X, names, strict=False))).reset_index(drop=True)
    return pd.concat([X, pd.Series(np.asarray(target).astype(np.int8), name="target")], axis=1)


def _codes(labels: pd.Series, *known: str) -> np.ndarray:
    """The place of each label among the known ones, -1 for any other."""
    return pd.Categorical(labels.astype(str), categories=known).codes


def _numbered(n: int) -> list[str]:
    return [f"V{i}" for i in range(1, n + 1)]
