"""Drivers of one row's acquisition: where values come from, and what happens when they do not come."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from budgetforest.acquisition import UNAVAILABLE, Acquisition, Decision, number_of
from budgetforest.errors import FeatureUnavailable, InvalidParameter

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
    check_policy(unavailable)
    while flow.need is not None:
        names = _trip(flow)
        asked = (_ask_async(flow, source, name, unavailable, timeout) for name in names)
        _send(flow, dict(zip(names, await asyncio.gather(*asked), strict=True)))
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
    if unavailable == "raise":
        raise FeatureUnavailable(
            f"{feature!r} could not be acquired: {error}; pass unavailable='route' to go on without it"
        ) from error
    return callable(unavailable) and bool(unavailable(feature, error, attempt))


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
    return (need.feature, *need.together) if math.isinf(flow.limit) else (need.feature,)


def _send(flow: Acquisition, values: dict[str, Any]) -> None:
    with contextlib.suppress(StopIteration):
        flow.send(values)


def _ask(flow: Acquisition, source: Callable[[str], Any], feature: str, unavailable: Policy) -> Any:
    attempt = 1
    while True:
        try:
            return checked(flow, feature, source(feature))
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
    attempt = 1
    while True:
        try:
            return checked(flow, feature, await asyncio.wait_for(source(feature), timeout))
        except Exception as error:
            if not try_again(unavailable, feature, error, attempt):
                return UNAVAILABLE
        attempt += 1
