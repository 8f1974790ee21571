"""What happens when a source fails: which failures mean that a feature cannot be had, and which are mistakes.

A feature *cannot be had* if its source raises ``FeatureUnavailable``, times out, loses its connection, or
returns None: the row goes on without it. Everything else is a mistake in the source and is raised at once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeAlias

from budgetforest.runtime.errors import FeatureUnavailable, InvalidParameter, SourceFailed
from budgetforest.runtime.params import as_float

Policy: TypeAlias = Literal["route", "raise"] | Callable[[str, Exception, int], Any]
"""What to do when a feature cannot be had: go on without it and pay nothing ("route"), raise, or ask a
function of (feature, error, attempt) whether to try again."""
UNAVAILABLE_ERRORS = (FeatureUnavailable, TimeoutError, ConnectionError)
"""Errors of a source that mean that a feature cannot be had."""


class FailureRule(NamedTuple):
    """How the failures of a source are taken."""

    policy: Policy
    errors: tuple[type[Exception], ...]
    """Those that mean that a feature cannot be had."""

    def tries_again(self, feature: str, error: Exception, attempt: int) -> bool:
        """Whether a failed feature is asked for again."""
        again = self._again(feature, error, attempt)
        if inspect.isawaitable(again):
            drop(again)
            raise WrongUse("unavailable is an async function; only predict_one_async awaits it")
        return bool(again)

    async def tries_again_async(self, feature: str, error: Exception, attempt: int) -> bool:
        """Ask a policy that may want to be awaited, as one that backs off does."""
        again = self._again(feature, error, attempt)
        return bool(await again if inspect.isawaitable(again) else again)

    def _again(self, feature: str, error: Exception, attempt: int) -> Any:
        if isinstance(error, WrongUse):
            raise error
        return callable(self.policy) and self.policy(feature, error, attempt)

    def give_up(self, feature: str, error: Exception) -> str:
        """The reason why a feature cannot be had; raises where that is no reason to go on without it."""
        if not isinstance(error, self.errors):
            raise SourceFailed(
                f"the source of {feature!r} failed: {told(error)}{self._hint(error)}"
            ) from error
        if self.policy == "raise":
            raise FeatureUnavailable(
                f"{feature!r} could not be acquired: {told(error)}; "
                "pass unavailable='route' to go on without it"
            ) from error
        return told(error)

    def _hint(self, error: Exception) -> str:
        # of a mistake in the source itself nobody wants to hear that it may be meant
        if isinstance(error, WrongAnswer | NameError | AttributeError | TypeError | ImportError):
            return ""
        return (
            f"; if {type(error).__name__} means that a feature cannot be had, pass "
            f"unavailable_on=({type(error).__name__},), or raise FeatureUnavailable"
        )


class WrongUse(InvalidParameter):
    """A driver and its source do not belong together; says nothing of the source's own errors."""


class WrongAnswer(Exception):
    """A source returned something that is no value of the feature."""


def failure_rule(unavailable: Any, unavailable_on: Any = ()) -> FailureRule:
    """The rule of a caller, checked."""
    if unavailable not in ("route", "raise") and not callable(unavailable):
        raise InvalidParameter(
            f"unavailable={unavailable!r} is unknown; take 'route', 'raise' or a function of "
            "(feature, error, attempt) that tells whether to try again"
        )
    kinds = tuple(unavailable_on) if isinstance(unavailable_on, Iterable) else (unavailable_on,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise InvalidParameter(
                f"unavailable_on has {kind!r}; it must list classes of exceptions, as (httpx.TransportError,)"
            )
    return FailureRule(unavailable, UNAVAILABLE_ERRORS + kinds)


def check_source(source: Any, form: str) -> None:
    """Refuse a source that cannot be called."""
    if callable(source):
        return
    raise InvalidParameter(f"source is a {type(source).__name__}; it must be a function {form}")


def check_timeout(timeout: Any) -> float | None:
    """Seconds above 0, or None for as long as it takes."""
    if timeout is None:
        return None
    if not isinstance(timeout, Real) or isinstance(timeout, bool) or not 0 < as_float(timeout) < math.inf:
        raise InvalidParameter(f"timeout is {timeout!r}; it must be a number of seconds above 0, or None")
    return as_float(timeout)


def check_known(known: Any) -> None:
    """Refuse what does not map features to values."""
    if not (known is None or isinstance(known, Mapping)):
        raise InvalidParameter(f"known is a {type(known).__name__}; it must map features to values")


def told(error: Exception) -> str:
    """An error in words."""
    if isinstance(error, WrongAnswer | FeatureUnavailable):
        return str(error)
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name


def drop(awaitable: Any) -> None:
    """Let go of what nobody will await."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
