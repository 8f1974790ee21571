"""What a bulk source returns, matched with the rows that it was asked for."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from budgetforest.acquisition.failures import WrongAnswer, WrongUse, drop
from budgetforest.acquisition.session import UNAVAILABLE, number_of
from budgetforest.runtime.arrays import Flags, Floats
from budgetforest.runtime.errors import FeatureUnavailable, InvalidValue
from budgetforest.trees.forest import Forest

Values: TypeAlias = Sequence[Any] | Mapping[Any, Any]
"""A value for each row in order, None where there is none; or by row, as a mapping or an indexed series."""
Source: TypeAlias = Callable[[str, Sequence[Any]], Values | Awaitable[Values]]
"""``source(feature, rows) -> values``."""


def fill(
    forest: Forest, source: Source, j: int, who: Sequence[Any], values: Floats, had: Flags
) -> Exception | None:
    """Ask once for the rows without a value; the last thing that went wrong, None if nothing did."""
    name = forest.schema.names[j]
    missing = np.flatnonzero(~had).tolist()
    try:
        given = source(name, [who[i] for i in missing])
        if inspect.isawaitable(given):
            drop(given)
            raise WrongUse("the source is asynchronous; use predict_from_async")
        found = in_order(given, [who[i] for i in missing])
    except Exception as error:
        return error
    wrong: Exception | None = None
    for i, value in zip(missing, found, strict=True):
        if value is None or value is UNAVAILABLE:
            wrong = wrong or FeatureUnavailable(f"the source has no value for {who[i]!r}")
            continue
        try:
            values[i] = number_of(forest, j, value)
            had[i] = True
        except InvalidValue as error:
            # a mistake is worse than a value that cannot be had
            wrong = wrong if isinstance(wrong, WrongAnswer) else WrongAnswer(f"for {who[i]!r}, {error}")
    return wrong


def in_order(given: Any, asked: Sequence[Any]) -> list[Any]:
    """The values in the order of the rows asked for; those that carry keys or an index are matched by it."""
    if isinstance(given, Mapping):
        return _by_key(list(given.keys()), list(given.values()), asked)
    if hasattr(given, "columns"):
        raise WrongAnswer("it returned a dataframe; it must return a value for each row: a column of it")
    if isinstance(given, Set):
        raise WrongAnswer(f"it returned a {type(given).__name__}, which has no order; it must return a list")
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise WrongAnswer(f"it returned {given!r}; it must return a value for each row")
    if len(shape := getattr(given, "shape", (0,))) != 1:
        raise WrongAnswer(f"it returned an array of shape {shape}; it must have one dimension")
    index, values = getattr(given, "index", None), list(given)
    # lists have a method of that name
    if index is not None and not callable(index):
        return _by_key(list(index), values, asked)
    if len(values) != len(asked):
        raise WrongAnswer(f"it returned {len(values)} values for {len(asked)} rows")
    return values


def _by_key(keys: list[Any], values: list[Any], asked: Sequence[Any]) -> list[Any]:
    """Values by key; None for rows that have none."""
    if len(keys) == len(asked) and all(a is b or a == b for a, b in zip(keys, asked, strict=True)):
        return values
    try:
        by_key, wanted = dict(zip(keys, values, strict=True)), set(asked)
    except TypeError:
        raise WrongAnswer(
            "it returned values by key, and these rows cannot be keys; return a list in their order"
        ) from None
    if len(by_key) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise WrongAnswer(f"it returned more than one value for {twice!r}")
    if strange := [key for key in keys if key not in wanted]:
        raise WrongAnswer(
            f"it returned a value for {strange[0]!r}, which was not asked for; index the values by the rows "
            "that were, or return an array in their order"
        )
    return [by_key.get(row) for row in asked]
