"""Do the errors that a fit shows hold on new rows? Many splits, the estimate of each beside the error on rows it never saw."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.progress import track

from benchmarks.data import Data, present
from benchmarks.pages import RESULTS, ROOT
from benchmarks.workers import workers
from budgetforest import BudgetForestClassifier
from budgetforest.selection.refit import GAIN

SETS = ("miniboone_tiny", "statlog_dna", "adult", "covtype", "ann_thyroid")
ROWS = {"few rows": 600, "more rows": 1_500}
"""Of a fit; three in ten are held out. Fewer than 300 of these: every row takes its turn as a validation row."""
SPLITS, NEW = range(20, 40), 4_000
"""Seeds of the splits of every set (0 to 19 set the width of few rows and what a refit gains); rows that no fit has seen."""
BUDGETS = (0.05, 0.1, 0.2, 0.4)
"""As shares of the price of everything."""
HEAD = """# Errors that hold on new rows

Written by `python -m benchmarks estimates`. Do the errors that `path_`, `train` and `show` tell hold on new rows? Compared
here with the error on {new:,} rows that the fit never saw, over {splits} random splits of every set, at budgets of {budgets}
of the price of everything. *Too high by* is the mean of estimate minus error on new rows, in standard errors of the estimate.
*Covers*: how often the 95 % interval that is shown holds the error on new rows.

The chosen forests are grown again on training and validation rows together (`refit=True`), with exits at which they cost as
much. No row is left to measure them: what is shown (*shown*) is the error of the forests measured before, lowered as errors fall
with rows ({gain} in `selection/refit.py`, found on {splits} other splits). Costs are means: told, and paid on new rows.
"""

MEASURED = """
## The forests that are measured

These are grown on training rows only (`refit=False`). A fit chooses among thousands of them by their error on the validation
rows, so the error of the chosen one on these rows is too low (*as chosen by*). What is shown is corrected for the choice:
every row is judged by the forest that would have been chosen without it.

Fewer than 300 held-out rows (of a fit on 600) do not judge alone: training rows take their turn, judged by forests grown
without them; their intervals count half of the rows, a factor chosen on 20 other splits (with all rows they covered 83 %).
"""

AGAIN = """
## What growing them again gains

The difference of errors on new rows with its standard error over splits.
"""


def run(*, quick: bool = False, out: Path | None = None) -> None:
    """Measure, and write ``docs/estimates.md``."""
    docs, results = (out, out) if out else (ROOT / "docs", RESULTS)
    splits = SPLITS[:2] if quick else SPLITS
    cases = [
        (data, rows, seed)
        for data in present(SETS[:1] if quick else SETS)
        for rows in ROWS
        for seed in splits
    ]
    with workers(quick=quick) as pool:
        jobs = [pool.submit(measure, *case) for case in cases]
        found = [row for job in track(jobs, "splits") for row in job.result()]
    docs.mkdir(parents=True, exist_ok=True)
    (results / "estimates.json").write_text(json.dumps(found) + "\n")
    (docs / "estimates.md").write_text("\n".join(page(found, len(splits))) + "\n")


def measure(data: Data, rows: str, seed: int) -> list[dict]:
    """At every budget what a fit shows, what it chose by, and what new rows say; without and with a refit."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    fitted, new = order[: ROWS[rows]], order[ROWS[rows] : ROWS[rows] + NEW]
    with TemporaryDirectory() as folder:  # the search of both
        model, again = (
            BudgetForestClassifier(costs=data.costs, random_state=seed, refit=refit).fit(
                data.X.iloc[fitted], data.y[fitted], checkpoint=folder
            )
            for refit in (False, True)
        )
    trained, found = model._trained, []
    for share in BUDGETS:
        at = model.at_budget(share * model.costs_.most)
        if not at.path_:
            continue
        told, raw = at.path_[-1], [p for p in trained.path if p.cost <= at.path_[-1].cost][-1]
        at_again = again.at_budget(told.cost)
        told_again = at_again.path_[-1]
        found.append(
            {
                "data": data.title,
                "rows": rows,
                "budget": share,
                "shown": told.error,
                "low": told.low,
                "high": told.high,
                "chosen": raw.error,
                "cost": told.cost,
                **judge(at, data, new, ""),
                "shown again": told_again.error,
                "low again": told_again.low,
                "high again": told_again.high,
                **judge(at_again, data, new, " again"),
                "judged": trained.summary["validation_rows"]
                if trained.summary["validation_rows"] >= 300
                else len(fitted),
            }
        )
    return found


