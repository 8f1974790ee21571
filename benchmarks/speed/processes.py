"""Processes that are timed from start to end."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.progress import track

from benchmarks.pages import ROOT
from benchmarks.speed.turns import QUICK_REPEATS, REPEATS, Times


class Done(NamedTuple):
    output: str
    wall: float
    """Seconds by the clock, the start of the process included."""
    cpu: float
    """Seconds of the processor."""


def run(command: Sequence[str], **environment: str) -> Done:
    """Run to the end; raises with what it said if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if found.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{found.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(found.stdout, wall, cpu)


def turns_of_processes(codes: Mapping[str, str], *, quick: bool) -> Times:
    """As ``take_turns``, each side a new process that runs some code, and what it printed last as ``told``.

    The first round, which compiles, is not counted.
    """
    found: Times = {title: {"wall": [], "cpu": [], "told": []} for title in codes}
    for turn in track(range((QUICK_REPEATS if quick else REPEATS) + 1), "new processes"):
        for title in list(codes)[:: -1 if turn % 2 else 1]:
            done = run([sys.executable, "-c", codes[title]])
            if turn:
                found[title]["wall"].append(done.wall)
                found[title]["cpu"].append(done.cpu)
                found[title]["told"] += [float(line) for line in done.output.split()[-1:]]
    return found
