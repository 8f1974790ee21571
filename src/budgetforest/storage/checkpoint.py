"""A long training that can be killed: every step that is done is kept in a folder, and found there again.

A step is a pool of method "auto", or an alpha of the paper's. Its file is a model file without a path,
written beside and renamed, so that a kill loses the step in work and nothing else. Steps depend on nothing
but rows, parameters and seed: the resumed forest is the same as that of an undisturbed training.
"""

from __future__ import annotations

import dis
import hashlib
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
    """A hash of all that decides the steps, the order of the rows not among it.

    ``refit`` adds steps of its own and changes no other.
    """
    settings = settings._replace(refit=False)
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
        for item in (getattr(value, "_fields", None), len(value), *value):
            yield from described(item, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(described(item, seen)) for item in value)
    elif isinstance(value, dict):
        yield from described(list(value.items()), seen)
    elif isinstance(value, partial):
        yield from described([value.func, value.args, value.keywords], seen)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from described([getattr(value, field.name) for field in fields(value)], seen)
    elif isinstance(value, CodeType):
        yield from described([value.co_code, value.co_consts, value.co_names, value.co_varnames], seen)
    elif hasattr(value, "py_func"):  # compiled by the user
        yield from described([value.py_func, value.targetoptions], seen)
    elif is_public(value):
        yield f"{value.__module__}.{value.__qualname__};".encode()
    elif isinstance(value, FunctionType):
        if id(value) not in seen:
            own = [value.__code__, value.__defaults__, value.__kwdefaults__, used_by(value)]
            yield from described(own, (*seen, id(value)))
    elif isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc):
        yield f"{value.__name__};".encode()
    elif value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        yield f"{value!r};".encode()
    else:
        raise InvalidParameter(
            f"a checkpoint cannot tell whether {value!r} is the same in another process; train without one, "
            "or use numbers, text, arrays and functions"
        )


def is_public(value: Any) -> bool:
    """Whether a function or class is that of a library, which its name tells."""
    home = str(getattr(value, "__module__", None)).partition(".")[0]
    return isinstance(value, FunctionType | type) and home in ("builtins", "math", "numba", "numpy")


def used_by(function: FunctionType) -> dict[str, Any]:
    """What a function uses besides its arguments: what it encloses, globals, and attributes of modules."""
    names, attributes = set[str](), set[str]()
    codes = [function.__code__]
    for code in codes:
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]  # inner functions
        for step in dis.get_instructions(code):
            (names if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else attributes).add(str(step.argval))
    enclosed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in enclosed}
    found |= {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, module in list(found.items()):
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] not in (
            "math",
            "numba",
            "numpy",
        ):
            found |= {f"{name}.{key}": getattr(module, key) for key in attributes if hasattr(module, key)}
    return dict(sorted(found.items()))
