"""Progress bars: for training and rows when asked for, for other long work when a person waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import TaskID

PATIENCE = 2.0
"""Seconds after which a person wants to see that something is being done."""


class ProgressCallback(Protocol):
    """Hears how far a training has come."""

    def __call__(self, what: str, done: int, total: int, now: str = "") -> None:
        """So much of it is done; ``now`` is what is being done."""


def quiet(what: str, done: int, total: int, now: str = "") -> None:
    """Hears, and says nothing."""


@contextmanager
def progress(verbose: int) -> Iterator[ProgressCallback]:
    """Yields what is to be told; a bar for everything that is told of, on stderr."""
    if verbose <= 0:
        yield quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[now]}"), console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int, now: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, now=now)
            bars.update(tasks[what], completed=done, total=total, now=now)

        yield tell


@contextmanager
def row_progress(show: bool, rows: int) -> Iterator[Callable[[int], None]]:
    """Yields ``tell(decided)``, to be called after every round; one bar for all rows, on stderr."""
    if not show:
        yield lambda decided: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task("rows decided", total=rows)
        yield lambda decided: bars.update(task, completed=decided)


@contextmanager
def late_progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields ``tell(done)``; a bar appears on stderr if it is a terminal and the work takes a while."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    bars = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bars.add_task(what, total=total)
    waited = threading.Timer(PATIENCE, bars.start)  # also if nothing is told for long
    waited.daemon = True
    waited.start()
    try:
        yield lambda done: bars.update(task, completed=done)
    finally:
        waited.cancel()
        bars.stop()
