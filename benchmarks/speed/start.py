"""Cold start: what a new process waits for, and what it compiles on a machine that has compiled nothing yet."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import joblib
import lightgbm
from matplotlib.axes import Axes
from rich.progress import track
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from benchmarks.pictures import draw_panels
from benchmarks.speed import compiling
from benchmarks.speed.processes import run, turns_of_processes
from benchmarks.speed.turns import REPEATS, Criterion, table
from budgetforest import BudgetForestClassifier, save

OURS = "budgetforest: load, decide one row"
SMALL_FIT = (
    "from sklearn.datasets import load_wine; X, y = load_wine(return_X_y=True); "
    "from budgetforest import BudgetForestClassifier; "
    "BudgetForestClassifier(method={method!r}, max_trees=10, random_state=0).fit(X, y)"
)
CODES = {
    "python alone": "pass",
    "import budgetforest": "import budgetforest",
    OURS: "import budgetforest; budgetforest.load('{folder}/ours').predict_one(lambda feature: 1.0)",
    "budgetforest: load, predict a table": "import numpy; import budgetforest; "
    "budgetforest.load('{folder}/ours').predict(numpy.ones((100, 13)))",
    "scikit-learn: load, predict": "import joblib; joblib.load('{folder}/theirs').predict([[1.0] * 13])",
    "LightGBM: load, predict": "import lightgbm; "
    "lightgbm.Booster(model_file='{folder}/booster').predict([[1.0] * 13])",
    "budgetforest: first fit, paper": SMALL_FIT.format(method="paper"),
    "budgetforest: first fit, auto": SMALL_FIT.format(method="auto"),
    "scikit-learn: first fit": "from sklearn.datasets import load_wine; X, y = load_wine(return_X_y=True); "
    "from sklearn.ensemble import RandomForestClassifier; RandomForestClassifier(10).fit(X, y)",
}
FITS = {"fit, paper": ("fit", "paper"), "fit, auto": ("fit", "auto")}
MOST_SECONDS = 10
SHOWN = 15
"""Kernels named in the table."""


def measure(quick: bool) -> dict:
    """Processes that take turns with everything compiled before, then some with nothing compiled."""
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        codes = {title: code.replace("{folder}", folder) for title, code in CODES.items()}
        if quick:
            codes = {title: code for title, code in codes.items() if "fit" not in title}
        times = turns_of_processes(codes, quick=quick)
        actions = {"predict": ("predict", f"{folder}/ours")} | ({} if quick else FITS)
        cold = [
            {"title": title, "runs": [compiled(*action) for _ in range(1 if quick else REPEATS)]}
            for title, action in track(actions.items(), "empty cache", total=len(actions))
        ]
    return {"times": times, "cold": cold}


def write_models(folder: Path) -> None:
    """A saved model of ours and of the peers, on the same rows."""
    X, y = load_wine(return_X_y=True)
    save(BudgetForestClassifier(method="paper", max_trees=10, random_state=0).fit(X, y), folder / "ours")
    joblib.dump(RandomForestClassifier(10, random_state=0).fit(X, y), folder / "theirs")
    few = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    lightgbm.train(few, lightgbm.Dataset(X, y), 3).save_model(folder / "booster")


def compiled(action: str, argument: str) -> dict:
    """A process whose cache of kernels is empty: seconds, and what each kernel took."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", compiling.__name__, action, argument]
        done = run(command, NUMBA_CACHE_DIR=cache)
    return {"wall": done.wall, "cpu": done.cpu, **json.loads(done.output)}


def middle(cold: dict) -> dict:
    """The run of median processor seconds."""
    runs = sorted(cold["runs"], key=lambda one: one["total"])
    return runs[len(runs) // 2]


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked of a machine that has compiled nothing yet."""
    for cold in figures["cold"]:
        found = median(one["wall"] for one in cold["runs"])
        yield (
            f"{cold['title']} on an empty cache: at most {MOST_SECONDS} s",
            f"{found:.1f} s",
            found <= MOST_SECONDS,
        )


def draw(figures: dict, docs: Path) -> None:
    """The dearest kernels of every action."""
    draw_panels(figures["cold"], _panel, docs / "speed-compiling.svg", across=2, size=(6, 3.6))


def _panel(ax: Axes, cold: dict) -> None:
    kernels = dearest(cold)[::-1]
    ax.barh([short(name) for name, _ in kernels], [own for _, (own, _) in kernels], color="#1f6f54")
    ax.set(title=cold["title"], xlabel="CPU seconds to compile")


def dearest(cold: dict) -> list[tuple[str, list[float]]]:
    """The kernels that take longest to compile, and how long and how often."""
    kernels = middle(cold)["kernels"]
    return sorted(kernels.items(), key=lambda item: -item[1][0])[:SHOWN]


def short(name: str) -> str:
    return name.removeprefix("budgetforest.")


def section(figures: dict) -> str:
    """Processes, then kernels."""
    lines = [
        "## Cold start",
        "",
        "New processes from start to end, on 178 rows of wine; all kernels were compiled by an earlier one.",
        "",
        *table(figures["times"], OURS),
        "",
        "### Nothing compiled yet",
        "",
        "The same with an empty cache. Seconds of a kernel are its own, without those of the kernels it calls.",
        "",
        "![CPU seconds by kernel](speed-compiling.svg)",
        "",
        "| | s | CPU s | of it compiling | kernels compiled |",
        "|---" * 5 + "|",
    ]
    for cold in figures["cold"]:
        one = middle(cold)
        own, times = zip(*one["kernels"].values(), strict=True)
        lines.append(
            f"| {cold['title']} | {one['wall']:.1f} | {one['cpu']:.1f} | {sum(own):.1f} | {sum(times)} |"
        )
    for cold in figures["cold"]:
        lines += ["", f"| {cold['title']}: kernel | CPU s | times compiled |", "|---" * 3 + "|"]
        lines += [f"| `{short(name)}` | {own:.2f} | {times} |" for name, (own, times) in dearest(cold)]
    return "\n".join(lines) + "\n"
