"""Do the errors that a fit shows hold on new rows? Many splits, the estimate of each beside the error on rows it never saw."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks.data import Data, present
from benchmarks.pages import RESULTS, ROOT
from benchmarks.workers import workers
from budgetforest import BudgetForestClassifier

SETS = ("miniboone_tiny", "statlog_dna", "adult", "covtype", "ann_thyroid")
ROWS = {"few rows": 600, "more rows": 1_500}
"""Of a fit; three in ten are held out. Fewer than 300 of these: every row takes its turn as a validation row."""
SPLITS, NEW = range(20, 40), 4_000
"""Seeds of the splits of every set (0 to 19 set the width of few rows); rows that no fit has seen."""
BUDGETS = (0.05, 0.1, 0.2, 0.4)
"""As shares of the price of everything."""
HEAD = """# Errors that hold on new rows

Written by `python -m benchmarks estimates`. A fit chooses among thousands of forests by their error on the
validation rows, so the error of the chosen one on these rows is too low (*as chosen by*). What `path_`,
`train` and `show` tell is corrected for the choice (*shown*): every row is judged by the forest that would
have been chosen without it. Both are compared here with the error on {new:,} rows that the fit never saw,
over {splits} random splits of every set, at budgets of {budgets} of the price of everything. These are the forests
that were measured (`refit=False`); those of the default are below.

Fewer than 300 held-out rows (of a fit on 600) do not judge alone: training rows take their turn, judged by
forests grown without them; their intervals count half of the rows, a factor chosen on 20 other splits
(with all rows they covered 83 %). *Too high by* is the mean of estimate minus error on new rows, in standard errors
of the estimate. *Covers*: how often the 95 % interval that is shown holds the error on new rows.
"""

AGAIN = """
## Grown again on all rows

By default the chosen forests are grown again on training and validation rows together (`refit=True`), with exits at which
they cost as much. Costs and errors stay those told of the measured forests, above, whose error on new rows is a little larger:
what is shown errs on the safe side. Mean costs told, and paid on new rows; the difference of errors with its standard
error over splits.
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
    model, again = (
        BudgetForestClassifier(costs=data.costs, random_state=seed, refit=refit).fit(
            data.X.iloc[fitted], data.y[fitted]
        )
        for refit in (False, True)
    )
    trained, found = model._trained, []
    for share in BUDGETS:
        at = model.at_budget(share * model.costs_.most)
        if not at.path_:
            continue
        told, raw = at.path_[-1], [p for p in trained.path if p.cost <= at.path_[-1].cost][-1]
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
                **judge(again.at_budget(told.cost), data, new, " again"),
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
    yield HEAD.format(new=NEW, splits=splits, budgets=", ".join(f"{share:.0%}" for share in BUDGETS))
    yield "| data | fit on | error on new rows | as chosen by | shown | too high by: as chosen by | shown | covers |"
    yield "|---" * 8 + "|"
    for rows in ROWS:
        for title in dict.fromkeys(row["data"] for row in found):
            yield _line(
                title, f"{ROWS[rows]:,}", [r for r in found if r["data"] == title and r["rows"] == rows]
            )
        yield _line("**all**", f"{ROWS[rows]:,}", [r for r in found if r["rows"] == rows])
    yield _line("**all**", "both", found)
    yield AGAIN
    yield "| data | fit on | error | grown again | difference | cost told | paid | grown again | shown too high by | covers |"
    yield "|---" * 10 + "|"
    for rows in ROWS:
        for title in dict.fromkeys(row["data"] for row in found):
            yield _again(
                title, f"{ROWS[rows]:,}", [r for r in found if r["data"] == title and r["rows"] == rows]
            )
    yield _again("**all**", "both", found)


def _again(title: str, rows: str, found: list[dict]) -> str:
    names = ("new", "new again", "cost", "paid", "paid again", "shown", "judged")
    column = {name: np.array([row[name] for row in found]) for name in names}
    apart = column["new again"] - column["new"]
    # budgets of one split go together
    by_split = apart[: len(apart) // len(BUDGETS) * len(BUDGETS)].reshape(-1, len(BUDGETS)).mean(axis=1)
    spread = by_split.std(ddof=1) / np.sqrt(len(by_split)) if len(by_split) > 1 else np.nan
    error = np.sqrt(column["new again"] * (1 - column["new again"]) / column["judged"])
    high = np.mean((column["shown"] - column["new again"]) / error)
    errors = " | ".join(f"{column[name].mean():.4f}" for name in names[:2])
    costs = " | ".join(f"{column[name].mean():.3f}" for name in names[2:5])
    covers = np.mean([row["low"] <= row["new again"] <= row["high"] for row in found])
    change = f"{apart.mean():+.4f} ± {spread:.4f}"
    return f"| {title} | {rows} | {errors} | {change} | {costs} | {high:+.2f} | {covers:.0%} |"


def _line(title: str, rows: str, found: list[dict]) -> str:
    column = {name: np.array([row[name] for row in found]) for name in ("shown", "chosen", "new", "judged")}
    error = np.sqrt(column["new"] * (1 - column["new"]) / column["judged"])
    apart = {name: np.mean((column[name] - column["new"]) / error) for name in ("chosen", "shown")}
    covers = np.mean([row["low"] <= row["new"] <= row["high"] for row in found])
    means = [column[name].mean() for name in ("new", "chosen", "shown")]
    return (
        f"| {title} | {rows} | {' | '.join(f'{mean:.4f}' for mean in means)} "
        f"| {apart['chosen']:+.2f} | {apart['shown']:+.2f} | {covers:.0%} |"
    )
