"""Pages of the documentation that are written from measured figures.

An experiment is a module with ``measure`` (quick or not; plain figures out), ``draw`` (its pictures) and ``section``
(its part of the page). Figures are kept as JSON, with what they were measured on, so that the page can be written again
without measuring.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from benchmarks import machine

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


class Page(NamedTuple):
    name: str
    """Of the file in ``docs`` and of the folder of its figures."""
    folder: str
    experiments: Mapping[str, ModuleType]
    opening: Callable[[Mapping[str, dict], Path], str]
    """From all figures and their folder to what stands above the sections."""


def run(page: Page, names: tuple[str, ...] = (), *, quick: bool = False, out: Path | None = None) -> None:
    """Measure the named experiments, or all, and write the page from all that has been measured."""
    docs, results = (out, out) if out else (ROOT / "docs", RESULTS / page.folder)
    docs.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    for name in names or page.experiments:
        figures = {"machine": machine.look(quick)} | page.experiments[name].measure(quick)
        (results / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    write(page, docs, results)


def write(page: Page, docs: Path, results: Path) -> None:
    """Pictures and the page from the figures in a folder."""
    shown = results.relative_to(ROOT) if results.is_relative_to(ROOT) else results
    files = {name: results / f"{name}.json" for name in page.experiments}
    found = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    parts = [page.opening(found, shown)]
    if any("machine" not in figures for figures in found.values()):
        parts.append(machine.UNKNOWN)
    for name, figures in found.items():
        page.experiments[name].draw(figures, docs)
        parts.append(page.experiments[name].section(figures))
        if "machine" in figures:
            parts.append(machine.note(figures["machine"]))
    (docs / f"{page.name}.md").write_text("\n".join(parts))
