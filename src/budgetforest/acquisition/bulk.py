"""Many rows at once: in every round a source is asked once per feature, for all rows that wait for it.

That is how databases and feature stores want to be asked. What each row waits for is found by the compiled
twin of ``acquire``; what a source returns is matched with the rows it was asked for in ``answers``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from budgetforest.acquisition.answers import Source, fill, in_order
from budgetforest.acquisition.failures import FailureRule, WrongAnswer
from budgetforest.acquisition.session import UNAVAILABLE, number_of, share_bounds
from budgetforest.data.costs import price
from budgetforest.inference.early_exit import look_at
from budgetforest.inference.exit_forest import walked_for
from budgetforest.inference.ledger import Ledger, open_ledger
from budgetforest.inference.predict import scores
from budgetforest.runtime.arrays import Flags, Floats, Ids
from budgetforest.runtime.errors import (
    AcquisitionError,
    InvalidData,
    InvalidParameter,
    UnusualData,
    near,
    warn,
)
from budgetforest.trees.forest import Answer, Forest, shares

MANY = 0.1
"""A share of rows that lack something from which on a warning is given."""


class Decisions(NamedTuple):
    """The answers for many rows."""

    labels: Any
    """(n) the label of each row."""
    proba: Floats | None
    """(n, k) shares of the votes with ``answer="proba"``; NaN where a limit stopped the row."""
    spent: Floats
    """(n) what each row paid."""
    acquired: Flags
    """(n, m) which features each row paid for."""
    unavailable: Flags
    """(n, m) which features it was denied."""
    reasons: dict[str, str]
    """Why features were unavailable: the last reason of each."""
    certain: Flags
    """(n) whether no value still unknown can change the forest's label."""
    limited: Flags
    """(n) whether the limit ended the questions."""
    bounds: Floats
    """(n, 2) between what the label's share of the votes lies."""
    rounds: int
    """How often the source was asked, all features of a round counted once."""


class Progress(NamedTuple):
    """What is known of all rows, and what is decided of them; rounds fill it."""

    values: Floats
    """(n, m) NaN where nothing is known."""
    ledger: Ledger
    paid: Flags
    denied: Flags
    reasons: dict[str, str]
    labels: Ids
    certain: Flags
    complete: Flags
    limited: Flags
    bounds: Floats


class Got(NamedTuple):
    """What a source delivered of one feature for some rows."""

    values: Floats
    had: Flags
    """Which of them it delivered."""
    reason: str = ""
    """Why not the others."""
    failure: Exception | None = None
    """What ends all questions."""


def decide_rows(
    forest: Forest,
    source: Source,
    rows: Sequence[Any],
    *,
    known: Mapping[str, Sequence[Any]],
    answer: Answer,
    limit: float,
    rule: FailureRule,
    in_flight: int,
    pool: Executor,
    tell: Callable[[int], None] = lambda decided: None,
) -> Decisions:
    """Decide all rows; ``in_flight`` calls of the source at a time. ``tell`` hears how many are decided."""
    n, m = len(rows), len(forest.schema.names)
    state = Progress(
        values=np.full((n, m), np.nan),
        ledger=open_ledger(n, forest.costs),
        paid=np.zeros((n, m), bool),
        denied=np.zeros((n, m), bool),
        reasons={},
        labels=np.full(n, -1, np.int32),
        certain=np.zeros(n, bool),
        complete=np.zeros(n, bool),
        limited=np.zeros(n, bool),
        bounds=np.zeros((n, 2)),
    )
    _take_known(forest, known, rows, state)
    waiting: Ids = np.arange(n, dtype=np.int32)
    rounds = 0
    walked = walked_for(forest, answer)
    with _callers(in_flight) as callers:
        while True:
            look = look_at(forest, walked, state.values, state.ledger, waiting, answer, limit, pool)
            done = look.needs < 0
            _note(forest, look, done, waiting, state)
            tell(n - int((~done).sum()))
            waiting, needs = waiting[~done], look.needs[~done]
            if not len(waiting):
                break
            rounds += 1
            _ask_round(forest, source, rows, waiting, needs, rule, callers, state)
    proba = None
    if answer == Answer.PROBA:
        total = scores(forest, state.values, pool)
        proba = np.where(state.complete[:, None], shares(total, forest.voting), np.nan)
    return Decisions(
        labels=np.array(forest.classes)[state.labels],
        proba=proba,
        spent=state.ledger.spent,
        acquired=state.paid,
        unavailable=state.denied,
        reasons=state.reasons,
        certain=state.certain,
        limited=state.limited,
        bounds=state.bounds,
        rounds=rounds,
    )


def _note(forest: Forest, look: Any, done: Flags, waiting: Ids, state: Progress) -> None:
    """Note the answers of rows that need nothing more."""
    who = waiting[done]
    state.labels[who], state.certain[who] = look.labels[done], look.certain[done]
    state.complete[who], state.limited[who] = look.complete[done], look.limited[done]
    for i in np.flatnonzero(done):
        state.bounds[waiting[i]] = _bounds(forest, look.least[i], look.most[i], int(look.labels[i]))


