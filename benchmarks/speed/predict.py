"""Labels and what they cost, beside scikit-learn on the very same trees."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.progress import track
from sklearn.ensemble import RandomForestClassifier

from benchmarks.speed.sets import Labelled, made, sets
from benchmarks.speed.trees import RANDOM, leaves_of, lightgbm_trees
from benchmarks.speed.turns import Criterion, at_least, seconds, table, take_turns
from benchmarks.tasks import absences
from budgetforest.data.costs import read_costs
from budgetforest.inference.predict import answerer, charge, labels
from budgetforest.runtime.threads import threads
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Answer

OURS, THEIRS, BOOSTER = "labels and costs", "scikit-learn predict", "LightGBM predict"
TREES = 40
FITTED = 36_603
"""Rows that trees are grown on."""
ANSWERED = 100_000
"""Rows that are answered."""
DEPTHS = (8, None)
THREADS = (1, 2)


def measure(quick: bool) -> dict:
    """Seconds of every side for shallow and deep trees, one thread and two."""
    absent: list[str] = []
    if quick:
        cases = [(made(3_000, 10, 3), None, 2)]
    else:
        whole = [rows for rows in sets(absent, quick=False) if len(rows.y) >= ANSWERED]
        cases = [(rows, depth, n) for rows in whole for depth in DEPTHS for n in THREADS]
    return {"runs": [compare(*case, quick=quick) for case in track(cases, "predict")], "absent": absent}


def compare(rows: Labelled, depth: int | None, n_threads: int, *, quick: bool) -> dict:
    """Trees that scikit-learn has grown, walked by both."""
    fitted = rows._replace(X=rows.X[:FITTED], y=rows.y[:FITTED])
    theirs = RandomForestClassifier(TREES, max_depth=depth, random_state=0, n_jobs=n_threads)
    theirs.fit(fitted.X, fitted.y)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    forest = from_sklearn(theirs, read_costs(None, None, names))
    leaves = round(sum(tree.get_n_leaves() for tree in theirs) / TREES)
    booster = lightgbm_trees(fitted, leaves, max(1, TREES // len(theirs.classes_)), **RANDOM)
    X = rows.X[:ANSWERED]
    with threads(n_threads) as pool:
        sides = {
            OURS: lambda: answerer(forest, Answer.PROBA)(X, pool),
            "labels alone": partial(labels, forest, X, pool),
            "costs with certain exit": partial(charge, forest, X, Answer.LABEL, pool),
            THEIRS: partial(theirs.predict, X),
            BOOSTER: partial(booster.predict, X, num_threads=n_threads),
        }
        times = take_turns(sides, quick=quick)
    return {
        "title": rows.title,
        "depth": max(tree.get_depth() for tree in theirs),
        "leaves": leaves,
        "threads": n_threads,
        "trees": TREES,
        "their trees": booster.num_trees(),
        "their leaves": leaves_of(booster),
        "times": times,
    }


def name_of(run: dict) -> str:
    return f"{run['title']}, {run['trees']} trees of depth {run['depth']}, threads: {run['threads']}"


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for run in figures["runs"]:
        ratio = seconds(run["times"], THEIRS) / seconds(run["times"], OURS)
        yield at_least(f"{name_of(run)}: labels and costs beside scikit-learn's labels", 3, ratio)


def draw(figures: dict, docs: Path) -> None:
    """Tables are enough."""


def section(figures: dict) -> str:
    """A table for every forest, and LightGBM by tree."""
    lines = [
        "## Prediction",
        "",
        "Trees grown by scikit-learn, read into a forest of ours, so that both walk the same nodes. *Labels and costs*: every",
        "score, every label, and what each row pays for what it meets. LightGBM has trees of its own, of about as many leaves.",
        f"At most {ANSWERED:,} rows are answered.",
    ]
    for run in figures["runs"]:
        ours = 1e3 * seconds(run["times"], OURS) / run["trees"]
        theirs = 1e3 * seconds(run["times"], BOOSTER) / run["their trees"]
        lines += ["", f"### {name_of(run)}", "", *table(run["times"], OURS), ""]
        lines += [
            f"By tree: labels and costs {ours:.3g} ms ({run['leaves']:,} leaves), LightGBM {theirs:.3g} ms "
            f"({run['their trees']} trees of {run['their leaves']:,.0f} leaves)."
        ]
    return "\n".join(lines) + "\n" + absences(figures["absent"])
