"""Memory above the caller's own rows, in processes of their own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from rich.progress import track

from benchmarks.speed import peak, processes
from benchmarks.speed.turns import QUICK_REPEATS, REPEATS, Criterion
from benchmarks.tasks import absences

SHAPES = ((36_603, 54), (60_000, 784), (581_012, 54), (1_000_000, 50), (10_000_000, 50))
THREADS = (1, 2)
BYTES_A_CELL, MEGABYTES = 1.5, 200


def measure(quick: bool) -> dict:
    """Megabytes at the peak of a fit of two trees and of a prediction."""
    if not peak.RESET.exists():
        return {"runs": [], "absent": [f"memory: this system has no {peak.RESET}"]}
    shapes = [(20_000, 20)] if quick else SHAPES
    cases = [(n, m, jobs) for n, m in shapes for jobs in ((1,) if quick else THREADS)]
    return {"runs": [peaks(*case, quick=quick) for case in track(cases, "memory")], "absent": []}


def peaks(n_rows: int, n_features: int, n_jobs: int, *, quick: bool) -> dict:
    """The same process again and again."""
    command = [sys.executable, "-m", peak.__name__, *map(str, (n_rows, n_features, n_jobs))]
    told = [json.loads(processes.run(command).output) for _ in range(QUICK_REPEATS if quick else REPEATS)]
    figures = {what: [one[what] for one in told] for what in ("fit", "predict")}
    return {"rows": n_rows, "features": n_features, "threads": n_jobs, **figures}


def allowed(run: dict) -> float:
    """Megabytes."""
    return BYTES_A_CELL * run["rows"] * run["features"] / 2**20 + MEGABYTES


def name_of(run: dict) -> str:
    return f"{run['rows']:,} x {run['features']}, threads: {run['threads']}"


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for run in figures["runs"]:
        found = median(run["fit"])
        what = f"{name_of(run)}: memory of a fit at most {allowed(run):,.0f} MB ({BYTES_A_CELL} bytes a cell + {MEGABYTES} MB)"
        yield what, f"{found:,.0f} MB", found <= allowed(run)


def draw(figures: dict, docs: Path) -> None:
    """A table is enough."""


def section(figures: dict) -> str:
    """One table."""
    lines = [
        "## Memory",
        "",
        "The most that a process holds above the rows it was given (float32), for fitting two trees and for predicting all rows;",
        f"median of several processes. Allowed are {BYTES_A_CELL} bytes a cell and {MEGABYTES} MB.",
        "",
        "| rows x features | rows, MB | fit, MB | bytes a cell | least to most | allowed | predict, MB |",
        "|---" * 7 + "|",
    ]
    for run in figures["runs"]:
        cells = run["rows"] * run["features"]
        fit = median(run["fit"])
        lines.append(
            f"| {name_of(run)} | {4 * cells / 2**20:,.0f} | {fit:,.0f} | {fit * 2**20 / cells:.1f} "
            f"| {min(run['fit']):,.0f} to {max(run['fit']):,.0f} | {allowed(run):,.0f} | {median(run['predict']):,.0f} |"
        )
    return "\n".join(lines) + "\n" + absences(figures["absent"])
