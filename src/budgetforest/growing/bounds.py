"""Bounds on the impurity that each feature leaves, for all features at once.

For a monotone F under minimax one count of the rows at or below a *pivot* code bounds every cut of a
feature: cuts at or below it leave at least F(right) of it, cuts at or above it at least F(left). So a
pivot near the crossing of both is as good as the search, and counting needs one comparison a cell, of many
features in one instruction when the codes of a row stand side by side. Features that the bounds
leave no chance are not searched; that changes no tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.growing.impurity import evaluate_columns
from budgetforest.growing.split import LEAST_DROP, Measure, Node, is_better
from budgetforest.runtime.arrays import Codes, Counts, Flags, Floats, Ids
from budgetforest.runtime.jit import inner

FEATURES_AT_ONCE = 32
"""Features are counted in such portions; the width of a row of codes is a multiple."""

MOST_ROUNDS = 8
"""Pivots of a feature, at most."""

FEW_ROUNDS = 3
"""The same where not every cut can be had, so that pivots promise nothing."""

ROUNDING = 1.0 + 1e-12
"""More than rounding can do to a risk, if it is not less than ``LEAST_RISK``."""

LEAST_RISK = 1e-290
"""Risks below are not told apart: rounding can do anything to them, even make them 0."""

FEW = 32
"""Another round of pivots for all costs as much as searching four features and one in FEW."""

KEPT = 64
"""Waiting nodes that remember the pivots of their parents."""

LEFT, RIGHT, CUT = 0, 1, 2
LOW, HIGH = 0, 3
REST, SURE = 6, 7
"""Columns of ``Bounds.known``."""


class Bounds(NamedTuple):
    """What is known of every feature in one node; w features, padded to whole ``FEATURES_AT_ONCE``."""

    near: Codes
    """(rows, w) codes of a subtree's rows, side by side."""
    pivot: Codes
    """(w) the cut tried next: the last code on the left."""
    known: Floats
    """(w, 8) two cuts and F on both sides of them; no cut leaves less than REST, one no more than SURE.

    LOW is the last cut tried with F(left) < F(right), HIGH the first with F(left) >= F(right).
    """
    at_pivot: Floats
    """(2, w) F(left) and F(right) of ``pivot``."""
    counts: NDArray[np.int32]
    """(2, k, w) class counts left and right of the pivot."""
    present: NDArray[np.int32]
    """(k, w) class counts of the rows that have a value."""
    few: NDArray[np.uint8]
    """(w) counts of so few rows that a byte holds them; zero between uses."""
    before: Floats
    """(w) room for sums over classes."""
    worth: Floats
    """(m) one over the cost, a guess of what wins: no bound rests on it."""
    least: Codes
    """(w) the least code of the node's rows."""
    most: Codes
    """(w) the largest."""
    kept: Codes
    """(``KEPT``, w) last pivots of the parents of waiting nodes."""


def room_for_bounds(columns: Columns, cost: Floats, n_classes: int, n_rows: int) -> Bounds:
    """Memory for bounds in subtrees of at most ``n_rows`` rows."""
    w = width_of(len(columns.n_codes))
    kind = columns.codes.dtype
    return Bounds(
        near=np.zeros((n_rows, w), kind),
        pivot=np.zeros(w, kind),
        known=np.zeros((w, 8)),
        at_pivot=np.empty((2, w)),
        counts=np.empty((2, n_classes, w), np.int32),
        present=np.empty((n_classes, w), np.int32),
        few=np.zeros(w, np.uint8),
        before=np.empty(w),
        worth=1 / np.maximum(cost, LEAST_RISK),
        least=np.zeros(w, kind),
        most=np.zeros(w, kind),
        kept=np.zeros((KEPT, w), kind),
    )


