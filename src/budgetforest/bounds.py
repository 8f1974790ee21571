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

from budgetforest.arrays import Codes, Counts, Floats, Ids
from budgetforest.binning import Columns
from budgetforest.impurity import evaluate_columns
from budgetforest.jit import inner
from budgetforest.split import LEAST_DROP, Measure, Node, is_better

LANES = 32
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
    """What is known of every feature in one node; w features, padded to whole ``LANES``."""

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
    return LANES * ((n_features + LANES - 1) // LANES)


@inner
def bound_features(
    columns: Columns,
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
    open_brackets(columns, rows, node, features, n_features, place, bounds)
    alive = n_features
    for number in range(0 if certain else -1, MOST_ROUNDS if certain else FEW_ROUNDS):
        if number < 0:
            take_last_codes(features, n_features, bounds)
        count_left(rows, times, ends, bounds)
        for side in range(2):
            evaluate_columns(
                measure.impurity,
                bounds.counts[side, : len(ends)],
                measure.unit,
                bounds.at_pivot[side],
                bounds.before,
                node.left,
            )
        if number < 0:
            leave_out_missing(len(ends), features, n_features, bounds)
            continue
        alive, n_features = keep_promising(columns, cost, certain, node, features, alive, n_features, bounds)
        if alive * FEW <= len(bounds.pivot) + 4 * FEW:
            break
    for to in range(max(place, 0), min(place + 2, KEPT)):
        for j in range(len(bounds.pivot)):
            bounds.kept[to, j] = bounds.pivot[j]
    return alive, n_features


@inner
def open_brackets(
    columns: Columns, rows: Ids, node: Node, features: Counts, n_features: int, place: int, bounds: Bounds
) -> None:
    """Before the first pivot every cut between the least and the largest code is open.

    The parent's last pivot is a good first one.
    """
    least = bounds.least
    most = bounds.most
    first = np.uintp(rows[0])
    for column in range(len(least)):
        least[column] = bounds.near[first, column]
        most[column] = bounds.near[first, column]
    for i in range(len(rows)):
        row = np.uintp(rows[i])
        for column in range(len(least)):
            least[column] = min(least[column], bounds.near[row, column])
            most[column] = max(most[column], bounds.near[row, column])
    for at in range(n_features):
        j = np.uintp(features[at])
        high = min(np.int64(columns.n_codes[j]) - 1, np.int64(bounds.most[j]))
        low = min(np.int64(bounds.least[j]), high) - 1
        known = bounds.known[j]
        known[LOW + LEFT] = 0.0
        known[LOW + RIGHT] = node.impurity
        known[LOW + CUT] = low
        known[HIGH + LEFT] = node.impurity
        known[HIGH + RIGHT] = 0.0
        known[HIGH + CUT] = high
        pivot = (low + high) // 2
        if 0 <= place < KEPT:
            pivot = np.int64(bounds.kept[place, j])
        bounds.pivot[j] = max(low + 1, min(high - 1, pivot))
    for c in range(len(node.total)):
        present = bounds.present[c]
        for column in range(len(present)):
            present[column] = node.total[c]


@inner
def take_last_codes(features: Counts, n_features: int, bounds: Bounds) -> None:
    """Pivots that have every value on the left, and only missing ones on the right."""
    for at in range(n_features):
        j = np.uintp(features[at])
        bounds.pivot[j] = max(bounds.known[j, HIGH + CUT], 0.0)


@inner
def leave_out_missing(k: int, features: Counts, n_features: int, bounds: Bounds) -> None:
    """Missing values go to either side: without them F is less on both, and a bound of both."""
    for at in range(n_features):
        j = np.uintp(features[at])
        for c in range(k):
            bounds.present[c, j] = bounds.counts[0, c, j]
        known = bounds.known[j]
        known[LOW + RIGHT] = bounds.at_pivot[0, j]
        known[HIGH + LEFT] = bounds.at_pivot[0, j]
        bounds.pivot[j] = max(known[LOW + CUT] + 1, (known[LOW + CUT] + known[HIGH + CUT]) // 2)


@inner
def count_left(rows: Ids, times: Ids, ends: Ids, bounds: Bounds) -> None:
    """Class counts of the rows at or below the pivot of each feature, and above it.

    Four rows at a time are added up in bytes, as long as these cannot overflow; other rows one by one.
    """
    near = bounds.near
    pivot = bounds.pivot
    few = bounds.few
    at = 0
    for c in range(len(ends)):
        left = bounds.counts[0, c]
        for j in range(len(left)):
            left[j] = 0
        while at < ends[c]:
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
                    few[j] += (
                        (times_a if near[row_a, j] <= pivot[j] else 0)
                        + (times_b if near[row_b, j] <= pivot[j] else 0)
                        + (times_c if near[row_c, j] <= pivot[j] else 0)
                        + (times_d if near[row_d, j] <= pivot[j] else 0)
                    )
                at += 4
            row = np.uintp(rows[min(at, ends[c] - 1)])
            once = times[at] if at < ends[c] else 0
            for j in range(len(left)):
                left[j] += few[j] + (once if near[row, j] <= pivot[j] else 0)
                few[j] = 0
            at += 1 if at < ends[c] else 0
        right = bounds.counts[1, c]
        present = bounds.present[c]
        for j in range(len(left)):
            right[j] = present[j] - left[j]


@inner
def keep_promising(
    columns: Columns,
    cost: Floats,
    certain: bool,
    node: Node,
    features: Counts,
    alive: int,
    n_features: int,
    bounds: Bounds,
) -> tuple[int, int]:
    """Part the features by their bounds, see ``bound_features``."""
    best = 0
    most = 0.0
    for at in range(alive):
        j = np.uintp(features[at])
        narrow(int(np.int64(bounds.pivot[j])), bounds.at_pivot[0, j], bounds.at_pivot[1, j], bounds.known[j])
        if columns.nominal[j]:
            bounds.known[j, REST] = 0.0
            bounds.known[j, SURE] = node.impurity
        drop = node.impurity - bounds.known[j, SURE if certain else REST]
        per_cost = drop * bounds.worth[j]
        if per_cost > most or (per_cost == most and features[at] < features[best]):
            most = per_cost
            best = at
    first = features[best]
    features[best] = features[0]
    features[0] = first
    sure = node.impurity - bounds.known[first, SURE]
    certain = certain and sure > LEAST_DROP
    limit = max(cost[first] / sure * ROUNDING, LEAST_RISK) if certain else np.inf
    at = 0
    while at < alive:
        j = np.uintp(features[at])
        drop = node.impurity - bounds.known[j, REST]
        if drop <= LEAST_DROP:
            alive -= 1
            n_features -= 1
            features[at] = features[alive]
            features[alive] = features[n_features]
            features[n_features] = np.int64(j)
        elif drop * limit < cost[j] or (
            certain
            and features[at] != first
            and not is_better(features[at], cost[j], drop, first, cost[first], sure)
        ):
            alive -= 1
            features[at] = features[alive]
            features[alive] = np.int64(j)
        else:
            bounds.pivot[j] = next_pivot(bounds.known[j])
            at += 1
    return alive, n_features


@inner
def narrow(cut: int, left: float, right: float, known: Floats) -> None:
    """Move an end of a feature's bracket to the pivot and bound what is inside."""
    end = HIGH * int(left >= right)  # no branch: it would be a toss-up
    known[end + LEFT] = left
    known[end + RIGHT] = right
    known[end + CUT] = cut
    sure = min(known[LOW + RIGHT], known[HIGH + LEFT])
    inside = min(sure, max(known[LOW + LEFT], known[HIGH + RIGHT]))
    known[SURE] = sure
    known[REST] = sure if known[HIGH + CUT] - known[LOW + CUT] < 2.0 else inside


@inner
def next_pivot(known: Floats) -> int:
    """Where the crossing should be: F(right) - F(left), a difference of squares, is about linear."""
    low = known[LOW + CUT]
    high = known[HIGH + CUT]
    down = known[LOW + RIGHT] - known[LOW + LEFT]
    up = known[HIGH + LEFT] - known[HIGH + RIGHT]
    share = down / (down + up) if 0.0 < down + up < np.inf else 0.5
    cut = low + (high - low) * share
    return int(max(low + 1.0, min(high - 1.0, cut)))


@inner
def is_settled(j: int, certain: bool, bounds: Bounds) -> bool:
    """Whether a cut leaves no more than REST."""
    return certain and bounds.known[j, REST] == bounds.known[j, SURE]
