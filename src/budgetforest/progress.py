"""A progress bar for training; silent unless asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(verbose: int, max_trees: int) -> Iterator[Callable[[float, int], None]]:
    """Yields ``tell(alpha, trees)``, to be called after every tree; one bar per alpha, on stderr."""
    if not verbose:
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
