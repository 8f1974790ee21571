"""How time grows with rows, features, classes, trees and threads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from rich.progress import track
from sklearn.ensemble import RandomForestClassifier

from benchmarks.pictures import draw_panels
from benchmarks.speed.sets import Labelled, made
from benchmarks.speed.turns import Criterion, Times, at_least, at_most, seconds, table, take_turns
from budgetforest import BudgetForestClassifier

OURS, THEIRS = "budgetforest", "random forest, sqrt"
MOST_ROWS = 1_000_000
"""Beyond these scikit-learn takes minutes."""
ONE, TWO = "one thread", "two threads"


class Series(NamedTuple):
    """Fits that differ in one size."""

    what: str
    sizes: Sequence[int]
    fixed: str
    """The other sizes, for people."""
    fit_of: Callable[[int], tuple[Labelled, int]]
    """From a size to rows and trees."""


def all_series(quick: bool) -> Iterator[Series]:
    """What grows, one at a time."""
    if quick:
        yield more_rows(made(2_000, 10), [500, 1_000, 2_000])
        yield more_trees(made(2_000, 10), [1, 2, 4])
        return
    yield more_rows(made(10_000_000, 50), [*(50_000 * 2**step for step in range(8)), 10_000_000])
    yield Series("features", (25, 50, 100, 200, 400), "50,000 rows", lambda n: (made(50_000, n), 1))
    yield Series("classes", (2, 4, 8, 16, 32, 64), "100,000 rows x 20", lambda n: (made(100_000, 20, n), 1))
    yield more_trees(made(20_000, 20), [2**step for step in range(7)])


def more_rows(most: Labelled, sizes: Sequence[int]) -> Series:
    """The first so many rows, no copy."""
    fixed = f"{most.X.shape[1]} features"
    return Series("rows", sizes, fixed, lambda n: (most._replace(X=most.X[:n], y=most.y[:n]), 1))


def more_trees(rows: Labelled, sizes: Sequence[int]) -> Series:
    """Forests on the same rows."""
    return Series("trees", sizes, rows.title, lambda n: (rows, n))


def measure(quick: bool) -> dict:
    """Seconds of fits with one thread, and of a forest with one and with two."""
    fit(OURS, made(2_000, 10), 1)  # compiles
    found = [
        measured(series, quick=quick)
        for series in track(all_series(quick), "growth", total=2 if quick else 4)
    ]
    rows = made(2_000, 10) if quick else made(100_000, 50)
    trees = 4 if quick else 40
    sides = {title: partial(fit, OURS, rows, trees, n_jobs) for title, n_jobs in ((ONE, 1), (TWO, 2))}
    threads = {"title": f"{trees} trees, {rows.title}", "times": take_turns(sides, quick=quick)}
    return {"series": found, "threads": threads}


def measured(series: Series, *, quick: bool) -> dict:
    """Ours at every size, theirs while it takes no minutes."""
    sides = {}
    for size in series.sizes:
        rows, trees = series.fit_of(size)
        for who in (OURS, THEIRS):
            if who == OURS or len(rows.y) <= MOST_ROWS:
                sides[f"{who}, {size:,}"] = partial(fit, who, rows, trees)
    times = take_turns(sides, quick=quick, warm=False)
    return {"what": series.what, "fixed": series.fixed, "sizes": list(series.sizes), "times": times}


def fit(who: str, rows: Labelled, trees: int, n_jobs: int = 1) -> object:
    """A forest of ours or theirs."""
    if who == THEIRS:
        return RandomForestClassifier(trees, random_state=0, n_jobs=n_jobs).fit(rows.X, rows.y)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=trees, random_state=0, n_jobs=n_jobs)
    return model.fit(rows.X, rows.y)


def line(found: dict, who: str) -> tuple[list[int], list[float]]:
    """Sizes that were measured, and the median seconds."""
    times: Times = found["times"]
    sizes = [size for size in found["sizes"] if f"{who}, {size:,}" in times]
    return sizes, [seconds(times, f"{who}, {size:,}") for size in sizes]


def exponent(sizes: Sequence[float], taken: Sequence[float]) -> float:
    """Time grows with this power of the size, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])


def worst_doubling(sizes: Sequence[float], taken: Sequence[float]) -> float:
    """The most that twice the size costs, between neighbouring sizes."""
    steps = zip(pairwise(sizes), pairwise(taken), strict=True)
    return max(float((t / s) ** (1 / np.log2(m / n))) for (n, m), (s, t) in steps)


def criteria(figures: dict) -> Iterator[Criterion]:
    """What is asked."""
    for found in figures["series"]:
        if found["what"] == "rows":
            yield at_most("twice the rows", 2.1, worst_doubling(*line(found, OURS)))
    times = figures["threads"]["times"]
    yield at_least("two threads beside one", 1.7, seconds(times, ONE) / seconds(times, TWO))


def draw(figures: dict, docs: Path) -> None:
    """A panel for every series."""
    draw_panels(figures["series"], _panel, docs / "speed-growth.svg")


def _panel(ax: Axes, found: dict) -> None:
    for who, colour in ((OURS, "#1f6f54"), (THEIRS, "#999999")):
        ax.plot(*line(found, who), "o-", color=colour, label=who)
    ax.set(title=f"{found['what']} ({found['fixed']})", xlabel=found["what"], ylabel="seconds")
    ax.set(xscale="log", yscale="log")


def section(figures: dict) -> str:
    """Exponents, the series, threads."""
    lines = [
        "## Growth",
        "",
        "Fits on made rows, one thread, alpha 0, with bootstrap. *Exponent*: time grows with this power of the size, by least",
        "squares. *Worst doubling*: the most that twice the size costs between neighbouring sizes.",
        "",
        "![Seconds against rows, features, classes and trees](speed-growth.svg)",
        "",
        f"| | {OURS}: exponent | worst doubling | {THEIRS}: exponent | worst doubling |",
        "|---" * 5 + "|",
    ]
    for found in figures["series"]:
        ours, theirs = line(found, OURS), line(found, THEIRS)
        lines.append(
            f"| {found['what']} ({found['fixed']}) | {exponent(*ours):.2f} | {worst_doubling(*ours):.2f} "
            f"| {exponent(*theirs):.2f} | {worst_doubling(*theirs):.2f} |"
        )
    for found in figures["series"]:
        least = f"{OURS}, {found['sizes'][0]:,}"
        lines += ["", f"### {found['what'].capitalize()}: {found['fixed']}", ""]
        lines += table(found["times"], least, "times the first")
    threads = figures["threads"]
    lines += ["", f"### Threads: {threads['title']}", "", *table(threads["times"], ONE, "times one thread's")]
    return "\n".join(lines) + "\n"
