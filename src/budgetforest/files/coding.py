"""Texts of a nominal column, or labels, as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from budgetforest.runtime.errors import near

WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})(\.0*)?")
"""A whole number; with a leading zero it is a name, as a zip code."""
UNSEEN = -1.0
"""The code of a text that training did not have."""
HASH_BITS = 2**52 - 1
"""Of a hash, as many as a double holds exactly."""


class Coder(dict[str | None, float]):
    """From cells to category numbers, NaN for missing ones; every distinct cell is looked at once."""

    def __init__(self, categories: Sequence[Any], missing: Sequence[str]) -> None:
        self.categories = categories
        self.missing = frozenset(missing)
        self.code = {str(category): float(place) for place, category in enumerate(categories)}

    def __missing__(self, text: str | None) -> float:
        code = math.nan if text is None or text.strip() in self.missing else self.look_up(text)
        if not code < 0:  # else memory would grow with the rows
            self[text] = code
        return code

    def look_up(self, text: str) -> float:
        """The number of a category; ``1.0`` finds 1."""
        if text in self.code:
            return self.code[text]
        return self.code.get(plain(text), UNSEEN)

    def hint(self, text: str) -> str:
        """Which categories are near."""
        return near(text, map(str, self.categories))


class LearningCoder(Coder):
    """Takes every new text as a category; the first ``most`` are kept, others are only told apart."""

    def __init__(self, missing: Sequence[str], most: float = math.inf) -> None:
        super().__init__([], missing)
        self.most = most

    @property
    def is_full(self) -> bool:
        """Whether no more categories are kept."""
        return len(self.code) >= self.most

    def look_up(self, text: str) -> float:
        """The number of a category, by first appearance; negative, from its hash, if it is not kept."""
        if self.is_full and text not in self.code:
            return UNSEEN - 1.0 - (hash(text) & HASH_BITS)
        return self.code.setdefault(text, float(len(self.code)))


def brief(text: str) -> str:
    """A cell for a message, not too long."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain(text: str) -> str:
    """A whole number as Python writes it, any other text as it is.

    >>> plain("+1.0"), plain("1.5")
    ('1', '1.5')
    """
    stripped = text.strip()
    return str(int(stripped.partition(".")[0])) if WHOLE.fullmatch(stripped) else text


def labels_of(texts: Sequence[str]) -> list[Any]:
    """Labels as whole numbers if all of them are, else as texts.

    >>> labels_of(["1", "0.0"]), labels_of(["1", "a"])
    ([1, 0], ['1', 'a'])
    """
    whole = [plain(text) for text in texts]
    if all(WHOLE.fullmatch(text) for text in whole):
        return [int(text) for text in whole]
    return list(texts)
