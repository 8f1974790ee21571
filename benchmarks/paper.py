"""Tables and figures of the paper (Nan, Wang, Saligrama, ICML 2015), measured here.

Its own splits are published nowhere, so figures are compared on the same random split for all. What is absent
from the data folder is reported as absent; MiniBooNE is there in part (5,000 of 130,064 rows).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rich.progress import track
from sklearn.ensemble import RandomForestClassifier

from benchmarks.data import present
from benchmarks.speed import RESULTS
from budgetforest import BudgetForestClassifier, Powers
from budgetforest.arrays import LEAF
from budgetforest.charge import charge
from budgetforest.forest import Answer, join, tree_of
from budgetforest.peers import from_sklearn
from budgetforest.tree import family
from budgetforest.walks import spent_before

DOCS = Path(__file__).parent.parent / "docs"
RUNS = 3
ALPHAS = (0, 2, 4, 6, 8, 10, 15, 25, 35, 45)
PRINTED = {  # table 1: features used in per cent after 1 to 10 trees, and the error at 10 trees
    "covtype": (
        [22.57, 40.68, 47.98, 52.40, 55.18, 57.05, 58.35, 59.82, 61.45, 63.04],
        [11.37, 15.55, 17.96, 19.40, 20.47, 21.21, 21.85, 22.37, 22.83, 23.21],
        (0.1318, 0.1364),
    ),
    "miniboone_tiny": (
        [26.86, 42.92, 54.59, 63.74, 70.24, 75.15, 78.84, 81.45, 83.27, 85.73],
        [16.40, 25.76, 32.47, 37.74, 41.80, 45.66, 49.07, 52.28, 55.40, 57.80],
        (0.0803, 0.0786),
    ),
    "cifar10_kmeans400": (
        [3.86, 7.49, 10.98, 14.24, 17.38, 20.34, 22.84, 25.43, 28.02, 30.51],
        [2.62, 5.14, 7.48, 9.65, 11.78, 13.81, 15.76, 17.59, 19.38, 21.09],
        (0.3594, 0.3600),
    ),
}
SIZES = {  # training, validation and test rows; those of the paper but for MiniBooNE
    "covtype": (36_603, 15_688, 58_101),
    "miniboone_tiny": (2_000, 1_000, 2_000),
    "cifar10_kmeans400": (19_761, 8_468, 10_000),
}
FIGURE_4 = ("covtype", "miniboone_tiny")
"""CIFAR-10 is left out for now: 800 trees on 400 features take 20 minutes on two cores."""
APPENDIX = (
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


class Split(NamedTuple):
    name: str
    X: tuple[np.ndarray, np.ndarray, np.ndarray]
    y: tuple[np.ndarray, np.ndarray, np.ndarray]


def run() -> None:
    """Measure everything, write ``results/paper.json``, pictures, and ``docs/results.md``."""
    splits = [split for name in SIZES if (split := random_split(name, 0)) is not None]
    results = {
        "table 1": [table_1(s) for s in track(splits, "table 1")],
        "figure 3": figure_3(),
        "figure 4": [figure_4(s) for s in track(splits, "figure 4") if s.name in FIGURE_4],
        "appendix": [a for name in track(APPENDIX, "appendix") if (a := appendix(name)) is not None],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "paper.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results)
    (DOCS / "results.md").write_text(page(results))


def random_split(name: str, seed: int) -> Split | None:
    """Training, validation and test rows; MiniBooNE in the parts its authors published."""
    data = next(present([name]), None)
    if data is None:
        return None
    y = data.y
    order = np.random.default_rng(seed).permutation(len(y))
    if name == "miniboone_tiny":
        order = np.arange(len(y))
    cuts = np.cumsum(SIZES[name])
    parts = np.split(order[: cuts[-1]], cuts[:-1])
    X = data.X.to_numpy()
    return Split(name, tuple(X[p] for p in parts), tuple(y[p] for p in parts))


def table_1(split: Split) -> dict[str, object]:
    """Features used by an average test row after 1 to 10 trees, RF and BudgetRF, and errors at 10."""
    (train, _, test), (y_train, _, y_test) = split.X, split.y
    ours, theirs, errors = [], [], []
    for seed in range(RUNS):
        model = BudgetForestClassifier(alpha=0, max_trees=10, splitter="exact", random_state=seed, n_jobs=-1)
        model.fit(train, y_train)
        plain = RandomForestClassifier(10, max_features=8, random_state=seed, n_jobs=-1).fit(train, y_train)
        forests = model.forest_, from_sklearn(plain, model.costs_)
        for line, forest in zip((ours, theirs), forests, strict=True):
            line.append(list(used_per_tree(forest, model._context, test)))
        errors.append((1 - plain.score(test, y_test), 1 - model.score(test, y_test)))
    return {
        "data": split.name,
        "rows": [len(part) for part in split.X],
        "RF": np.mean(theirs, axis=0).tolist(),
        "BudgetRF": np.mean(ours, axis=0).tolist(),
        "errors": np.mean(errors, axis=0).tolist(),
    }


def used_per_tree(forest, context, X) -> Iterator[float]:
    """Per cent of the features that an average row meets in the first 1, 2, ... trees."""
    trees = [tree_of(forest, t) for t in range(forest.n_trees)]
    context = context._replace(classes=forest.classes, prior=forest.prior, schema=forest.schema)
    for n in range(1, len(trees) + 1):
        met = charge(join(trees[:n], context), X, Answer.PROBA).acquired
        yield float(100 * met.mean())


def figure_4(split: Split) -> dict[str, object]:
    """Test error against mean cost: ten alphas, 40 trees, the forest chosen on validation rows."""
    curves = {}
    for answer in ("proba", "label"):
        model = BudgetForestClassifier(
            alpha=list(ALPHAS), max_trees=40, answer=answer, random_state=0, n_jobs=-1
        )
        model.fit(split.X[0], split.y[0], validation=(split.X[1], split.y[1]))
        curves[answer] = [
            (float(at.acquisition_cost(split.X[2]).mean()), float(1 - at.score(split.X[2], split.y[2])))
            for at in (model.at_budget(point.cost) for point in model.path_)
        ]
    return {"data": split.name} | curves


def figure_3() -> list[tuple[float, float]]:
    """Error against max-cost on the synthetic example: 1024 rows, 10 binary features, 4 classes."""
    number = np.arange(1024)
    X = ((number[:, None] >> np.arange(9, -1, -1)) & 1).astype(float)
    y = number // 256 + 1
    y[::256] = [2, 3, 4, 1]
    return cost_error(X, y, alpha=0)


def appendix(name: str) -> dict[str, object] | None:
    """GREEDYTREE with Powers and threshold-Pairs: training error against max-cost."""
    data = next(present([name]), None)
    if data is None:
        return None
    X, y = prepared(data.X.to_numpy(np.float64), data.y)
    curves = {f"Powers {power}": cost_error(X, y, impurity=Powers(power)) for power in (2, 3, 4, 5)}
    pairs = [cost_error(X, y, alpha=alpha)[-1] for alpha in (0, 1, 2, 4, 6, 8, 12, 16, 24)]
    return {"data": name, "rows": len(y), "Pairs": sorted(set(pairs))} | curves


def prepared(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As the appendix has it: 10 uniform levels, equal rows merged to their most common label."""
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    many = np.array([len(np.unique(c[~np.isnan(c)])) > 10 for c in X.T])
    levels = np.minimum(np.floor(10 * (X - low) / np.where(high > low, high - low, 1)), 9)
    table = pd.DataFrame(np.where(many, levels, X)).fillna(-1)
    labels = pd.Series(y).groupby([table[c] for c in table]).agg(lambda s: s.mode().iloc[0])
    return labels.index.to_frame().to_numpy(), labels.to_numpy()


