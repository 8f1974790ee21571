"""What everything was measured on."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("budgetforest", "numpy", "numba", "scikit-learn", "lightgbm")
BUSY = 0.5
"""A load at which figures are not to be trusted."""


def measure(quick: bool) -> dict:
    """Facts, and how busy others keep it."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "versions": {"Python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        "quick": quick,
    }


def processor() -> str:
    """Its name, where the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def draw(figures: dict, docs: Path) -> None:
    """Nothing to see."""


def section(figures: dict) -> str:
    """A paragraph."""
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    text = f"Measured on {figures['cores']} cores of {figures['processor']}: {versions}."
    if figures["load"] > BUSY:
        text += f"\n\n**Others were at work on the machine (load {figures['load']:.1f}): not to be cited.**"
    if figures["quick"]:
        text += "\n\n**A quick run on few rows: a test of the suite, not of speed.**"
    return text + "\n"
