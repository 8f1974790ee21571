"""A long training that can be killed: every step that is done is kept in a folder, and found there again.

A step is a pool of method "auto", or an alpha of the paper's. Its file is a model file without a path,
written beside and renamed, so that a kill loses the step in work and nothing else. Steps depend on nothing
but rows, parameters and seed: the resumed forest is the same as that of an undisturbed training.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from budgetforest import __version__
from budgetforest.data.rows import Totals
from budgetforest.runtime.errors import InvalidParameter
from budgetforest.selection.candidates import Candidate
from budgetforest.selection.result import TrainingResult
from budgetforest.selection.settings import Settings, context_of
from budgetforest.selection.step_cache import Step, StepCache, no_cache
from budgetforest.storage.modelfile import read_result, write_result


def cache_in(
    folder: str | os.PathLike[str] | None, rows: Totals, validation: Totals | None, settings: Settings
) -> StepCache:
    """What keeps the steps of this training in a folder, if there is one."""
    if folder is None:
        return no_cache
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    summary = {
        "version": __version__,
        "rows": rows.rows,
        "validation_rows": 0 if validation is None else validation.rows,
        "seed": settings.seed,
        "parameters": {"fingerprint": fingerprint(rows, validation, settings)},
    }
    context = context_of(rows, settings)

    def cached(name: str, step: Step) -> list[Candidate]:
        path = place / f"{name}.safetensors"
        if path.exists():
            kept, _ = read_result(path)
            if kept.summary != summary:
                raise InvalidParameter(
                    f"checkpoint={os.fspath(folder)!r} holds another training: its rows, parameters, seed or "
                    "version differ; name an empty folder, or delete this one"
                )
            return kept.candidates
        candidates = step()
        nothing = TrainingResult(
            context, candidates, [], None, settings.budget, settings.answer, 1.0, False, np.nan, summary
        )
        write_result(nothing, settings.budget, path)
        return candidates

    return cached


def fingerprint(rows: Totals, validation: Totals | None, settings: Settings) -> str:
    """A hash of all that decides the forest, the order of the rows not among it."""
    marks = [(totals.rows, totals.mark) if totals else None for totals in (rows, validation)]
    found = hashlib.sha256()
    for part in described((marks, settings)):
        found.update(part)
    return found.hexdigest()


def described(value: Any, seen: tuple[int, ...] = ()) -> Iterator[bytes]:
    """The whole of a value as bytes that tell it from every other, in this process and the next.

    Functions are told by their code, and by what else it uses; ``seen`` are those it is used by.
    """
    yield type(value).__name__.encode() + b":"
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list | tuple):
        for item in (len(value), *value):
            yield from described(item, seen)
    elif isinstance(value, partial):
        yield from described([value.func, value.args, sorted(value.keywords.items())], seen)
    elif is_dataclass(value):
        yield from described([getattr(value, field.name) for field in fields(value)], seen)
    elif isinstance(value, CodeType):
        yield from described([value.co_code, value.co_consts, value.co_names, value.co_varnames], seen)
    elif hasattr(value, "py_func"):  # compiled by the user
        yield from described(value.py_func, seen)
    elif isinstance(value, FunctionType):
        if id(value) not in seen:
            yield from described([value.__code__, value.__defaults__, used_by(value)], (*seen, id(value)))
    elif isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc | type):
        yield f"{value.__name__};".encode()
    elif value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        yield f"{value!r};".encode()
    else:
        raise InvalidParameter(
            f"a checkpoint cannot tell whether {value!r} is the same in another process; train without one, "
            "or use numbers, text, arrays and functions"
        )


def used_by(function: FunctionType) -> list[tuple[str, Any]]:
    """What a function uses besides its arguments: what it encloses, and globals."""
    enclosed = inspect.getclosurevars(function)
    return sorted({**enclosed.globals, **enclosed.nonlocals}.items())
