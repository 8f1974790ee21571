"""The acquisition tree: which feature is asked first, and what is asked then, for how many rows.

Rows that acquired the same features in the same order so far stand in one block. The blocks of a step stand
below each other, beside the blocks that they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from budgetforest.inference.trace import Trace
from budgetforest.runtime.arrays import Flags, Ids

STEPS = 5
"""How many features deep the tree is shown."""
LEAST_SHARE = 0.02
"""Blocks of fewer rows are put together."""


@dataclass(frozen=True)
class FlowBlock:
    """Rows that had the same course up to a step."""

    at: int
    """Which forest of the path."""
    step: int
    """From 1."""
    top: float
    bottom: float
    """Shares of the rows, from the top: the difference is the block's own."""
    kind: str
    """Asked for a feature, some of several rare ones, or decided."""
    name: str


def flow_of(courses: Sequence[Trace], names: Sequence[str]) -> list[FlowBlock]:
    """The blocks of every forest."""
    return [
        block
        for at, course in enumerate(courses)
        for block in _below(at, _first_steps(course.order), np.ones(len(course.order), bool), 1, 0.0, names)
    ]


def _first_steps(order: Ids) -> Ids:
    """(n, STEPS) the beginning of the order; rows that end sooner are decided."""
    missing = max(0, STEPS - order.shape[1])
    return np.pad(order[:, :STEPS], ((0, 0), (0, missing)), constant_values=-1)


def _below(
    at: int, order: Ids, rows: Flags, step: int, top: float, names: Sequence[str]
) -> Iterator[FlowBlock]:
    """The blocks of the next step and all that follow, for rows that stand in one block."""
    if step > STEPS:
        return
    asked = order[rows, step - 1]
    what, times = np.unique(asked[asked >= 0], return_counts=True)
    by_rows = np.argsort(-times, kind="stable")
    n, rare = len(order), 0
    for feature, share in zip(what[by_rows].tolist(), (times[by_rows] / n).tolist(), strict=True):
        if share < LEAST_SHARE:
            rare += round(share * n)
            continue
        yield FlowBlock(at, step, top, top + share, "asked", names[feature])
        yield from _below(at, order, rows & (order[:, step - 1] == feature), step + 1, top, names)
        top += share
    if rare:
        yield FlowBlock(at, step, top, top + rare / n, "rare", "others")
        top += rare / n
    decided = int((asked < 0).sum())
    if decided:
        yield FlowBlock(at, step, top, top + decided / n, "decided", "decided")
