"""Gradient boosting that knows what is paid: the drop of the log loss minus the price of what rows lack.

Friedman (2001) with second-order steps, one tree a round for all classes: a leaf adds a score to every class.
A split is worth

    W(left) + W(right) - W(node)  -  rate * (what the rows that lack the feature would pay for it),

in nats, where W = 1/2 sum_c G_c^2 / (H_c + 1), with the sums G of the gradients and H of the curvatures of
the rows; prices are those of ``saving``. Every node has its score, so a tree has an opinion before it reaches
a leaf. Gradients and scores are whole numbers of a small unit: their sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.arrays import LEAF, Codes, Counts, Flags, Floats, Ids
from budgetforest.binning import Columns
from budgetforest.costs import Costs
from budgetforest.draws import mix, tree_key, uniform
from budgetforest.forest import BELIEF
from budgetforest.grow import (
    LEFT,
    RIGHT,
    Sample,
    bootstrapped,
    fill_empty_branches,
    hang,
    labels_of,
    make_leaf,
)
from budgetforest.jit import inner, kernel
from budgetforest.rows import Cells, partition, partition_by_code
from budgetforest.saving import TRIES, Owned, acquire, nothing_owned, price_of
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, Tree, only_first, room_for_nodes

GRADIENT = 2**20
"""Gradients are whole numbers of 1 / GRADIENT."""
LEAST_GAIN = 1e-3
"""Nats of all rows of a node together."""
LARGEST = 4.0
"""No leaf adds more to a score."""


class Boost(NamedTuple):
    """Everything that decides how trees are boosted, but for the rows."""

    pool: Flags
    """(m) which features may be used."""
    rate: float
    """Nats that a unit of cost is worth to a row."""
    n_classes: int
    tries: float = 0.5
    """Share of the pool that is tried at a node; the rest if none of these splits it."""
    depth: int = 6
    """The most questions from the root to a leaf."""
    speed: float = 0.15
    """The learning rate: how much of the best score a leaf adds."""
    share: float = 0.7
    """A tree is grown on so many rows drawn with replacement, as a share of all; 1: on all as they are."""
    least_rows: int = 5
    """A child has at least so many rows."""


class Slopes(NamedTuple):
    """Gradient and curvature of the log loss, (n, q): one column suffices for two classes."""

    gradient: NDArray[np.int32]
    curvature: NDArray[np.int32]


class Sums(NamedTuple):
    """Room for the sums of a node's rows by code; the last used code is that of missing values."""

    gradient: Counts
    """(codes + 1, q), also below."""
    curvature: Counts
    rows: Counts
    """(codes + 1)"""
    left: Counts
    """(2, q) gradient and curvature up to a cut."""
    all: Counts
    """(2, q) of the node."""
    buffer: Ids
    begin: Counts
    waiting: Counts
    """(n, 5) nodes still to be decided: rows start to stop, parent, which child, depth."""
    keys: NDArray[np.uint64]
    drawn: Counts
    """Rows drawn in each node of the tree."""


def boosted_trees(sample: Sample, boost: Boost, costs: Costs, seed: int) -> Iterator[Tree]:
    """Trees without end, each correcting the sum of those before."""
    label, k = labels_of(sample), boost.n_classes
    n = len(label)
    q = 1 if k == 2 else k
    owned = nothing_owned(n, costs)
    prior = np.log(np.maximum(np.bincount(label, sample.weight, k), 0.5) / sample.weight.sum())
    start = np.rint((prior - prior.mean()) * BELIEF).astype(np.int64)
    scores = np.tile(start, (n, 1))
    slopes = Slopes(np.empty((n, q), np.int32), np.empty((n, q), np.int32))
    sums = _sums(sample.columns, q, n)
    number = 0
    while True:
        key = tree_key(seed, number)
        take_slopes(scores, label, slopes)
        times = np.array(sample.weight)
        if boost.share < 1:
            times = bootstrapped(sample._replace(draws=max(1, round(boost.share * sample.draws))), key)
        rows = np.arange(n, dtype=np.int32)
        tree = room_for_nodes(2 * n + 1, k)
        size, branches = boosted_tree(
            sample.columns, slopes, times, rows, boost, costs[:3], owned, key, scores, tree, sums
        )
        tree.floor[0] = np.nan
        if number == 0:
            tree.counts[:size] += start
        yield only_first(tree, size)._replace(branches=branches)
        number += 1


