"""A fitted model in a few lines: what it costs, how it errs, and whether it is worth anything."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from budgetforest.selection.candidates import Point
from budgetforest.selection.estimate import estimate_at
from budgetforest.selection.result import TrainingResult, expected
from budgetforest.selection.verdict import ClassFigures, Verdict, by_class, verdict_on
from budgetforest.trees.forest import Answer

HEAD = ("class", "rows", "recall", "precision")
UNMEASURED = "Its error on new rows is unknown; measure it on rows that training has not seen."


class Summary(NamedTuple):
    """What ``summary`` returns; it prints as text, and as a table in notebooks."""

    verdict: Verdict | None
    """None if nothing was measured."""
    budget: float
    cost: float
    """What an average row pays, by the validation rows."""
    cost_of_all: float
    """What a row would pay for every feature."""
    trees: int
    features: int
    """How many features may be asked for,"""
    n_features: int
    """of so many."""
    without: str
    """What it does without trees."""
    classes: tuple[ClassFigures, ...]
    """Recall and precision of each class on the held-out rows; empty for smaller budgets than the one
    trained for."""

    @property
    def sentence(self) -> str:
        """Whether the model is worth anything."""
        if self.verdict is None:
            return UNMEASURED if self.trees else self.without
        return str(self.verdict)

    def _lines(self) -> Iterator[tuple[str, str]]:
        limit = "no limit" if self.budget == math.inf else f"{self.budget:.4g}"
        yield "budget", limit
        cost = "unknown" if math.isnan(self.cost) else f"{self.cost:.4g}"
        yield "mean cost", f"{cost}; {self.cost_of_all:.4g} for every feature"
        yield "features", f"{self.features} of {self.n_features} may be asked for"
        yield "trees", f"{self.trees}"

    def _table(self) -> list[tuple[str, str, str, str]]:
        return [
            (str(each.label), f"{each.rows:,}", _share(each.recall), _share(each.precision))
            for each in self.classes
        ]

    def __str__(self) -> str:
        lines = [self.sentence, *(f"{name:<10} {value}" for name, value in self._lines())]
        if self.classes:
            rows = [HEAD, *self._table()]
            width = max(len(row[0]) for row in rows)
            lines += [
                "",
                "on the validation rows:",
                *(f"{a:<{width}} {b:>7} {c:>7} {d:>10}" for a, b, c, d in rows),
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        told = _html_table([("budgetforest", ""), *self._lines()])
        classes = _html_table([HEAD, *self._table()]) if self.classes else ""
        where = "<p>On the validation rows:</p>" if self.classes else ""
        return f"<p>{html.escape(self.sentence)}</p>{told}{where}{classes}"


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text, the first a head."""
    lines = [
        "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
        for row, tag in zip(rows, chain(["th"], repeat("td")), strict=False)
    ]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def summarize(
    trained: TrainingResult, budget: float, best: Point | None, trees: int, features: int
) -> Summary:
    """The summary of a training at a budget."""
    confusion = trained.confusion if budget == trained.budget and best is not None else None
    classes = [] if confusion is None else by_class(confusion, trained.context.classes, trained.unit)
    return Summary(
        verdict=_verdict(trained, budget, best) if best is not None else None,
        budget=budget,
        cost=best.cost if best else 0.0,
        cost_of_all=trained.context.costs.most,
        trees=trees,
        features=features,
        n_features=len(trained.context.schema.names),
        without=_without(trained),
        classes=tuple(classes),
    )


def _counts_labels(trained: TrainingResult) -> bool:
    """Whether errors are shares of wrong labels; those of scores that "auto" chooses are Brier scores."""
    return trained.answer == Answer.LABEL or trained.surest is None


def _without(trained: TrainingResult) -> str:
    """The answer that asks for nothing."""
    common = str(trained.context.classes[int(trained.context.prior.argmax())])
    told = f"It has no trees and always answers {common!r}"
    known = _counts_labels(trained) and not math.isnan(trained.prior_error)
    return f"{told}, which is wrong for {trained.prior_error:.1%} of rows." if known else f"{told}."


def _verdict(trained: TrainingResult, budget: float, best: Point) -> Verdict | None:
    """By the estimated error; of scores, whose errors are no shares of labels, by the labels alone."""
    found = expected(trained, budget, best)
    common, classes = int(trained.context.prior.argmax()), trained.context.classes
    if found is None or trained.judged == 0:
        return None
    labels = _counts_labels(trained)
    nothing = estimate_at(trained.estimates, 0.0)
    free = nothing.error if labels and nothing and (trained.context.costs.cost == 0).any() else None
    if trained.confusion is not None and budget == trained.budget:
        error = (found.error, found.low, found.high) if labels else None
        told = verdict_on(trained.confusion, classes, common, trained.judged, error)
        # by the rows that the error comes from, which are more where training rows take their turn
        return told._replace(free=free, common_error=trained.prior_error if labels else told.common_error)
    if not labels:
        return None
    margin = (found.high - found.low) / 2
    return Verdict(*found[1:], trained.judged, classes[common], trained.prior_error, margin, free)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"
