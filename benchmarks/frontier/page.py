"""``frontier.md`` and its picture: every cell, the totals, and whether these are what they must be."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from benchmarks.frontier.cells import MEASURED, OURS, OWN
from benchmarks.pages import RESULTS
from benchmarks.pictures import draw_panels
from benchmarks.tasks import absences
from benchmarks.verdicts import tally, verdict

PAPER = ("BudgetRF", "BudgetRF, certain exit")
"""The paper's method by either account of its cost."""
MOST_LOSSES = 0.05
WAITING = RESULTS / "frontier_waiting.json"
"""The errors of version 0.1, whose trees waited for unknown values, by title of the set."""
HEAD = """# The frontier

Written by `make frontier` from the figures in `benchmarks/results/frontier`; nothing here is typed by hand. Every method is
tuned on the same validation rows and judged on the same test rows, at eight budgets from 2 % (or the cheapest feature)
to 40 % of the price of everything. The *best peer* of a cell is the one of least error on its test rows, which nobody could have picked
beforehand: the hardest standard. A win or a loss is a difference whose 95 % bootstrap interval, paired by test rows,
leaves out 0. Where test rows are few, several random splits are averaged row by row.

By default budgetforest grows its chosen forests again on training and validation rows together. The peers are left as they were
tuned, on training rows, so **the even comparison is that of `refit=False`**, whose validation rows tune, too, and nothing else.
"""


class Cell(NamedTuple):
    """A data set at a budget."""

    budget: float
    ours: float
    measured: float
    """Without a refit."""
    peer: str
    theirs: float
    difference: list[float]
    """How much more the best peer errs, with its interval."""
    paper: float
    """The error of the paper's method, by the better of its two accounts."""
    paper_verdicts: list[str]
    """Win, tie or loss of ours against either."""
    low: bool
    """Whether the budget is in the lower half."""


def write(sets: list[dict], absent: list[str], docs: Path) -> None:
    """The page and its picture, of what has been measured."""
    docs.mkdir(parents=True, exist_ok=True)
    if sets:
        draw_panels(sets, _panel, docs / "frontier.svg")
    (docs / "frontier.md").write_text(HEAD + "\n" + "\n".join(_sections(sets)) + absences(absent))


def cells(found: dict, own: str = OURS) -> list[Cell]:
    """The cells of a data set, cheapest first, with differences from one of our own."""
    methods, budgets = found["methods"], found["budgets"]
    made = []
    for place, budget in enumerate(budgets):
        peer, paper = (
            min(titles, key=lambda t, at=place: methods[t]["at"][at][0])
            for titles in (peers_of(found), PAPER)
        )
        made.append(
            Cell(
                budget,
                methods[OURS]["at"][place][0],
                methods[MEASURED]["at"][place][0],
                peer,
                methods[peer]["at"][place][0],
                methods[peer]["apart"][own][place],
                methods[paper]["at"][place][0],
                [verdict(methods[title]["apart"][own][place]) for title in PAPER],
                place < len(budgets) // 2,
            )
        )
    return made


def peers_of(found: dict) -> list[str]:
    return [title for title in found["methods"] if title not in OWN]


def criteria(every: list[Cell]) -> Iterator[tuple[str, str, bool]]:
    """What must hold over all cells, what was found, and whether it holds."""
    all_of_them = [verdict(cell.difference) for cell in every]
    low = [verdict(cell.difference) for cell in every if cell.low]
    losses, wins = all_of_them.count("loss"), low.count("win")
    paper = sum("loss" in cell.paper_verdicts for cell in every)
    yield (
        f"losses in at most {MOST_LOSSES:.0%} of cells",
        f"{losses} of {len(every)}",
        losses <= MOST_LOSSES * len(every),
    )
    yield (
        "more wins than ties and losses in the lower half of the budgets",
        f"{wins} wins of {len(low)}",
        wins > len(low) - wins,
    )
    yield "the paper's method never better beyond noise", f"better in {paper} of {len(every)}", not paper


def _sections(sets: list[dict]) -> Iterator[str]:
    if sets:
        yield from ("## In all", "", *_totals(sets), "", *tallies(sets), "")
        yield "Cells are budgets: wins / ties / losses of budgetforest against each method and against the best of each cell."
        yield from ("", *_means(sets))
        yield from ("", "![Test error at every budget](frontier.svg)", "")
    titles = dict.fromkeys(title for found in sets for title in found["methods"])
    for found in sets:
        yield from _table(found, [title for title in titles if title not in found["methods"]])


