"""Drivers of one row's acquisition: where values come from, and what happens when they do not come."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from budgetforest.acquisition.session import UNAVAILABLE, Acquisition, Decision, number_of
from budgetforest.runtime.errors import FeatureUnavailable, InvalidParameter

Policy: TypeAlias = Literal["route", "raise"] | Callable[[str, Exception, int], bool]
"""What to do when a feature cannot be had: follow the learned side of missing values and pay nothing, raise,
or ask a function of (feature, error, attempt) whether to try again."""


def decide(flow: Acquisition, source: Callable[[str], Any], unavailable: Policy = "route") -> Decision:
    """Drive a row with ``source(feature) -> value``."""
    check_policy(unavailable)
    while flow.need is not None:
        values = {name: _ask(flow, source, name, unavailable) for name in _trip(flow)}
        _send(flow, values)
    return flow.decide()


async def decide_async(
    flow: Acquisition,
    source: Callable[[str], Awaitable[Any]],
    unavailable: Policy = "route",
    timeout: float | None = None,
) -> Decision:
    """Drive a row with an awaitable source; what is worth one round trip is acquired at the same time."""
    import asyncio  # not worth its time where it is not used

    check_policy(unavailable)
    while flow.need is not None:
        names = _trip(flow)
        tasks = [
            asyncio.ensure_future(_ask_async(flow, source, name, unavailable, timeout)) for name in names
        ]
        try:
            values = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()  # nobody waits for the others any more
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        _send(flow, dict(zip(names, values, strict=True)))
    return flow.decide()


def check_policy(unavailable: Any) -> None:
    """Refuse what is no policy."""
    if unavailable not in ("route", "raise") and not callable(unavailable):
        raise InvalidParameter(
            f"unavailable={unavailable!r} is unknown; take 'route', 'raise' or a function of "
            "(feature, error, attempt) that tells whether to try again"
        )


def try_again(unavailable: Policy, feature: str, error: Exception, attempt: int) -> bool:
    """Whether a failed feature is asked for again; raises if that is the policy."""
    if isinstance(error, InvalidParameter):
        raise error
    if unavailable == "raise":
        raise FeatureUnavailable(
            f"{feature!r} could not be acquired: {str(error) or repr(error)}; "
            "pass unavailable='route' to go on without it"
        ) from error
    again = callable(unavailable) and unavailable(feature, error, attempt)
    if inspect.isawaitable(again):
        again.close() if inspect.iscoroutine(again) else None
        raise InvalidParameter("unavailable is an async function; only predict_one_async awaits it")
    return bool(again)


def checked(flow: Acquisition, feature: str, value: Any) -> Any:
    """A source's value, an error if it is none; None is a source that has nothing to say."""
    if value is None or value is UNAVAILABLE:
        raise FeatureUnavailable(f"the source returned {value!r}")
    number_of(flow.forest, flow.forest.schema.names.index(feature), value)
    return value


def _trip(flow: Acquisition) -> tuple[str, ...]:
    """What is asked for in one round trip, as far as the limit reaches."""
    need = flow.need
    assert need is not None
    return (need.feature, *need.together)


def _send(flow: Acquisition, values: dict[str, Any]) -> None:
    with contextlib.suppress(StopIteration):
        flow.send(values)


def _ask(flow: Acquisition, source: Callable[[str], Any], feature: str, unavailable: Policy) -> Any:
    attempt = 1
    while True:
        try:
            value = source(feature)
            if inspect.isawaitable(value):
                value.close() if inspect.iscoroutine(value) else None
                raise InvalidParameter("the source is asynchronous; use predict_one_async")
            return checked(flow, feature, value)
        except Exception as error:
            if not try_again(unavailable, feature, error, attempt):
                return UNAVAILABLE
        attempt += 1


async def _ask_async(
    flow: Acquisition,
    source: Callable[[str], Awaitable[Any]],
    feature: str,
    unavailable: Policy,
    timeout: float | None,
) -> Any:
    import asyncio

    attempt = 1
    while True:
        try:
            coming = source(feature)
            if not inspect.isawaitable(coming):
                raise InvalidParameter("the source returned a value, not an awaitable; use predict_one")
            return checked(flow, feature, await asyncio.wait_for(coming, timeout))
        except Exception as error:
            if not await _try_again_async(unavailable, feature, error, attempt):
                return UNAVAILABLE
        attempt += 1


async def _try_again_async(unavailable: Any, feature: str, error: Exception, attempt: int) -> bool:
    """The same for a policy that may be awaited, as one that backs off wants to be."""
    if inspect.iscoroutinefunction(unavailable) and not isinstance(error, InvalidParameter):
        return bool(await unavailable(feature, error, attempt))
    return try_again(unavailable, feature, error, attempt)
