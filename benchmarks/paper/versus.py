"""Figure 4 and the comparison with the peers: error at a ladder of budgets, on the same rows."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
from rich.progress import Progress

from benchmarks.data.sets import SETS as ENTRIES
from benchmarks.methods import Method, Task, described, methods
from benchmarks.methods import measure as measure_method
from benchmarks.pictures import draw_panels
from benchmarks.tasks import absences, tasks
from benchmarks.verdicts import tally, verdict
from benchmarks.workers import workers
from budgetforest.report.curve import Curve, Interval, interval

SETS = (
    "covtype",
    "miniboone",
    "miniboone_tiny",
    "cifar10_kmeans400",
    "mq2008",
    "mslr_sample",
    "yahoo_ltrc",
    "statlog_dna",
    "ann_thyroid",
    "heart_cleveland",
    "pima_diabetes",
)
LADDER = (0.02, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.40)
"""Budgets as shares of the price of everything; of 50 equal prices 1, 2, 3, 4, 6, 8, 12, 20."""
RUNS = 10
PAPER, EXIT, AUTO = "BudgetRF", "BudgetRF, certain exit", "budgetforest"
OURS = (PAPER, EXIT, AUTO)
"""The paper's method by either account of its cost, and the estimator as it is by default."""
ELSEWHERE = ("CatBoost", "pools", f"{AUTO}, ")
"""How the titles of methods begin that only ``make frontier`` measures, which may take longer."""
THEIRS = ("CSTC", "ASTC", "random forest")
"""What the paper compares with."""
OLD = (
    f"**The lines `{AUTO}` of this section are older than the method**: they were measured before gentle boosting, pools by\n"
    "boosting and pools of sensors. [The frontier](frontier.md) has today's; `python -m benchmarks paper versus` measures these anew."
)
CLAIMS = (
    ("miniboone_tiny", "CSTC", 0),
    ("miniboone_tiny", "ASTC", 0),
    ("covtype", "CSTC", 0),
    ("covtype", "ASTC", 0),
    ("cifar10_kmeans400", "CSTC", 0),
    ("cifar10_kmeans400", "ASTC", 90),
)
"""Where the paper says that BudgetRF errs less: than whom, and from which number of features on."""


def measure(quick: bool) -> dict:
    """Every method on every data set; BudgetRF in ten runs that differ in their seed."""
    absent: list[str] = []
    found = []
    with workers(quick=quick) as pool, Progress() as bars:
        for data, task in tasks(("miniboone_tiny", "wdbc") if quick else SETS, absent, quick=quick):
            begun = begin(task, 2 if quick else RUNS, pool)
            found.append((data.note, task, begun))
            bar = bars.add_task(data.title, total=len(begun))
            for job in begun:
                job.add_done_callback(lambda _, bar=bar: bars.advance(bar))
        return {"sets": [{"note": note} | compare(*rest) for note, *rest in found], "absent": absent}


def compared() -> dict[str, Method]:
    """The methods of this comparison."""
    return {title: method for title, method in methods().items() if not title.startswith(ELSEWHERE)}


def begin(task: Task, runs: int, pool: Executor) -> list[Future[list[Curve]]]:
    """All methods on one data set; the two accounts of BudgetRF share their trees, and come last."""
    others = [(title,) for title in compared() if title not in (PAPER, EXIT)]
    tasks = [replace(task, seed=seed) for seed in range(runs)]
    return [
        *(pool.submit(curves_of, titles, task) for titles in others),
        *(pool.submit(curves_of, (PAPER, EXIT), task) for task in tasks),
    ]


def curves_of(titles: tuple[str, ...], task: Task) -> list[Curve]:
    """One job."""
    return [measure_method(title, methods()[title], task) for title in titles]


def compare(task: Task, jobs: list[Future[list[Curve]]]) -> dict:
    """What came of them, as plain figures."""
    budgets = [share * task.costs.total for share in LADDER]
    made = [curve for job in jobs for curve in job.result()]
    curves = {curve.name: curve for curve in reversed(made)}  # of several runs the first
    curves = {title: curves[title] for title in compared()}
    again = {title: [curve for curve in made if curve.name == title] for title in (PAPER, EXIT)}
    return {
        "title": task.title,
        "rows": [len(part.y) for part in (task.train, task.validation, task.test)],
        "ranking": task.train.query is not None,
        "budgets": budgets,
        "curves": {title: summary(curve, budgets) for title, curve in curves.items()},
        "runs": {title: spread(line, budgets) for title, line in again.items()},
        "apart": {
            ours: {
                title: apart(curves[ours], curve, budgets) for title, curve in curves.items() if title != ours
            }
            for ours in OURS
        },
    }