def _totals(sets: list[dict]) -> Iterator[str]:
    by_own = {own: [cell for found in sets for cell in cells(found, own)] for own in OWN}
    counts = {own: tally([verdict(cell.difference) for cell in every]) for own, every in by_own.items()}
    yield (
        f"Wins / ties / losses against the best peer: {counts[OURS]}; with `refit=False`, as the peers: {counts[MEASURED]}."
    )
    yield ""
    yield "| must hold | found | | with `refit=False` | |"
    yield "|---|---|---|---|---|"
    for (what, *ours), (_, *measured) in zip(*map(criteria, by_own.values()), strict=True):
        outcomes = " | ".join(
            f"{found} | {'pass' if holds else '**fail**'}" for found, holds in (ours, measured)
        )
        yield f"| {what} | {outcomes} |"


def _means(sets: list[dict]) -> Iterator[str]:
    """Version 0.1, today's and the best peers."""
    yield f"| mean error over the budgets | version 0.1 | {OURS} | `refit=False` | best peer of each cell |"
    yield "|---" * 5 + "|"
    for found in sets:
        made = cells(found)
        columns = (
            waiting(found),
            *([getattr(cell, name) for cell in made] for name in ("ours", "measured", "theirs")),
        )
        means = [f"{np.mean(column):.4f}" if column else "-" for column in columns]
        yield f"| {found['title']} | {' | '.join(means)} |"


def waiting(found: dict) -> list[float]:
    """What version 0.1 erred at each budget."""
    errors: list[float] = json.loads(WAITING.read_text()).get(found["title"], [])
    return errors


def tallies(sets: list[dict]) -> Iterator[str]:
    """Wins, ties and losses of budgetforest against every method on every set."""
    yield f"| {OURS} against | {' | '.join(found['title'] for found in sets)} | all |"
    yield "|---" * (len(sets) + 2) + "|"
    best = [[verdict(cell.difference) for cell in cells(found)] for found in sets]
    yield _tally_row("the best peer of each cell", best)
    for title in [title for title in sets[0]["methods"] if title != OURS]:
        measured = [found["methods"].get(title, {"apart": {OURS: []}}) for found in sets]
        yield _tally_row(title, [[verdict(d) for d in method["apart"][OURS]] for method in measured])


def _tally_row(title: str, verdicts: list[list[str]]) -> str:
    every = tally([v for part in verdicts for v in part])
    return f"| {title} | {' | '.join(map(tally, verdicts))} | {every} |"


def _table(found: dict, absent: list[str]) -> Iterator[str]:
    rows = " / ".join(f"{n:,}" for n in found["rows"])
    times = f", {found['splits']} random splits" if found["splits"] > 1 else ""
    yield f"## {found['title']}"
    yield ""
    yield f"{rows} rows for training, validation and test{times}." + (
        f" Note: {found['note']}." if found["note"] else ""
    )
    if absent:
        yield f"Not measured here: {', '.join(absent)}."
    yield ""
    yield f"| budget | {OURS} | `refit=False` | version 0.1 | best peer | its error | difference | | `refit=False` | BudgetRF |"
    yield "|---" * 10 + "|"
    for cell, even, before in zip_longest(cells(found), cells(found, MEASURED), waiting(found)):
        mean, low, high = cell.difference
        yield (
            f"| {cell.budget:.3g} | {cell.ours:.3f} | {cell.measured:.3f} | {'-' if before is None else f'{before:.3f}'} "
            f"| {cell.peer} | {cell.theirs:.3f} | {mean:+.3f} ({low:+.3f} to {high:+.3f}) "
            f"| {verdict(cell.difference)} | {verdict(even.difference)} | {cell.paper:.3f} |"
        )
    yield ""


def _panel(ax: Axes, found: dict) -> None:
    made = cells(found)
    budgets = [cell.budget for cell in made]
    for title in peers_of(found):
        errors = [at[0] for at in found["methods"][title]["at"]]
        ax.plot(budgets, errors, color="#dddddd", linewidth=0.8, label="every peer")
    ax.plot(budgets, [cell.theirs for cell in made], color="#d95f02", label="best peer of each cell")
    ax.plot(budgets, [cell.paper for cell in made], color="#7570b3", label="BudgetRF")
    ax.plot(budgets, [cell.ours for cell in made], color="black", linewidth=1.8, label=OURS)
    ax.set(title=found["title"], xlabel="budget", ylabel="test error", xscale="log")
    shown = np.array([[cell.ours, cell.theirs, cell.paper] for cell in made])
    room = 0.08 * np.ptp(shown) or 0.01
    ax.set_ylim(shown.min() - room, shown.max() + room)
