"""What can go wrong, on one screen.

BudgetForestError
├── InvalidInput            (also a ValueError)
│   ├── InvalidCosts        a price list that cannot be used
│   ├── InvalidData         rows, labels or weights that cannot be used
│   │   └── InvalidValue    a single value that a feature cannot have
│   ├── InvalidParameter    a parameter outside its rule
│   └── NotAModelFile       a file that is damaged, or is no model
│       └── NewerModelFile  a model file of a later version
├── AcquisitionError        a row ended early; what was paid for so far is in its ``known`` and ``spent``
│   ├── FeatureUnavailable  a feature cannot be had: raised by sources, and to callers if they ask for it
│   └── SourceFailed        a source raised another error, or returned what no feature can be
├── ClusterFailed           workers that cannot be used, or a scheduler that is lost
└── MissingExtra            (also an ImportError) an optional package is absent

BudgetForestWarning         (a UserWarning)
├── BudgetTooSmall          no useful tree fits the budget
├── UntrustedCache          compiled code is not kept, since others could change it
└── UnusualData             constant features, absent classes, labels that may be none, idle parameters
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class BudgetForestError(Exception):
    """Every error of this package."""


class InvalidInput(BudgetForestError, ValueError):
    """The caller's input breaks a rule; the message names the value, the rule and a hint."""


class InvalidCosts(InvalidInput):
    """A cost, group or price list that cannot be used."""


class InvalidData(InvalidInput):
    """Rows, labels or weights that cannot be used."""


class InvalidValue(InvalidData):
    """A single value that a feature cannot have; the row can be asked again."""


class InvalidParameter(InvalidInput):
    """A parameter outside its rule."""


class NotAModelFile(InvalidInput):
    """A file that holds no model, or a damaged one; the message names what is wrong."""


class NewerModelFile(NotAModelFile):
    """A model file that a later version of this package has written."""


class AcquisitionError(BudgetForestError):
    """A row ended before it was decided."""

    known: dict[str, Any]
    """The values that were paid for; of ``predict_from`` a list for all rows, None elsewhere."""
    spent: Any
    """What was paid for them; of ``predict_from`` by row."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.known, self.spent = {}, 0.0


class FeatureUnavailable(AcquisitionError):
    """A feature cannot be had. Sources raise it; callers see it under ``unavailable="raise"``."""


class SourceFailed(AcquisitionError):
    """A source raised an unexpected error (its cause), or returned what the feature cannot be."""


class ClusterFailed(BudgetForestError):
    """The workers of a cluster cannot be used, or its scheduler is lost."""


class MissingExtra(BudgetForestError, ImportError):
    """An optional package is not installed; the message names it."""


class BudgetForestWarning(UserWarning):
    """Every warning of this package."""


class BudgetTooSmall(BudgetForestWarning):
    """No useful tree fits the budget; the forest predicts the prior at no cost."""


class UntrustedCache(BudgetForestWarning):
    """Compiled code is not kept: its folder belongs to, or can be written by, somebody else."""


class UnusualData(BudgetForestWarning):
    """The data are usable but probably not what was meant."""


def warn(message: str, kind: type[Warning]) -> None:
    """Warn at the line of the caller that is not of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(_HOME) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def near(name: str, known: Iterable[str]) -> str:
    """A hint listing the known names closest to ``name``: spelt alike, else one within the other.

    >>> near("mir", ["mri", "age"])
    "did you mean 'mri'?"
    >>> near("pressure", ["age", "systolic_pressure"])
    "did you mean 'systolic_pressure'?"
    """
    names, wanted = list(known), _letters(name)
    within = (
        n for n in names if min(len(n), len(wanted)) > 2 and (wanted in _letters(n) or _letters(n) in wanted)
    )
    close = alike(name, names, 0.5 if len(wanted) < 4 else 0.65) or list(within)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close[:3]) + "?"
    shown = ", ".join(repr(n) for n in names[:5]) + (", ..." if len(names) > 5 else "")
    return f"known names: {shown}"


def alike(name: str, known: Iterable[str], least: float) -> list[str]:
    """The known names spelt like ``name``, to a share of ``least``, likeliest first.

    If some differ in case and in what stands between words alone, it is these.

    >>> alike("Blood Pressure", ["blood_pressure", "blood_pressures"], 0.7)
    ['blood_pressure']
    """
    import difflib  # not worth its time where all is well

    by_letters: dict[str, list[str]] = {}
    for other in known:
        by_letters.setdefault(_letters(other), []).append(other)
    wanted = _letters(name)
    close = [wanted] if wanted in by_letters else difflib.get_close_matches(wanted, by_letters, cutoff=least)
    return [other for letters in close for other in by_letters[letters]]


def _letters(name: str) -> str:
    """A name without what people get wrong; one of signs alone as it is."""
    return "".join(sign for sign in name.casefold() if sign.isalnum()) or name
