"""Gradient boosting that knows what is paid: the drop of the log loss minus the price of what rows lack.

Friedman (2001) with second-order steps, one tree a round for all classes: a leaf adds a score to every class.
A split is worth

    W(left) + W(right) - W(node)  -  rate * (what the rows that lack the feature would pay for it),

in nats, where W = 1/2 sum_c G_c^2 / (H_c + 1), with the sums G of the gradients and H of the curvatures of
the rows; prices are those of ``acquired``. Every node has its score, so a tree has an opinion before it
reaches a leaf. Gradients and scores are whole numbers of a small unit: their sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.data.costs import Costs, Prices
from budgetforest.growing.acquired import Acquired, acquire, nothing_acquired, price_of
from budgetforest.growing.feature_order import START, next_step
from budgetforest.growing.greedytree import Sample, bootstrapped, labels_of
from budgetforest.growing.histogram import Cells, cells_of
from budgetforest.growing.node_stack import (
    NodeStack,
    Split,
    edge_after,
    fill_empty_branches,
    make_leaf,
    push,
    push_children,
    room_for_branches,
    stack_for,
    take,
)
from budgetforest.runtime.arrays import LEAF, Codes, Counts, Flags, Ids
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.random import tree_key
from budgetforest.trees.forest import BELIEF, log_odds
from budgetforest.trees.tree import (
    BY_CATEGORY,
    MISSING_LEFT,
    MISSING_RIGHT,
    UNSEEN,
    Tree,
    only_first,
    room_for_nodes,
)

GRADIENT = 2**20
"""Gradients are whole numbers of 1 / GRADIENT."""
LEAST_GAIN = 1e-3
"""Nats of all rows of a node together."""
BINS = 64
"""Neighbouring codes are taken together until a feature has at most so many: finer cuts gain nothing."""
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


Slopes = NDArray[np.int32]
"""(n, 2q) gradients of the log loss, then its curvatures; q = 1 suffices for two classes."""


class SlopeSums(NamedTuple):
    """Room for the sums of a node's rows: how many there are, their gradients, then their curvatures."""

    by_code: Counts
    """(codes + 1, 1 + 2q); the last used code is that of missing values."""
    left: Counts
    """(1 + 2q) up to a cut."""
    all: Counts
    """(1 + 2q) of the node."""
    drawn: Ids
    """(n) the rows of a node that were drawn."""
    each: Counts
    """(n, 1 + 2q) of each of these alone."""
    stack: NodeStack
    """The note of a node is its depth."""
    cells: Cells
    """All codes."""


def boosted_trees(sample: Sample, boost: Boost, costs: Costs, seed: int) -> Iterator[Tree]:
    """Trees without end, each correcting the sum of those before."""
    label, k = labels_of(sample), boost.n_classes
    n = len(label)
    owned = nothing_acquired(n, costs)
    start = log_odds(np.bincount(label, sample.weight, k))
    # every row starts from the log odds of the classes
    scores = np.tile(start, (n, 1))
    sums = sums_for(sample.columns, k, n)
    number = 0
    while True:
        key = tree_key(seed, number)
        slopes = slopes_at(scores, label)
        times = np.array(sample.weight)
        if boost.share < 1:
            times = bootstrapped(sample._replace(draws=drawn_of(sample.draws, boost)), key)
        rows = np.arange(n, dtype=np.int32)
        tree = boosted_below(sample.columns, slopes, times, rows, boost, costs, owned, key, scores, sums)
        yield with_first(tree, start) if number == 0 else tree
        number += 1


def with_first(tree: Tree, start: Counts) -> Tree:
    """The first tree adds what classes score without any."""
    return tree._replace(counts=(tree.counts + start).astype(np.int32))


def drawn_of(draws: int, boost: Boost) -> int:
    """How many rows are drawn for a tree."""
    return max(1, round(boost.share * draws))


def boosted_below(
    columns: Columns,
    slopes: Slopes,
    times: Ids,
    rows: Ids,
    boost: Boost,
    costs: Costs,
    owned: Acquired,
    key: np.uint64,
    scores: Counts,
    sums: SlopeSums,
) -> Tree:
    """The part of a tree below the node of this key, on its rows; it is added to their ``scores``."""
    tree = room_for_nodes(2 * len(rows) + 1, boost.n_classes)
    size, branches = boosted_tree(
        columns, slopes, times, rows, boost, costs.bare, owned, key, scores, tree, sums
    )
    tree.floor[0] = np.nan
    return only_first(tree, size)._replace(branches=branches)


