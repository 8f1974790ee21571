"""What answers are worth when features cannot be had: averaged over, and as version 0.1 routed them."""

import json
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks.data import Data, present, split
from benchmarks.pages import RESULTS
from benchmarks.tasks import costs_of
from budgetforest import BudgetForestClassifier
from budgetforest.trees.forest import Forest

PAGE = Path(__file__).parent.parent / "docs" / "availability.md"
SETS = ("miniboone_tiny", "statlog_dna", "ann_thyroid", "heart_cleveland", "pima_diabetes")
SHARES = (0.1, 0.3, 0.6)
BINS = 10
"""Of probabilities, for the calibration error."""
METHODS = {"paper": {"method": "paper", "alpha": 0, "max_trees": 40, "voting": "soft"}, "auto": {}}


def run() -> None:
    """Measure, print, write ``docs/availability.md`` and ``results/availability.json``."""
    cases = [(data, method) for data in present(SETS) for method in METHODS]
    results = [row for case in track(cases, "availability") for row in measure(*case)]
    if not results:
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "availability.json").write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(page(results))
    print(PAGE.read_text())


def measure(data: Data, method: str) -> list[dict[str, object]]:
    """A forest of complete rows, and test rows that lack values."""
    parts, costs = split(data, 0), costs_of(data)
    train = np.concatenate([parts.train, parts.validation])
    X = data.X.fillna(data.X.median())  # training never saw a missing value
    model = BudgetForestClassifier(**METHODS[method], costs=data.costs, random_state=0, n_jobs=-1)
    model.fit(X.iloc[train], data.y[train])
    truth = np.searchsorted(model.classes_, data.y[parts.test])
    rows = []
    for what, lacks in lacking(len(truth), costs.group, np.random.default_rng(0)).items():
        given = X.iloc[parts.test].mask(lacks)
        averaged = model.predict_proba(given)
        whole, model.forest_ = model.forest_, routed(model.forest_)
        before = model.predict_proba(given)
        model.forest_ = whole
        judged = {name: judge(proba, truth) for name, proba in (("routed", before), ("averaged", averaged))}
        rows.append({"data": data.title, "method": method, "lacks": what} | judged)
    return rows


def lacking(n: int, group: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Which values test rows lack: each by chance, or whole groups."""
    found = {f"{share:.0%} of values": rng.random((n, len(group))) < share for share in SHARES}
    if len(np.unique(group)) < len(group):
        found |= {
            f"{share:.0%} of groups": (rng.random((n, group.max() + 1)) < share)[:, group] for share in SHARES
        }
    return found


def routed(forest: Forest) -> Forest:
    """The forest as version 0.1 read it: what training never saw goes to the larger child."""
    return forest._replace(nodes=forest.nodes._replace(route=forest.nodes.route & 3))


def judge(proba: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy, half the squared distance from the truth, and how far confidence is from accuracy."""
    right = proba.argmax(axis=1) == truth
    hit = np.arange(proba.shape[1]) == truth[:, None]
    sure = proba.max(axis=1)
    which = np.minimum((sure * BINS).astype(int), BINS - 1)
    apart = np.abs(np.bincount(which, right, BINS) - np.bincount(which, sure, BINS))
    return {
        "accuracy": float(right.mean()),
        "brier": float(np.square(proba - hit).sum(axis=1).mean() / 2),
        "calibration": float(apart.sum() / len(truth)),
    }


def page(results: list[dict]) -> str:
    """The table of the documentation."""
    lines = [
        "# When features cannot be had",
        "",
        "Written by `python -m benchmarks availability`. Forests are trained on complete rows (missing values of a set are",
        "replaced by medians); test rows lack values at random, or whole groups of the price list. `predict_proba` by the rule of version 0.1, which",
        "sent what is missing to the larger child (*routed*), and averaged over both sides. Accuracy; Brier score, half the squared",
        "distance from the truth; calibration error, the mean distance of confidence and accuracy in ten bins. The better figure is bold.",
        "",
        f"Of {len(results)} rows averaging is worse in {losses(results, 'accuracy')} by accuracy (equal in {ties(results)}), in"
        f" {losses(results, 'brier')} by Brier score, in {losses(results, 'calibration')} by calibration error.",
        "",
        "| data | method | test rows lack | accuracy routed | averaged | Brier routed | averaged | calibration routed | averaged |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        cells = [r["data"], r["method"], r["lacks"]]
        for figure in ("accuracy", "brier", "calibration"):
            cells += pair(r["routed"][figure], r["averaged"][figure], larger=figure == "accuracy")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def losses(results: list[dict], figure: str) -> int:
    """In how many rows averaging is worse."""
    sign = 1 if figure == "accuracy" else -1
    return sum(sign * (r["averaged"][figure] - r["routed"][figure]) < 0 for r in results)


def ties(results: list[dict]) -> int:
    return sum(r["averaged"]["accuracy"] == r["routed"]["accuracy"] for r in results)


def pair(routed: float, averaged: float, *, larger: bool) -> list[str]:
    """Two figures, the better one bold."""
    best = (max if larger else min)(routed, averaged)
    return [f"**{figure:.3f}**" if figure == best else f"{figure:.3f}" for figure in (routed, averaged)]
