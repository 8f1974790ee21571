"""The best cut of one feature in a node of few rows, by counting them at few codes.

It lies where F(left) and F(right) cross, see ``split.by_bisection``. The bracket that ``bounds`` has found
around the crossing is narrowed by passes over the rows, cheaper than a profile when rows are few. All cuts
between two neighbouring codes of the node are the same, so each pass moves an end of the bracket to a
code that is there.
"""

from __future__ import annotations

from budgetforest.growing.bounds import CUT, HIGH, LEFT, LOW, RIGHT, narrow, next_pivot
from budgetforest.growing.histogram import Cells, code_of
from budgetforest.growing.impurity import evaluate
from budgetforest.growing.split import Measure, Node
from budgetforest.runtime.arrays import Floats, Ids
from budgetforest.runtime.jit import inner

COUNTED_BELOW = 128
"""Nodes of fewer rows are searched by passes, others by profiles."""

ABOVE_ALL = 1 << 40
"""More than any code."""


@inner
def approach(
    cells: Cells, j: int, rows: Ids, times: Ids, ends: Ids, node: Node, measure: Measure, known: Floats
) -> None:
    """Narrow the bracket of feature ``j`` by one pass."""
    left, right, below, above, _ = sides_of(cells, j, rows, times, ends, next_pivot(known), node, measure)
    # to a code that is there: cuts between two codes present part the rows alike
    narrow(below if left >= right else above - 1, left, right, known)


@inner
def best_cut_of(
    cells: Cells,
    j: int,
    rows: Ids,
    times: Ids,
    ends: Ids,
    node: Node,
    measure: Measure,
    known: Floats,
    least: int,
) -> tuple[int, int, bool]:
    """The last code on the left, the next one, and whether most rows are left: as ``by_bisection``.

    ``least`` is the least code of the rows.
    """
    # until no cut is open between the ends: the crossing lies between neighbouring codes
    while known[HIGH + CUT] - known[LOW + CUT] > 1.0:
        approach(cells, j, rows, times, ends, node, measure, known)
    limit = known[LOW + RIGHT]
    low = least - 1
    high = int(known[HIGH + CUT])
    pivot = int(known[LOW + CUT])
    if pivot > low and limit <= known[HIGH + LEFT]:
        # before the crossing the right side is the worse one: the first cut with no more than its F
        high = pivot + 1
        while high - low > 1:
            _, right, below, above, _ = sides_of(cells, j, rows, times, ends, pivot, node, measure)
            # F(right) only falls with the cut, so this is a bisection for the first that is low enough
            if right <= limit:
                high = below
                pivot = below - 1
            else:
                low = above - 1
                pivot = (low + high) // 2
    # once more at the winner, for the next code present and the larger side
    _, _, _, above, size = sides_of(cells, j, rows, times, ends, high, node, measure)
    total = 0
    for c in range(len(ends)):
        total += node.total[c]
    return high, above, 2 * size >= total


@inner
def sides_of(
    cells: Cells, j: int, rows: Ids, times: Ids, ends: Ids, cut: int, node: Node, measure: Measure
) -> tuple[float, float, int, int, int]:
    """F left and right of a cut, the nearest codes of rows at or below it and above, and rows on the left."""
    size = 0
    below = -1
    above = ABOVE_ALL
    at = 0
    for c in range(len(ends)):
        n = 0
        while at < ends[c]:
            code = code_of(cells, j, rows[at])
            # conditional moves instead of branches: where a row goes is a toss-up
            goes = code <= cut
            n += times[at] if goes else 0
            below = max(below, code if goes else -1)
            above = min(above, ABOVE_ALL if goes else code)
            at += 1
        size += n
        node.left[c] = n * measure.unit
        node.right[c] = (node.total[c] - n) * measure.unit
    left = evaluate(measure.impurity, node.left)
    return left, evaluate(measure.impurity, node.right), below, above, size