def _ask_round(
    forest: Forest,
    source: Source,
    rows: Sequence[Any],
    waiting: Ids,
    needs: Ids,
    rule: FailureRule,
    callers: Executor,
    state: Progress,
) -> None:
    """Ask once for every feature that rows wait for; what has come is kept and paid for, whatever fails."""

    def ask(j: int, who: Ids) -> Got:
        return _ask(forest, source, j, [rows[i] for i in who], rule)

    groups = [(int(j), waiting[needs == j]) for j in np.unique(needs)]
    futures = [callers.submit(ask, j, who) for j, who in groups]
    failed: Exception | None = None
    for (j, who), future in zip(groups, futures, strict=True):
        try:
            got = future.result()
        except CancelledError:
            continue
        state.values[who, j], state.ledger.acquired[who, j] = got.values, True
        _charge(forest, state.ledger, who[got.had], j)
        state.paid[who[got.had], j], state.denied[who[~got.had], j] = True, True
        if got.reason:
            state.reasons[forest.schema.names[j]] = got.reason
        if got.failure is not None:
            failed = failed or got.failure
            for other in futures:
                other.cancel()  # calls that were not begun
    if failed is not None:
        raise _with_what_was_paid(failed, forest, state)


def warn_of_denied(forest: Forest, denied: Flags) -> None:
    """Say so when many rows lacked something."""
    lacking, by_feature = int(denied.any(axis=1).sum()), denied.sum(axis=0)
    if lacking and lacking >= MANY * len(denied):
        worst = np.argsort(-by_feature, kind="stable")[:3]
        named = ", ".join(f"{forest.schema.names[j]!r} ({by_feature[j]:,})" for j in worst if by_feature[j])
        warn(
            f"{lacking:,} of {len(denied):,} rows lacked features that could not be had: {named}; "
            "see `unavailable` and `reasons` of the answers",
            UnusualData,
        )


def _with_what_was_paid(error: Exception, forest: Forest, state: Progress) -> Exception:
    """The error, carrying what was paid for so that nothing need be paid twice."""
    if isinstance(error, AcquisitionError):
        values, paid = state.values, state.paid
        error.spent = state.ledger.spent
        error.known = {
            forest.schema.names[j]: [
                _shown(forest, j, value) if had else None
                for value, had in zip(values[:, j], paid[:, j], strict=True)
            ]
            for j in map(int, np.flatnonzero(paid.any(axis=0)))
        }
        error.add_note("what was paid for is in this error's `known`: pass it as known= to go on")
    return error


def _shown(forest: Forest, j: int, number: float) -> Any:
    """A number as the value that it stands for."""
    categories = forest.schema.categories[j]
    return number if categories is None or math.isnan(number) else categories[int(number)]


@contextmanager
def _callers(in_flight: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that call the source; calls that were not begun are dropped when something goes wrong."""
    callers = ThreadPoolExecutor(in_flight, "source")
    try:
        yield callers
    finally:
        callers.shutdown(wait=True, cancel_futures=True)


def _bounds(forest: Forest, least: Floats, most: Floats, label: int) -> tuple[float, float]:
    if forest.n_trees:
        return share_bounds(forest, least.tolist(), most.tolist(), label)
    share = float(forest.prior[label] / forest.prior.sum())
    return share, share


def _in_order(name: str, column: Any, rows: Sequence[Any]) -> list[Any]:
    """A known column in the order of the rows; matched by its index, as what a source returns."""
    try:
        return in_order(column, rows)
    except WrongAnswer as error:
        raise InvalidData(f"known {name!r} holds {str(error).removeprefix('it returned ')}") from None


def _take_known(
    forest: Forest, known: Mapping[str, Sequence[Any]], rows: Sequence[Any], state: Progress
) -> None:
    values, ledger = state.values, state.ledger
    for name, column in known.items():
        if name not in forest.schema.names:
            raise InvalidData(f"{name!r} is not a feature of this forest; {near(name, forest.schema.names)}")
        j = forest.schema.names.index(name)
        for i, value in enumerate(_in_order(name, column, rows)):
            if value is not None:
                ledger.acquired[i, j] = True
                if value is UNAVAILABLE:
                    state.denied[i, j] = True
                else:
                    values[i, j] = number_of(forest, j, value)
                    ledger.opened[i, forest.costs.group[j]] = True


def _ask(forest: Forest, source: Source, j: int, who: list[Any], rule: FailureRule) -> Got:
    """Ask for one feature of some rows until all have a value, or there is no use in trying again."""
    got = Got(np.full(len(who), np.nan), np.zeros(len(who), bool))
    name, attempt = forest.schema.names[j], 1
    try:
        while (error := fill(forest, source, j, who, got.values, got.had)) is not None:
            if not rule.tries_again(name, error, attempt):
                return got._replace(reason=rule.give_up(name, error))
            attempt += 1
    except Exception as failure:  # also one of the policy itself
        return got._replace(failure=failure)
    return got


def _charge(forest: Forest, ledger: Ledger, who: Ids, j: int) -> None:
    opened, spent, group = ledger.opened, ledger.spent, forest.costs.group[j]
    later, first = price(forest.costs, j, True), price(forest.costs, j, False)
    spent[who] += np.where(opened[who, group], later, first)
    opened[who, group] = True


def check_rows(rows: Any) -> list[Any]:
    """What a source knows its rows by."""
    if hasattr(rows, "columns"):
        raise InvalidParameter("rows is a dataframe; pass what the source knows its rows by, as rows.index")
    if not isinstance(rows, Iterable):
        raise InvalidParameter(
            f"rows is {rows!r}; it must list what the source knows its rows by, as range(100) or an index"
        )
    return list(rows)


def check_in_flight(in_flight: Any) -> int:
    """At least one call of the source at a time."""
    if not isinstance(in_flight, Integral) or isinstance(in_flight, bool) or in_flight < 1:
        raise InvalidParameter(f"in_flight is {in_flight!r}; it must be a whole number, 1 or more")
    return int(in_flight)