def summary(curve: Curve, budgets: list[float]) -> dict:
    """Points of a curve, error and model at every budget, and the mean error between the outer two."""
    return {
        "points": list(zip(curve.cost.tolist(), curve.error.tolist(), strict=True)),
        "at": [curve.at(budget) for budget in budgets],
        "what": [curve.what[curve.taken(budget)] for budget in budgets],
        "area": curve.area(budgets[0], budgets[-1]),
    }


def spread(runs: list[Curve], budgets: list[float]) -> dict:
    """Mean and standard deviation over runs at every budget, and the mean cost there."""
    errors = np.array([[run.error[run.taken(budget)] for budget in budgets] for run in runs])
    costs = np.array([[run.cost[run.taken(budget)] for budget in budgets] for run in runs])
    return {
        "runs": len(runs),
        "cost": costs.mean(axis=0).tolist(),
        "error": errors.mean(axis=0).tolist(),
        "sd": errors.std(axis=0).tolist(),
    }


def apart(ours: Curve, other: Curve, budgets: list[float]) -> list[Interval]:
    """How much more the other errs at every budget, row by row, with an interval."""
    return [interval(other.loss[other.taken(b)] - ours.loss[ours.taken(b)]) for b in budgets]


def draw(figures: dict, docs: Path) -> None:
    """Figure 4 beside the paper's peers, and the same beside today's."""
    others = sorted({t for s in figures["sets"] for t in s["curves"]} - set(OURS))
    colours = dict(zip(others, cycle(COLOURS), strict=False))
    theirs = {title: colour for title, colour in colours.items() if title in THEIRS}
    today = {title: colour for title, colour in colours.items() if title not in THEIRS}
    for name, shown in (("figure4", theirs), ("peers", today)):
        if figures["sets"]:
            draw_panels(figures["sets"], partial(_panel, others=shown), docs / f"{name}.svg")


COLOURS = ("#7570b3", "#d95f02", "#e7298a", "#66a61e", "#a6761d", "#1b9ecf", "#e6ab02", "#e41a1c", "#8dd3c7")


def _panel(ax, found: dict, others: dict[str, str]) -> None:
    shown = (lambda error: 1 - np.array(error)) if found["ranking"] else np.array
    most = found["budgets"][-1] * 1.1
    for title, colour in others.items():
        cost, error = np.transpose(sorted(map(tuple, found["curves"][title]["points"])))
        ax.plot(
            cost[cost <= most],
            shown(error)[cost <= most],
            ".-",
            color=colour,
            linewidth=1,
            markersize=3,
            label=title,
        )
    for title, colour in ((PAPER, "#999999"), (EXIT, "#1f6f54")):
        runs = found["runs"][title]
        ax.errorbar(
            runs["cost"],
            shown(runs["error"]),
            runs["sd"],
            color=colour,
            capsize=2,
            linewidth=1.6,
            label=title,
        )
    cost, error = np.transpose(sorted(map(tuple, found["curves"][AUTO]["points"])))
    ax.plot(cost[cost <= most], shown(error)[cost <= most], color="black", linewidth=1.6, label=AUTO)
    ax.set(
        title=found["title"], xlabel="mean cost", ylabel="precision@5" if found["ranking"] else "test error"
    )
    errors = np.array([[at[0] for at in curve["at"]] for curve in found["curves"].values()])
    low, high = errors.min(), errors[:, 1].max()  # the smallest budget is left to run off
    if not found["ranking"] and low < high:
        ax.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))


def section(figures: dict) -> str:
    """Pictures, tables of errors, wins and losses."""
    if not figures["sets"]:
        return "## Figure 4 and the peers\n" + absences(figures["absent"])
    runs = figures["sets"][0]["runs"][PAPER]["runs"]
    lines = [
        "## Figure 4: error against cost",
        "",
        "BudgetRF as in the paper (alphas from 0 up, 40 trees; rankings: alpha 0, 140 trees, ratio of leaf counts, precision@5)",
        f"with binned splits: mean and standard deviation of {runs} runs, which differ in their seed. *Certain exit* is the same trees,",
        "asked only until the label is certain. Every method tunes its own knobs; at each budget its model of least validation error is taken.",
        "",
        "![Test error against mean cost beside the paper's peers](figure4.svg)",
        "",
        f"What the paper says, at these budgets, by the mean of {runs} runs; RF it compares by table 1 only:",
        "",
        *_claims(figures["sets"]),
        "",
        "## The peers of today",
        "",
        "![Test error against mean cost beside today's peers](peers.svg)",
        "",
        "Below, all methods have the same rows and seed (BudgetRF: the first of its runs). Their knobs:",
        "",
        *_knobs(),
        "",
        *([] if "machine" in figures else [OLD, ""]),
        *_errors(figures["sets"]),
        "",
        "### Wins, ties and losses",
        "",
        "Cells are budgets. A win or a loss is a difference whose 95 % bootstrap interval, paired by test rows, leaves out 0.",
        "",
        *_tallies(figures["sets"]),
        "",
        "### Where we lose",
        "",
        "Every cell where the peer errs less beyond the interval; the difference is what the peer errs more, so negative.",
        "",
        f"#### {AUTO} as it is by default",
        "",
        *_losses(AUTO, figures["sets"]),
        "",
        f"#### {EXIT}",
        "",
        *_losses(EXIT, figures["sets"]),
    ]
    return "\n".join(lines) + "\n" + absences(figures["absent"])


