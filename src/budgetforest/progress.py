"""A progress bar for training; silent unless asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(verbose: int, max_trees: int) -> Iterator[Callable[[float, int], None]]:
    """Yields ``tell(alpha, trees)``, to be called after every tree; one bar per alpha, on stderr."""
    if verbose <= 0:
        yield lambda alpha, trees: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("alpha {task.description:>5}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[float, int] = {}

        def tell(alpha: float, trees: int) -> None:
            if alpha not in tasks:
                tasks[alpha] = bars.add_task(f"{alpha:g}", total=max_trees)
            bars.update(tasks[alpha], completed=trees)  # type: ignore[arg-type]

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
