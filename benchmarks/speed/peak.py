"""A process of its own that tells the most memory a fit and a prediction take: ``python -m benchmarks.speed.peak``.

It is told the rows, features and threads, and prints megabytes above what it held before, the rows included.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.speed.sets import made
from budgetforest import BudgetForestClassifier

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main(n_rows: int, n_features: int, n_jobs: int) -> None:
    """Print the peaks as JSON."""
    rows = made(n_rows, n_features)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=2, random_state=0, n_jobs=n_jobs)
    model.fit(rows.X[:1000], rows.y[:1000]).predict(rows.X[:1000])  # compiled, loaded
    found = {"fit": above(lambda: model.fit(rows.X, rows.y)), "predict": above(lambda: model.predict(rows.X))}
    print(json.dumps(found))


def above(action: Callable[[], object]) -> float:
    """Megabytes that an action takes at its peak, above what is held when it begins."""
    RESET.write_text("5")  # the system forgets the peak so far
    before = held("VmRSS")
    action()
    return held("VmHWM") - before


def held(what: str) -> float:
    """Megabytes of this process, as Linux counts them."""
    found = re.search(rf"{what}:\s+(\d+) kB", STATUS.read_text())
    assert found, f"no {what} in {STATUS}"
    return int(found[1]) / 1024


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