def judge(model: BudgetForestClassifier, data: Data, rows: np.ndarray, suffix: str) -> dict[str, float]:
    """The error on some rows, and what these pay."""
    X = data.X.iloc[rows]
    return {
        f"new{suffix}": float(np.mean(model.predict(X) != data.y[rows])),
        f"paid{suffix}": float(model.acquisition_cost(X).mean()),
    }


def page(found: list[dict], splits: int) -> Iterable[str]:
    """The page."""
    budgets = ", ".join(f"{share:.0%}" for share in BUDGETS)
    yield HEAD.format(new=NEW, splits=splits, budgets=budgets, gain=f"`GAIN = {GAIN}`")
    yield from table(
        found, ("error on new rows", "shown", "too high by", "covers", "cost told", "paid"), _default
    )
    yield MEASURED
    yield from table(
        found,
        ("error on new rows", "as chosen by", "shown", "too high by: as chosen by", "shown", "covers"),
        _measured,
    )
    yield AGAIN
    yield from table(found, ("error of the measured", "grown again", "difference"), _gained)


def table(found: list[dict], names: Sequence[str], line: Callable[[list[dict]], list[str]]) -> Iterable[str]:
    """A line for every set and number of rows, and their means."""
    yield f"| data | fit on | {' | '.join(names)} |"
    yield "|---" * (2 + len(names)) + "|"
    for rows in ROWS:
        of = [row for row in found if row["rows"] == rows]
        for title in dict.fromkeys(row["data"] for row in of):
            cells = line([row for row in of if row["data"] == title])
            yield f"| {title} | {ROWS[rows]:,} | {' | '.join(cells)} |"
        yield f"| **all** | {ROWS[rows]:,} | {' | '.join(line(of))} |"
    yield f"| **all** | both | {' | '.join(line(found))} |"


def _default(found: list[dict]) -> list[str]:
    mean = {name: np.mean([row[name] for row in found]) for name in ("cost", "paid again")}
    high = too_high(found, "shown again", "new again")
    return [
        *_means(found, "new again", "shown again"),
        f"{high:+.2f}",
        _covers(found, " again"),
        *(f"{value:.3f}" for value in mean.values()),
    ]


def _measured(found: list[dict]) -> list[str]:
    high = [f"{too_high(found, name, 'new'):+.2f}" for name in ("chosen", "shown")]
    return [*_means(found, "new", "chosen", "shown"), *high, _covers(found, "")]


def _gained(found: list[dict]) -> list[str]:
    apart = np.array([row["new again"] - row["new"] for row in found])
    # budgets of one split go together
    by_split = apart[: len(apart) // len(BUDGETS) * len(BUDGETS)].reshape(-1, len(BUDGETS)).mean(axis=1)
    spread = by_split.std(ddof=1) / np.sqrt(len(by_split)) if len(by_split) > 1 else np.nan
    return [*_means(found, "new", "new again"), f"{apart.mean():+.4f} ± {spread:.4f}"]


def too_high(found: list[dict], told: str, new: str) -> float:
    """How much an estimate exceeds the error on new rows on average, in its standard errors."""
    column = {name: np.array([row[name] for row in found]) for name in (told, new, "judged")}
    error = np.sqrt(column[new] * (1 - column[new]) / column["judged"])
    return float(np.mean((column[told] - column[new]) / error))


def _means(found: list[dict], *names: str) -> list[str]:
    return [f"{np.mean([row[name] for row in found]):.4f}" for name in names]


def _covers(found: list[dict], suffix: str) -> str:
    inside = [row[f"low{suffix}"] <= row[f"new{suffix}"] <= row[f"high{suffix}"] for row in found]
    return f"{np.mean(inside):.0%}"
