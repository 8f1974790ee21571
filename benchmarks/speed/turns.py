"""What is compared takes turns in one process: again and again, each time in the opposite order."""

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from types import ModuleType

from benchmarks.machine import remark

REPEATS = 5
QUICK_REPEATS = 2

Sides = Mapping[str, Callable[[], object]]
"""What is compared, by title."""
Times = dict[str, dict[str, list[float]]]
"""Of every side the seconds of each turn, by the clock (``wall``) and of the processor (``cpu``)."""


def take_turns(sides: Sides, *, quick: bool, warm: bool = True, repeats: int = REPEATS) -> Times:
    """Seconds of every side. ``warm``: a first round is not counted, which compiles and fills caches."""
    found: Times = {title: {"wall": [], "cpu": []} for title in sides}
    if warm:
        for side in sides.values():
            side()
    for turn in range(QUICK_REPEATS if quick else repeats):
        for title in list(sides)[:: -1 if turn % 2 else 1]:
            wall, cpu = time.perf_counter(), time.process_time()
            sides[title]()
            found[title]["wall"].append(time.perf_counter() - wall)
            found[title]["cpu"].append(time.process_time() - cpu)
    return found


def seconds(times: Times, title: str) -> float:
    """The median of a side, by the clock."""
    return median(times[title]["wall"])


def table(times: Times, one: str, unit: str = "times ours") -> Iterator[str]:
    """Every side: median, spread, processor seconds, and how many times those of ``one``."""
    yield f"| | median s | least to most | CPU s | {unit} |"
    yield "|---" * 5 + "|"
    for title, taken in times.items():
        wall = taken["wall"]
        yield (
            f"| {title} | {_short(median(wall))} | {_short(min(wall))} to {_short(max(wall))} "
            f"| {_short(median(taken['cpu']))} | {seconds(times, title) / seconds(times, one):.2f} |"
        )


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


Criterion = tuple[str, str, bool]
"""What must hold, what was found, and whether it holds."""


def at_least(what: str, times: float, found: float) -> Criterion:
    """So many times faster, or more."""
    how = f"at least {times:g} times as fast" if times > 1 else "not slower"
    return f"{what}: {how}", f"{found:.2f}", found >= times


def at_most(what: str, times: float, found: float) -> Criterion:
    """So many times slower, or less."""
    return f"{what}: at most {times:g} times as long", f"{found:.2f}", found <= times


def criteria_of(topics: Mapping[str, ModuleType], found: Mapping[str, dict]) -> Iterator[str]:
    """A table of what must hold, from the figures of all topics, and which were not measured."""
    yield "| must hold | found | |"
    yield "|---" * 3 + "|"
    for name, topic in topics.items():
        if name not in found:
            yield f"| {name} | not measured | |"
            continue
        where = remark(found[name].get("machine"))
        for what, figure, holds in topic.criteria(found[name]):
            yield f"| {what} | {figure} | {'pass' if holds else '**fail**'}{where} |"
