"""Drivers of one row's acquisition: where values come from, and what happens when they do not come."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from budgetforest.acquisition.failures import FailureRule, WrongAnswer, WrongUse, check_source, drop
from budgetforest.acquisition.session import UNAVAILABLE, Acquisition, Decision, number_of
from budgetforest.runtime.errors import (
    AcquisitionError,
    FeatureUnavailable,
    InvalidValue,
)

ONE_ROW = "of a feature's name that returns its value (pass row.__getitem__ for a row that is at hand)"


def decide(flow: Acquisition, source: Callable[[str], Any], rule: FailureRule) -> Decision:
    """Drive a row with ``source(feature) -> value``."""
    check_source(source, ONE_ROW)
    with _with_what_was_paid(flow):
        while flow.need is not None:
            _send(flow, {name: _ask(flow, source, name, rule) for name in _trip(flow)})
    return flow.decide()


async def decide_async(
    flow: Acquisition,
    source: Callable[[str], Awaitable[Any]],
    rule: FailureRule,
    timeout: float | None = None,
) -> Decision:
    """Drive a row with an awaitable source; what is worth one round trip is acquired at the same time."""
    check_source(source, ONE_ROW)
    with _with_what_was_paid(flow):
        while flow.need is not None:
            await _trip_async(flow, source, rule, timeout)
    return flow.decide()


async def _trip_async(
    flow: Acquisition, source: Callable[[str], Awaitable[Any]], rule: FailureRule, timeout: float | None
) -> None:
    """One round trip; if it fails, what has come by then is kept and paid for."""
    import asyncio  # not worth its time where it is not used

    names = _trip(flow)
    tasks = [asyncio.ensure_future(_ask_async(flow, source, name, rule, timeout)) for name in names]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()  # nobody waits for the others any more
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        came = zip(names, ended, strict=True)
        _send(flow, {name: value for name, value in came if not isinstance(value, BaseException)})


@contextlib.contextmanager
def _with_what_was_paid(flow: Acquisition) -> Iterator[None]:
    """Errors carry what was paid for, so that nothing need be paid twice."""
    try:
        yield
    except AcquisitionError as error:
        error.known, error.spent = flow.bought, flow.spent
        raise


def checked(flow: Acquisition, feature: str, value: Any) -> Any:
    """A source's value, an error if it is none; None is a source that has nothing to say."""
    if value is None or value is UNAVAILABLE:
        raise FeatureUnavailable(f"the source returned {value!r}")
    try:
        number_of(flow.forest, flow.forest.schema.names.index(feature), value)
    except InvalidValue as error:
        raise WrongAnswer(str(error)) from None
    return value


def _trip(flow: Acquisition) -> tuple[str, ...]:
    """What is asked for in one round trip, as far as the limit reaches."""
    need = flow.need
    assert need is not None
    return (need.feature, *need.together)


def _send(flow: Acquisition, values: dict[str, Any]) -> None:
    if values:
        with contextlib.suppress(StopIteration):
            flow.send(values)


def _ask(flow: Acquisition, source: Callable[[str], Any], feature: str, rule: FailureRule) -> Any:
    attempt = 1
    while True:
        try:
            value = source(feature)
            if inspect.isawaitable(value):
                drop(value)
                raise WrongUse("the source is asynchronous; use predict_one_async")
            return checked(flow, feature, value)
        except Exception as error:
            if not rule.tries_again(feature, error, attempt):
                flow.reasons[feature] = rule.give_up(feature, error)
                return UNAVAILABLE
        attempt += 1


async def _ask_async(
    flow: Acquisition,
    source: Callable[[str], Awaitable[Any]],
    feature: str,
    rule: FailureRule,
    timeout: float | None,
) -> Any:
    import asyncio

    attempt = 1
    while True:
        try:
            coming = source(feature)
            if not inspect.isawaitable(coming):
                raise WrongUse("the source returned a value, not an awaitable; use predict_one")
            return checked(flow, feature, await asyncio.wait_for(coming, timeout))
        except Exception as error:
            if not await rule.tries_again_async(feature, error, attempt):
                flow.reasons[feature] = rule.give_up(feature, error)
                return UNAVAILABLE
        attempt += 1
