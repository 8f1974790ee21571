"""Hashes of what trainings give, to show that a change of the code changes nothing: forests, answers, files, reports.

``python -m benchmarks.identity before.json`` writes them, a second run with the same file compares and names what differs.
Only public names are used, so the same file serves a checkout before and after names have moved.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from rich.progress import track
from sklearn.datasets import load_breast_cancer, load_wine

import budgetforest.dask
from budgetforest import BudgetForestClassifier, Polynomial, ThresholdPairs, load, save, step, to_json

SEEDS = (0, 1, 2)
PRICES = pd.DataFrame(
    {
        "feature": ["age", "blood", "ecg", "mri", "colour", "ward"],
        "cost": [1.0, 5.2, 7.27, 100.0, 0.0, 1.0],
        "group": ["", "draw", "draw", "", "", ""],
        "discount_cost": [None, 3.1, 5.17, None, None, None],
    }
)
CLINIC = {"costs": PRICES, "categorical_features": ["ward"], "max_trees": 6}
PAPER = {"method": "paper", "max_trees": 5}
CASES: dict[str, dict[str, Any]] = {
    "auto": {"budget": 4, "max_trees": 6},
    "auto, panel, missing, nominal": CLINIC | {"budget": 20},
    "auto, weights": {"budget": 3, "max_trees": 5, "weight": True},
    "auto, proba": CLINIC | {"answer": "proba"},
    "auto, bound": {"budget": 5, "max_trees": 5, "max_disagreement": 0.2},
    "auto, sensors": {"budget": 3, "max_trees": 5, "groups": list("aabbccddeeffg")},
    "paper": PAPER | {"budget": 4},
    "paper, panel, missing, nominal": PAPER | CLINIC | {"budget": 20},
    "paper, proba": PAPER | {"budget": 5, "answer": "proba"},
    "paper, weights": PAPER | {"budget": 4, "weight": True, "class_weight": "balanced"},
    **{
        f"paper, {splitter}, {impurity}": PAPER
        | {
            "splitter": splitter,
            "impurity": impurity,
            "alpha": 0.05 if impurity in ("entropy", "gini") else "auto",
        }
        for splitter in ("binned", "exact", "random")
        for impurity in ("pairs", "powers", "entropy", "gini")
    },
    "paper, polynomial": PAPER | {"impurity": Polynomial([(1, (1, 1, 0)), (2, (1, 0, 1)), (1, (0, 1, 1))])},
    "paper, offset": PAPER | {"impurity": ThresholdPairs(offset=False)},
    "paper, expected": PAPER
    | {"impurity": "entropy", "criterion": "expected", "alpha": 0.1, "bootstrap": False},
    "paper, soft": PAPER | {"voting": "soft", "alpha": 2.0, "n_jobs": 2},
    "paper, counts": PAPER | {"voting": "counts", "alpha": [0, 8], "budget": 3},
    "paper, sensors": PAPER | {"budget": 3, "groups": list("aabbccddeeffg")},
}


def clinic() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with holes, a colour, a number that is a name, and classes that depend on them."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=["age", "blood", "ecg", "mri"])
    y = (X["age"] + X["blood"] + 0.5 * X["mri"] > 0).to_numpy().astype(int)
    X = X.mask(rng.random(X.shape) < 0.1)
    X["colour"] = rng.choice(["red", "green", "blue"], 400)
    X["ward"] = rng.integers(1, 4, 400)
    return X, np.where((X["colour"] == "red") & (X["ward"] == 2), 2, y)


def trainings() -> Iterator[tuple[str, Any, Any, Any]]:
    """Every case with its fitted model and rows."""
    for name, case in track(CASES.items(), "trainings"):
        parameters = dict(case)
        weighted = parameters.pop("weight", False)
        X, y = clinic() if "costs" in parameters else load_wine(return_X_y=True)
        weight = np.random.default_rng(1).random(len(y)) + 0.5 if weighted else None
        for seed in SEEDS:
            model = BudgetForestClassifier(random_state=seed, **parameters)
            yield f"{name}, seed {seed}", model.fit(X, y, sample_weight=weight), X, y


def spread() -> Iterator[tuple[str, Any, Any, Any]]:
    """The same on a cluster, rows and trees spread."""
    X, y = load_wine(return_X_y=True)
    size = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**size) as cluster, Client(cluster) as client:
        for how in ("rows", "trees"):
            for name in ("auto", "paper", "paper, exact, pairs", "paper, random, pairs"):
                blocks = da.from_array(X, chunks=(60, 13)), da.from_array(y, chunks=60)
                model = BudgetForestClassifier(random_state=0, **CASES[name])
                yield (
                    f"{how} spread, {name}",
                    budgetforest.dask.fit(model, *blocks, client=client, spread=how),
                    X,
                    y,
                )


def facts_of(model: Any, X: Any, y: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """What must not change, by name."""
    yield "nodes", list(model.forest_.nodes)
    yield "path", [list(point)[1:] for point in model.path_]
    yield "labels", model.predict(X)
    yield "proba", model.predict_proba(X)
    yield "costs", [model.acquisition_cost(X, answer=answer) for answer in ("label", "proba")]
    yield "acquired", model.acquired_features(X)
    yield "json", to_json(model)
    save(model, folder / "model")
    yield "file", (folder / "model").read_bytes()
    again = load(folder / "model")
    rows = (
        X.to_dict("records")
        if hasattr(X, "to_dict")
        else [dict(zip(model.forest_.schema.names, r, strict=True)) for r in X]
    )
    some = range(0, len(rows), 9)
    yield "one by one", [again.predict_one(rows[i].get, limit=limit) for i in some for limit in (None, 3)]
    yield "bulk", again.predict_from(lambda f, who: [rows[i][f] for i in who], list(some))
    yield "step", step(again.forest_, {})
    yield "trees", model.trees_to_dataframe().to_csv()


def digest(value: Any) -> bytes:
    """A hash of plain values, whatever their classes are called."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        parts = [str(value.dtype).encode(), str(value.shape).encode(), np.ascontiguousarray(value).tobytes()]
    elif isinstance(value, dict):
        parts = [digest(item) for pair in sorted(value.items()) for item in pair]
    elif isinstance(value, list | tuple | np.ndarray):
        parts = [digest(item) for item in value]
    elif is_dataclass(value):
        parts = [digest(getattr(value, field.name)) for field in fields(value)]
    else:
        parts = [value if isinstance(value, bytes) else repr(value).encode()]
    return hashlib.sha256(b"|".join(parts)).digest()


def measure() -> dict[str, str]:
    """All hashes by name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cases in (trainings(), spread()):
            for name, model, X, y in cases:
                for what, fact in facts_of(model, X, y, Path(folder)):
                    found[f"{name}: {what}"] = digest(fact).hex()[:16]
        X, y = load_breast_cancer(return_X_y=True)
        model = BudgetForestClassifier(4, max_trees=8, random_state=0).fit(X[::2], y[::2])
        found["report"] = digest(model.report(X[1::2], y[1::2]).facts).hex()[:16]
    return found


def main(path: str) -> None:
    """Write hashes to a file, or compare with those in it."""
    found = measure()
    kept = Path(path)
    if not kept.exists():
        kept.write_text(json.dumps(found, indent=0) + "\n")
        print(f"wrote {len(found)} hashes to {path}")
        return
    before = json.loads(kept.read_text())
    different = [name for name in before | found if before.get(name) != found.get(name)]
    print(f"{len(found)} hashes, {len(different)} differ from {path}", *different[:40], sep="\n")
    sys.exit(bool(different))


if __name__ == "__main__":
    main(sys.argv[1])
