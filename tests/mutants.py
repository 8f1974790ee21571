"""Do the tests notice? Make plausible mistakes in the source, one at a time, and see whether a test fails.

    python tests/mutants.py [WORD ...]

The mistakes are listed in ``mutants.toml``; words choose those whose name or file has one of them. Each is
made in a temporary copy of the repository, and its related tests are run there. Exit code 1: fewer than 95 %
were noticed. Exit code 2: nothing can be said, since the source has changed or tests fail without a mistake.

This file is also a plugin of the tests that it runs (``pytest -p mutants``): a mistake in a file without
compiled code would compile the whole package anew, since the folder of compiled code is named by all sources.
The plugin names a copy of the folder that belongs to the repository instead.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
ENOUGH = 0.95
"""Share of mistakes that must be noticed."""
PATIENCE = 600
"""Seconds after which tests hang; a mistake that makes them hang is noticed."""
COMPILED = re.compile(r"^@(kernel|inner|inlined|passage)\b", re.MULTILINE)
KERNELS, COPY_OF = "MUTANTS_KERNELS", "MUTANTS_COPY_OF"
"""Tell the plugin where compiled code is, and which repository it belongs to."""


class Mutant(NamedTuple):
    """One mistake."""

    name: str
    """What would go wrong."""
    file: str
    """Below ``src/budgetforest``."""
    before: str
    after: str
    tests: list[str]
    """Below ``tests``: files, or single tests as ``file.py::name``."""
    plain: bool = False
    """Whether the tests run without the compiler: of kernels, that is faster."""
    equivalent: str = ""
    """Why no test can notice it; such a mistake is neither made nor counted."""

    def path_in(self, root: Path) -> Path:
        return root / "src" / "budgetforest" / self.file


class Outcome(NamedTuple):
    """What the tests said."""

    noticed: bool
    by: str
    """The test that failed."""
    seconds: float


class NothingCanBeSaid(Exception):
    """The list or the tests are at fault."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Make mistakes in the source and see whether a test fails.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only those with it in their name or file")
    words = [word.lower() for word in parser.parse_args().words]
    try:
        mutants = mutants_of(LIST, ROOT)
        chosen = [m for m in mutants if not words or any(w in f"{m.name} {m.file}".lower() for w in words)]
        if not chosen:
            raise NothingCanBeSaid(f"no mutant has {' or '.join(words)} in its name or file")
        return judged([m for m in chosen if not m.equivalent])
    except NothingCanBeSaid as problem:
        print(problem, file=sys.stderr)
        return 2


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """The mutants of a list, all of which can be made in this repository."""
    mutants = [Mutant(**entry) for entry in tomllib.loads(path.read_text())["mutant"]]
    problems = [f"{m.name!r}: {problem}" for m in mutants if (problem := problem_of(m, root))]
    names = [m.name for m in mutants]
    problems += [f"{name!r}: another one has this name" for name in {n for n in names if names.count(n) > 1}]
    if problems:
        raise NothingCanBeSaid("\n".join([f"{path.name} does not fit the source:", *problems]))
    return mutants


def problem_of(mutant: Mutant, root: Path) -> str | None:
    """Why a mutant cannot be made, None if it can."""
    if not mutant.path_in(root).is_file():
        return f"there is no {mutant.file}"
    source = mutant.path_in(root).read_text()
    if (found := source.count(mutant.before)) != 1:
        return f"its text before is found {found} times in {mutant.file}, not once"
    if mutant.before == mutant.after:
        return "it changes nothing"
    try:
        compile(mutated(mutant, source), mutant.file, "exec")
    except SyntaxError as error:
        return f"it is no Python: {error}"
    return None


def mutated(mutant: Mutant, source: str) -> str:
    return source.replace(mutant.before, mutant.after)


