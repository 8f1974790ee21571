"""Is an impurity admissible? Try the five properties of section 2.2 on random class counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from budgetforest.growing.impurity import Impurity, choose, compiled, value_of
from budgetforest.runtime.arrays import Anything, Floats

SLACK = 1e-9
"""Relative rounding that is not held against an impurity."""


class Violation(NamedTuple):
    """A property that does not hold, and where."""

    property: str
    counterexample: str


@dataclass(frozen=True)
class Admissibility:
    """What was found; true when no property was violated."""

    violations: tuple[Violation, ...]
    trials: int

    def __bool__(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        if not self.violations:
            return f"no counterexample to admissibility in {self.trials} trials"
        lines = [f"{v.property}: {v.counterexample}" for v in self.violations]
        return "not admissible\n  " + "\n  ".join(lines)


def check_admissible(
    impurity: Anything, n_classes: int = 3, *, trials: int = 1000, random_state: int = 0
) -> Admissibility:
    """Try the five properties on random counts; at most one counterexample of each is kept.

    >>> print(check_admissible("gini", n_classes=2))  # doctest: +ELLIPSIS
    not admissible
      monotone: F(...
    """
    f = compiled(choose(impurity), n_classes)
    rng = np.random.default_rng(random_state)
    found: dict[str, Violation] = {}
    for _ in range(trials):
        whole = rng.integers(0, 2 ** rng.integers(1, 8), n_classes).astype(np.float64)
        part = np.floor(whole * rng.random(n_classes))
        for violation in _violations(f, whole, part, int(rng.integers(n_classes))):
            found.setdefault(violation.property, violation)
    return Admissibility(tuple(found.values()), trials)


def _violations(f: Impurity, whole: Floats, part: Floats, c: int) -> list[Violation]:
    """Which properties fail for ``part`` within ``whole`` and one more row of class ``c``."""
    one = np.zeros(len(whole))
    one[c] = 1.0
    pure = whole[c] * one
    f_whole, f_part, f_pure = value_of(f, whole), value_of(f, part), value_of(f, pure)
    more_whole = value_of(f, whole + one) - f_whole
    more_part = value_of(f, part + one) - f_part
    slack = SLACK * max(abs(f_whole), 1e-3)
    found = []
    if not f_whole >= -slack:
        found.append(Violation("non-negative", f"F({_show(whole)}) = {f_whole:g}"))
    if not abs(f_pure) <= slack:
        found.append(Violation("zero on pure sets", f"F({_show(pure)}) = {f_pure:g}"))
    if not f_whole >= f_part - slack:
        text = f"F({_show(part)}) = {f_part:g} > F({_show(whole)}) = {f_whole:g}"
        found.append(Violation("monotone", text))
    if not more_whole >= more_part - slack:
        text = (
            f"one more row of class {c} adds {more_part:g} to F({_show(part)}) "
            f"but {more_whole:g} to F({_show(whole)})"
        )
        found.append(Violation("supermodular", text))
    if _grows_too_fast(f, whole + 1):
        found.append(Violation("log F = O(log n)", f"F grows faster than any power of {_show(whole)}"))
    return found


def _grows_too_fast(f: Impurity, counts: Floats) -> bool:
    """Whether F leaves the range of doubles where no power up to the twentieth would."""
    return not math.isfinite(value_of(f, counts * 2.0**40))


def _show(counts: Floats) -> str:
    return ", ".join(f"{n:g}" for n in counts)