def cost_error(X: np.ndarray, y: np.ndarray, **parameters) -> list[tuple[float, float]]:
    """(max-cost, training error) of one tree, cut where a row would have to pay more."""
    nominal = list(range(X.shape[1]))
    model = BudgetForestClassifier(
        max_trees=1, bootstrap=False, categorical_features=nominal, **{"alpha": 0} | parameters
    )
    model.fit(X, y)
    tree = tree_of(model.forest_, 0)
    parent = family(tree, np.zeros(1, np.int32)).parent
    spent = spent_before(tree, parent, *model.costs_[:3])
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


def draw(results: dict) -> None:
    """The pictures of the page."""
    plt.rcParams["svg.hashsalt"] = "budgetforest"
    if results["figure 4"]:
        figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained", squeeze=False)
        for ax, curve in zip(axes[0], results["figure 4"], strict=False):
            ax.plot(*np.transpose(curve["proba"]), ".-", color="#999999", label="all scores (the paper)")
            ax.plot(*np.transpose(curve["label"]), ".-", color="#1f6f54", label="labels, certain exit")
            ax.set(title=curve["data"], xlabel="mean cost of a test row", ylabel="test error")
            ax.spines[["top", "right"]].set_visible(False)
        axes[0][0].legend(frameon=False)
        figure.savefig(DOCS / "figure4.svg", metadata={"Date": None})
    if results["appendix"]:
        figure, axes = plt.subplots(3, 3, figsize=(11, 9), layout="constrained")
        for ax, curve in zip(axes.flat, results["appendix"], strict=False):
            for name in ("Powers 2", "Powers 3", "Powers 4", "Powers 5"):
                ax.plot(*np.transpose(curve[name]), "-", linewidth=1, label=name)
            ax.plot(*np.transpose(curve["Pairs"]), "ko-", markersize=3, linewidth=1, label="threshold-Pairs")
            ax.set(title=curve["data"], xlabel="max-cost", ylabel="training error")
        axes.flat[0].legend(frameon=False)
        figure.savefig(DOCS / "appendix.svg", metadata={"Date": None})


