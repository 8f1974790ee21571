"""Values of features as a person types them."""

from __future__ import annotations

import math
import re
from typing import Any

from budgetforest.runtime.errors import InvalidValue


def kind_of(name: str, model: Any) -> str:
    """What a feature can be."""
    categories = _categories(name, model)
    if categories is None:
        reach = range_of(name, model)
        return "a number" if reach is None else f"a number, {reach[0]:g} to {reach[1]:g} in training"
    shown = [repr(c) if "," in str(c) else str(c) for c in categories[:8]]
    return ", ".join(shown) + (", ..." if len(categories) > 8 else "")


def range_of(name: str, model: Any) -> tuple[float, float] | None:
    """The least and the largest number that a feature had in training, where the model knows them."""
    reach: tuple[float, float] | None = getattr(model, "feature_ranges_", {}).get(name)
    return reach


def is_outside(value: Any, name: str, model: Any) -> bool:
    """Whether a number is none that training had, nor one between."""
    reach = range_of(name, model)
    return reach is not None and isinstance(value, float) and not reach[0] <= value <= reach[1]


def value_of(text: str, name: str, model: Any, decimal: str | None = None) -> Any:
    """What a person typed, as the feature has it; ``decimal`` is the decimal sign, if somebody says so."""
    from budgetforest.acquisition.session import UNAVAILABLE
    from budgetforest.files.coding import UNSEEN, Coder

    text, missing = text.strip(), model.forest_.schema.missing
    if text == "unknown" or text in missing:
        return UNAVAILABLE
    categories = _categories(name, model)
    if categories is not None:
        code = Coder(categories, missing)[text]
        if code == UNSEEN:
            raise InvalidValue(f"{name!r} is {text!r}; it must be one of {kind_of(name, model)}, or unknown")
        return categories[int(code)]
    pointed = _with_point(text, name, decimal)
    try:
        number = float(pointed)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValue(f"{name!r} is {text!r}; it must be a finite number, or unknown")
    return number


def _with_point(text: str, name: str, decimal: str | None) -> str:
    """A number whose decimal sign is a point, as it is where nothing else is said."""
    from budgetforest.data.costs import OTHER, both_readings, like_thousands

    if decimal is None and re.fullmatch(like_thousands(","), text):
        thousands, decimals = both_readings(text, ",")
        raise InvalidValue(
            f"{name!r} is {text!r}: is that {thousands} or {decimals}? Write one of these, or say with "
            "--decimal which sign the comma is"
        )
    return (text.replace(OTHER[decimal], "") if decimal else text).replace(",", ".")


def is_category(text: str, name: str, model: Any) -> bool:
    """Whether a word is a value of the feature, whatever else it may mean."""
    return text in map(str, _categories(name, model) or ())


def _categories(name: str, model: Any) -> tuple[Any, ...] | None:
    schema = model.forest_.schema
    found: tuple[Any, ...] | None = schema.categories[schema.names.index(name)]
    return found
