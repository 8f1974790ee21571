"""Many rows at once: in every round a source is asked once per feature, for all rows that wait for it.

That is how databases and feature stores want to be asked. The rows' states are those of ``charge``; what each
waits for is found by the compiled twin of ``acquire``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from budgetforest.acquisition import UNAVAILABLE, number_of
from budgetforest.arrays import Flags, Floats, Ids
from budgetforest.charge import look, open_ledger
from budgetforest.drivers import Policy, check_policy, try_again
from budgetforest.errors import InvalidData, InvalidParameter, near
from budgetforest.forest import Answer, Forest

Source = Callable[[str, Sequence[Any]], Sequence[Any]]
"""``source(feature, rows) -> values``, one for each row, None where there is none."""


class Decisions(NamedTuple):
    """The answers for many rows."""

    labels: Any
    """(n) the label of each row."""
    spent: Floats
    """(n) what each row paid."""
    acquired: Flags
    """(n, m) which features each row paid for."""
    certain: Flags
    """(n) whether the forest's label is known; False where a limit stopped the row."""
    rounds: int
    """How often the source was asked, all features of a round counted once."""


def decide_rows(
    forest: Forest,
    source: Source,
    rows: Sequence[Any],
    *,
    known: Mapping[str, Sequence[Any]],
    answer: Answer,
    limit: float | None,
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
    most = math.inf if limit is None else limit
    labels = np.full(n, -1, np.int32)
    certain = np.zeros(n, bool)
    waiting: Ids = np.arange(n, dtype=np.int32)
    rounds = 0
    with ThreadPoolExecutor(in_flight, "source") as callers:
        while True:
            needs, settled, sure = look(forest, values, ledger, waiting, answer, most, pool)
            done = needs < 0
            labels[waiting[done]], certain[waiting[done]] = settled[done], sure[done]
            tell(n - int((~done).sum()))
            waiting, needs = waiting[~done], needs[~done]
            if not len(waiting):
                break
            rounds += 1

            def ask(j: int, who: Ids) -> tuple[Floats, Flags]:
                return _ask(forest, source, j, [rows[i] for i in who], unavailable)

            groups = [(int(j), waiting[needs == j]) for j in np.unique(needs)]
            futures = [callers.submit(ask, j, who) for j, who in groups]
            for (j, who), future in zip(groups, futures, strict=True):
                values[who, j], had = future.result()
                ledger.acquired[who, j] = True
                _charge(forest, ledger.opened, ledger.spent, who[had], j)
                paid[who[had], j] = True
    return Decisions(np.array(forest.classes)[labels], ledger.spent, paid, certain, rounds)


def _take_known(
    forest: Forest, known: Mapping[str, Sequence[Any]], values: Floats, have: Flags, opened: Flags
) -> None:
    for name, column in known.items():
        if name not in forest.schema.names:
            raise InvalidData(f"{name!r} is not a feature of this forest; {near(name, forest.schema.names)}")
        if len(column) != len(values):
            raise InvalidData(f"known {name!r} has {len(column)} values for {len(values)} rows")
        j = forest.schema.names.index(name)
        values[:, j] = [number_of(forest, j, value) for value in column]
        have[:, j] = True
        opened[:, forest.costs.group[j]] = True


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
        answers = list(source(name, [who[i] for i in missing]))
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
        except InvalidData as error:
            wrong = error
    return wrong


def _charge(forest: Forest, opened: Flags, spent: Floats, who: Ids, j: int) -> None:
    group = forest.costs.group[j]
    spent[who] += np.where(opened[who, group], forest.costs.discount[j], forest.costs.cost[j])
    opened[who, group] = True


def check_in_flight(in_flight: Any) -> int:
    """At least one call of the source at a time."""
    if not isinstance(in_flight, int) or in_flight < 1:
        raise InvalidParameter(f"in_flight is {in_flight!r}; it must be a whole number, 1 or more")
    return in_flight
