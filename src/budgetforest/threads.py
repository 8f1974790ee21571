"""Threads that end soon after whoever waits for them has gone: Ctrl-C does not wait for a whole training."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_here = threading.local()


@contextmanager
def threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads; after an error what has not begun never will, and what asks does not go on."""
    gone = threading.Event()
    pool = ThreadPoolExecutor(number, "budgetforest", initializer=setattr, initargs=(_here, "gone", gone))
    try:
        yield pool
    except BaseException:
        gone.set()
        raise
    finally:
        pool.shutdown(cancel_futures=gone.is_set())


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