def sums_for(columns: Columns, n_classes: int, n_rows: int) -> SlopeSums:
    """Memory for trees on so many rows."""
    codes, q = int(columns.n_codes.max()) + 2, 1 if n_classes == 2 else n_classes
    return SlopeSums(
        np.zeros((codes, 1 + 2 * q), np.int64),
        np.empty(1 + 2 * q, np.int64),
        np.empty(1 + 2 * q, np.int64),
        np.empty(n_rows, np.int32),
        np.empty((n_rows, 1 + 2 * q), np.int64),
        stack_for(n_rows + codes, codes, np.empty(max(n_rows, codes), np.int32)),
        cells_of(columns),
    )


def slopes_at(scores: Counts, label: Ids) -> Slopes:
    """Gradient and curvature of the log loss at the present scores."""
    n, k = scores.shape
    slopes = np.empty((n, 2 if k == 2 else 2 * k), np.int32)
    take_slopes(scores, label, slopes)
    return slopes


@kernel
def take_slopes(scores: Counts, label: Ids, slopes: Slopes) -> None:
    """Fill in ``slopes_at``."""
    k = scores.shape[1]
    q = slopes.shape[1] // 2
    for i in range(len(label)):
        # softmax relative to the top score: exp never overflows
        top = scores[i, 0]
        for c in range(1, k):
            top = max(top, scores[i, c])
        total = 0.0
        for c in range(k):
            total += np.exp((scores[i, c] - top) / BELIEF)
        for c in range(q):
            # of two classes the second alone: the first has its negative
            at = c if q > 1 else 1
            p = np.exp((scores[i, at] - top) / BELIEF) / total
            # derivatives of the log loss by the score: p - y and p (1 - p); of two classes by s_1 - s_0
            y = 1.0 if label[i] == at else 0.0
            # rounded once a row, before any sum, so that sums are exact
            slopes[i, c] = round((p - y) * GRADIENT)
            # never zero, or a step would be infinite
            slopes[i, q + c] = round(max(p * (1 - p), 1e-4) * GRADIENT)


@kernel
def boosted_tree(
    columns: Columns,
    slopes: Slopes,
    times: Ids,
    rows: Ids,
    boost: Boost,
    prices: Prices,
    owned: Acquired,
    root_key: np.uint64,
    scores: Counts,
    tree: Tree,
    sums: SlopeSums,
) -> tuple[int, Ids]:
    """Grow a tree, and add what its leaves give to the ``scores`` of all rows. Returns size and branches."""
    cells = sums.cells
    branches = np.empty(0, np.int32)
    used = 0
    nothing = int(np.int64(0))  # not a literal, for which numba compiles functions once more
    # rows is permuted in place: waiting nodes own disjoint slices, and a split reorders its own slice alone
    push(sums.stack, nothing, nothing, len(rows), nothing - 1, nothing, nothing, root_key)
    top = nothing + 1
    size = nothing
    while top > 0:
        top -= 1
        taken = take(sums.stack, top)
        depth = taken.note
        node = size
        size += 1
        make_leaf(tree, branches, taken, node)
        here = rows[taken.start : taken.stop]
        found = _add_up(slopes, times, here, sums)
        # 0 in the child of a category that only undrawn rows have: its score is 0
        n = sums.all[0]
        tree.weight[node] = n
        worth = worth_of(sums.all)
        tree.impurity[node] = -worth
        # inner nodes too, for who reads the tree; what it believes there is the mean of its leaves
        score_of(sums.all, boost.speed, tree.counts[node])
        best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
        if depth < boost.depth and n >= 2 * boost.least_rows:
            best = _best_split(columns, times, here, found, boost, prices, owned, taken.key, worth, sums)
        j = best.feature
        # all rows here get the score, drawn or not
        if j == LEAF:
            for i in range(len(here)):
                for c in range(scores.shape[1]):
                    scores[here[i], c] += tree.counts[node, c]
            continue
        # before the rows are parted: all of them were asked for j
        if boost.rate > 0.0:
            acquire(j, here, prices, owned)
        tree.feature[node] = j
        tree.route[node] = best.route
        if best.route != BY_CATEGORY:
            tree.threshold[node] = edge_after(columns, j, best.cut)
        missing = int(np.int64(columns.n_codes[best.feature]))
        more = missing + 1 if best.route == BY_CATEGORY else 0
        branches = room_for_branches(branches, used, more)
        # a category that only undrawn rows have gets a child, too: they need scores
        top = push_children(
            cells, rows, taken, node, best, missing, tree, branches, used, sums.stack, top, depth + 1
        )
        used += more
    fill_empty_branches(tree.weight[:size], tree, branches)
    return size, branches[:used]


