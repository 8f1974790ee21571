"""Synthetic rows of which only some features matter: how many are acquired until all of these are?

Eleven normal features; the last one decides which of two rules gives the class of a row, and a rule looks at two or
four others. The recipe is that of SEFA (Norcliffe and others, 2025), after INVASE (Yoon and others, 2019).
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import machine
from budgetforest import BudgetForestClassifier
from budgetforest.inference.trace import trace_of
from budgetforest.trees.forest import Answer

FEATURES, SWITCH = 11, 10
ROWS = 60_000, 8_192, 10_000
"""For training, validation and test; theirs are 60,000, 10,000 and 10,000."""
RULES = (0, 1), (2, 3, 4, 5), (6, 7, 8, 9)
"""The features that each rule looks at."""
SETS = {"Syn1": (0, 1), "Syn2": (0, 2), "Syn3": (1, 2)}
"""The rule where the switch is below 0, and the one elsewhere."""
PRINTED = {
    "SEFA": {"Syn1": 4.02, "Syn2": 4.10, "Syn3": 5.08},
    "DIME (as printed by SEFA)": {"Syn1": 4.08, "Syn2": 4.58, "Syn3": 5.67},
}


def logits(X: np.ndarray, rule: int) -> np.ndarray:
    """What a rule says of rows."""
    match rule:
        case 0:
            return 4 * X[:, 0] * X[:, 1]
        case 1:
            return 1.2 * np.square(X[:, 2:6]).sum(axis=1) - 4.2
    return -10 * np.sin(0.2 * X[:, 6]) + np.abs(X[:, 7]) + X[:, 8] + np.exp(-X[:, 9]) - 2.4


def rows_of(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their classes, and which of their features matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES))
    below, above = SETS[name]
    first = X[:, SWITCH] < 0
    y = rng.random(n) < 1 / (1 + np.exp(np.where(first, logits(X, below), logits(X, above))))
    matters = np.zeros((n, FEATURES), bool)
    matters[:, SWITCH] = True
    for rule, where in ((below, first), (above, ~first)):
        matters[np.ix_(where, RULES[rule])] = True
    return X, y.astype(int), matters


def measure(quick: bool) -> dict:
    """For every set: acquisitions until all that matters is there, accuracy, and how many rows ended before."""
    sizes = (300, 200, 200) if quick else ROWS
    found = {}
    for name in list(SETS)[: 1 if quick else None]:
        X, y, matters = rows_of(name, sum(sizes), seed=0)
        train, validation, test = np.split(np.arange(len(y)), np.cumsum(sizes)[:-1])
        start = time.process_time()
        model = BudgetForestClassifier(random_state=0, n_jobs=1)
        model.fit(X[train], y[train], validation=(X[validation], y[validation]))
        seconds = time.process_time() - start
        course = trace_of(model.forest_, X[test], Answer.LABEL)
        last = last_that_matters(course.order, matters[test])
        found[name] = {
            "acquired": float(last.mean()),
            "least": float(matters[test].sum(axis=1).mean()),
            "early": float((~all_there(course.order, matters[test])).mean()),
            "accuracy": float((course.labels == y[test]).mean()),
            "seconds": round(seconds, 1),
        }
    return {"rows": sizes, "found": found}


def last_that_matters(order: np.ndarray, matters: np.ndarray) -> np.ndarray:
    """(n) how many features were acquired when the last that matters was; all of them where a row ended before."""
    n, steps = order.shape
    asked = np.where(order >= 0, matters[np.arange(n)[:, None], order], False)
    last = steps - asked[:, ::-1].argmax(axis=1) if steps else np.zeros(n, int)
    return np.where(all_there(order, matters), last, matters.shape[1])


def all_there(order: np.ndarray, matters: np.ndarray) -> np.ndarray:
    """(n) whether all that matters was acquired."""
    asked = np.where(order >= 0, matters[np.arange(len(order))[:, None], order], False)
    return asked.sum(axis=1) == matters.sum(axis=1)


def section(figures: dict) -> Iterator[str]:
    """The part of the page."""
    found = figures["found"]
    yield "## Features until all relevant ones are there\n"
    yield "Eleven normal features; x10 decides which of two rules gives the class: x0 and x1, x2 to x5, or x6 to x9. Mean number"
    yield "of features that a test row acquires until all that its rule looks at, and x10, are among them. A row that is certain"
    yield f"of its label before counts {FEATURES}. Two rules look at pairs or at squares, in which a single split sees little.\n"
    rows = " / ".join(f"{n:,}" for n in figures["rows"])
    yield f"{rows} rows for training, validation and test; {sum(each['seconds'] for each in found.values()):,.0f} CPU seconds to fit.\n"
    yield f"| | {' | '.join(found)} |"
    yield "|---" * (len(found) + 1) + "|"
    yield _line("the least there is", [each["least"] for each in found.values()])
    for source, printed in PRINTED.items():
        yield _line(source, [printed[name] for name in found])
    yield _line("**budgetforest**", [each["acquired"] for each in found.values()])
    for what in ("early", "accuracy"):
        title = "rows certain before" if what == "early" else "accuracy when certain"
        yield f"| {title} | {' | '.join(f'{each[what]:.1%}' for each in found.values())} |"
    yield ""
    best = {name: min(printed[name] for printed in PRINTED.values()) for name in found}
    behind = sum(each["acquired"] > best[name] for name, each in found.items())
    yield f"Behind what the others printed on {behind} of the {len(found)} sets.\n"
    yield machine.note(figures["machine"])


def _line(title: str, acquired: list[float]) -> str:
    return f"| {title} | {' | '.join(f'{each:.2f}' for each in acquired)} |"
