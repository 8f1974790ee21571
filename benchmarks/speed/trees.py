"""One tree, all features searched, one thread, binning and all, beside the peers' trees on the same rows."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from matplotlib.axes import Axes
from rich.progress import track
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from benchmarks.pictures import draw_panels
from benchmarks.speed.sets import Labelled, sets
from benchmarks.speed.turns import Criterion, Sides, at_least, seconds, table, take_turns
from benchmarks.tasks import absences
from budgetforest import BudgetForestClassifier
from budgetforest.runtime.arrays import LEAF

OURS = "budgetforest"
WHOLE = "budgetforest, no bootstrap"
ALL, ALL_WHOLE = "random forest, all features", "random forest, all features, no bootstrap"
SQRT = "random forest, sqrt"
RF, LAZY = "LightGBM rf, a round", "LightGBM, lazy costs, a round"
MOST_LEAVES = 131_072
"""That LightGBM allows."""
MOST_MEGABYTES = 4096
"""Of LightGBM's histograms: it would keep one of every leaf and feature, tens of gigabytes."""


def measure(quick: bool) -> dict:
    """Seconds of every side on every set."""
    absent: list[str] = []
    found = []
    for rows in track(list(sets(absent, quick=quick)), "one tree"):
        leaves = int((our_tree(rows).forest_.nodes.feature == LEAF).sum())
        times = take_turns(sides(rows, leaves), quick=quick)
        classes = int(rows.y.max()) + 1
        their_leaves = [leaves_of(lightgbm_trees(rows, leaves, **how)) for how in (RANDOM, lazy(rows))]
        found.append(
            {"title": rows.title, "leaves": leaves, "their leaves": their_leaves}
            | {"trees a round": classes if classes > 2 else 1, "times": times}
        )
    return {"sets": found, "absent": absent}


def sides(rows: Labelled, leaves: int) -> Sides:
    """Our trees and theirs; LightGBM's have as many leaves as ours, if they come to it."""

    def theirs(kind: type, **how: Any) -> object:
        return kind(1, random_state=0, **how).fit(rows.X, rows.y)

    return {
        OURS: partial(our_tree, rows),
        WHOLE: partial(our_tree, rows, bootstrap=False),
        "budgetforest, alpha 25": partial(our_tree, rows, alpha=25),
        ALL: partial(theirs, RandomForestClassifier, max_features=None),
        ALL_WHOLE: partial(theirs, RandomForestClassifier, max_features=None, bootstrap=False),
        SQRT: partial(theirs, RandomForestClassifier, max_features="sqrt"),
        "extra trees, all features": partial(theirs, ExtraTreesClassifier, max_features=None),
        "extra trees, sqrt": partial(theirs, ExtraTreesClassifier, max_features="sqrt"),
        RF: partial(lightgbm_trees, rows, leaves, **RANDOM),
        LAZY: partial(lightgbm_trees, rows, leaves, **lazy(rows)),
    }


def our_tree(rows: Labelled, *, alpha: float = 0, bootstrap: bool = True) -> BudgetForestClassifier:
    """Algorithm 1, one tree."""
    model = BudgetForestClassifier(
        method="paper", alpha=alpha, max_trees=1, bootstrap=bootstrap, random_state=0
    )
    return model.fit(rows.X, rows.y)


RANDOM = {"boosting": "rf", "bagging_fraction": 0.632, "bagging_freq": 1}


def lazy(rows: Labelled) -> dict[str, Any]:
    """Every feature at a small price, paid by each row that has not met it."""
    return {"cegb_tradeoff": 1e-5, "cegb_penalty_feature_lazy": [1.0] * rows.X.shape[1]}


def lightgbm_trees(rows: Labelled, leaves: int, rounds: int = 1, **how: Any) -> lightgbm.Booster:
    """Trees of so many leaves; of more than two classes one a class in every round."""
    classes = int(rows.y.max()) + 1
    objective = {"objective": "multiclass", "num_class": classes} if classes > 2 else {"objective": "binary"}
    plain = {"num_threads": 1, "verbosity": -1, "seed": 0, "histogram_pool_size": MOST_MEGABYTES}
    size = {
        "num_leaves": int(np.clip(leaves, 2, MOST_LEAVES)),
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0,
    }
    data = lightgbm.Dataset(rows.X, rows.y, params=plain)
    return lightgbm.train(objective | plain | size | how, data, rounds)


def leaves_of(booster: lightgbm.Booster) -> float:
    """Mean number of leaves of its trees."""
    return float(np.mean([int(n) for n in re.findall(r"(?m)^num_leaves=(\d+)", booster.model_to_string())]))


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked of every set."""
    for found in figures["sets"]:
        times, title = found["times"], found["title"]
        ours = seconds(times, OURS)
        yield at_least(
            f"{title}: one tree beside a random forest's, all features", 6, seconds(times, ALL) / ours
        )
        yield at_least(
            f"{title}: the same without bootstrap", 6, seconds(times, ALL_WHOLE) / seconds(times, WHOLE)
        )
        yield at_least(f"{title}: one tree beside a random forest's, sqrt", 1, seconds(times, SQRT) / ours)
        theirs = seconds(times, RF) / found["trees a round"]
        yield at_least(f"{title}: one tree beside one of LightGBM rf", 2, theirs / ours)


def draw(figures: dict, docs: Path) -> None:
    """A dot for every side."""
    if figures["sets"]:
        draw_panels(figures["sets"], _panel, docs / "speed-trees.svg", across=2, size=(6, 3))


def _panel(ax: Axes, found: dict) -> None:
    titles = list(found["times"])[::-1]
    colours = ["#1f6f54" if title.startswith(OURS) else "#999999" for title in titles]
    ax.scatter([seconds(found["times"], title) for title in titles], titles, c=colours, s=60)
    ax.grid(axis="x", color="#eeeeee")
    ax.set(title=found["title"], xlabel="seconds", xscale="log")


def section(figures: dict) -> str:
    """A table for every set."""
    lines = [
        "## One tree",
        "",
        "From rows to a fitted tree, binning and all, one thread. A bootstrap is drawn unless said otherwise, as forests",
        "do; extra trees and LightGBM's lazy costs take all rows. LightGBM's trees may have as many leaves as ours, and with",
        "more than two classes a round is a tree for each of them: its seconds stand for so many trees.",
    ]
    if figures["sets"]:
        lines += ["", "![Seconds of one tree](speed-trees.svg)"]
    for found in figures["sets"]:
        random, lazily = found["their leaves"]
        lines += ["", f"### {found['title']}", "", *table(found["times"], OURS), ""]
        lines += [
            f"Leaves: ours {found['leaves']:,}; LightGBM {random:,.0f} (rf) and {lazily:,.0f} (lazy) in each of the"
            f" {found['trees a round']} trees of a round."
        ]
    return "\n".join(lines) + "\n" + absences(figures["absent"])