def judged(mutants: Sequence[Mutant]) -> int:
    """Make every mutant in turn; the exit code."""
    survivors: list[str] = []
    with a_copy(ROOT) as copy:
        for plain in (False, True):
            tests = sorted({test for m in mutants if m.plain == plain for test in m.tests})
            if tests:
                print(
                    f"{len(tests)} files or tests without a mutant{of_plain(plain)} ... ", end="", flush=True
                )
                outcome = run(copy, tests, plain, shares_kernels=True)
                if outcome.noticed:
                    raise NothingCanBeSaid(f"{outcome.by} fails without any mutant; mend that first")
                print(f"pass, {outcome.seconds:.0f} s")
        for place, mutant in enumerate(mutants, 1):
            print(
                f"{place:3} of {len(mutants)}  {mutant.name}{of_plain(mutant.plain)} ... ", end="", flush=True
            )
            with made(mutant, copy) as shares_kernels:
                outcome = run(copy, mutant.tests, mutant.plain, shares_kernels)
            print(
                f"noticed by {outcome.by}" if outcome.noticed else "SURVIVES",
                f"{outcome.seconds:.0f} s",
                sep=", ",
            )
            if not outcome.noticed:
                survivors.append(f"  {mutant.name} ({mutant.file}; {', '.join(mutant.tests)})")
    if survivors:
        print("No test notices:", *survivors, sep="\n")
    noticed = len(mutants) - len(survivors)
    print(f"{noticed} of {len(mutants)} noticed")
    return int(noticed < ENOUGH * len(mutants))


def of_plain(plain: bool) -> str:
    return ", not compiled" if plain else ""


@contextmanager
def a_copy(root: Path) -> Iterator[Path]:
    """A temporary copy of what git knows, or would add; what is compiled of it lies beside."""
    listed = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder).resolve() / "copy"
        for name in filter(None, names):
            if (root / name).is_file():  # a deleted file is still listed
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                # with its time, by which numba tells whether compiled code is of this file
                shutil.copy2(root / name, copy / name)
        if (compiled := compiled_code(root)) is not None:
            shutil.copytree(compiled, copy.parent / "kernels")
        yield copy


def compiled_code(root: Path) -> Path | None:
    """Where the compiled code of a repository is, if there is any."""
    command = [
        sys.executable,
        "-c",
        "from budgetforest.runtime.jit import CACHE_FOLDER; print(CACHE_FOLDER or '')",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=paths(root))
    return Path(folder) if (folder := told.stdout.strip()) else None


def paths(root: Path) -> dict[str, str]:
    """The environment in which a repository's own package is imported."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(root / part) for part in ("src", "", "tests"))}


@contextmanager
def made(mutant: Mutant, copy: Path) -> Iterator[bool]:
    """A mutant in the copy; whether the compiled code of the repository is also that of the mutant."""
    path = mutant.path_in(copy)
    source, found = path.read_text(), path.stat()
    path.write_text(mutated(mutant, source))
    try:
        yield not COMPILED.search(source)
    finally:
        path.write_text(source)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def run(copy: Path, tests: Sequence[str], plain: bool, shares_kernels: bool) -> Outcome:
    """Run some tests of the copy until one fails."""
    own = {"NUMBA_CACHE_DIR": str(copy.parent / "own"), "PYTHONDONTWRITEBYTECODE": "1"}
    if plain:
        own |= {"NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_EXAMPLES": "10"}
    elif shares_kernels:
        own |= {KERNELS: str(copy.parent / "kernels"), COPY_OF: str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutants"]
    # drawn examples are the same in every run, and so is what is noticed
    command += ["--hypothesis-seed=0", "--tb=short", *(f"tests/{test}" for test in tests)]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=copy, env=paths(copy) | own, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return Outcome(True, f"tests that hang for {PATIENCE} s", time.monotonic() - begin)
    finally:
        shutil.rmtree(copy.parent / "own", ignore_errors=True)
    if done.returncode not in (0, 1):  # 0: all pass, 1: one fails
        raise NothingCanBeSaid(f"the tests could not be run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", done.stdout, re.MULTILINE)
    return Outcome(done.returncode == 1, failed.group(1) if failed else "a test", time.monotonic() - begin)


def pytest_load_initial_conftests() -> None:
    """As a plugin, before anything is compiled: take compiled code from where the runner says."""
    folder, root = os.environ.get(KERNELS), os.environ.get(COPY_OF)
    if not folder or not root:
        return
    from numba.core import caching

    from budgetforest.runtime import jit

    jit.CACHE_FOLDER = folder
    # numba finds entries by the path of their source: that in the repository, not that in the copy
    named, copy = caching._CacheLocator.get_suitable_cache_subpath, str(Path.cwd())
    moved = staticmethod(lambda path: named(path.replace(copy, root, 1)))
    caching._CacheLocator.get_suitable_cache_subpath = moved


if __name__ == "__main__":
    sys.exit(main())