@inner
def _add_up(slopes: Slopes, times: Ids, rows: Ids, sums: SlopeSums) -> int:
    """Sums of a node's rows, and those that were drawn side by side; returns how many these are."""
    # packed once a node, so that every feature reads them from front to back:
    #   each: | weight | q gradients times weight | q curvatures times weight |, a line for each drawn row
    found = 0
    sums.all[:] = 0
    for i in range(len(rows)):
        row = rows[i]
        weight = times[row]
        if weight == 0:
            continue
        each = sums.each[found]
        each[0] = weight
        for s in range(slopes.shape[1]):
            each[1 + s] = weight * slopes[row, s]
        for s in range(len(each)):
            sums.all[s] += each[s]
        sums.drawn[found] = row
        found += 1
    return found


@inner
def worth_of(total: Counts) -> float:
    """Nats that the best score saves."""
    # G and H are in units u = 1 / GRADIENT: (u G)^2 / (u H + 1) = u G^2 / (H + GRADIENT)
    worth = 0.0
    q = len(total) // 2
    for c in range(1, 1 + q):
        # in double: G^2 passes 64 bits from about 2,900 rows on
        worth += float(total[c]) * total[c] / (total[q + c] + GRADIENT)
    return worth / (2.0 * GRADIENT)


@inner
def score_of(total: Counts, speed: float, score: Ids) -> None:
    """What a node adds to each class; the sum over classes is 0 but for rounding."""
    q = len(total) // 2
    # softmax ignores a constant: centred, as ``belief_for`` expects of scores
    mean = 0.0
    for c in range(q):
        mean += _step(total, speed, c) / q
    for c in range(q):
        step = _step(total, speed, c)
        # two classes: the step is that of s_1 - s_0, half of it for each
        if q == 1:
            score[1] = round(0.5 * step * BELIEF)
            score[0] = -score[1]
        else:
            score[c] = round((step - mean) * BELIEF)


