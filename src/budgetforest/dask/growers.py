"""Trees over workers, where the rows fit each: every tree, or forest of dependent trees, is a task."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from distributed import Future

from budgetforest.dask.cluster import Cluster
from budgetforest.data.rows import Rows
from budgetforest.growing.greedytree import Sample


class Growers(Executor):
    """A cluster as the pool that grows trees; rows are sent once, and workers copy them from each other."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.sent: dict[int, tuple[Sample | Rows, Future]] = {}

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future:
        """A task of the cluster."""
        there = [self._there(each) if isinstance(each, Sample | Rows) else each for each in arguments]
        return self.cluster.run(function, *there)

    def _there(self, rows: Sample | Rows) -> Future:
        if id(rows) not in self.sent:
            self.sent[id(rows)] = rows, self.cluster.hold(rows)
        return self.sent[id(rows)][1]
