"""A progress bar for training; silent unless asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(verbose: int, max_trees: int) -> Iterator[Callable[[str, int], None]]:
    """Yields ``tell(what, trees)``, to be called after every tree; one bar per forest, on stderr."""
    if verbose <= 0:
        yield lambda what, trees: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<30}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, int] = {}

        def tell(what: str, trees: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=max_trees)
            bars.update(tasks[what], completed=trees)  # type: ignore[arg-type]

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
