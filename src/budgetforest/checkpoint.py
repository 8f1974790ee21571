"""A long training that can be killed: every step that is done is kept in a folder, and found there again.

A step is a pool of method "auto", or an alpha of the paper's. Its file is a model file without a path,
written beside and renamed, so that a kill loses the step in work and nothing else. Steps depend on nothing
but rows, parameters and seed: the resumed forest is the same as that of an undisturbed training.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from budgetforest import __version__
from budgetforest.budget import Offer
from budgetforest.errors import InvalidParameter
from budgetforest.modelfile import read_trained, write_trained
from budgetforest.train import Keep, Settings, Step, Totals, context_of
from budgetforest.trained import Trained, plain

IDLE = ("n_jobs", "verbose", "costs", "groups")
"""Parameters that do not change the forest, or that are compared as prices."""


def checkpoint(
    folder: str | os.PathLike[str],
    rows: Totals,
    validation: Totals | None,
    settings: Settings,
    parameters: dict[str, Any],
) -> Keep:
    """What keeps the steps of this training in a folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    summary = {
        "version": __version__,
        "rows": rows.rows,
        "validation_rows": 0 if validation is None else validation.rows,
        "seed": settings.seed,
        "parameters": {"fingerprint": fingerprint(rows, validation, settings, parameters)},
    }
    context = context_of(rows, settings)

    def keep(name: str, step: Step) -> list[Offer]:
        path = place / f"{name}.safetensors"
        if path.exists():
            kept, _ = read_trained(path)
            if kept.summary != summary:
                raise InvalidParameter(
                    f"checkpoint={os.fspath(folder)!r} holds another training: its rows, parameters, seed or "
                    "version differ; name an empty folder, or delete this one"
                )
            return kept.offers
        offers = step()
        nothing = Trained(
            context, offers, [], None, settings.budget, settings.answer, 1.0, False, np.nan, summary
        )
        write_trained(nothing, settings.budget, path)
        return offers

    return keep


def fingerprint(
    rows: Totals, validation: Totals | None, settings: Settings, parameters: dict[str, Any]
) -> str:
    """A hash of all that decides the forest, the order of the rows not among it."""
    told = {name: plain(value) for name, value in sorted(parameters.items()) if name not in IDLE}
    found = hashlib.sha256(json.dumps(told, sort_keys=True, default=repr).encode())
    for totals in (rows, validation):
        found.update(f"{totals.rows} {totals.mark} ".encode() if totals else b"none")
    for part in settings.costs[:3]:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()
