"""The trace of decisions: which feature every row acquired when, and what was believed after each.

The rule of ``acquisition.session`` and ``early_exit``, for many rows at hand, with a record kept.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.data.costs import Prices
from budgetforest.inference.early_exit import BLOCK, look_row
from budgetforest.inference.exit_forest import Walked, walked_for
from budgetforest.inference.exit_state import SETTLED, State, acquire, leader_of, start_row, state_for
from budgetforest.inference.ledger import Ledger, open_ledger
from budgetforest.inference.predict import charge
from budgetforest.runtime.arrays import Flags, Floats, Ids, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.forest import BELIEF, Answer, Forest, Voting


class Trace(NamedTuple):
    """How n rows were decided in at most s steps."""

    labels: Ids
    """(n) the class of each row."""
    certain: Flags
    """(n) whether it was certain; not so after probable exit."""
    settled: Ids
    """(n) how many trees had nothing more to say."""
    order: Ids
    """(n, s) the features in the order they were acquired, -1 after the last."""
    spent: Floats
    """(n, s + 1) what was paid at the start and after each of them; the last figure stays."""
    leader: Ids
    """(n, s + 1) the class most believed in at the start and after each; the last one stays."""
    belief: Floats
    """(n, s + 1) the mean belief of the trees in that class."""


def trace_of(forest: Forest, X: Matrix, answer: Answer, pool: Executor | None = None) -> Trace:
    """Decide rows, keeping a record of every step."""
    steps = int(charge(forest, X, answer, pool).acquired.sum(axis=1).max(initial=0))
    course = _room(forest, len(X), steps)
    if forest.n_trees == 0:
        return course
    walked = walked_for(forest, answer)
    prices = forest.costs.bare

    def block(start: int) -> None:
        rows = slice(start, start + BLOCK)
        part = np.require(X[rows], requirements=["C", "W"])
        ledger = open_ledger(len(part), forest.costs)
        here = Trace._make(column[rows] for column in course)
        scored = forest.voting == Voting.SCORES
        label = answer == Answer.LABEL
        room = state_for(forest)
        record_rows(walked, part, prices, ledger, label, forest.enough, scored, room, here)

    list((pool.map if pool else map)(block, range(0, len(X), BLOCK)))
    return course


def _room(forest: Forest, n: int, steps: int) -> Trace:
    """The course of rows that acquire nothing and take the most common class."""
    common = forest.prior.argmax()
    return Trace(
        labels=np.full(n, common, np.int32),
        certain=np.ones(n, bool),
        settled=np.zeros(n, np.int32),
        order=np.full((n, steps), -1, np.int32),
        spent=np.zeros((n, steps + 1)),
        leader=np.full((n, steps + 1), common, np.int32),
        belief=np.full((n, steps + 1), forest.prior[common] / forest.prior.sum()),
    )


@kernel
def record_rows(
    forest: Walked,
    X: Matrix,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    enough: int,
    scored: bool,
    q: State,
    course: Trace,
) -> None:
    """Fill ``course`` for all rows."""
    for i in range(len(X)):
        start_row(forest, X, i, ledger, q)
        place = 0
        while True:
            # before the look, so that the state at the start and after the last feature are recorded too
            record_step(i, place, ledger, q, scored, course)
            j, label, certain, _ = look_row(forest, X, i, prices, ledger, labels_only, np.inf, enough, q)
            if j < 0:
                break
            # there is room: ``charge`` counted the features of every row beforehand
            course.order[i, place] = j
            place += 1
            acquire(forest, X, i, j, prices, ledger, q)
        course.labels[i], course.certain[i] = label, certain
        # a tree that stands where no step can change its answer
        for t in range(len(q.at)):
            course.settled[i] += q.awaits[t] == SETTLED


@inner
def record_step(i: int, place: int, ledger: Ledger, q: State, scored: bool, course: Trace) -> None:
    """What row ``i`` has paid and believes now; the figures stand until the next step."""
    leader = leader_of(q.believed)
    # 1 / total is the leader's share: b_max / sum b, of scores their softmax
    total = 0.0
    for c in range(len(q.believed)):
        belief, most = float(q.believed[c]), float(q.believed[leader])
        total += np.exp((belief - most) / BELIEF) if scored else belief / most
    # to the end of the line: a row that stops keeps its last figures
    for at in range(place, course.spent.shape[1]):
        course.spent[i, at] = ledger.spent[i]
        course.leader[i, at] = leader
        course.belief[i, at] = 1.0 / total
