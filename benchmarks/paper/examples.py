"""Figures 1, 2 and 3: the paper's two made examples, worked by the library."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.paper.appendix import cost_error
from budgetforest import BudgetForestClassifier, ThresholdPairs


def toy() -> tuple[np.ndarray, np.ndarray]:
    """Figure 1: t1 parts 20 of class 2 from the rest, t2 halves both classes."""
    t1 = np.repeat([0, 0, 1], [30, 10, 20])
    t2 = np.tile([0, 1], 30)
    return np.column_stack([t1, t2]).astype(float), np.repeat([1, 2], 30)


def synthetic() -> tuple[np.ndarray, np.ndarray]:
    """Figure 2: 1024 rows of 10 binary features and 4 classes; the first of every 256 is of the next class."""
    number = np.arange(1024)
    y = number // 256 + 1
    y[::256] = [2, 3, 4, 1]
    return ((number[:, None] >> np.arange(9, -1, -1)) & 1).astype(float), y


def measure(quick: bool) -> dict:
    """What GREEDYTREE makes of them."""
    choices = [
        {"alpha": alpha, "offset": offset} | first_split(alpha, offset)
        for alpha in (0, 8)
        for offset in (0, 1)
    ]
    X, y = synthetic()
    corners = [
        {
            "t1": int(a),
            "t2": int(b),
            "class": int(c),
            "rows": int(((X[:, :2] == (a, b)).all(1) & (y == c)).sum()),
        }
        for a in (0, 1)
        for b in (0, 1)
        for c in (1, 2, 3, 4)
    ]
    return {"figure 1": choices, "figure 2": corners, "figure 3": cost_error(X, y)}


def first_split(alpha: float, offset: int) -> dict:
    """The feature at the root of a tree, impurities, and the error at cost 1."""
    X, y = toy()
    impurity = ThresholdPairs(alpha, offset=bool(offset))
    model = BudgetForestClassifier(
        method="paper", alpha=alpha, impurity=impurity, max_trees=1, bootstrap=False, splitter="exact"
    )
    nodes = model.fit(X, y).forest_.nodes
    children = [int(nodes.left[0]), int(nodes.right[0])]
    wrong = [int(nodes.counts[c].min()) for c in children]
    return {
        "chosen": f"t{nodes.feature[0] + 1}",
        "F": float(nodes.impurity[0]),
        "F of children": [float(nodes.impurity[c]) for c in children],
        "error at cost 1": sum(wrong) / len(y),
    }


def draw(figures: dict, docs: Path) -> None:
    """Figure 1's outcomes, figure 2's classes, figure 3's curve."""
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
    X, y = toy()
    for ax, feature in zip(axes[:2], (0, 1), strict=True):
        _scatter_toy(ax, X[:, feature], y, f"t{feature + 1}")
    _corners(axes[2], figures["figure 2"])
    axes[3].plot(*np.transpose(figures["figure 3"]), "o-", color="#1f6f54")
    axes[3].set(title="figure 3: error, synthetic", xlabel="max-cost", ylabel="training error")
    axes[3].spines[["top", "right"]].set_visible(False)
    figure.savefig(docs / "examples.svg", metadata={"Date": None})
    plt.close(figure)


def _scatter_toy(ax, outcome: np.ndarray, y: np.ndarray, name: str) -> None:
    for label, marker, colour in ((1, "o", "#1f6f54"), (2, "^", "#d95f02")):
        for side in (0, 1):
            n = int(((outcome == side) & (y == label)).sum())
            places = np.arange(n)
            ax.scatter(
                side + (places % 6) / 9 - 0.28,
                label + (places // 6) / 8 - 0.25,
                marker=marker,
                c=colour,
                s=16,
            )
    ax.set(title=f"figure 1: {name}", xticks=[0, 1], yticks=[1, 2], ylabel="class", xlim=(-0.5, 1.5))
    ax.set_xticklabels([f"{name} = 0", f"{name} = 1"])


def _corners(ax, corners: list[dict]) -> None:
    for corner in corners:
        if corner["rows"]:
            many = corner["rows"] > 1
            ax.text(
                corner["t1"] + (0 if many else 0.25),
                corner["t2"] + (0 if many else 0.25),
                f"class {corner['class']}\n{corner['rows']} row" + "s" * many,
                ha="center",
                va="center",
                fontsize=9 if many else 7,
                color="#1f6f54" if many else "#d95f02",
            )
    ax.set(title="figure 2: synthetic", xlim=(-0.5, 1.5), ylim=(-0.5, 1.5), xticks=[0, 1], yticks=[0, 1])
    ax.set(xlabel="t1", ylabel="t2")
    ax.axhline(0.5, color="#cccccc")
    ax.axvline(0.5, color="#cccccc")


def section(figures: dict) -> str:
    """Picture and tables."""
    lines = [
        "## Figures 1, 2 and 3: made examples",
        "",
        "![Outcomes of t1 and t2, the synthetic set, and its error against max-cost](examples.svg)",
        "",
        "Figure 1, 30 rows of each class: t1 parts 20 of one class from the rest, t2 halves both. Pairs prefers the",
        "balanced t2, which tells nothing; alpha 8 the useful t1. The paper works it without the last term of its eq. 7",
        "(`offset=False`); with it no child has impurity left, a tie, and the lowest column wins.",
        "",
        "| alpha | offset | F | F of the children | chosen | error at cost 1 |",
        "|---" * 6 + "|",
    ]
    for case in figures["figure 1"]:
        children = ", ".join(f"{value:g}" for value in case["F of children"])
        lines.append(
            f"| {case['alpha']} | {bool(case['offset'])} | {case['F']:g} | {children} | {case['chosen']} "
            f"| {case['error at cost 1']:.3f} |"
        )
    by_cost = dict(map(tuple, figures["figure 3"]))
    whole = min(cost for cost, error in by_cost.items() if error == 0)
    lines += [
        "",
        f"Figure 3: the tree errs {100 * by_cost[2]:.2f} % at max-cost 2 (printed: 0.39 %) and needs max-cost "
        f"{whole:g} to err nowhere (printed: 10).",
        "",
    ]
    return "\n".join(lines)