def _errors(sets: list[dict]) -> Iterator[str]:
    for found in sets:
        kind = "1 - precision@5" if found["ranking"] else "Test error"
        rows = " / ".join(f"{n:,}" for n in found["rows"])
        yield f"### {found['title']}"
        yield ""
        yield f"{rows} rows for training, validation and test." + (
            f" Note: {found['note']}." if found["note"] else ""
        )
        yield f"{kind} at each budget; the last column is the mean between the outer budgets, with its interval."
        yield ""
        yield f"| budget | {' | '.join(f'{budget:.3g}' for budget in found['budgets'])} | mean |"
        yield "|---" * (len(found["budgets"]) + 2) + "|"
        shown = {title: [f"{at[0]:.3f}" for at in curve["at"]] for title, curve in found["curves"].items()}
        best = [min(column) for column in zip(*shown.values(), strict=True)]
        for title, curve in found["curves"].items():
            cells = " | ".join(
                f"**{error}**" if error == least else error
                for error, least in zip(shown[title], best, strict=True)
            )
            mean, low, high = curve["area"]
            yield f"| {title} | {cells} | {mean:.3f} ({low:.3f} to {high:.3f}) |"
        yield ""


def _tallies(sets: list[dict]) -> Iterator[str]:
    for ours in OURS:
        yield f"| {ours} against | {' | '.join(found['title'] for found in sets)} | all |"
        yield "|---" * (len(sets) + 2) + "|"
        for title in sets[0]["apart"][ours]:
            verdicts = [[verdict(d) for d in found["apart"][ours][title]] for found in sets]
            cells = [tally(v) for v in verdicts]
            yield f"| {title} | {' | '.join(cells)} | {tally([v for part in verdicts for v in part])} |"
        yield ""


def _losses(ours: str, sets: list[dict]) -> Iterator[str]:
    yield f"| data | peer | budget | {ours} | peer | difference |"
    yield "|---" * 6 + "|"
    for found in sets:
        for title, differences in found["apart"][ours].items():
            for place, difference in enumerate(differences):
                if title not in OURS and verdict(difference) == "loss":
                    error, theirs = (found["curves"][t]["at"][place][0] for t in (ours, title))
                    mean, low, high = difference
                    yield (
                        f"| {found['title']} | {title} | {found['budgets'][place]:.3g} | {error:.3f} "
                        f"| {theirs:.3f} | {mean:.3f} ({low:.3f} to {high:.3f}) |"
                    )


def _claims(sets: list[dict]) -> Iterator[str]:
    """At how many budgets BudgetRF errs less, where the paper says so."""
    yield f"| the paper: BudgetRF errs less | {PAPER} | {EXIT} | |"
    yield "|---" * 4 + "|"
    by_title = {found["title"]: found for found in sets}
    for name, peer, least in CLAIMS:
        found = by_title.get(ENTRIES[name].title)
        if found is None:
            continue
        places = [place for place, budget in enumerate(found["budgets"]) if budget >= least]
        theirs = [found["curves"][peer]["at"][place][0] for place in places]
        below = {
            title: sum(
                found["runs"][title]["error"][p] < error for p, error in zip(places, theirs, strict=True)
            )
            for title in (PAPER, EXIT)
        }
        where = f"from {least} features on" if least else "at every budget"
        counts = " | ".join(f"{n} of {len(places)}" for n in below.values())
        holds = "holds" if len(places) in below.values() else "**does not hold**"
        yield f"| {found['title']}: than {peer}, {where} | {counts} | {holds} |"


def _knobs() -> Iterator[str]:
    """What the file of each method says of it."""
    for titles, text in described().items():
        if not titles[0].startswith(ELSEWHERE):
            yield f"- **{'; '.join(titles)}**: {text}"
