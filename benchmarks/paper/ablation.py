"""What each idea of ``method="auto"`` is worth: budgetforest without it, one at a time."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.progress import track

from benchmarks.frontier import cells
from benchmarks.methods import Model, Task
from benchmarks.methods.auto import models
from benchmarks.tasks import absences, loaded
from benchmarks.verdicts import tally, verdict
from benchmarks.workers import workers
from budgetforest.inference import predict
from budgetforest.inference.exit_forest import Walked, walked_for
from budgetforest.selection import auto, training
from budgetforest.selection.candidates import Candidate, Point
from budgetforest.selection.path import path_of
from budgetforest.trees.forest import Answer, Forest

SETS = (
    "miniboone_tiny",
    "miniboone_tiny_skewed",
    "statlog_dna",
    "ann_thyroid",
    "heart_cleveland",
    "pima_diabetes",
)
WITHOUT: dict[str, Callable[[Point, int], bool]] = {
    "blends": lambda point, m: point.recipe.cuts != "blend",
    "small forests": lambda point, m: point.recipe.cuts == "blend",
    "pools": lambda point, m: point.recipe.features == m,
    "probable exit": lambda point, m: point.threshold > 1,
}
"""Which forests are left without an idea, of ``m`` features."""
CHOICE = "care in the choice: the least validation error is taken"
REFIT = "growing again on all rows"
EXPECTATION = "expectation over unknown values"


def measure(quick: bool) -> dict:
    """Error at the budgets of the frontier, with and without each."""
    absent: list[str] = []
    methods = {title: partial(left, title) for title in (cells.OURS, *WITHOUT, CHOICE, REFIT)} | {
        EXPECTATION: waiting
    }
    with workers(quick=quick) as pool:
        begun = [
            (data, cells.begin(data, [methods], pool, quick=quick))  # one training for all
            for data in loaded(("pima_diabetes",) if quick else SETS, absent)
        ]
        return {"sets": [cells.gather(*each) for each in track(begun, "ablation")], "absent": absent}


def left(title: str, task: Task) -> Iterator[Model]:
    """The method without an idea, or with all: it has only the other forests to choose from."""
    allowed, m = WITHOUT.get(title, lambda point, m: True), task.train.X.shape[1]
    candidates = [
        candidate._replace(points=points)
        for candidate in grown(task)
        if (points := [point for point in candidate.points if allowed(point, m)])
    ]
    with ExitStack() as patches:
        patches.enter_context(patch.object(training, "auto_candidates", lambda *given: candidates))
        if title == CHOICE:
            patches.enter_context(patch.object(training, "careful_path", least_error))
        found = list(models(task, refit=title != REFIT))
    yield from found


def least_error(candidates: list[Candidate], n_rows: int) -> list[Point]:
    """At every budget the forest of least validation error, however little it is ahead."""
    return path_of(candidates, math.inf)


def waiting(task: Task) -> Iterator[Model]:
    """The method with trees that wait for unknown values, as in version 0.1: nothing below them is used."""
    with patch.object(predict, "walked_for", only_where_trees_stand):
        found = list(models(task))
    for model in found:
        yield model._replace(judge=partial(_while_waiting, model.judge))


def _while_waiting(judge: Callable[[np.ndarray], Any], X: np.ndarray) -> Any:
    with patch.object(predict, "walked_for", only_where_trees_stand):
        return judge(X)


def only_where_trees_stand(forest: Forest, answer: Answer) -> Walked:
    """A forest whose nodes speak for all below them: they hear of no feature but their own."""
    walked = walked_for(forest, answer)
    own = np.uint64(1) << (walked.feature & 63).astype(np.uint64)
    return walked._replace(below=np.where(walked.feature >= 0, own, np.uint64(0)))


@lru_cache(maxsize=1)
def grown(task: Task) -> list[Candidate]:
    """All forests of a training; none is let go, since each may be needed without the others."""
    found: list[Candidate] = []

    def grow(*given) -> list[Candidate]:
        found.extend(auto.auto_candidates(*given))
        return found

    everything = patch.object(auto, "without_hopeless", lambda candidates, n_rows: candidates)
    with everything, patch.object(training, "auto_candidates", grow):
        list(models(task))
    return found


def draw(figures: dict, docs: Path) -> None:
    """No picture: the differences are small."""


def section(figures: dict) -> str:
    """Mean error over the budgets with all ideas, and how it changes without each."""
    lines = [
        "## Ablation: what each idea is worth",
        "",
        '`method="auto"` at the eight budgets of [the frontier](frontier.md): its mean error, and how much it changes when the forests of one idea',
        "are taken away, or when trees wait for unknown values instead of averaging over them;",
        "in brackets at how many budgets the whole errs less / as much / more (95 % interval, paired by test rows).",
        "",
        "| without | " + " | ".join(found["title"] for found in figures["sets"]) + " |",
        "|---" * (1 + len(figures["sets"])) + "|",
        "| (all of it) | "
        + " | ".join(f"{mean_error(found, cells.OURS):.4f}" for found in figures["sets"])
        + " |",
    ]
    for title in (*WITHOUT, CHOICE, REFIT, EXPECTATION):
        changes = [
            f"{mean_error(found, title) - mean_error(found, cells.OURS):+.4f} "
            f"({tally([verdict(apart) for apart in found['methods'][title]['apart'][cells.OURS]])})"
            for found in figures["sets"]
        ]
        lines.append(f"| {title} | " + " | ".join(changes) + " |")
    return "\n".join(lines) + "\n" + absences(figures["absent"])


def mean_error(found: dict, title: str) -> float:
    """Over the budgets."""
    at = found["methods"][title]["at"]
    return sum(mean for mean, _, _ in at) / len(at)
