"""How fast it is, beside the peers: one file per topic.

A topic measures (``measure``), draws (``draw``), writes its part of the page (``section``) and says what must hold
(``criteria``). What is compared takes turns in one process; ``turns`` is how.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks import pages
from benchmarks.speed import auto, counts, files, forest, growth, memory, predict, start, trees
from benchmarks.speed.turns import criteria_of

TOPICS = {
    "trees": trees,
    "forest": forest,
    "auto": auto,
    "predict": predict,
    "files": files,
    "counts": counts,
    "growth": growth,
    "memory": memory,
    "start": start,
}
HEAD = """# Speed

Written by `make bench` from the figures in `{results}`; nothing here is typed by hand. What is compared takes turns
in one process, at least five times, everything being compiled before. Seconds are medians by the clock, with the least
and the most; *CPU* are those of the processor, of all threads together.
"""


def run(names: tuple[str, ...] = (), *, quick: bool = False, out: Path | None = None) -> None:
    """Measure the named topics, or all, and write the page from all that has been measured."""
    pages.run(PAGE, names, quick=quick, out=out)


def opening(found: Mapping[str, dict], results: Path) -> str:
    """What the page is, and what must hold."""
    return "\n".join([HEAD.format(results=results), *criteria_of(TOPICS, found), ""])


PAGE = pages.Page("speed", "speed", TOPICS, opening)
