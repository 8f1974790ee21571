"""Some rows, told step by step: what was asked, what it cost, what was believed then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budgetforest.data.table import Schema
from budgetforest.inference.trace import Trace
from budgetforest.runtime.arrays import Floats, Ids

RIGHT, WRONG = 16, 8
"""Rows with a right and with a wrong label that are told, if there are as many."""
MOST_STEPS = 40
"""Steps that are told; of longer stories the page says how many follow."""


@dataclass(frozen=True)
class Telling:
    """One row, decided by one forest."""

    label: int
    certain: bool
    spent: float
    asked: int
    """How many features, also those that are not told."""
    start: tuple[int, float]
    """The leading class and the belief in it before anything was asked."""
    steps: list[tuple[int, float, int, float]]
    """Feature (its place in ``Story.names``), paid by then, leading class, belief in it."""


@dataclass(frozen=True)
class Story:
    """One row, decided by every forest of the path."""

    row: int
    """Its place among the caller's rows."""
    truth: int
    names: list[str]
    """The features that any forest asked for."""
    values: list[str]
    tellings: list[Telling]
    """One for every forest of the path."""


def representative(course: Trace, truth: Ids) -> Ids:
    """Rows from the cheapest to the dearest, some of them labelled wrongly."""
    spent, wrong = course.spent[:, -1], course.labels != truth
    by_cost = np.argsort(spent, kind="stable").astype(np.int32)
    rows = np.concatenate([_spread(by_cost[~wrong[by_cost]], RIGHT), _spread(by_cost[wrong[by_cost]], WRONG)])
    return rows[np.argsort(spent[rows], kind="stable")]


def _spread(rows: Ids, most: int) -> Ids:
    """At most so many of some rows, evenly spread."""
    spread: Ids = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]
    return spread


def stories_of(
    courses: Sequence[Trace], X: Floats, truth: Ids, number: Ids, rows: Ids, schema: Schema
) -> list[Story]:
    """The stories of some rows."""
    stories = []
    for i in rows.tolist():
        asked = [course.order[i, : min(MOST_STEPS, _length(course, i))] for course in courses]
        features = np.unique(np.concatenate(asked)).tolist()
        place = {j: at for at, j in enumerate(features)}
        stories.append(
            Story(
                row=int(number[i]),
                truth=int(truth[i]),
                names=[schema.names[j] for j in features],
                values=[_shown(X[i, j], schema.categories[j]) for j in features],
                tellings=[_telling(course, i, place) for course in courses],
            )
        )
    return stories


def _length(course: Trace, i: int) -> int:
    return int((course.order[i] >= 0).sum())


def _telling(course: Trace, i: int, place: dict[int, int]) -> Telling:
    asked = _length(course, i)
    spent, leader, belief = course.spent[i].tolist(), course.leader[i].tolist(), course.belief[i].tolist()
    order = course.order[i, : min(asked, MOST_STEPS)].tolist()
    return Telling(
        label=int(course.labels[i]),
        certain=bool(course.certain[i]),
        spent=spent[-1],
        asked=asked,
        start=(leader[0], round(belief[0], 3)),
        steps=[
            (place[j], round(spent[s], 6), leader[s], round(belief[s], 3)) for s, j in enumerate(order, 1)
        ],
    )


def _shown(number: float, categories: tuple[object, ...] | None) -> str:
    """A value for people."""
    if math.isnan(number):
        return "missing"
    return f"{number:.4g}" if categories is None else str(categories[int(number)])
