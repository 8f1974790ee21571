"""Whoever waits for threads may go at any time; they do not work on for nobody."""

import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest

from budgetforest import BudgetForestClassifier
from budgetforest.runtime.threads import leave_if_alone, number_of, threads, while_awaited
from budgetforest.selection import backend, recipes


def test_work_ends_when_nobody_waits_and_what_has_not_begun_never_does():
    begun, futures = [], []

    def work():
        begun.append(True)
        for _ in while_awaited(count()):
            time.sleep(0.001)

    def begin_and_go():
        with threads(1) as pool:
            futures.extend(pool.submit(work) for _ in range(3))
            while not begun:
                time.sleep(0.001)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_go()
    assert len(begun) == 1
    assert isinstance(futures[0].exception(), CancelledError)
    assert all(future.cancelled() for future in futures[1:])


def test_work_that_is_awaited_is_done():
    leave_if_alone()  # a thread of somebody else
    with threads(2) as pool:
        assert list(pool.map(lambda n: sum(while_awaited(range(n))), range(5))) == [0, 0, 1, 3, 6]


def test_threads_are_counted_those_of_others_are_not():
    with threads(3) as ours, ThreadPoolExecutor(3) as theirs:
        assert (number_of(ours), number_of(theirs)) == (3, 1)


@pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")
def test_a_training_that_is_stopped_leaves_its_boosting(monkeypatch):
    """Boosting without end, so that the test would hang if it went on."""
    boosted = backend.boosted_trees
    monkeypatch.setattr(
        backend, "boosted_trees", lambda *given: (tree for _ in count() for tree in [next(boosted(*given))])
    )
    monkeypatch.setattr(recipes, "islice", lambda trees, number: trees)

    def stop(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(backend.LocalBackend, "independent", stop)
    X = np.random.default_rng(0).random((200, 3))
    with pytest.raises(KeyboardInterrupt):
        BudgetForestClassifier(2, random_state=0, n_jobs=2).fit(X, X[:, 0] > X[:, 1])