def page(results: dict) -> str:
    """The page of the documentation, all of it measured."""
    lines = [
        "# The paper, measured here",
        "",
        "Written by `make paper` from `benchmarks/results/paper.json`.",
        "",
        "## Table 1: features used by an average test row, in per cent",
        "",
        f"Mean of {RUNS} runs, exact search, alpha 0, unit costs, all trees asked; RF tries 8 features a",
        "split. The paper's rows are published nowhere: compare shapes and ratios. MiniBooNE is a part of 5,000",
        "rows.",
        "",
        f"| data | | {' | '.join(map(str, range(1, 11)))} | error at 10 |",
        "|---" * 13 + "|",
    ]
    for table in results["table 1"]:
        printed = PRINTED[table["data"]]
        for row, (side, said) in enumerate((("RF", printed[0]), ("BudgetRF", printed[1]))):
            cells = " | ".join(f"{v:.1f}" for v in table[side])
            lines.append(f"| {table['data']} | {side}, here | {cells} | {table['errors'][row]:.4f} |")
            cells = " | ".join(f"{v:.1f}" for v in said)
            lines.append(f"| | {side}, printed | {cells} | {printed[2][row]:.4f} |")
    lines += ["", "## Figure 3: the synthetic example", "", "| max-cost | error |", "|---|---|"]
    lines += [f"| {cost:g} | {error:.4f} |" for cost, error in results["figure 3"]]
    lines += [
        "",
        "## Figure 4: error against cost",
        "",
        "Ten alphas, 40 trees, binned splits, the forest chosen on validation rows; one run. CIFAR-10 is left",
        "out for now (20 minutes).",
        "",
        "![Test error against mean cost](figure4.svg)",
        "",
        "## Appendix: GREEDYTREE on nine sets",
        "",
        "Duplicates merged to the most common label, 10 uniform levels, one child per level. Powers: the full",
        "tree cut at each max-cost; threshold-Pairs: one tree per alpha.",
        "",
        "![Training error against max-cost](appendix.svg)",
        "",
        "| data | distinct rows | Powers 2, all | Powers 5, all | Pairs, points |",
        "|---" * 5 + "|",
    ]
    for a in results["appendix"]:
        ends = [f"{a[f'Powers {p}'][-1][0]:g} at {a[f'Powers {p}'][-1][1]:.3f}" for p in (2, 5)]
        points = ", ".join(f"{cost:g} at {error:.3f}" for cost, error in a["Pairs"][:4])
        lines.append(f"| {a['data']} | {a['rows']} | {' | '.join(ends)} | {points} |")
    return "\n".join(lines) + "\n"
