"""One level of entropy trees, for rows in blocks: the rules of ``entropy_trees`` on sums alone.

It stands apart from ``entropy_trees`` because the rows of a node are in many blocks: that one reorders them,
this one sees sums. Gains are computed by the same functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.growing.entropy_trees import (
    LEAST_GAIN,
    Growth,
    Workspace,
    entropy_of,
    gain_of,
    workspace_for,
)
from budgetforest.growing.feature_order import START, next_step
from budgetforest.growing.level_greedy import Splits, cells_of, children_of, no_splits, put_split, whole_of
from budgetforest.growing.node_stack import Split
from budgetforest.runtime.arrays import LEAF, Counts, Floats, Keys
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.tree import MISSING_RIGHT


def choose_entropy_splits(columns: Columns, growth: Growth, counts: NDArray[np.int32], keys: Keys) -> Splits:
    """The largest gain at every node, from its ``counts`` (d, cells, k)."""
    begin = cells_of(columns, growth.pool)
    splits = no_splits(whole_of(counts, begin))
    splits.floor[:] = np.nan
    work = workspace_for(columns, growth.n_classes, 0)
    search_entropy_splits(columns, growth, counts, begin, keys, work, splits)
    first, below = children_of(counts, begin, splits)
    size = below.sum(axis=1)
    splits = splits._replace(
        first=first,
        size=np.where(size > 0, size, -1),
        waits=np.zeros(len(size), bool),
        counts=below,
        below=np.zeros(len(size)),
    )
    judge_children(growth.least_rows, work.logs, splits)
    return splits


@kernel
def search_entropy_splits(
    columns: Columns,
    growth: Growth,
    counts: NDArray[np.int32],
    begin: Counts,
    keys: Keys,
    work: Workspace,
    splits: Splits,
) -> None:
    """Fill in all of every node but its children: ``entropy_trees._best_split`` on sums."""
    for at in range(len(counts)):
        total = splits.total[at]
        n = 0
        for c in range(len(total)):
            n += total[c]
        mixed = entropy_of(total, n, work.logs)
        splits.impurity[at] = mixed / n
        if mixed <= LEAST_GAIN or n < 2 * growth.least_rows:
            continue
        # features in the same order and with the same ties as where rows are at hand
        best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
        m, key = len(growth.pool), keys[at]
        step = int(np.int64(START))
        while True:
            step = next_step(step, best.feature != LEAF, key, columns.key, growth.pool, growth.tries)
            if step < 0:
                break
            j = step % m
            low, high = take_tally(counts[at, begin[j] : begin[j + 1]], work.tally)
            gain, cut, route = gain_of(columns, j, low, high, total, n, mixed, growth, key, work)
            if gain > best.gain:
                best = Split(gain, j, cut, route)
        if best.feature != LEAF:
            put_split(columns, best, splits, at)


@inner
def take_tally(by_code: NDArray[np.int32], tally: Counts) -> tuple[int, int]:
    """Class counts of a feature; returns the lowest and the highest code present, missing not counted."""
    missing = len(by_code) - 1
    low = missing
    high = -1
    # every code is overwritten, so nothing needs clearing; counts hold drawn rows alone
    for code in range(len(by_code)):
        present = 0
        for c in range(by_code.shape[1]):
            tally[code, c] = by_code[code, c]
            present += by_code[code, c]
        if present > 0 and code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@kernel
def judge_children(least_rows: int, logs: Floats, splits: Splits) -> None:
    """Fill in impurity and ``waits`` of the children."""
    for at in range(len(splits.size)):
        n = splits.size[at]
        if n > 0:
            mixed = entropy_of(splits.counts[at], n, logs)
            splits.below[at] = mixed / n
            # what the search of the next level would ask first: other children are not counted at all
            splits.waits[at] = mixed > LEAST_GAIN and n >= 2 * least_rows
