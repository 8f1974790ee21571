"""Jobs that do not depend on each other, on all cores: each in a process of its own, with one thread."""

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from budgetforest import BudgetForestWarning


@contextmanager
def workers(*, quick: bool) -> Iterator[Executor]:
    """Processes; for a quick run, which is over before they have started, one thread. No job outlives a failure."""
    pool = ThreadPoolExecutor(1) if quick else _processes()
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _processes() -> Executor:
    # forked threads would wait for locks that nobody holds
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn"), _prepare)


def _prepare() -> None:
    warnings.simplefilter("ignore", BudgetForestWarning)  # a constant column is no news here
    os.environ["TTY_COMPATIBLE"] = "0"  # bars are those of the main process
    threadpool_limits(1)
