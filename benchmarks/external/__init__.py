"""Tables that others printed, and our figures beside theirs: accuracy at a mean number of acquired features.

One fit serves all budgets of a table. A file of figures is written as soon as a table is measured; the page is written
from all files, with what version 0.1 reached on the same rows where that was measured.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import numpy as np
from rich.progress import track

from benchmarks import machine
from benchmarks.data import Absent
from benchmarks.external import relevant
from benchmarks.external.tables import TABLES, Table
from benchmarks.pages import RESULTS, ROOT
from budgetforest import BudgetForestClassifier

RELEVANT = "relevant"
NAMES = (*TABLES, RELEVANT)
BEFORE = RESULTS / "external_waiting.json"
"""What version 0.1 reached, whose trees waited for unknown values, by name of the table."""
HEAD = """# Tables that others printed

Written by `make external`. Accuracy on test rows at a number of acquired features (or groups). The
budgets of the others are hard: every row acquires exactly so many. Ours are means over rows, which is
easier, since rows that are soon clear pay for the others. The figures of the others are theirs, as
printed; ours are of one fit with the defaults, evaluated at each budget.
"""


class Found(NamedTuple):
    """Of one budget."""

    budget: float
    cost: float
    """Mean cost of the test rows."""
    accuracy: float


def run(names: tuple[str, ...] = (), *, quick: bool = False, out: Path | None = None) -> None:
    """Measure the named tables, or all, and write the page."""
    docs, results = (out, out) if out else (ROOT / "docs", RESULTS / "external")
    results.mkdir(parents=True, exist_ok=True)
    for name in track(names or NAMES, "tables"):
        try:
            measured = relevant.measure(quick) if name == RELEVANT else measure(TABLES[name], quick)
        except Absent as absent:
            print(absent)
        else:
            found = {"machine": machine.look(quick)} | measured
            (results / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "external.md").write_text("\n".join(page(results)))


def measure(table: Table, quick: bool) -> dict:
    """The means over all splits."""
    every = [on_split(table, quick, seed) for seed in range(1 if quick else table.splits)]
    means = np.mean([each["found"] for each in every], axis=0).tolist()
    found = [Found(budget, *mean) for budget, (_, *mean) in zip(table.budgets, means, strict=True)]
    return every[0] | {"found": found, "seconds": round(sum(each["seconds"] for each in every), 1)}


def on_split(table: Table, quick: bool, seed: int) -> dict:
    """Fit once, judge at every budget."""
    train, validation, test = table.parts(quick, seed)
    start = time.process_time()
    model = BudgetForestClassifier(
        budget=max(table.budgets), groups=table.groups and table.groups(), random_state=0, n_jobs=1
    )
    model.fit(*train, validation=validation)
    seconds = time.process_time() - start
    found = []
    for budget in table.budgets:
        taken = model.at_budget(budget)
        right = taken.predict(test[0]) == test[1]
        found.append(Found(budget, float(taken.acquisition_cost(test[0]).mean()), float(right.mean())))
    rows = [len(part[1]) for part in (train, validation, test)]
    return {"rows": rows, "seconds": round(seconds, 1), "found": found}


def page(results: Path) -> Iterator[str]:
    """The page, table after table."""
    before = json.loads(BEFORE.read_text()) if BEFORE.exists() else {}
    yield HEAD
    for name, table in TABLES.items():
        file = results / f"{name}.json"
        if file.exists():
            yield from _section(table, json.loads(file.read_text()), before.get(name, {}))
    file = results / f"{RELEVANT}.json"
    if file.exists():
        yield from relevant.section(json.loads(file.read_text()))


def _section(table: Table, figures: dict, before: dict) -> Iterator[str]:
    found = [Found(*each) for each in figures["found"]]
    rows = " / ".join(f"{n:,}" for n in figures["rows"])
    yield f"## {table.title}\n"
    yield fill(table.protocol, 100) + "\n"
    splits = f", {table.splits} random splits" if table.splits > 1 else ""
    if older := figures.get("older"):
        yield f"*Measured before {older}.*\n"
    yield f"{rows} rows for training, validation and test{splits}; {figures['seconds']:,.0f} CPU seconds to fit.\n"
    yield "| budget | " + " | ".join(f"{each.budget:g}" for each in found) + " |"
    yield "|---" * (len(found) + 1) + "|"
    for source, printed in table.printed.items():
        yield _line(source, [printed.get(each.budget, np.nan) for each in found])
    if before:
        yield _line("budgetforest 0.1", [accuracy for _, _, accuracy in before["found"]])
    yield _line("**budgetforest**", [each.accuracy for each in found])
    yield "| its mean cost | " + " | ".join(f"{each.cost:.2f}" for each in found) + " |"
    yield ""
    best = [max(printed.get(each.budget, 0.0) for printed in table.printed.values()) for each in found]
    behind = sum(each.accuracy < accuracy for each, accuracy in zip(found, best, strict=True))
    yield f"Behind what the others printed at {behind} of the {np.count_nonzero(best)} budgets that they have.\n"
    yield machine.note(figures["machine"])


def _line(title: str, accuracy: list[float]) -> str:
    cells = ("" if np.isnan(each) else f"{each:.2%}" for each in accuracy)
    return f"| {title} | {' | '.join(cells)} |"
