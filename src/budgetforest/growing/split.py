"""Line 12 of Algorithm 1: the split of one feature that leaves the least impurity, and its risk.

Rules that decide results. Thresholds ascend; the least impurity wins, the smallest threshold among
equals, then missing values to the left. A feature is eligible when it lowers the impurity by more than
1e-7; the least cost / drop wins, the lowest column among equals. Features that cost nothing all have risk 0:
among them the largest drop wins.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from budgetforest.growing.histogram import Profile
from budgetforest.growing.impurity import Impurity, evaluate
from budgetforest.runtime.arrays import Counts, Floats
from budgetforest.runtime.jit import inner
from budgetforest.runtime.random import mix, uniform
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, UNSEEN

LEAST_DROP = 1e-7
"""A smaller drop of impurity is rounding, not progress."""


MOST_STUMPS = 80
"""Random stumps of a feature at nodes of more than 2000 rows."""


class Splitter(IntEnum):
    """The family of splits G_t of a numeric feature."""

    RANDOM = 0
    BINNED = 1
    EXACT = 2


RANDOM, BINNED, EXACT = (int(splitter) for splitter in Splitter)


class Measure(NamedTuple):
    """How children are judged."""

    impurity: Impurity
    expected: bool
    """Mean impurity over the children's rows (expected splits) instead of the worst (minimax)."""
    bisect: bool
    """Whether F is monotone, so that the best minimax threshold can be found by bisection."""
    symmetric: bool
    """Whether classes without rows can be left out of the counts."""
    unit: float
    """Weight of one count."""


class Node(NamedTuple):
    """What is known of the node being split; ``left`` and ``right`` are room for counts."""

    total: Counts
    impurity: float
    n_rows: float
    key: np.uint64
    left: Floats
    right: Floats


@inner
def sides(
    profile: Profile, at: int, missing_left: bool, node: Node, measure: Measure
) -> tuple[float, float, int]:
    """F of the rows up to position ``at``, F of the rest, and the number of rows on the left."""
    size = 0
    # counts are whole and scaled only here: F sees weights, sums stay exact
    for c in range(len(node.total)):
        n = profile.upto[at, c]
        if missing_left:
            n += profile.missing[c]
        size += n
        node.left[c] = n * measure.unit
        node.right[c] = (node.total[c] - n) * measure.unit
    return evaluate(measure.impurity, node.left), evaluate(measure.impurity, node.right), size


@inner
def by_scan(
    cuts: Counts, n_cuts: int, profile: Profile, missing_left: bool, node: Node, measure: Measure
) -> tuple[float, int]:
    """The least impurity that one of the cuts leaves, and the first cut that does."""
    n = 0
    for c in range(len(node.total)):
        n += node.total[c]
    least = np.inf
    best = -1
    for cut in range(n_cuts):
        left, right, size = sides(profile, cuts[cut], missing_left, node, measure)
        # expected splits: the mean F of the children; minimax (the paper): the worst of them
        rest = (size * left + (n - size) * right) / n if measure.expected else max(left, right)
        # strictly less, and cuts ascend: the smallest threshold wins ties
        if rest < least:
            least = rest
            best = cut
    return least, best


@inner
def by_bisection(
    cuts: Counts, n_cuts: int, profile: Profile, missing_left: bool, node: Node, measure: Measure
) -> tuple[float, int]:
    """The same for monotone F under minimax, in O(log) evaluations.

    F(left) only grows and F(right) only falls with the threshold, so the least of their maxima lies
    next to where they cross:

        F(right) ----____          ____---- F(left)
                         --X-------
                     low - 1 | low

    Before the crossing the right side is the worse one: then the first cut of its plateau is wanted,
    the first with F(right) <= limit.
    """
    low = 0
    high = n_cuts
    after = np.inf
    before = np.inf
    limit = -1.0
    # first the crossing; then, if the right side decides, the first cut of its plateau
    while True:
        while low < high:
            middle = (low + high) // 2
            left, right, _ = sides(profile, cuts[middle], missing_left, node, measure)
            # both predicates are False, then True along the cuts, as bisection needs
            if left >= right if limit < 0.0 else right <= limit:
                high = middle
                after = left
            else:
                low = middle + 1
                before = right
        if limit >= 0.0:
            return limit, low
        # the cut after the crossing leaves less than the one before it, or there is none before
        if low == 0 or before > after:
            return (after, low) if low < n_cuts else (np.inf, -1)
        # ties go to the smallest threshold, so the search goes on to the left at equal F
        limit = before
        high = low - 1
        low = 0


@inner
def stumps_for(n_rows: float) -> int:
    """How many random stumps the paper tries on a feature."""
    if n_rows > 2000:
        return MOST_STUMPS
    return 40 if n_rows > 500 else 20


@inner
def draw_stumps(
    profile: Profile, size: int, points: Floats, key: np.uint64, n_rows: float, thresholds: Floats
) -> int:
    """The paper's random thresholds, uniform between the node's extremes, in ascending order."""
    n = stumps_for(n_rows)
    low = points[profile.code[0]]
    span = points[profile.code[size - 1]] - low
    for stump in range(n):
        # keyed by the stump's number: the same draws whoever grows the node
        drawn = low + uniform(mix(key, np.uint64(stump))) * span
        # insertion sort: 80 at the most
        at = stump
        while at > 0 and thresholds[at - 1] > drawn:
            thresholds[at] = thresholds[at - 1]
            at -= 1
        thresholds[at] = drawn
    return n


