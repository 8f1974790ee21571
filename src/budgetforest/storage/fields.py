"""What a JSON document can hold; and entries of one that somebody else wrote, checked as they are taken."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from budgetforest.data.table import Schema
from budgetforest.runtime.errors import InvalidData, NotAModelFile


def refuse_unless(sound: Any, problem: str) -> None:
    """Refuse a file that breaks a rule."""
    if not sound:
        raise NotAModelFile(problem)


def is_text(value: Any) -> bool:
    """Whether something is text that can be written: half of a surrogate pair cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def is_label(value: Any) -> bool:
    """Whether a class or a category can be stored."""
    if isinstance(value, bool) or is_text(value):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def storable(values: Sequence[Any], what: str) -> list[Any]:
    """Labels or categories as JSON has them."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in plain:
        if not is_label(value):
            raise InvalidData(
                f"{what} contain {value!r}, a {type(value).__name__}; a model file holds text, booleans, "
                "64-bit integers and finite floats: turn the others into text before training"
            )
    return plain


def storable_categories(schema: Schema) -> list[list[Any] | None]:
    """The categories of every feature, None for numeric ones."""
    return [
        None if kinds is None else storable(kinds, f"categories of {name!r}")
        for name, kinds in zip(schema.names, schema.categories, strict=True)
    ]


class Entries:
    """A JSON object; ``where`` it stands is for messages."""

    def __init__(self, values: dict[str, Any], where: str = "its document") -> None:
        self.values, self.where = values, where

    def __getitem__(self, name: str) -> Any:
        refuse_unless(name in self.values, f"{self.where} has no {name!r}")
        return self.values[name]

    def checked(self, name: str, sound: bool, rule: str) -> Any:
        """An entry, if what was found out about it is true."""
        value = self[name]
        refuse_unless(sound, f"{name!r} in {self.where} is {reprlib.repr(value)}; it must be {rule}")
        return value

    def number(self, name: str, least: float = 0.0) -> float:
        """A finite number."""
        value = self[name]
        fits = type(value) in (int, float) and abs(value) < 2**1000 and value >= least
        return float(self.checked(name, fits, f"a finite number, {least:g} or more"))

    def positive(self, name: str) -> float:
        """A finite number above zero."""
        value = self.number(name)
        self.checked(name, value > 0, "positive")
        return value

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number of 31 bits."""
        value = self[name]
        fits = type(value) is int and least <= value < 2**31
        return int(self.checked(name, fits, f"a whole number, {least} or more"))

    def budget(self, name: str) -> float:
        """A positive number; null is no limit."""
        return math.inf if self[name] is None else self.positive(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        return bool(self.checked(name, isinstance(self[name], bool), "true or false"))

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """One of some words."""
        return str(self.checked(name, self[name] in choices, f"one of {', '.join(choices)}"))

    def mapping(self, name: str) -> dict[str, Any]:
        """Any object."""
        return dict(self.checked(name, isinstance(self[name], dict), "an object"))

    def listed(self, name: str) -> list[Any]:
        """Any list."""
        return list(self.checked(name, isinstance(self[name], list), "a list"))

    def objects(self, name: str) -> list[Entries]:
        """A list of objects."""
        entries = self.listed(name)
        self.checked(name, all(isinstance(entry, dict) for entry in entries), "a list of objects")
        return [Entries(entry, f"{name} {at}") for at, entry in enumerate(entries)]

    def text(self, name: str) -> str:
        """A text."""
        return str(self.checked(name, is_text(self[name]), "text"))

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        entries = self.listed(name)
        return list(self.checked(name, all(map(is_text, entries)), "a list of texts"))

    def numbers(self, name: str) -> list[float]:
        """A list of finite numbers, zero or more."""
        fits = all(type(each) in (int, float) and 0 <= each < 2**1000 for each in self.listed(name))
        return [float(each) for each in self.checked(name, fits, "a list of finite numbers, 0 or more")]

    def labels(self, name: str) -> tuple[Any, ...]:
        """Distinct classes or categories."""
        entries = self.listed(name)
        fits = all(map(is_label, entries)) and len(set(entries)) == len(entries)
        return tuple(self.checked(name, fits, "a list of distinct texts, booleans or finite numbers"))
