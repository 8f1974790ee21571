"""Data sets as tasks, and what is absent."""

import warnings
from collections.abc import Iterable, Iterator

import numpy as np

from benchmarks.data import Absent, Data, load, split
from benchmarks.methods import Part, Task
from budgetforest.data.costs import Costs, read_costs


def tasks(names: tuple[str, ...], absent: list[str], *, quick: bool = False) -> Iterator[tuple[Data, Task]]:
    """The data sets that are there; of the others ``absent`` gets the reason."""
    for data in loaded(names, absent):
        yield data, task_of(data, quick=quick)


def loaded(names: Iterable[str], absent: list[str]) -> Iterator[Data]:
    """As ``tasks``, not yet split."""
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a source is tried again
                data = load(name)
        except Absent as reason:
            absent.append(str(reason))
        else:
            yield data


def task_of(data: Data, *, seed: int = 0, quick: bool = False) -> Task:
    """Training, validation and test rows of a data set, with its prices; another seed is another split."""
    X = data.X.to_numpy(np.float32)
    _, y = np.unique(data.y, return_inverse=True)
    parts = [
        Part(X[rows], y[rows], None if data.query is None else data.query[rows]) for rows in split(data, seed)
    ]
    return Task(data.title, *parts, costs_of(data), seed=seed, quick=quick)


def costs_of(data: Data) -> Costs:
    """The prices of a data set."""
    return read_costs(data.costs, None, list(data.X.columns))


def absences(absent: list[str]) -> str:
    """A paragraph of what was not there to be measured."""
    return "".join(f"\nNot measured: {reason}\n" for reason in absent)
