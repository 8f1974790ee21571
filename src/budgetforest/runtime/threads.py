"""Threads that end soon after whoever waits for them has gone: Ctrl-C does not wait for a whole training."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_here = threading.local()


class Threads(ThreadPoolExecutor):
    """So many threads, which can learn that nobody waits for them."""

    def __init__(self, number: int) -> None:
        self.number, self.gone = number, threading.Event()
        super().__init__(number, "budgetforest", setattr, (_here, "gone", self.gone))


@contextmanager
def threads(number: int) -> Iterator[Threads]:
    """Threads; after an error what has not begun never will, and what asks does not go on."""
    pool = Threads(number)
    try:
        yield pool
    except BaseException:
        pool.gone.set()
        raise
    finally:
        pool.shutdown(cancel_futures=pool.gone.is_set())


def number_of(pool: Executor) -> int:
    """How many threads of ours do the work of a pool."""
    return pool.number if isinstance(pool, Threads) else 1


def leave_if_alone() -> None:
    """End the work of this thread if nobody waits for it any more."""
    gone: threading.Event | None = getattr(_here, "gone", None)
    if gone is not None and gone.is_set():
        raise CancelledError


def while_awaited(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, as long as somebody waits for them."""
    for item in items:
        leave_if_alone()
        yield item
