"""The cluster: tasks, sums over blocks, and what can go wrong there.

What is on the workers is made by tasks from other tasks: what a lost worker held, Dask computes again from
where it came; what came from the client, the scheduler keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from budgetforest.runtime.errors import ClusterFailed, InvalidParameter, MissingExtra

try:
    import dask
    from distributed import Client, Future, get_client
    from distributed.client import ClosedClientError, FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker
    from distributed.system import MEMORY_LIMIT
except ImportError as error:
    raise MissingExtra(
        f'{error.name} is missing, which training on a cluster needs: pip install "budgetforest[dask]"'
    ) from error

SUMMED = 4
"""Blocks whose numbers are added up by one task."""

SAME = ("budgetforest", "numba", "numpy")
"""Packages whose versions decide forests."""


class Cluster:
    """A client, and the tasks that one training has on its cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.tasks: WeakSet[Future] = WeakSet()

    @property
    def n_threads(self) -> int:
        """How many tasks run at a time."""
        return max(1, sum(map(int, self.client.nthreads().values())))

    @property
    def n_workers(self) -> int:
        """How many processes there are."""
        return max(1, len(self.client.nthreads()))

    @property
    def least_memory(self) -> float:
        """Bytes of the smallest machine, the client's counted in."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return float(min([MEMORY_LIMIT, *(worker["memory_limit"] or MEMORY_LIMIT for worker in workers)]))

    def run(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """A task; futures among the arguments are what they will hold."""
        future = self.client.submit(function, *arguments, pure=False)
        self.tasks.add(future)
        return future

    def hold(self, value: Any) -> Future:
        """A value on the cluster, sent once on purpose, so that Dask need not warn of its size."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.run(itself, value)

    def computed(self, parts: Sequence[Any]) -> list[Future]:
        """The blocks of a collection, computed."""
        futures: list[Future] = self.client.compute(parts)
        self.tasks.update(futures)
        return futures

    def each(self, function: Callable[..., Any], blocks: Sequence[Any], *arguments: Any) -> list[Future]:
        """A task for every block, all in one message; lists among the arguments have an entry for each."""
        parts = (part if isinstance(part, list) else [part] * len(blocks) for part in arguments)
        futures: list[Future] = self.client.map(function, blocks, *parts, pure=False)
        self.tasks.update(futures)
        return futures

    def total(self, add: Callable[[Any], Any], blocks: Sequence[Future]) -> Future:
        """The sum of all blocks, a few at a time; ``add`` takes a list."""
        while len(blocks) > 1:
            blocks = self.each(add, [blocks[at : at + SUMMED] for at in range(0, len(blocks), SUMMED)])
        return blocks[0]

    def values(self, futures: Any) -> Any:
        """What futures hold, brought here."""
        return self.client.gather(futures)


def itself(value: Any) -> Any:
    """The value."""
    return value


@contextmanager
def cluster_of(client: Client | None) -> Iterator[Cluster]:
    """The cluster of a client, or of the one in use; its tasks are given up when the work ends."""
    try:
        client = client or get_client()
    except ValueError:
        raise ClusterFailed(
            "there is no Dask client; make one, client = distributed.Client(address), or pass client="
        ) from None
    if not isinstance(client, Client) or client.asynchronous:
        kind = "an asynchronous Client" if isinstance(client, Client) else f"a {type(client).__name__}"
        raise InvalidParameter(f"client is {kind}; it must be a distributed.Client that waits for results")
    if client.status == "closed":
        raise ClusterFailed("the client is closed; make a new one, client = distributed.Client(address)")
    address = client.scheduler.address if client.scheduler else "its address"
    cluster = Cluster(client)
    try:
        check_workers(client)
        yield cluster
        check_workers(client, needed=False)  # some may have joined, or all be gone by now
    except (FutureCancelledError, ClosedClientError, OSError) as error:
        here = isinstance(error, OSError) and not isinstance(error, CommClosedError)
        if here and client.status == "running":  # a file of ours, perhaps
            raise
        raise ClusterFailed(
            f"the scheduler at {address} is lost, or what a task needs ({error or type(error).__name__}); "
            "start it again, and fit with a new client: with the same checkpoint= it goes on where it was"
        ) from error
    except KilledWorker as error:
        raise ClusterFailed(
            f"workers died several times at the same task: {error}; their memory is probably too small, give "
            "them more, or smaller blocks"
        ) from error
    finally:
        for task in list(cluster.tasks):
            task.release()  # what nobody wants is not computed


def check_workers(client: Client, *, needed: bool = True) -> None:
    """Refuse machines without the package, or with other versions of what decides forests; or none."""

    def versions(names: tuple[str, ...]) -> list[str]:  # goes to workers as it is, since it is no module's
        import importlib

        found = []
        for name in names:
            try:
                found.append(importlib.import_module(name).__version__)
            except ImportError:
                found.append("")
        return found

    found = client.run(versions, SAME, on_error="ignore")  # a worker may die at this moment
    if needed and not found:
        raise ClusterFailed(
            f"the cluster at {client.scheduler.address} has no workers; start some, or wait for them with "
            "client.wait_for_workers(1)"
        )
    found = {f"worker {name}": theirs for name, theirs in found.items()}
    found["the scheduler"] = client.run_on_scheduler(versions, SAME)
    here = versions(SAME)
    for machine, theirs in found.items():
        for name, mine, its in zip(SAME, here, theirs, strict=True):
            if mine != its:
                what = f"has {name} {its}" if its else f"lacks {name}"
                raise ClusterFailed(
                    f"{machine} {what}, the client has {mine}; install the same version everywhere"
                )
