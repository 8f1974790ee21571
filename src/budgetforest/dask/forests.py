"""Forests on rows that are spread over workers: ``greedytree``, ``entropy_trees`` and ``boosting``."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from budgetforest.dask.cluster import Cluster
from budgetforest.dask.level_growth import Spread, grow_trees
from budgetforest.dask.strategies import (
    Boosting,
    Entropy,
    Greedy,
    Strategy,
    after_tree,
    first_state,
)
from budgetforest.data.costs import Costs
from budgetforest.growing.boosting import Boost, drawn_of, with_first
from budgetforest.growing.entropy_trees import Growth
from budgetforest.growing.workspace import Plan
from budgetforest.runtime.random import tree_key
from budgetforest.trees.forest import log_odds
from budgetforest.trees.tree import Tree

FIRST_TREES, TREES = 2, 8
"""Trees grown at a time, at first and later: every row has a place in each of them."""


def spread_trees(
    cluster: Cluster, rows: Spread, seed: int, most: int, plan: Plan
) -> Generator[Tree, None, None]:
    """Trees 0, 1, 2, ... up to ``most``, the same as those of ``greedytree.stream_of_trees``."""
    yield from in_batches(cluster, rows, Greedy(plan), rows.draws, seed, most)


def entropy_trees(
    cluster: Cluster, rows: Spread, growth: Growth, draws: int, seed: int, number: int
) -> Iterator[Tree]:
    """So many trees of largest entropy drop, the same as those of ``entropy_trees.grow_one``."""
    yield from in_batches(cluster, rows, Entropy(growth), draws, seed, number)


def in_batches(
    cluster: Cluster, rows: Spread, strategy: Strategy, draws: int, seed: int, most: int
) -> Generator[Tree, None, None]:
    """Trees that do not depend on each other, several at a time."""
    first = 0
    while first < most:
        number = min(TREES if first else FIRST_TREES, most - first)
        keys = [tree_key(seed, first + t) for t in range(number)]
        yield from grow_trees(cluster, rows, rows.plain, strategy, draws, keys)
        first += number


def boosted_trees(cluster: Cluster, rows: Spread, boost: Boost, costs: Costs, seed: int) -> Iterator[Tree]:
    """Trees without end, each correcting the sum of those before: those of ``boosting.boosted_trees``."""
    group, strategy = cluster.hold(costs.group), Boosting(boost, costs)
    start = log_odds(rows.counts)
    state = cluster.each(first_state, rows.blocks, costs, boost.rate > 0, start)
    number = 0
    while True:
        draws = drawn_of(rows.draws, boost) if boost.share < 1 else 0
        (tree,) = grow_trees(cluster, rows, state, strategy, draws, [tree_key(seed, number)])
        yield with_first(tree, start) if number == 0 else tree
        state = cluster.each(after_tree, rows.blocks, state, cluster.hold(tree), group)
        number += 1