def _sums(columns: Columns, q: int, n_rows: int) -> Sums:
    codes = int(columns.n_codes.max()) + 2
    return Sums(
        np.zeros((codes, q), np.int64),
        np.zeros((codes, q), np.int64),
        np.zeros(codes, np.int64),
        np.empty((2, q), np.int64),
        np.empty((2, q), np.int64),
        np.empty(max(n_rows, codes), np.int32),
        np.empty(codes + 1, np.int64),
        np.empty((n_rows + codes, 5), np.int64),
        np.empty(n_rows + codes, np.uint64),
        np.empty(2 * n_rows + 1, np.int64),
    )


@kernel
def take_slopes(scores: Counts, label: Ids, slopes: Slopes) -> None:
    """Gradient and curvature of the log loss at the present scores."""
    k = scores.shape[1]
    q = slopes.gradient.shape[1]
    for i in range(len(label)):
        top = scores[i, 0]
        for c in range(1, k):
            top = max(top, scores[i, c])
        total = 0.0
        for c in range(k):
            total += np.exp((scores[i, c] - top) / BELIEF)
        for c in range(q):
            at = c if q > 1 else 1
            p = np.exp((scores[i, at] - top) / BELIEF) / total
            y = 1.0 if label[i] == at else 0.0
            slopes.gradient[i, c] = round((p - y) * GRADIENT)
            slopes.curvature[i, c] = round(max(p * (1 - p), 1e-4) * GRADIENT)


class Cut(NamedTuple):
    """The best split so far."""

    gain: float
    feature: int
    code: int
    """The last code on the left."""
    route: int


