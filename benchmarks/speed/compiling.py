"""A process of its own that tells how long each kernel compiles: ``python -m benchmarks.speed.compiling ACTION``."""

import json
import sys
import time
from collections.abc import Callable

from numba.core import event
from sklearn.datasets import load_wine

from budgetforest import BudgetForestClassifier, load


class Stopwatch(event.Listener):
    """Processor seconds of each kernel without those of the kernels it calls, and how often it was compiled."""

    def __init__(self) -> None:
        self.open: list[tuple[float, float]] = []
        self.found: dict[str, list[float]] = {}

    def on_start(self, begun: event.Event) -> None:
        self.open.append((time.thread_time(), 0.0))

    def on_end(self, ended: event.Event) -> None:
        start, within = self.open.pop()
        took = time.thread_time() - start
        function = ended.data["dispatcher"].py_func
        own = self.found.setdefault(f"{function.__module__}.{function.__name__}", [0.0, 0])
        own[0] += took - within
        own[1] += 1
        if self.open:
            begun, inside = self.open[-1]
            self.open[-1] = begun, inside + took


def fit(method: str) -> None:
    """A first small fit."""
    X, y = load_wine(return_X_y=True)
    BudgetForestClassifier(method=method, max_trees=10, random_state=0).fit(X, y)


def predict(path: str) -> None:
    """Predict a small table with a saved model."""
    X, _ = load_wine(return_X_y=True)
    load(path).predict(X)


ACTIONS: dict[str, Callable[[str], None]] = {"fit": fit, "predict": predict}


def main(action: str, argument: str) -> None:
    """Print kernels and their seconds as JSON."""
    watch = Stopwatch()
    with event.install_listener("numba:compile", watch):
        start = time.process_time()
        ACTIONS[action](argument)
        total = time.process_time() - start
    print(json.dumps({"total": total, "kernels": watch.found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
