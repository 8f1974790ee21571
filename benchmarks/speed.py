"""Growing one tree beside scikit-learn's, and what a new process waits for."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks.data import present
from budgetforest import BudgetForestClassifier

RESULTS = Path(__file__).parent / "results"
REPEATS = 7

SMALL_FIT = (
    "import time; start = time.perf_counter(); from budgetforest import BudgetForestClassifier; "
    "from sklearn.datasets import load_wine; X, y = load_wine(return_X_y=True); "
    "imported = time.perf_counter(); BudgetForestClassifier(alpha=0, max_trees=2).fit(X, y); "
    "print(imported - start, time.perf_counter() - imported)"
)


def run() -> None:
    """Measure, print, write ``results/speed.json``."""
    console = Console()
    trees = {title: growth(console, title, X, y) for title, X, y in (covertype(36_603), *cifar(19_761))}
    rates = prediction(console)
    start = start_up()
    for what, value in start.items():
        console.print(f"{what}: {value:.2f} s")
    RESULTS.mkdir(exist_ok=True)
    result = {"trees": trees, "rates": rates, "start-up": start}
    (RESULTS / "speed.json").write_text(json.dumps(result, indent=1) + "\n")


def growth(console: Console, title: str, X: np.ndarray, y: np.ndarray) -> dict[str, list[float]]:
    """Seconds of fitting one tree, binning and all, beside scikit-learn's, one thread."""
    wide = X.shape[1] > 100  # takes scikit-learn ten seconds a tree

    def forest(max_features: str | None) -> Callable[[], object]:
        return lambda: RandomForestClassifier(1, max_features=max_features, random_state=0).fit(X, y)

    sides: dict[str, Callable[[], object]] = {
        "budgetforest, no bootstrap": lambda: _tree(X, y),
        "budgetforest": lambda: _tree(X, y, bootstrap=True),
        "budgetforest, alpha 25": lambda: _tree(X, y, bootstrap=True, alpha=25),
        "scikit-learn, all features": forest(None),
        "scikit-learn, sqrt of them": forest("sqrt"),
    }
    if not wide:
        sides["scikit-learn tree, no bootstrap"] = lambda: DecisionTreeClassifier(random_state=0).fit(X, y)
    seconds = alternate(sides, 2 if wide else REPEATS)
    ours = median(seconds["budgetforest"])
    table = Table(title=f"one tree, one thread: {title}")
    for head in ("", "median s", "best s", "worst s", "times ours"):
        table.add_column(head, justify="right")
    for name, times in seconds.items():
        figures = median(times), min(times), max(times)
        table.add_row(name, *(f"{figure:.3f}" for figure in figures), f"{median(times) / ours:.2f}")
    console.print(table)
    return seconds


def covertype(rows: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A random part of Covertype; if that is absent, synthetic rows of the same shape, named so."""
    for data in present(["covtype"]):
        part = np.random.default_rng(0).permutation(len(data.y))[:rows]
        return f"Covertype {rows:,} x 54", data.X.to_numpy()[part], data.y[part]
    X, y = make_classification(
        rows, 54, n_informative=20, n_classes=7, n_clusters_per_class=3, random_state=0
    )
    return f"synthetic {rows:,} x 54", X.astype(np.float32), y


def cifar(rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """A random part of CIFAR-10, classes 0-4 against 5-9, if it is there."""
    for data in present(["cifar10_kmeans400"]):
        part = np.random.default_rng(0).permutation(len(data.y))[:rows]
        y = data.y[part]
        y = y if len(np.unique(y)) == 2 else (y >= 5).astype(int)
        yield f"CIFAR-10 {rows:,} x {data.X.shape[1]}", data.X.to_numpy()[part], y


def prediction(console: Console) -> dict[str, float]:
    """Rows a second on all cores, 40 trees, 50 features, beside scikit-learn; and one live decision."""
    rng = np.random.default_rng(0)
    X = rng.random((100_000, 50), dtype=np.float32)
    y = (X[:, :5].sum(axis=1) + rng.normal(0, 0.3, len(X)) > 2.5).astype(int)
    ours = BudgetForestClassifier(alpha=0, max_trees=40, random_state=0, n_jobs=-1).fit(X[:2000], y[:2000])
    theirs = RandomForestClassifier(40, random_state=0, n_jobs=-1).fit(X[:2000], y[:2000])
    sides = {
        "scikit-learn predict": lambda: theirs.predict(X),
        "budgetforest predict": lambda: ours.predict(X),
        "budgetforest, costs of all scores": lambda: ours.acquisition_cost(X, answer="proba"),
        "budgetforest, costs of labels (certain exit)": lambda: ours.acquisition_cost(X),
    }
    rates = {name: len(X) / median(times) for name, times in alternate(sides).items()}
    for name, rate in rates.items():
        console.print(f"{name}: {rate:,.0f} rows/s")
    start = time.perf_counter()
    for row in X[:200]:
        ours.predict_one(lambda feature, row=row: float(row[int(feature[1:])]))
    rates["live decision, ms"] = (time.perf_counter() - start) / 200 * 1e3
    console.print(f"one live decision in plain Python: {rates['live decision, ms']:.2f} ms")
    return rates


def _tree(X, y, *, bootstrap=False, alpha=0):
    model = BudgetForestClassifier(alpha=alpha, max_trees=1, bootstrap=bootstrap, random_state=0)
    return model.fit(X, y)


def alternate(sides: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, list[float]]:
    """Seconds of each side, taken in turns after one run to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def start_up() -> dict[str, float]:
    """Seconds of a new process: import, first small fit with an empty and with a full cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}

        def small_fit() -> list[float]:
            done = subprocess.run(
                [sys.executable, "-c", SMALL_FIT], env=environment, capture_output=True, text=True, check=True
            )
            return [float(part) for part in done.stdout.split()]

        first = small_fit()
        later = [small_fit() for _ in range(3)]
    code = "import time; s = time.perf_counter(); import budgetforest; print(time.perf_counter() - s)"
    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {
        "import budgetforest": float(bare.stdout),
        "import of the classifier (scikit-learn and numba included)": min(t[0] for t in later),
        "first fit, empty cache": first[1],
        "first fit of a later process": min(t[1] for t in later),
    }
