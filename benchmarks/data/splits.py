"""Training, validation and test rows. Each function makes a split of (y, query, random generator)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Parts(NamedTuple):
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


Split = Callable[[np.ndarray, np.ndarray | None, np.random.Generator], Parts]


def in_order(*sizes: int) -> Split:
    """The parts as published: training rows first, test rows last."""
    return lambda y, query, rng: _cut(np.arange(len(y)), sizes)


def permuted(*sizes: int) -> Split:
    """The paper's sizes of random rows; which rows it took is published nowhere."""
    return lambda y, query, rng: _cut(rng.permutation(len(y)), sizes)


def stratified(*hand: int) -> Split:
    """Rows shuffled, sorted by class and dealt in turn: 0 is training, 1 validation, 2 test."""

    def split(y: np.ndarray, query: np.ndarray | None, rng: np.random.Generator) -> Parts:
        order = rng.permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]
        part = np.resize(hand, len(y))
        return Parts(*(np.sort(order[part == p]) for p in range(3)))

    return split


def by_query(*shares: float) -> Split:
    """Whole queries in random order, cut as near to the shares of rows as queries allow."""

    def split(y: np.ndarray, query: np.ndarray | None, rng: np.random.Generator) -> Parts:
        queries, which, rows = np.unique(query, return_inverse=True, return_counts=True)
        order = rng.permutation(len(queries))
        middle = np.cumsum(rows[order]) - rows[order] / 2
        part = np.empty(len(queries), int)
        part[order] = np.searchsorted(np.cumsum(shares) * len(y) / sum(shares), middle)
        return Parts(*(np.flatnonzero(part[which] == p) for p in range(3)))

    return split


def then_test(head: int, split_head: Split) -> Split:
    """Published test rows follow the first ``head`` rows, which are split further."""

    def split(y: np.ndarray, query: np.ndarray | None, rng: np.random.Generator) -> Parts:
        parts = split_head(y[:head], None if query is None else query[:head], rng)
        return parts._replace(test=np.arange(head, len(y)))

    return split


def _cut(order: np.ndarray, sizes: tuple[int, ...]) -> Parts:
    ends = np.cumsum(sizes)
    return Parts(*np.split(order[: ends[-1]], ends[:-1]))
