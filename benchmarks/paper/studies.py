"""Choices within the method: random, binned or exact stumps; minimax or expected splits; alpha."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track

from benchmarks.methods import Task
from benchmarks.methods import measure as measure_method
from benchmarks.methods.budgetrf import models
from benchmarks.paper.versus import LADDER
from benchmarks.tasks import absences, tasks
from benchmarks.workers import workers
from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import charge
from budgetforest.selection.paper import ALPHAS
from budgetforest.trees.forest import Answer

RUNS, TREES = 3, 10
STUMPS = ("covtype", "miniboone_tiny", "cifar10_kmeans400")
CURVES = ("covtype", "miniboone_tiny", "statlog_dna", "ann_thyroid", "heart_cleveland")
SPLITTERS = ("random", "binned", "exact")
CRITERIA = {
    "minimax, Pairs": {},
    "expected, Pairs": {"criterion": "expected"},
    "expected, entropy": {
        "criterion": "expected",
        "impurity": "entropy",
        "alphas": (0, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5),
    },
}


def measure(quick: bool) -> dict:
    """All three studies."""
    absent: list[str] = []
    few = ("miniboone_tiny",)
    with workers(quick=quick) as pool:
        stumps = [
            pool.submit(compare_stumps, task, 1 if quick else RUNS)
            for _, task in tasks(few if quick else STUMPS, absent, quick=quick)
        ]
        curves = [
            [pool.submit(study, task) for study in (compare_criteria, compare_alphas)]
            for _, task in tasks(few if quick else CURVES, absent, quick=quick)
        ]
        return {
            "stumps": [job.result() for job in track(stumps, "stumps")],
            "curves": [a.result() | b.result() for a, b in track(curves, "splits and alpha")],
            "absent": sorted(set(absent)),
        }


def compare_stumps(task: Task, runs: int) -> dict:
    """Features used in per cent and error of ten trees at alpha 0."""
    found = {splitter: np.zeros((runs, 2)) for splitter in SPLITTERS}
    for seed in range(runs):
        for splitter in SPLITTERS:
            model = BudgetForestClassifier(
                method="paper",
                alpha=0,
                max_trees=TREES,
                splitter=splitter,
                random_state=seed,
            )
            model.fit(task.train.X, task.train.y)
            used = charge(model.forest_, task.test.X, Answer.PROBA).acquired.mean()
            found[splitter][seed] = 100 * used, 1 - model.score(*task.test[:2])
    means = {splitter: by_seed.mean(axis=0).tolist() for splitter, by_seed in found.items()}
    return {"title": task.title} | means


def compare_criteria(task: Task) -> dict:
    """Error of each kind of split at a ladder of budgets, labels with certain exit."""
    budgets = [share * task.costs.total for share in LADDER]
    lines = {}
    for name, growth in CRITERIA.items():
        curve = measure_method(name, partial(models, answer=Answer.LABEL, **growth), task)
        lines[name] = [curve.at(budget) for budget in budgets]
    return {"title": task.title, "budgets": budgets, "criteria": lines}


def compare_alphas(task: Task) -> dict:
    """Error of every alpha alone: at the same budgets under the paper's accounting, as points under both."""
    budgets = [share * task.costs.total for share in LADDER]
    lines = {}
    for alpha in ALPHAS[:: 3 if task.quick else 1]:
        asked, exits = (
            measure_method("", partial(models, answer=answer, alphas=(alpha,)), task)
            for answer in (Answer.PROBA, Answer.LABEL)
        )
        lines[f"{alpha:g}"] = {"at": [asked.at(b).mean for b in budgets]} | {
            name: list(zip(curve.cost.tolist(), curve.error.tolist(), strict=True))
            for name, curve in (("points", asked), ("exits", exits))
        }
    return {"alphas": lines}


def draw(figures: dict, docs: Path) -> None:
    """Error against cost, a line for each alpha; dashed with certain exit."""
    if not figures["curves"]:
        return
    shown = figures["curves"][:3]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(4.2 * len(shown), 3.2), layout="constrained", squeeze=False
    )
    for ax, found in zip(axes.flat, shown, strict=True):
        colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(found["alphas"])))
        for (alpha, line), colour in zip(found["alphas"].items(), colours, strict=True):
            asked, exits = (np.transpose(line[name][1:] or line[name]) for name in ("points", "exits"))
            ax.plot(*asked, ".-", markersize=3, linewidth=1, color=colour, label=f"alpha {alpha}")
            ax.plot(*exits, "--", linewidth=0.7, color=colour)
        ax.set(title=found["title"], xlabel="mean cost", ylabel="test error")
        ax.spines[["top", "right"]].set_visible(False)
    axes.flat[0].legend(frameon=False, fontsize=7)
    figure.savefig(docs / "alpha.svg", metadata={"Date": None})
    plt.close(figure)


def section(figures: dict) -> str:
    """Three tables and a picture."""
    lines = [
        "## Choices within the method",
        "",
        "### Random, binned or exact stumps",
        "",
        f"{TREES} trees at alpha 0, every tree asked. The paper draws 80, 40 or 20 random stumps a feature; binned tries",
        "every edge of 256 quantile bins, exact every value.",
        "",
        "| data | stumps | features used, per cent | test error |",
        "|---" * 4 + "|",
    ]
    for found in figures["stumps"]:
        for splitter in SPLITTERS:
            used, error = found[splitter]
            lines.append(f"| {found['title']} | {splitter} | {used:.1f} | {error:.4f} |")
    lines += [
        "",
        "### Minimax or expected splits",
        "",
        "Test error at budgets, labels with certain exit.",
        "",
    ]
    for found in figures["curves"]:
        rows = {name: [at[0] for at in line] for name, line in found["criteria"].items()}
        lines += [*_table(found["title"], found["budgets"], rows), ""]
    lines += ["### Alpha at low and high cost", "", "![Error against cost for every alpha](alpha.svg)", ""]
    lines += [
        "The paper: at low cost a higher alpha errs less, at high cost alpha 0 does. Every tree is asked, the paper's accounting; dashed",
        "lines are the same trees with certain exit. The picture has the first three sets.",
        "",
    ]
    for found in figures["curves"]:
        rows = {f"alpha {alpha}": line["at"] for alpha, line in found["alphas"].items()}
        lines += [*_table(found["title"], found["budgets"], rows), ""]
    return "\n".join(lines) + absences(figures["absent"])


def _table(title: str, budgets: list[float], rows: dict[str, list[float]]) -> Iterator[str]:
    yield f"| {title}, budget | {' | '.join(f'{budget:.3g}' for budget in budgets)} |"
    yield "|---" * (len(budgets) + 1) + "|"
    best = np.min(list(rows.values()), axis=0)
    for name, errors in rows.items():
        cells = [f"**{e:.3f}**" if e == b else f"{e:.3f}" for e, b in zip(errors, best, strict=True)]
        yield f"| {name} | {' | '.join(cells)} |"
