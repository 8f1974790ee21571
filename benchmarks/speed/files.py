"""A model and its rows as files: loading, and ``budgetforest predict`` on a large CSV beside reading it with pandas."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pandas as pd
from rich.progress import track

from benchmarks.speed.processes import turns_of_processes
from benchmarks.speed.sets import made
from benchmarks.speed.turns import Criterion, at_least, seconds, table
from budgetforest import BudgetForestClassifier, save

PANDAS, LOAD = "pandas reads it", "load, decide one row"
SIZE, QUICK_SIZE = 10**9, 10**6
"""Bytes of the file."""
FITTED, FEATURES, CLASSES = 40_000, 40, 7
MEGABYTES, LOAD_SECONDS = 1000, 0.15
PEAK = "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
"""Prints the most memory that the process held, in KB, where the system is Linux."""


def measure(quick: bool) -> dict:
    """Forests of several sizes: seconds of new processes, imports included, and the memory they held."""
    trees = (5, 20) if quick else (5, 20, 100)
    rows = made(1_000 if quick else FITTED, FEATURES, CLASSES)
    table_ = pd.DataFrame(rows.X, columns=[f"x{j}" for j in range(FEATURES)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = write_csv(table_, folder / "rows.csv", QUICK_SIZE if quick else SIZE)
        codes = {PANDAS: f"import pandas; pandas.read_csv({str(folder / 'rows.csv')!r}); {PEAK}"}
        nodes = {}
        for number in track(trees, "models to predict with"):
            model = BudgetForestClassifier(method="paper", alpha=0, max_trees=number, random_state=0)
            save(model.fit(table_, rows.y), folder / f"{number}.safetensors")
            nodes[number] = len(model.forest_.nodes.feature)
            codes[f"predict, {number} trees"] = predicting(folder, number)
        codes[LOAD] = loading(folder, trees[-1])
        times = turns_of_processes(codes, quick=quick)
        size = (folder / "rows.csv").stat().st_size
    return {"bytes": size, "rows": written, "nodes": nodes, "times": times}


def write_csv(rows: pd.DataFrame, path: Path, size: int) -> int:
    """The rows again and again, until the file is as large; returns how many there are."""
    header, lines = rows.to_csv(index=False, float_format="%.8f").split("\n", 1)
    times = -(-size // len(lines))
    with path.open("w") as file:
        file.write(header + "\n")
        for _ in range(times):
            file.write(lines)
    return times * len(rows)


def predicting(folder: Path, trees: int) -> str:
    """Code that predicts the file as the command line does."""
    words = ["predict", f"{folder}/{trees}.safetensors", f"{folder}/rows.csv"]
    words += ["--out", f"{folder}/out.csv", "--force"]
    return f"from budgetforest.cli import main; main({words!r}, standalone_mode=False); {PEAK}"


def loading(folder: Path, trees: int) -> str:
    """Code that prints the seconds from a file to a first decision, modules being imported already."""
    return (
        "import time, budgetforest.storage.modelfile, budgetforest.acquisition.session; start = time.perf_counter(); "
        f"budgetforest.load('{folder}/{trees}.safetensors').predict_one(lambda feature: 0.5); "
        "print(time.perf_counter() - start)"
    )


def predictions(times: dict) -> list[str]:
    return [title for title in times if title.startswith("predict")]


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    times = figures["times"]
    for title in predictions(times):
        ratio = seconds(times, PANDAS) / seconds(times, title)
        yield at_least(f"{title} on a CSV of {figures['bytes'] / 1e9:.2g} GB beside pandas", 1, ratio)
        held = median(times[title]["told"]) / 1024
        yield f"{title}: at most {MEGABYTES:,} MB of memory", f"{held:,.0f} MB", held <= MEGABYTES
    trees, nodes = list(figures["nodes"].items())[-1]
    taken = median(times[LOAD]["told"])
    what = f"loading {trees} trees of {nodes:,} nodes to a first decision: at most {LOAD_SECONDS} s"
    yield what, f"{taken:.3f} s", taken <= LOAD_SECONDS


def draw(figures: dict, docs: Path) -> None:
    """A table is enough."""


def section(figures: dict) -> str:
    """One table."""
    times = {title: taken for title, taken in figures["times"].items() if title != LOAD}
    held = ", ".join(f"{title} {median(taken['told']) / 1024:,.0f} MB" for title, taken in times.items())
    nodes = ", ".join(f"{trees} trees {n:,} nodes" for trees, n in figures["nodes"].items())
    return "\n".join(
        [
            "## Files",
            "",
            f"`budgetforest predict` on a CSV of {figures['bytes']:,} bytes, {figures['rows']:,} rows of {FEATURES} numbers, beside",
            "pandas, which only reads it. New processes from start to end. Rows are decided by the paper's forests, alpha 0,",
            f"{CLASSES} classes: {nodes}.",
            "",
            *table(times, PANDAS, "times pandas"),
            "",
            f"The most memory held: {held}.",
            "",
        ]
    )
