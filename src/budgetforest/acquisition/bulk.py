"""Many rows at once: in every round a source is asked once per feature, for all rows that wait for it.

That is how databases and feature stores want to be asked. What each
waits for is found by the compiled twin of ``acquire``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from budgetforest.acquisition.drivers import Policy, check_policy, try_again
from budgetforest.acquisition.session import UNAVAILABLE, number_of, share_bounds
from budgetforest.data.costs import price
from budgetforest.inference.early_exit import look_at
from budgetforest.inference.exit_forest import walked_for
from budgetforest.inference.ledger import open_ledger
from budgetforest.inference.predict import scores
from budgetforest.runtime.arrays import Flags, Floats, Ids
from budgetforest.runtime.errors import FeatureUnavailable, InvalidData, InvalidParameter, near
from budgetforest.trees.forest import Answer, Forest, shares

Source = Callable[[str, Sequence[Any]], Sequence[Any]]
"""``source(feature, rows) -> values``, one for each row, None where there is none."""


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
    certain: Flags
    """(n) whether the forest's label is known; False where a limit stopped the row."""
    bounds: Floats
    """(n, 2) between what the label's share of the votes lies."""
    rounds: int
    """How often the source was asked, all features of a round counted once."""


def decide_rows(
    forest: Forest,
    source: Source,
    rows: Sequence[Any],
    *,
    known: Mapping[str, Sequence[Any]],
    answer: Answer,
    limit: float,
    unavailable: Policy,
    in_flight: int,
    pool: Executor,
    tell: Callable[[int], None] = lambda decided: None,
) -> Decisions:
    """Decide all rows; ``in_flight`` calls of the source at a time. ``tell`` hears how many are decided."""
    check_policy(unavailable)
    n = len(rows)
    ledger = open_ledger(n, forest.costs)
    values = np.full((n, len(forest.schema.names)), np.nan)
    paid = np.zeros(values.shape, bool)
    _take_known(forest, known, values, ledger.acquired, ledger.opened)
    labels = np.full(n, -1, np.int32)
    certain, complete = np.zeros(n, bool), np.zeros(n, bool)
    bounds = np.zeros((n, 2))
    waiting: Ids = np.arange(n, dtype=np.int32)
    rounds = 0
    walked = walked_for(forest, answer)
    with _callers(in_flight) as callers:
        while True:
            look = look_at(forest, walked, values, ledger, waiting, answer, limit, pool)
            done = look.needs < 0
            labels[waiting[done]], certain[waiting[done]] = look.labels[done], look.certain[done]
            complete[waiting[done]] = look.complete[done]
            for i in np.flatnonzero(done):
                bounds[waiting[i]] = _bounds(forest, look.least[i], look.most[i], int(look.labels[i]))
            tell(n - int((~done).sum()))
            waiting, needs = waiting[~done], look.needs[~done]
            if not len(waiting):
                break
            rounds += 1

            def ask(j: int, who: Ids) -> tuple[Floats, Flags]:
                return _ask(forest, source, j, [rows[i] for i in who], unavailable)

            groups = [(int(j), waiting[needs == j]) for j in np.unique(needs)]
            futures = [callers.submit(ask, j, who) for j, who in groups]
            failed: Exception | None = None
            for (j, who), future in zip(groups, futures, strict=True):
                try:
                    values[who, j], had = future.result()
                except CancelledError:
                    continue
                except Exception as error:
                    failed = failed or error
                    for other in futures:
                        other.cancel()  # calls that were not begun
                    continue
                ledger.acquired[who, j] = True
                _charge(forest, ledger.opened, ledger.spent, who[had], j)
                paid[who[had], j] = True
            if failed is not None:
                raise _with_what_was_paid(failed, forest, values, paid)
    proba = None
    if answer == Answer.PROBA:
        total = scores(forest, values, pool)
        proba = np.where(complete[:, None], shares(total, forest.voting), np.nan)
    answers = np.array(forest.classes)[labels]
    return Decisions(answers, proba, ledger.spent, paid, certain, bounds, rounds)


def _with_what_was_paid(error: Exception, forest: Forest, values: Floats, paid: Flags) -> Exception:
    """The error, carrying what was paid for so that nothing need be paid twice."""
    if isinstance(error, FeatureUnavailable):
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


def _take_known(
    forest: Forest, known: Mapping[str, Sequence[Any]], values: Floats, have: Flags, opened: Flags
) -> None:
    for name, column in known.items():
        if name not in forest.schema.names:
            raise InvalidData(f"{name!r} is not a feature of this forest; {near(name, forest.schema.names)}")
        if len(column) != len(values):
            raise InvalidData(f"known {name!r} has {len(column)} values for {len(values)} rows")
        j = forest.schema.names.index(name)
        for i, value in enumerate(column):
            if value is not None:
                have[i, j] = True
                if value is not UNAVAILABLE:
                    values[i, j] = number_of(forest, j, value)
                    opened[i, forest.costs.group[j]] = True


def _ask(forest: Forest, source: Source, j: int, who: list[Any], unavailable: Policy) -> tuple[Floats, Flags]:
    """Values of one feature for some rows, and which of them could be had."""
    name = forest.schema.names[j]
    values = np.full(len(who), np.nan)
    had = np.zeros(len(who), bool)
    missing = list(range(len(who)))
    attempt = 1
    while missing:
        error = _fill(forest, source, j, who, missing, values, had)
        missing = [i for i in missing if not had[i]]
        if error is None or not try_again(unavailable, name, error, attempt):
            break
        attempt += 1
    return values, had


def _fill(
    forest: Forest,
    source: Source,
    j: int,
    who: list[Any],
    missing: list[int],
    values: Floats,
    had: Flags,
) -> Exception | None:
    """Ask once for the rows without a value; the last thing that went wrong, None if nothing did."""
    name = forest.schema.names[j]
    try:
        answers = source(name, [who[i] for i in missing])
        if isinstance(answers, Mapping):
            return InvalidData(
                f"the source gave {name!r} by key; it must list a value for each row, in order"
            )
        answers = list(answers)
    except Exception as error:
        return error
    if len(answers) != len(missing):
        return InvalidData(f"the source gave {len(answers)} values of {name!r} for {len(missing)} rows")
    wrong: Exception | None = None
    for i, answer in zip(missing, answers, strict=True):
        if answer is None or answer is UNAVAILABLE:
            wrong = InvalidData(f"the source has no value of {name!r} for {who[i]!r}")
            continue
        try:
            values[i] = number_of(forest, j, answer)
            had[i] = True
        except Exception as error:
            wrong = error
    return wrong


def _charge(forest: Forest, opened: Flags, spent: Floats, who: Ids, j: int) -> None:
    group = forest.costs.group[j]
    later, first = price(forest.costs, j, True), price(forest.costs, j, False)
    spent[who] += np.where(opened[who, group], later, first)
    opened[who, group] = True


def check_in_flight(in_flight: Any) -> int:
    """At least one call of the source at a time."""
    if not isinstance(in_flight, Integral) or isinstance(in_flight, bool) or in_flight < 1:
        raise InvalidParameter(f"in_flight is {in_flight!r}; it must be a whole number, 1 or more")
    return int(in_flight)
