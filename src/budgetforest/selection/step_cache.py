"""The steps of a training can be kept, so that a training that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from budgetforest.selection.candidates import Candidate

Step: TypeAlias = Callable[[], list[Candidate]]
"""A part of a training: a pool of method "auto", or an alpha of the paper's."""
StepCache: TypeAlias = Callable[[str, Step], list[Candidate]]
"""From the name of a step and the step to its candidates: grown now, or kept from before."""


def no_cache(name: str, step: Step) -> list[Candidate]:
    """StepCache nothing."""
    return step()