@inner
def list_cuts(
    profile: Profile,
    size: int,
    splitter: int,
    points: Floats,
    key: np.uint64,
    n_rows: float,
    cuts: Counts,
    thresholds: Floats,
) -> int:
    """How many cuts a feature has, by ascending threshold; ``cuts[i]`` is the last position left.

    Every position but the last is a cut (``cuts`` holds 0, 1, 2, ...), or the random thresholds are.
    """
    if splitter != RANDOM or size < 2:
        return max(size - 1, 0)
    n = draw_stumps(profile, size, points, key, n_rows, thresholds)
    at = 0
    for cut in range(n):
        # both ascend: one pass merges thresholds with the values present; the last value stays right
        while at < size - 2 and points[profile.code[at + 1]] <= thresholds[cut]:
            at += 1
        cuts[cut] = at
    return n


@inner
def threshold_of(
    cut: int, profile: Profile, size: int, splitter: int, points: Floats, cuts: Counts, thresholds: Floats
) -> float:
    """Edge of a bin, midpoint of neighbouring values, or random; +inf after the last value."""
    if cuts[cut] == size - 1:
        return np.inf
    if splitter == RANDOM:
        return float(thresholds[cut])
    return threshold_between(
        splitter, int(np.int64(profile.code[cut])), int(np.int64(profile.code[cut + 1])), points
    )


@inner
def threshold_between(splitter: int, code: int, after: int, points: Floats) -> float:
    """The threshold that parts a code from the next one present."""
    low = points[code]
    return low if splitter == BINNED else middle_of(low, points[after])


@inner
def middle_of(low: float, high: float) -> float:
    """The threshold between neighbouring values, never as large as ``high``."""
    middle = (low + high) / 2
    # the sum of two large numbers may overflow
    if not np.isfinite(middle):
        middle = low / 2 + high / 2
    return middle if middle < high else low


@inner
def search_numeric(
    profile: Profile,
    size: int,
    splitter: int,
    points: Floats,
    key: np.uint64,
    node: Node,
    measure: Measure,
    cuts: Counts,
    thresholds: Floats,
) -> tuple[float, int, float, int]:
    """The best split of a numeric feature: (impurity left, last code on the left, threshold, route).

    Where the node has missing values both sides are tried for them, and the cut that parts them
    from all values (threshold +inf). Otherwise they would go to the larger child.
    """
    n_cuts = list_cuts(profile, size, splitter, points, key, node.n_rows, cuts, thresholds)
    missing = 0
    for c in range(len(node.total)):
        missing += profile.missing[c]
    least = np.inf
    best = int(np.int64(-1))
    route = MISSING_RIGHT
    for missing_left in range(1, -1, -1) if missing > 0 else range(1):
        # to the right of all values there is one more cut: missing values alone
        if missing > 0 and missing_left == 0 and size > 0:
            cuts[n_cuts] = size - 1
            n_cuts += 1
        if measure.bisect:
            left, cut = by_bisection(cuts, n_cuts, profile, missing_left == 1, node, measure)
        else:
            left, cut = by_scan(cuts, n_cuts, profile, missing_left == 1, node, measure)
        # missing to the left is tried first and keeps ties, unless the other cut is lower
        if left < least or (left == least and cut < best):
            least = left
            best = cut
            route = missing_left
    if best < 0:
        return np.inf, -1, np.nan, route
    # none here: nothing tells where later ones belong, the larger child is only noted
    if missing == 0:
        present = 0
        below = 0
        for c in range(len(node.total)):
            present += node.total[c]
            below += profile.upto[cuts[best], c]
        route = UNSEEN + (MISSING_LEFT if 2 * below >= present else MISSING_RIGHT)
    threshold = threshold_of(best, profile, size, splitter, points, cuts, thresholds)
    return least, profile.code[cuts[best]], threshold, route


@inner
def search_nominal(profile: Profile, size: int, node: Node, measure: Measure) -> float:
    """One child per category present, and one for missing values: the impurity left."""
    n_children = 0
    worst = 0.0
    total = 0.0
    n = 0
    for at in range(size + 1):
        rows = 0
        for c in range(len(node.total)):
            # running sums: a category is a difference; the place after the last is for missing values
            if at == size:
                count = profile.missing[c]
            elif at > 0:
                count = profile.upto[at, c] - profile.upto[at - 1, c]
            else:
                count = profile.upto[at, c]
            rows += count
            node.left[c] = count * measure.unit
        if rows > 0:
            n_children += 1
            left = evaluate(measure.impurity, node.left)
            worst = max(worst, left)
            total += rows * left
            n += rows
    if n_children < 2:
        return np.inf
    return total / n if measure.expected else worst


@inner
def is_better(j: int, cost: float, drop: float, best: int, best_cost: float, best_drop: float) -> bool:
    """Whether feature ``j`` has less risk than feature ``best`` (-1: none yet)."""
    if drop <= LEAST_DROP:
        return False
    if best < 0:
        return True
    # both risks are 0, so the larger drop decides
    if cost == 0.0 and best_cost == 0.0:
        return drop > best_drop or (drop == best_drop and j < best)
    risk = cost / drop
    least = best_cost / best_drop
    return risk < least or (risk == least and j < best)


@inner
def search_feature(
    profile: Profile,
    size: int,
    nominal: bool,
    splitter: int,
    points: Floats,
    key: np.uint64,
    node: Node,
    measure: Measure,
    cuts: Counts,
    thresholds: Floats,
) -> tuple[float, int, float, int]:
    """The best split of a feature of either kind, as ``search_numeric`` tells it."""
    if nominal:
        return search_nominal(profile, size, node, measure), -1, np.nan, BY_CATEGORY
    return search_numeric(profile, size, splitter, points, key, node, measure, cuts, thresholds)
