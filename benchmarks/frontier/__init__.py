"""The frontier: at a budget, who errs least? budgetforest beside the best peer of every cell (data set x budget).

A cell's peer is the one of least error on *test* rows, which nobody could have picked beforehand: the hardest standard.
A file of figures is written as soon as a set is measured, and the page and its picture from all files.
"""

import json
from collections.abc import Callable, Container, Iterable
from functools import partial
from glob import escape
from pathlib import Path

import numpy as np
from rich.progress import Progress

from benchmarks.frontier import page
from benchmarks.frontier.cells import OWN, Methods, Run, begin, gather
from benchmarks.methods import methods
from benchmarks.tasks import loaded
from benchmarks.workers import workers

ROOT = Path(__file__).parents[2]
SETS = (
    "covtype",
    "miniboone_tiny",
    "cifar10_kmeans400",
    "statlog_dna",
    "mnist_sample",
    "adult",
    "ann_thyroid",
    "heart_cleveland",
    "pima_diabetes",
    "covtype_skewed",
    "miniboone_tiny_skewed",
)
QUICK = ("pima_diabetes", "wdbc")


def run(
    names: Iterable[str] = (),
    *,
    quick: bool = False,
    again: bool = False,
    out: Path | None = None,
) -> None:
    """Measure the named sets, or all, unless their figures are there, and write the page.

    Every run of a method on a split is kept in ``runs``, so that a comparison that was stopped goes on.
    ``again``: measure budgetforest anew, beside the kept runs of the peers; peers without kept runs are left out.
    """
    docs, results = (out, out / "frontier") if out else (ROOT / "docs", ROOT / "benchmarks/results/frontier")
    results.mkdir(parents=True, exist_ok=True)
    names = tuple(names) or (QUICK if quick else SETS)
    wanted = [name for name in names if again or not _file(results, name).exists()]
    anew: Container[str] = OWN if again else ()
    absent: list[str] = []
    with workers(quick=quick) as pool, Progress() as bars:
        begun = []
        for data in loaded(wanted, absent):
            folder = results / "runs" / (data.name + "-quick" * quick)
            there = {
                title: each
                for title, each in methods().items()
                if title in anew or not again or has(folder, title)
            }
            jobs = begin(data, grouped(there), pool, quick=quick, keep=partial(kept, folder, anew))
            begun.append((data, jobs))
            bar = bars.add_task(data.title, total=len(jobs))
            for job in jobs:
                job.add_done_callback(lambda _, bar=bar: bars.advance(bar))
        for data, jobs in begun:
            _file(results, data.name).write_text(json.dumps(gather(data, jobs), indent=1) + "\n")
    order = dict.fromkeys([*SETS, *names, *sorted(file.stem for file in results.glob("*.json"))])
    figures = [json.loads(file.read_text()) for name in order if (file := _file(results, name)).exists()]
    page.write(figures, absent, docs)


def grouped(compared: Methods) -> list[Methods]:
    """Each method alone, but for those that share their trees."""
    pairs = [[title for title in pair if title in compared] for pair in (OWN, page.PAPER)]
    alone = [[title] for title in compared if not any(title in pair for pair in pairs)]
    return [{title: compared[title] for title in titles} for titles in (*pairs, *alone) if titles]


def has(folder: Path, title: str) -> bool:
    """Whether a run of a method was kept."""
    return any(folder.glob(f"{escape(title)}-*.npz"))


def kept(folder: Path, anew: Container[str], title: str, seed: int, make: Callable[[], Run]) -> Run:
    """The run from its file; or made, and written there."""
    file = folder / f"{title}-{seed}.npz"
    if title in anew or not file.exists():
        run = make()
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **run._asdict())
    with np.load(file) as found:
        return Run(found["loss"], found["what"].tolist(), found["points"].tolist(), found["seconds"].item())


def _file(results: Path, name: str) -> Path:
    return results / f"{name}.json"
