"""The appendix: GREEDYTREE with Powers and threshold-Pairs on nine UCI sets, training error against max-cost."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rich.progress import track

from benchmarks.data import Absent, load
from benchmarks.tasks import absences
from budgetforest import BudgetForestClassifier, Powers
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.certificate import spent_before
from budgetforest.trees.forest import tree_of
from budgetforest.trees.tree import family

SETS = (
    "house_votes84",
    "sonar",
    "ionosphere",
    "statlog_dna",
    "boston_housing",
    "soybean_large",
    "pima_diabetes",
    "wdbc",
    "mammographic_masses",
)
POWERS = (2, 3, 4, 5)
ALPHAS = (0, 1, 2, 4, 6, 8, 12, 16, 24)
COSTS = (1, 2, 3)
"""Max-costs of the table."""


def measure(quick: bool) -> dict:
    """Curves of every set."""
    absent: list[str] = []
    found = []
    for name in track(SETS[-2:-1] if quick else SETS, "appendix"):
        try:
            found.append(curves(name))
        except Absent as reason:
            absent.append(str(reason))
    return {"sets": found, "absent": absent}


def curves(name: str) -> dict:
    """Powers: the full tree cut at each max-cost. Threshold-Pairs: a tree per alpha."""
    data = load(name)
    X, y = prepared(data.X.to_numpy(np.float64), data.y)
    powers = {f"Powers {power}": cost_error(X, y, impurity=Powers(power)) for power in POWERS}
    trees = [cost_error(X, y, alpha=alpha) for alpha in ALPHAS]
    pairs = sorted({trees[0][0], *(tree[-1] for tree in trees)})
    return {"title": data.title, "rows": len(y), "threshold-Pairs": pairs} | powers


def prepared(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As the appendix has it: 10 uniform levels, equal rows merged to their most common label."""
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    many = np.array([len(np.unique(column[~np.isnan(column)])) > 10 for column in X.T])
    levels = np.minimum(np.floor(10 * (X - low) / np.where(high > low, high - low, 1)), 9)
    table = pd.DataFrame(np.where(many, levels, X)).fillna(-1)
    labels = pd.Series(y).groupby([table[c] for c in table]).agg(lambda s: s.mode().iloc[0])
    return labels.index.to_frame().to_numpy(), labels.to_numpy()


def cost_error(X: np.ndarray, y: np.ndarray, **parameters) -> list[tuple[float, float]]:
    """(max-cost, training error) of one tree of multiway splits, cut where a row would have to pay more."""
    nominal = list(range(X.shape[1]))
    model = BudgetForestClassifier(
        method="paper",
        max_trees=1,
        bootstrap=False,
        categorical_features=nominal,
        **{"alpha": 0} | parameters,
    )
    model.fit(X, y)
    tree = tree_of(model.forest_, 0)
    parent = family(tree, model.forest_.roots[:1]).parent
    spent = spent_before(tree, model.forest_.roots, model.costs_)
    size, top = tree.counts.sum(axis=1), tree.counts.max(axis=1)
    dearest = np.zeros(len(parent))  # the dearest child decides whether a node may split
    np.maximum.at(dearest, parent[1:], spent[1:])
    curve = []
    for limit in np.unique(spent):
        splits = (tree.feature != LEAF) & (dearest <= limit)
        reached = np.ones(len(parent), bool)
        for node in range(1, len(parent)):
            reached[node] = reached[parent[node]] and splits[parent[node]]
        ends = reached & ~splits
        curve.append((float(limit), float((size - top)[ends].sum() / size[0])))
    return curve


def error_at(curve: list, cost: float) -> float:
    """The least error within a max-cost."""
    return min(error for limit, error in curve if limit <= cost)


def least(curve: list) -> np.ndarray:
    """(2, k) max-costs, and the least error within each."""
    costs = sorted({cost for cost, _ in curve})
    return np.array([costs, [error_at(curve, cost) for cost in costs]])


def _tally(sets: list[dict], cost: float) -> str:
    errors = [[error_at(found[side], cost) for side in ("threshold-Pairs", "Powers 2")] for found in sets]
    less, more = (sum(a < b for a, b in errors), sum(a > b for a, b in errors))
    return f"less on {less}, more on {more} of {len(sets)} sets"


def draw(figures: dict, docs: Path) -> None:
    """Nine small pictures."""
    if not figures["sets"]:
        return
    figure, axes = plt.subplots(3, 3, figsize=(11, 9), layout="constrained")
    for ax in axes.flat[len(figures["sets"]) :]:
        ax.set_visible(False)
    for ax, curve in zip(axes.flat, figures["sets"], strict=False):
        for power in POWERS:
            ax.step(
                *np.transpose(curve[f"Powers {power}"]), where="post", linewidth=1, label=f"Powers {power}"
            )
        ax.step(*least(curve["threshold-Pairs"]), "ko-", where="post", markersize=3, label="threshold-Pairs")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(title=curve["title"], xlabel="max-cost", ylabel="training error")
        ax.spines[["top", "right"]].set_visible(False)
    axes.flat[0].legend(frameon=False)
    figure.savefig(docs / "appendix.svg", metadata={"Date": None})
    plt.close(figure)


def section(figures: dict) -> str:
    """Picture and table."""
    lines = [
        "## The appendix: GREEDYTREE on nine sets",
        "",
        "Duplicates merged to the most common label, 10 uniform levels, one child per level. Powers: the full",
        "tree cut at each max-cost; threshold-Pairs: one tree for each alpha of "
        + ", ".join(map(str, ALPHAS))
        + ".",
        "The paper: threshold-Pairs is better at small max-costs, Powers at large ones. Here, against Powers 2:",
        "; ".join(f"at max-cost {cost} Pairs errs {_tally(figures['sets'], cost)}" for cost in COSTS) + ".",
        "",
        "![Training error against max-cost](appendix.svg)",
        "",
        "| data | distinct rows | error at max-cost 1: Powers 2, Pairs | at 2 | at 3 | no error from max-cost: Powers 2, Pairs |",
        "|---" * 6 + "|",
    ]
    for found in figures["sets"]:
        cells = [
            ", ".join(f"{error_at(found[side], cost):.3f}" for side in ("Powers 2", "threshold-Pairs"))
            for cost in COSTS
        ]
        whole = [
            min((cost for cost, error in found[side] if error == 0), default=np.nan)
            for side in ("Powers 2", "threshold-Pairs")
        ]
        lines.append(
            f"| {found['title']} | {found['rows']} | {' | '.join(cells)} | {whole[0]:g}, {whole[1]:g} |"
        )
    return "\n".join(lines) + "\n" + absences(figures["absent"])