@inner
def _step(total: Counts, speed: float, c: int) -> float:
    """How far the score of a class moves."""
    # Newton's step -G / (H + 1), times the learning rate
    step = -speed * total[1 + c] / (total[1 + len(total) // 2 + c] + GRADIENT)
    # clipped: of rows that are surely wrong G is near n and H near 0
    return float(min(max(step, -LARGEST), LARGEST))


@inner
def _best_split(
    columns: Columns,
    times: Ids,
    rows: Ids,
    found: int,
    boost: Boost,
    prices: Prices,
    owned: Acquired,
    key: np.uint64,
    worth: float,
    sums: SlopeSums,
) -> Split:
    """The largest gain among the features that are tried."""
    best = Split(LEAST_GAIN, LEAF, -1, MISSING_RIGHT)
    m = len(boost.pool)
    step = int(np.int64(START))
    while True:
        step = next_step(step, best.feature != LEAF, key, columns.key, boost.pool, boost.tries)
        if step < 0:
            break
        j = step % m
        last = columns.n_codes[j] - 1
        shift = shift_of(columns, j)
        # coarse codes, code >> shift; missing values stand after the last of them
        missing = (last >> shift) + 1
        low, high = _by_code(columns.codes[j], last, shift, sums.drawn[:found], sums.each, sums.by_code)
        gain, cut, route = gain_of(columns, j, low, high, worth, boost, sums)
        # only what was touched is cleared
        sums.by_code[missing] = 0
        sums.by_code[low : high + 1] = 0
        # the price is counted only where the gain alone would win
        if boost.rate > 0.0 and gain > best.gain:
            gain -= boost.rate * price_of(j, rows, times, prices, owned)
        # ties stay with the feature tried first, the lowest column of those drawn
        if gain > best.gain:
            best = Split(gain, j, cut, route)
    return best


@inner
def shift_of(columns: Columns, j: int) -> int:
    """How many halvings bring the codes of a feature down to ``BINS``; categories stay."""
    shift = 0
    # a shift keeps the order of codes, so every coarse cut is a fine one; categories have no order
    while not columns.nominal[j] and (columns.n_codes[j] - 1) >> shift >= BINS:
        shift += 1
    return shift


@inner
def gain_of(
    columns: Columns, j: int, low: int, high: int, worth: float, boost: Boost, sums: SlopeSums
) -> tuple[float, int, int]:
    """Nats that a feature saves whose sums by coarse code are at hand: (nats, last code left, route)."""
    last = columns.n_codes[j] - 1
    shift = shift_of(columns, j)
    missing = (last >> shift) + 1
    if columns.nominal[j]:
        return _nominal_gain(low, high, missing, worth, boost.least_rows, sums.by_code), -1, BY_CATEGORY
    gain, code, route = _numeric_gain(low, high, missing, worth, boost.least_rows, sums)
    # the last fine code of a coarse one; after all values that is ``last``, hence the threshold +inf
    return gain, min(((code + 1) << shift) - 1, last), route


@inner
def _by_code(
    codes: Codes, last: int, shift: int, rows: Ids, each: Counts, by_code: Counts
) -> tuple[int, int]:
    """Sums by coarse code; returns the lowest and the highest one present, missing not counted."""
    missing = (last >> shift) + 1
    low = missing
    high = -1
    two_classes = by_code.shape[1] == 3
    for i in range(len(rows)):
        fine = np.int64(codes[rows[i]])
        # missing values have the fine code last + 1, which a shift might put among values
        code = missing if fine > last else int(fine >> shift)
        if two_classes:  # the common case needs no loop
            by_code[code, 0] += each[i, 0]
            by_code[code, 1] += each[i, 1]
            by_code[code, 2] += each[i, 2]
        else:
            for s in range(by_code.shape[1]):
                by_code[code, s] += each[i, s]
        if code < missing:
            low = min(low, code)
            high = max(high, code)
    return low, high


@inner
def _numeric_gain(
    low: int, high: int, missing: int, worth: float, least_rows: int, sums: SlopeSums
) -> tuple[float, int, int]:
    """Nats that the best cut saves: (nats, last code on the left, route). Missing values try both sides."""
    q = len(sums.all) // 2
    lost = sums.by_code[missing]
    sums.left[:] = 0
    best = 0.0
    best_code = -1
    best_route = MISSING_RIGHT
    # after the last code nothing is left for the right side but missing values
    for code in range(low, high + (1 if lost[0] > 0 else 0)):
        if sums.by_code[code, 0] == 0:
            continue
        for s in range(len(sums.left)):
            sums.left[s] += sums.by_code[code, s]
        for side in range(1 + (lost[0] > 0 and code < high)):
            left = sums.left[0] + side * lost[0]
            right = sums.all[0] - left
            if left < least_rows or right < least_rows:
                continue
            saved = 0.0
            for c in range(1, 1 + q):
                g = sums.left[c] + side * lost[c]
                h = sums.left[q + c] + side * lost[q + c]
                # the right side is the rest: exact, for sums are whole numbers
                other = sums.all[c] - g
                # G^2 / (H + 1) of either side
                saved += float(g) * g / (h + GRADIENT)
                saved += float(other) * other / (sums.all[q + c] - h + GRADIENT)
            gain = saved / (2.0 * GRADIENT) - worth
            # strictly: the lowest cut wins ties, then missing values on the right
            if gain > best:
                best = gain
                best_code = code if code < high else missing - 1
                best_route = side
                if lost[0] == 0:
                    best_route = UNSEEN + (MISSING_LEFT if left >= right else MISSING_RIGHT)
    return best, best_code, best_route


@inner
def _nominal_gain(low: int, high: int, missing: int, worth: float, least_rows: int, by_code: Counts) -> float:
    """Nats that a child for each category saves; none if a child has too few rows."""
    children = 0
    gain = -worth
    for code in range(low, missing + 1):
        # without drawn rows W = 0, and nothing to be measured by ``least_rows``
        if high < code < missing or by_code[code, 0] == 0:
            continue
        if by_code[code, 0] < least_rows:
            return 0.0
        gain += worth_of(by_code[code])
        children += 1
    return gain if children > 1 else 0.0
