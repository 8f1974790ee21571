"""When and on what something was measured, and how busy others kept it."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

PACKAGES = ("budgetforest", "numpy", "numba", "scikit-learn", "lightgbm")
BUSY = 0.25
"""Cores that others keep busy, from which on figures are not to be trusted."""
LOOK = 2.0
"""Seconds to look on, doing nothing."""


def look(quick: bool) -> dict:
    """The facts before a measurement begins."""
    return {
        "day": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "busy": busy_cores(),
        "versions": {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "quick": quick,
    }


def busy_cores() -> float:
    """What others use while this process sleeps; a load average would count what it did itself before."""
    return psutil.cpu_percent(LOOK) / 100 * os.cpu_count()


def processor() -> str:
    """Its name, where the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def remark(facts: dict | None) -> str:
    """What to bear in mind of a verdict."""
    if facts is None:
        return ", machine not noted"
    return "" if facts["busy"] <= BUSY else ", on a busy machine"


UNKNOWN = "Sections without a line about the machine were measured before such lines were kept.\n"


def note(facts: dict) -> str:
    """A line below what was measured."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    text = f"*{facts['day']}, {facts['cores']} cores of {facts['processor']}: {versions}.*\n"
    if facts["busy"] > BUSY:
        text += f"\n**Others kept {facts['busy']:.1f} cores busy when this began: not to be cited.**\n"
    if facts["quick"]:
        text += "\n**A quick run on few rows: a test of the suite, not of speed.**\n"
    return text
