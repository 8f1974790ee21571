"""The one way to compile: ``@kernel``.

Kernels are plain functions of numbers, arrays and NamedTuples of arrays; they trust their input and
never raise. numba names its cache entries after the file of the function alone and would serve stale
code after an edit in *another* file of the package, so the cache folder carries a hash of the whole
source. Cache files are pickles: the folder is the user's own, and without one nothing is cached.
"""

from __future__ import annotations

import copyreg
import ctypes
import functools
import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import carray, cfunc, types
from numba.core.ccallback import CFunc

from budgetforest.runtime.errors import UntrustedCache

Function = TypeVar("Function", bound=Callable[..., Any])


def _source_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str | None:
    """A writable folder for compiled kernels that is the user's alone, or None."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".cache"
        # links are followed once: whoever can change one later changes nothing
        folder = Path(os.path.realpath(root / "budgetforest" / _source_hash()))
        for place in reversed((folder, *folder.parents)):
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
        if problem := _not_private(folder):
            warnings.warn(
                f"compiled code is not kept: {problem}, and who can change it can run any command as "
                "you. Every process compiles anew; name a folder of your own in NUMBA_CACHE_DIR",
                UntrustedCache,
                stacklevel=2,
            )
            return None
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, RuntimeError):
        return None


def _not_private(folder: Path) -> str | None:
    """Why others could put files into a folder, None if they cannot.

    It and all above it are this user's or the system's, and nobody else may write there, or rename what
    others own (as in /tmp, which is sticky).
    """
    if os.name != "posix":
        return None
    for place in (folder, *folder.parents):
        found = place.lstat()
        shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if found.st_uid not in (os.getuid(), 0) or (place == folder and found.st_uid != os.getuid()):
            return f"{str(place)!r} belongs to another user"
        if shared and (place == folder or not found.st_mode & stat.S_ISVTX):
            return f"{str(place)!r} can be written by other users"
    os.chmod(folder, 0o700)
    return None


CACHE_FOLDER = _cache_folder()


def kernel(function: Function) -> Function:
    """Compile a function on first call, once per machine; releases the GIL.

    With ``NUMBA_DISABLE_JIT=1`` it stays plain Python, for debuggers and coverage.
    """
    if numba.config.DISABLE_JIT:
        wrapped: Function = np.errstate(over="ignore", divide="ignore")(function)
        return wrapped
    return _compiled(function)


def inner(function: Function) -> Function:
    """A kernel for kernels: it owns no memory, so numba need not count references to arrays.

    Counting them (atomically, for every field taken from a tuple) took half of the time of growing.
    Such a function allocates nothing and cannot be called from Python.
    """
    if numba.config.DISABLE_JIT:
        return kernel(function)
    return _compiled(function, _nrt=False, no_cpython_wrapper=True)


def inlined(function: Function) -> Function:
    """An inner kernel that becomes part of its callers, so that they need not hand it their arrays."""
    if numba.config.DISABLE_JIT:
        return kernel(function)
    return _compiled(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)


def passage(function: Function) -> Function:
    """A passage of its only caller with a name of its own: it is compiled as if it stood there.

    Compiled apart, a function that takes whole workspaces costs .3 to .5 s, since each of their arrays
    becomes seven arguments.
    """
    if numba.config.DISABLE_JIT:
        return kernel(function)
    return _compiled(function, no_cpython_wrapper=True, inline="always")


def _compiled(function: Function, **options: Any) -> Function:
    compiled: Function = _in_cache_folder(
        lambda cache: numba.njit(
            cache=cache, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
        )(function)
    )
    return compiled


def _in_cache_folder(compile_with: Callable[[bool], Any]) -> Any:
    """Decorate while numba's own setting points to our folder: it is read at decoration."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE_FOLDER or before
    try:
        return compile_with(CACHE_FOLDER is not None)
    finally:
        numba.config.CACHE_DIR = before


_DOUBLE_ARRAY = types.CPointer(types.float64), types.intp
_CALLBACK = types.float64(*_DOUBLE_ARRAY, *_DOUBLE_ARRAY)
_DOUBLES = ctypes.POINTER(ctypes.c_double)


array_at = (lambda array, shape: array) if numba.config.DISABLE_JIT else carray
"""The array at an address, for callbacks; without the compiler they are given arrays."""


def counts_callback(function: Callable[..., float]) -> Any:
    """A user's function of the class counts as an argument that kernels take without recompiling.

    A C callback is passed by address, so one compiled kernel serves every function.
    """
    if numba.config.DISABLE_JIT:
        return _PlainCallback(lambda counts, *rest: function(counts))
    inner = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)

    def callback(counts, k, params, n_params):  # type: ignore[no-untyped-def]  # pragma: no cover
        return inner(array_at(counts, (k,)))

    compiled = cfunc(_CALLBACK)(callback)
    compiled.made = counts_callback, function
    return compiled


@functools.cache
def own_callback(function: Callable[..., float]) -> Any:
    """The same of a function in this package that takes addresses and lengths of counts and parameters."""
    if numba.config.DISABLE_JIT:
        return _PlainCallback(function)
    compiled = _in_cache_folder(lambda cache: cfunc(_CALLBACK, cache=cache, error_model="numpy")(function))
    compiled.made = own_callback, function
    return compiled


def _sent(callback: CFunc) -> tuple[Callable[..., Any], tuple[Any]]:
    """Callbacks go to other processes as the functions they were compiled from."""
    made, function = callback.made  # type: ignore[attr-defined]
    return made, (function,)


copyreg.pickle(CFunc, _sent)


class _PlainCallback:
    """The same without the compiler."""

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __call__(self, counts: Any, k: int, params: Any, n_params: int) -> float:
        given = ((counts, k), (params, n_params))
        arrays = [np.ctypeslib.as_array(each.data_as(_DOUBLES), (size,)) for each, size in given]
        return float(self.function(arrays[0], k, arrays[1], n_params))
