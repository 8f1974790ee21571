"""The estimator's parameters, checked: a message gives the name, the value, the rule and a hint."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from budgetforest.runtime.arrays import MAX_CODES, Anything
from budgetforest.runtime.errors import InvalidParameter

Choice = TypeVar("Choice", bound=IntEnum)


def as_float(number: Any) -> float:
    """A number as a float; infinite if it is too large for one.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def positive_budget(budget: Anything) -> float:
    """The allowed mean cost; None is no limit."""
    if budget is None:
        return math.inf
    if not isinstance(budget, Real) or isinstance(budget, bool) or not as_float(budget) > 0:
        raise InvalidParameter(f"budget is {budget!r}; it must be a positive number, or None for no limit")
    return as_float(budget)


def some_budget(budget: Anything) -> float:
    """A budget that may be 0: nothing is paid then."""
    return 0.0 if isinstance(budget, Real) and budget == 0 else positive_budget(budget)


def whole(name: str, value: Anything, low: int, high: int | None = None) -> int:
    """A whole number within its limits."""
    rule = f"from {low} to {high}" if high else f"{low} or more"
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or value < low or (high is not None and value > high):
        raise InvalidParameter(f"{name} is {value!r}; it must be a whole number, {rule}")
    return int(value)


def bins(value: Anything) -> int:
    """Bins of a column: codes are one byte."""
    return whole("max_bins", value, 2, MAX_CODES)


def share(name: str, value: Anything) -> float:
    """A fraction strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < as_float(value) < 1:
        raise InvalidParameter(f"{name} is {value!r}; it must lie between 0 and 1")
    return as_float(value)


def one_of(name: str, value: Anything, choices: Iterable[Choice]) -> Choice:
    """The choice that a name stands for."""
    names = {choice.name.lower(): choice for choice in choices}
    if not isinstance(value, str) or value not in names:
        raise InvalidParameter(f"{name}={value!r} is unknown; take one of {', '.join(names)}")
    return names[value]


def is_auto(method: Anything) -> bool:
    """Whether the best method is looked for, instead of the paper's."""
    if method not in ("auto", "paper"):
        raise InvalidParameter(f"method={method!r} is unknown; take 'auto' or 'paper'")
    return bool(method == "auto")


def disagreement(value: Anything) -> float | None:
    """How often labels may differ from the full forest's; None for no rule."""
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= as_float(value) < 1:
        raise InvalidParameter(f"max_disagreement is {value!r}; it must lie in [0, 1), or be None")
    return as_float(value)


def rate(value: Anything) -> float | None:
    """What a unit of cost is worth; None: to be found for every pool."""
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= as_float(value) < math.inf:
        raise InvalidParameter(f"rate is {value!r}; it must be a finite number, zero or more, or None")
    return as_float(value)


def part(name: str, value: Anything) -> float | None:
    """A share above 0, at most all of it; None: to be chosen."""
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < as_float(value) <= 1:
        raise InvalidParameter(f"{name} is {value!r}; it must lie in (0, 1], or be None")
    return as_float(value)


def flag(name: str, value: Anything) -> bool:
    """True or false."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def is_expected(criterion: Anything) -> bool:
    """Whether splits are judged by the mean of their children instead of the worst."""
    if criterion not in ("minimax", "expected"):
        raise InvalidParameter(f"criterion={criterion!r} is unknown; take 'minimax' or 'expected'")
    return bool(criterion == "expected")
