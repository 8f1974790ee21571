"""Processes that are timed from start to end."""

import os
import resource
import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.pages import ROOT


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
