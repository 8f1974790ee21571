"""What a training on a cluster takes, beside one machine: one file per topic, as in ``benchmarks.speed``."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks import pages
from benchmarks.cluster import clock, constants, memory, sent
from benchmarks.speed.turns import criteria_of

TOPICS = {"sent": sent, "clock": clock, "memory": memory, "constants": constants}
HEAD = """# On a cluster, measured

Written by `python -m benchmarks cluster` from the figures in `{results}`; nothing here is typed by hand. Workers are processes of one thread on the
same machine as the client and the scheduler, which run in one more process: what Dask does itself takes its time from the same cores.
"""


def run(names: tuple[str, ...] = (), *, quick: bool = False, out: Path | None = None) -> None:
    """Measure the named topics, or all, and write the page from all that has been measured."""
    pages.run(PAGE, names, quick=quick, out=out)


def opening(found: Mapping[str, dict], results: Path) -> str:
    """What the page is, and what must hold."""
    return "\n".join([HEAD.format(results=results), *criteria_of(TOPICS, found), ""])


PAGE = pages.Page("scale", "cluster", TOPICS, opening)