def width_of(n_features: int) -> int:
    """Codes of a row, padded."""
    return FEATURES_AT_ONCE * ((n_features + FEATURES_AT_ONCE - 1) // FEATURES_AT_ONCE)


@inner
def bound_features(
    n_codes: Ids,
    nominal: Flags,
    rows: Ids,
    times: Ids,
    ends: Ids,
    cost: Floats,
    certain: bool,
    node: Node,
    measure: Measure,
    features: Counts,
    n_features: int,
    place: int,
    bounds: Bounds,
) -> tuple[int, int]:
    """Put the features that may have the least risk first; returns how many, and how many are of use.

    features:  | may win, the most promising first | cannot win here | no use below | ...

    Rows are sorted by class; class c ends at ``ends[c]``. ``certain`` says that every cut of every feature
    can be had, and that no value is missing. The node waited at ``place``, where its children will.
    """
    # the bracket of a feature: cuts between LOW and HIGH are open; the best is one of them, or an end
    open_brackets(n_codes, rows, node.impurity, features[:n_features], place, bounds)
    k = len(ends)
    present = bounds.present[:k]
    left = bounds.counts[0, :k]
    right = bounds.counts[1, :k]
    for c in range(k):
        for j in range(present.shape[1]):
            present[c, j] = node.total[c]
    # round after round: count at the pivots, drop who cannot win, move the pivots towards the crossing
    alive = n_features
    for number in range(0 if certain else -1, MOST_ROUNDS if certain else FEW_ROUNDS):
        # where values may be missing, a round before the first counts the rows that have one
        if number < 0:
            take_last_codes(features[:n_features], bounds.known, bounds.pivot)
        count_left(rows, times, ends, bounds.near, bounds.pivot, bounds.few, left)
        for c in range(k):
            for j in range(present.shape[1]):
                right[c, j] = present[c, j] - left[c, j]
        for side in range(2):
            evaluate_columns(
                measure.impurity,
                bounds.counts[side, :k],
                measure.unit,
                bounds.at_pivot[side],
                bounds.before,
                node.left,
            )
        if number < 0:
            leave_out_missing(
                features[:n_features], left, bounds.at_pivot[0], present, bounds.known, bounds.pivot
            )
            continue
        alive, n_features = keep_promising(
            nominal,
            cost,
            certain,
            node.impurity,
            features,
            alive,
            n_features,
            bounds.worth,
            bounds.at_pivot,
            bounds.known,
            bounds.pivot,
        )
        # so few are left that searching them one by one is cheaper than another round for all
        if alive * FEW <= len(bounds.pivot) + 4 * FEW:
            break
    # children wait at the same place and the next: they begin at these pivots (of the root one does)
    for to in range(max(place, 0), min(place + 2, KEPT)):
        for j in range(len(bounds.pivot)):
            bounds.kept[to, j] = bounds.pivot[j]
    return alive, n_features


@inner
def open_brackets(
    n_codes: Ids, rows: Ids, impurity: float, features: Counts, place: int, bounds: Bounds
) -> None:
    """Before the first pivot every cut between the least and the largest code is open.

    The parent's last pivot is a good first one.
    """
    least = bounds.least
    most = bounds.most
    # all columns at once: the codes of a row stand side by side
    first = np.uintp(rows[0])
    for column in range(len(least)):
        least[column] = bounds.near[first, column]
        most[column] = bounds.near[first, column]
    for i in range(len(rows)):
        row = np.uintp(rows[i])
        for column in range(len(least)):
            least[column] = min(least[column], bounds.near[row, column])
            most[column] = max(most[column], bounds.near[row, column])
    for at in range(len(features)):
        j = np.uintp(features[at])
        # the code n_codes[j] stands for missing, which is no cut
        high = min(np.int64(n_codes[j]) - 1, np.int64(most[j]))
        low = min(np.int64(least[j]), high) - 1
        known = bounds.known[j]
        # left of all rows there are none, and F of none is 0
        known[LOW + LEFT] = 0.0
        known[LOW + RIGHT] = impurity
        known[LOW + CUT] = low
        known[HIGH + LEFT] = impurity
        known[HIGH + RIGHT] = 0.0
        known[HIGH + CUT] = high
        pivot = (low + high) // 2
        # a child's crossing is near its parent's, so few rounds are needed
        if 0 <= place < KEPT:
            pivot = np.int64(bounds.kept[place, j])
        bounds.pivot[j] = max(low + 1, min(high - 1, pivot))


@inner
def take_last_codes(features: Counts, known: Floats, pivot: Codes) -> None:
    """Pivots that have every value on the left, and only missing ones on the right."""
    for at in range(len(features)):
        j = np.uintp(features[at])
        pivot[j] = max(known[j, HIGH + CUT], 0.0)


@inner
def leave_out_missing(
    features: Counts,
    counts: NDArray[np.int32],
    impurity: Floats,
    present: NDArray[np.int32],
    known: Floats,
    pivot: Codes,
) -> None:
    """Missing values go to either side: without them F is less on both, and a bound of both.

    ``counts`` (k, w) and ``impurity`` (w) are those of the rows that have a value.
    """
    for at in range(len(features)):
        j = np.uintp(features[at])
        for c in range(len(counts)):
            present[c, j] = counts[c, j]
        # F is monotone: fewer rows, less F; what bounds the rest bounds the whole
        of = known[j]
        of[LOW + RIGHT] = impurity[j]
        of[HIGH + LEFT] = impurity[j]
        pivot[j] = max(of[LOW + CUT] + 1, (of[LOW + CUT] + of[HIGH + CUT]) // 2)


@inner
def count_left(
    rows: Ids,
    times: Ids,
    ends: Ids,
    near: Codes,
    pivot: Codes,
    few: NDArray[np.uint8],
    counts: NDArray[np.int32],
) -> None:
    """Class counts (k, w) of the rows at or below the pivot of each feature.

    Four rows at a time are added up in bytes, as long as these cannot overflow; other rows one by one.
    """
    at = 0
    for c in range(len(ends)):
        left = counts[c]
        for j in range(len(left)):
            left[j] = 0
        while at < ends[c]:
            # a byte holds 255 before it could overflow
            spare = 255
            while at + 4 <= ends[c]:
                spare -= times[at] + times[at + 1] + times[at + 2] + times[at + 3]
                if spare < 0:
                    break
                row_a = np.uintp(rows[at])
                row_b = np.uintp(rows[at + 1])
                row_c = np.uintp(rows[at + 2])
                row_d = np.uintp(rows[at + 3])
                times_a = np.uint8(times[at])
                times_b = np.uint8(times[at + 1])
                times_c = np.uint8(times[at + 2])
                times_d = np.uint8(times[at + 3])
                for j in range(len(pivot)):
                    # one comparison of 32 codes with 32 pivots in one instruction; times are 0 or more
                    few[j] += (
                        (times_a if near[row_a, j] <= pivot[j] else 0)
                        + (times_b if near[row_b, j] <= pivot[j] else 0)
                        + (times_c if near[row_c, j] <= pivot[j] else 0)
                        + (times_d if near[row_d, j] <= pivot[j] else 0)
                    )
                at += 4
            # bytes into sums; the next row weighs too much for a byte, or fewer than four are left
            row = np.uintp(rows[min(at, ends[c] - 1)])
            once = times[at] if at < ends[c] else 0
            for j in range(len(left)):
                left[j] += few[j] + (once if near[row, j] <= pivot[j] else 0)
                few[j] = 0
            at += 1 if at < ends[c] else 0


@inner
def keep_promising(
    nominal: Flags,
    cost: Floats,
    certain: bool,
    impurity: float,
    features: Counts,
    alive: int,
    n_features: int,
    worth: Floats,
    at_pivot: Floats,
    known: Floats,
    pivot: Codes,
) -> tuple[int, int]:
    """Part the features by their bounds, see ``bound_features``."""
    # the most promising feature first: its sure drop is what others must beat
    best = 0
    most = 0.0
    for at in range(alive):
        j = np.uintp(features[at])
        narrow(int(np.int64(pivot[j])), at_pivot[0, j], at_pivot[1, j], known[j])
        # pivots say nothing of a child for each category: nothing is ruled out
        if nominal[j]:
            known[j, REST] = 0.0
            known[j, SURE] = impurity
        drop = impurity - known[j, SURE if certain else REST]
        # a product instead of a quotient: only a guess of the winner, is_better decides
        per_cost = drop * worth[j]
        if per_cost > most or (per_cost == most and features[at] < features[best]):
            most = per_cost
            best = at
    first = features[best]
    features[best] = features[0]
    features[0] = first
    # the first feature has a cut with at least this drop, so its risk is at most cost / sure
    sure = impurity - known[first, SURE]
    certain = certain and sure > LEAST_DROP
    # a feature of more risk than this cannot win; rounding is allowed for, so that ties are not lost
    limit = max(cost[first] / sure * ROUNDING, LEAST_RISK) if certain else np.inf
    at = 0
    while at < alive:
        j = np.uintp(features[at])
        drop = impurity - known[j, REST]
        # F is supermodular: what lowers it by nothing here lowers it nowhere below
        if drop <= LEAST_DROP:
            alive -= 1
            n_features -= 1
            features[at] = features[alive]
            features[alive] = features[n_features]
            features[n_features] = np.int64(j)
        # even its best possible drop leaves more risk than the first feature's sure one
        elif drop * limit < cost[j] or (
            certain
            and features[at] != first
            and not is_better(features[at], cost[j], drop, first, cost[first], sure)
        ):
            alive -= 1
            features[at] = features[alive]
            features[alive] = np.int64(j)
        else:
            pivot[j] = next_pivot(known[j])
            at += 1
    return alive, n_features


@inner
def narrow(cut: int, left: float, right: float, known: Floats) -> None:
    """Move an end of a feature's bracket to the pivot and bound what is inside."""
    end = HIGH * int(left >= right)  # no branch: it would be a toss-up
    known[end + LEFT] = left
    known[end + RIGHT] = right
    known[end + CUT] = cut
    # the better end is sure; no cut inside leaves less than F left of LOW or F right of HIGH
    sure = min(known[LOW + RIGHT], known[HIGH + LEFT])
    inside = min(sure, max(known[LOW + LEFT], known[HIGH + RIGHT]))
    known[SURE] = sure
    known[REST] = sure if known[HIGH + CUT] - known[LOW + CUT] < 2.0 else inside


@inner
def next_pivot(known: Floats) -> int:
    """Where the crossing should be: F(right) - F(left), a difference of squares, is about linear."""
    low = known[LOW + CUT]
    high = known[HIGH + CUT]
    # linear interpolation of the difference, which is positive at LOW and negative at HIGH
    down = known[LOW + RIGHT] - known[LOW + LEFT]
    up = known[HIGH + LEFT] - known[HIGH + RIGHT]
    share = down / (down + up) if 0.0 < down + up < np.inf else 0.5
    cut = low + (high - low) * share
    return int(max(low + 1.0, min(high - 1.0, cut)))


@inner
def is_settled(known: Floats, certain: bool) -> bool:
    """Whether a cut leaves no more than REST."""
    return certain and known[REST] == known[SURE]
