"""Growing one tree beside scikit-learn's, and what a new process waits for."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
    title, X, y = covertype(36_603)
    sides: dict[str, Callable[[], object]] = {
        "budgetforest": lambda: _tree(X, y),
        "scikit-learn tree": lambda: DecisionTreeClassifier(random_state=0).fit(X, y),
        "budgetforest, bootstrap": lambda: _tree(X, y, bootstrap=True),
        "scikit-learn forest of one": lambda: RandomForestClassifier(
            1, max_features=None, random_state=0
        ).fit(X, y),
    }
    seconds = alternate(sides)
    table = Table(title=f"one tree, all features searched, one thread: {title}")
    for head in ("", "median s", "best s", "worst s"):
        table.add_column(head, justify="right")
    for name, times in seconds.items():
        table.add_row(name, f"{median(times):.3f}", f"{min(times):.3f}", f"{max(times):.3f}")
    console.print(table)
    ratios = {
        "tree": median(seconds["scikit-learn tree"]) / median(seconds["budgetforest"]),
        "bootstrap": median(seconds["scikit-learn forest of one"])
        / median(seconds["budgetforest, bootstrap"]),
    }
    console.print(
        f"scikit-learn takes {ratios['tree']:.2f} times as long, bootstrapped {ratios['bootstrap']:.2f}"
    )
    rates = prediction(console)
    start = start_up()
    for what, value in start.items():
        console.print(f"{what}: {value:.2f} s")
    RESULTS.mkdir(exist_ok=True)
    result = {"data": title, "seconds": seconds, "ratios": ratios, "rates": rates, "start-up": start}
    (RESULTS / "speed.json").write_text(json.dumps(result, indent=1) + "\n")


def covertype(rows: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A random part of Covertype; if that is absent, synthetic rows of the same shape, named so."""
    for data in present(["covtype"]):
        part = np.random.default_rng(0).permutation(len(data.y))[:rows]
        return f"Covertype {rows:,} x 54", data.X.to_numpy()[part], data.y[part]
    X, y = make_classification(
        rows, 54, n_informative=20, n_classes=7, n_clusters_per_class=3, random_state=0
    )
    return f"synthetic {rows:,} x 54", X.astype(np.float32), y


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


def _tree(X, y, *, bootstrap=False):
    model = BudgetForestClassifier(alpha=0, max_trees=1, bootstrap=bootstrap, random_state=0)
    return model.fit(X, y)


def alternate(sides: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each side, taken in turns after one run to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(REPEATS + 1):
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