@kernel
def boosted_tree(
    columns: Columns,
    slopes: Slopes,
    times: Ids,
    rows: Ids,
    boost: Boost,
    prices: tuple[Floats, Floats, Ids],
    owned: Owned,
    root_key: np.uint64,
    scores: Counts,
    tree: Tree,
    sums: Sums,
) -> tuple[int, Ids]:
    """Grow a tree, and add what its leaves give to the ``scores`` of all rows. Returns size and branches."""
    cells = Cells(columns.codes.reshape(-1), columns.codes.shape[1], 1)
    branches = np.empty(0, np.int32)
    n_branches = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    _put(sums, nothing, nothing, len(rows), nothing - 1, nothing, nothing, root_key)
    waiting = nothing + 1
    size = nothing
    while waiting > 0:
        waiting -= 1
        start, stop, parent, slot, depth = sums.waiting[waiting]
        key = sums.keys[waiting]
        node = size
        size += 1
        make_leaf(tree, node)
        hang(tree, branches, parent, slot, node)
        here = rows[start:stop]
        n = _add_up(slopes, times, here, sums.all)
        sums.drawn[node] = n
        worth = _worth(sums.all[0], sums.all[1])
        tree.impurity[node] = -worth
        _score(sums.all, boost.speed, tree.counts[node])
        best = Cut(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
        if depth < boost.depth and n >= 2 * boost.least_rows:
            best = _best_cut(columns, slopes, times, here, boost, prices, owned, key, n, worth, sums)
        j = best.feature
        if j == LEAF:
            for i in range(len(here)):
                for c in range(scores.shape[1]):
                    scores[here[i], c] += tree.counts[node, c]
            continue
        if boost.rate > 0.0:
            acquire(j, here, prices, owned)
        tree.feature[node] = j
        tree.route[node] = best.route
        missing = columns.n_codes[j]
        if best.route == BY_CATEGORY:
            partition_by_code(cells, j, here, missing, sums.begin, sums.buffer)
            if n_branches + missing + 1 > len(branches):
                more = np.empty(2 * len(branches) + missing + 1, np.int32)
                for branch in range(n_branches):
                    more[branch] = branches[branch]
                branches = more
            tree.left[node] = n_branches
            tree.right[node] = missing
            for code in range(missing, -1, -1):
                at = n_branches + code
                branches[at] = -1
                first = start + sums.begin[code]
                last = start + sums.begin[code + 1]
                if last > first:
                    _put(sums, waiting, first, last, node, at, depth + 1, mix(key, np.uint64(code)))
                    waiting += 1
            n_branches += missing + 1
        else:
            tree.threshold[node] = np.inf
            if best.code < missing - 1:
                tree.threshold[node] = columns.points[columns.offset[j] + best.code]
            to_left = best.route == MISSING_LEFT
            middle = start + partition(cells, j, here, best.code, to_left, missing, sums.buffer)
            # the left child comes last, so that it follows its parent
            _put(sums, waiting, middle, stop, node, nothing + RIGHT, depth + 1, mix(key, np.uint64(1)))
            _put(sums, waiting + 1, start, middle, node, nothing + LEFT, depth + 1, mix(key, np.uint64(0)))
            waiting += 2
    fill_empty_branches(sums.drawn[:size], tree, branches)
    return size, branches[:n_branches]


@inner
def _put(
    sums: Sums, at: int, start: int, stop: int, parent: int, slot: int, depth: int, key: np.uint64
) -> None:
    """Let a node wait for its turn."""
    sums.waiting[at, 0] = start
    sums.waiting[at, 1] = stop
    sums.waiting[at, 2] = parent
    sums.waiting[at, 3] = slot
    sums.waiting[at, 4] = depth
    sums.keys[at] = key


@inner
def _add_up(slopes: Slopes, times: Ids, rows: Ids, total: Counts) -> int:
    """Sums of a node's rows; returns how many there are."""
    n = 0
    q = total.shape[1]
    for c in range(q):
        total[0, c] = 0
        total[1, c] = 0
    for i in range(len(rows)):
        row = rows[i]
        weight = times[row]
        if weight == 0:
            continue
        n += weight
        for c in range(q):
            total[0, c] += weight * slopes.gradient[row, c]
            total[1, c] += weight * slopes.curvature[row, c]
    return n


@inner
def _worth(gradient: Counts, curvature: Counts) -> float:
    """Nats that the best score saves."""
    worth = 0.0
    for c in range(len(gradient)):
        worth += float(gradient[c]) * gradient[c] / (curvature[c] + GRADIENT)
    return worth / (2.0 * GRADIENT)


@inner
def _score(total: Counts, speed: float, score: Ids) -> None:
    """What a node adds to each class; the sum over classes is 0 but for rounding."""
    q = total.shape[1]
    mean = 0.0
    for c in range(q):
        step = -speed * total[0, c] / (total[1, c] + GRADIENT)
        mean += min(max(step, -LARGEST), LARGEST) / q
    for c in range(q):
        step = -speed * total[0, c] / (total[1, c] + GRADIENT)
        step = min(max(step, -LARGEST), LARGEST)
        if q == 1:
            score[1] = round(0.5 * step * BELIEF)
            score[0] = -score[1]
        else:
            score[c] = round((step - mean) * BELIEF)


@inner
def _best_cut(
    columns: Columns,
    slopes: Slopes,
    times: Ids,
    rows: Ids,
    boost: Boost,
    prices: tuple[Floats, Floats, Ids],
    owned: Owned,
    key: np.uint64,
    n: int,
    worth: float,
    sums: Sums,
) -> Cut:
    """The largest saving among the features that are tried: first a random share, then the rest."""
    best = Cut(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
    drawn = mix(key, TRIES)
    for turn in range(2):
        for j in range(len(boost.pool)):
            tried = uniform(mix(drawn, columns.key[j])) < boost.tries
            if not boost.pool[j] or tried != (turn == 0):
                continue
            missing = columns.n_codes[j]
            low, high = _by_code(columns.codes[j], missing, rows, slopes, times, sums)
            if columns.nominal[j]:
                gain = _nominal_gain(low, high, missing, worth, boost.least_rows, sums)
                code, route = -1, BY_CATEGORY
            else:
                gain, code, route = _numeric_gain(low, high, missing, n, worth, boost.least_rows, sums)
            _clear(low, high, missing, sums)
            if boost.rate > 0.0 and gain > best.gain:
                gain -= boost.rate * price_of(j, rows, times, prices, owned)
            if gain > best.gain:
                best = Cut(gain, j, code, route)
        if best.feature != LEAF:
            break
    return best


@inner
def _by_code(
    codes: Codes, missing: int, rows: Ids, slopes: Slopes, times: Ids, sums: Sums
) -> tuple[int, int]:
    """Sums by code; returns the lowest and the highest code present, missing not counted."""
    low = missing
    high = -1
    q = sums.gradient.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        weight = times[row]
        if weight == 0:
            continue
        code = int(codes[row])
        sums.rows[code] += weight
        for c in range(q):
            sums.gradient[code, c] += weight * slopes.gradient[row, c]
            sums.curvature[code, c] += weight * slopes.curvature[row, c]
        if code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@inner
def _clear(low: int, high: int, missing: int, sums: Sums) -> None:
    for code in range(low, missing + 1):
        if high < code < missing:
            continue
        sums.rows[code] = 0
        for c in range(sums.gradient.shape[1]):
            sums.gradient[code, c] = 0
            sums.curvature[code, c] = 0


@inner
def _numeric_gain(
    low: int, high: int, missing: int, n: int, worth: float, least_rows: int, sums: Sums
) -> tuple[float, int, int]:
    """Nats that the best cut saves: (nats, last code on the left, route). Missing values try both sides."""
    q = sums.gradient.shape[1]
    lost = sums.rows[missing]
    for c in range(q):
        sums.left[0, c] = 0
        sums.left[1, c] = 0
    best = 0.0
    best_code = -1
    best_route = MISSING_RIGHT
    size = 0
    for code in range(low, high + (1 if lost > 0 else 0)):
        if sums.rows[code] == 0:
            continue
        size += sums.rows[code]
        for c in range(q):
            sums.left[0, c] += sums.gradient[code, c]
            sums.left[1, c] += sums.curvature[code, c]
        for side in range(1 + (lost > 0 and code < high)):
            left = size + (lost if side == 1 else 0)
            if left < least_rows or n - left < least_rows:
                continue
            saved = 0.0
            for c in range(q):
                g = sums.left[0, c] + (sums.gradient[missing, c] if side == 1 else 0)
                h = sums.left[1, c] + (sums.curvature[missing, c] if side == 1 else 0)
                other = sums.all[0, c] - g
                saved += float(g) * g / (h + GRADIENT)
                saved += float(other) * other / (sums.all[1, c] - h + GRADIENT)
            gain = saved / (2.0 * GRADIENT) - worth
            if gain > best:
                best = gain
                best_code = code if code < high else missing - 1
                best_route = side
                if lost == 0:
                    best_route = MISSING_LEFT if 2 * left >= n else MISSING_RIGHT
    return best, best_code, best_route


@inner
def _nominal_gain(low: int, high: int, missing: int, worth: float, least_rows: int, sums: Sums) -> float:
    """Nats that a child for each category saves; none if a child has too few rows."""
    children = 0
    gain = -worth
    for code in range(low, missing + 1):
        if high < code < missing or sums.rows[code] == 0:
            continue
        if sums.rows[code] < least_rows:
            return 0.0
        gain += _worth(sums.gradient[code], sums.curvature[code])
        children += 1
    return gain if children > 1 else 0.0
