"""Class counts of a node's rows by code, the only thing that growing asks of the data.

Counts of blocks of rows add up to the counts of all, which is the seam for other engines. A *profile* of
one feature is the ascending list of codes present in the node, each with the class counts of all rows
up to it. Only non-missing rows are in it; missing ones are counted apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.data.binning import Columns
from budgetforest.runtime.arrays import Codes, Counts, Ids
from budgetforest.runtime.jit import inner

SORTED_BELOW = 32
"""Nodes with fewer rows, or with fewer than 1/32 of the codes, sort them instead of visiting every code."""

ONE = np.uintp(1)
ROWS_PER_CODE = 16
"""Rows for each code, from which on all codes are looked at after counting."""


class Cells(NamedTuple):
    """Codes of rows, by column or side by side."""

    codes: Codes
    """All codes, one after the other."""
    by_feature: int
    """How far the next feature of a row is."""
    by_row: int
    """How far the next row of a feature is."""


def cells_of(columns: Columns) -> Cells:
    """The codes of all rows; made here, since ``reshape`` takes numba .2 s to compile."""
    return Cells(columns.codes.reshape(-1), columns.codes.shape[1], 1)


class Profile(NamedTuple):
    """Room for the profile of one feature in one node, used again for the next.

    Class counts stand in the first k columns, k the number of classes that the node has. What kernels pass
    around is kept small: numba takes a tuple apart, field by field, in every function that is given it.
    """

    code: Ids
    """Codes present, ascending."""
    upto: NDArray[np.int32]
    """(codes, k) class counts of the rows up to each code."""
    missing: NDArray[np.int32]
    """(k) class counts of the rows without a value."""


class Counter(NamedTuple):
    """What fills profiles."""

    tally: NDArray[np.int32]
    """(k, codes) class counts by code; all zero between uses."""
    lines: NDArray[np.int32]
    """(2, codes) the same of one class, of either half of its rows."""
    touched: NDArray[np.uint8]
    """Which codes have rows; all zero between uses."""
    eights: NDArray[np.uint64]
    """The same memory, eight codes at a time: most codes of a small node are skipped in a glance."""
    order: Counts
    """Room for sorting rows by code."""
    label: Ids
    """Their classes."""


def profile_for(n_codes: int, n_classes: int) -> Profile:
    """Room for features of at most ``n_codes`` codes."""
    return Profile(
        np.empty(n_codes + 1, np.int32),
        np.empty((n_codes + 1, n_classes), np.int32),
        np.zeros(n_classes, np.int32),
    )


def counter_for(n_codes: int, n_classes: int) -> Counter:
    """The same for what fills them."""
    touched = np.zeros(8 * (n_codes // 8 + 1), np.uint8)
    most_sorted = max(SORTED_BELOW, n_codes // SORTED_BELOW)
    return Counter(
        np.zeros((n_classes, n_codes + 1), np.int32),
        np.zeros((2, n_codes + 1), np.int32),
        touched,
        touched.view(np.uint64),
        np.empty(most_sorted, np.int64),
        np.empty(most_sorted, np.int32),
    )


@inner
def code_of(cells: Cells, j: int, row: int) -> int:
    """The code of feature ``j`` in a row."""
    # by column: | rows of feature 0 | rows of feature 1 | ...   by_row == 1
    # by row:    | features of row 0 | features of row 1 | ...   by_feature == 1
    return int(cells.codes[np.uintp(j * cells.by_feature + row * cells.by_row)])


@inner
def tally_rows(cells: Cells, j: int, rows: Ids, ends: Ids, weight: Ids, counter: Counter) -> None:
    """Add the class counts of ``rows`` by code: ``tally[class, code]``. Blocks add up.

    Rows are sorted by class; class c ends at ``ends[c]``. Places without a sign spare the check for those
    that count from the end.
    """
    tally = counter.tally
    touched = counter.touched
    # with many rows a code, looking through all codes afterwards costs less than noting each
    if len(rows) >= ROWS_PER_CODE * tally.shape[1]:
        tally_many(cells, j, rows, ends, weight, tally, counter.lines, touched)
        return
    # rows are grouped by class, so no label is read
    start = 0
    for c in range(len(ends)):
        for i in range(start, ends[c]):
            at = np.uintp(i)
            code = np.uintp(code_of(cells, j, rows[at]))
            tally[c, code] += weight[at]
            # the codes that ``take_profile`` visits and clears
            touched[code] = 1
        start = int(np.int64(ends[c]))


@inner
def tally_many(
    cells: Cells,
    j: int,
    rows: Ids,
    ends: Ids,
    weight: Ids,
    tally: NDArray[np.int32],
    lines: NDArray[np.int32],
    touched: NDArray[np.uint8],
) -> None:
    """The same for many rows: two of a class at a time, and which codes there are is seen in the end.

    A row waits until the count of the row before is written if that has the same code; one of the other half
    need not. Lines of one class spare a multiplication.
    """
    first, second = lines[0], lines[1]
    base = np.uintp(j * cells.by_feature)
    start = 0
    for c in range(len(ends)):
        stop = int(np.int64(ends[c]))
        if cells.by_row == 1:  # compiled apart, without a multiplication
            tally_halves(cells.codes, base, ONE, rows[start:stop], weight[start:stop], first, second)
        else:
            step = np.uintp(cells.by_row)
            tally_halves(cells.codes, base, step, rows[start:stop], weight[start:stop], first, second)
        # two loops without a branch, so that LLVM makes vectors of them
        of_class = tally[c]
        for code in range(len(first)):
            of_class[code] = first[code] + second[code]
            first[code] = 0
            second[code] = 0
        for code in range(len(first)):
            # every row weighs at least 1: a count of 0 means no rows
            touched[code] |= of_class[code] != 0
        start = stop


@inner
def tally_halves(
    codes: Codes,
    base: np.uintp,
    step: np.uintp,
    rows: Ids,
    weight: Ids,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
) -> None:
    """The weight of rows by code, of either half."""
    # rows: | i -> first ...... | i + half -> second ...... | one more if their number is odd
    half = len(rows) >> 1
    for i in range(half):
        one, two = np.uintp(i), np.uintp(i + half)
        first[np.uintp(codes[base + np.uintp(rows[one]) * step])] += weight[one]
        second[np.uintp(codes[base + np.uintp(rows[two]) * step])] += weight[two]
    if 2 * half < len(rows):
        first[np.uintp(codes[base + np.uintp(rows[2 * half]) * step])] += weight[2 * half]


@inner
def fill_profile(
    cells: Cells,
    j: int,
    n_codes: int,
    rows: Ids,
    ends: Ids,
    weight: Ids,
    counter: Counter,
    profile: Profile,
) -> int:
    """The profile of feature ``j``; returns how many codes are present."""
    # counting visits all codes afterwards: for few rows sorting is cheaper
    if len(rows) < max(SORTED_BELOW, n_codes // SORTED_BELOW):
        return _by_sorting(cells, j, n_codes, rows, ends, weight, counter.order, counter.label, profile)
    tally_rows(cells, j, rows, ends, weight, counter)
    return take_profile(n_codes, len(ends), counter, profile)


@inner
def take_profile(n_codes: int, k: int, counter: Counter, profile: Profile) -> int:
    """Turn the tally into a profile, leaving the tally empty."""
    tally = counter.tally
    touched = counter.touched
    upto = profile.upto
    size = 0
    for c in range(k):
        profile.missing[c] = tally[c, n_codes]
        tally[c, n_codes] = 0
    # cleared here, for the loop below ends before the code of missing values
    touched[n_codes] = 0
    # eight flags are one word: most words of a small node are zero
    for eight in range(n_codes // 8 + 1):
        if counter.eights[eight] == 0:
            continue
        for code in range(8 * eight, min(8 * eight + 8, n_codes)):
            if touched[code] == 0:
                continue
            touched[code] = 0
            # running sums over the codes present: a cut after position p has upto[p] on its left
            for c in range(k):
                upto[size, c] = tally[c, code] + (upto[size - 1, c] if size > 0 else 0)
                tally[c, code] = 0
            profile.code[size] = code
            size += 1
    return size


@inner
def _by_sorting(
    cells: Cells,
    j: int,
    n_codes: int,
    rows: Ids,
    ends: Ids,
    weight: Ids,
    order: Counts,
    label: Ids,
    profile: Profile,
) -> int:
    """The same for few rows among many codes: sort them (shell sort), then run along."""
    n = len(rows)
    k = len(ends)
    c = 0
    for i in range(n):
        while i >= ends[c]:
            c += 1
        label[i] = c
        # code and place in one number, so that equal codes keep their order
        order[i] = (code_of(cells, j, rows[i]) << 32) + i
    # in place, for an inner kernel cannot allocate; Knuth's gaps 1, 4, 13, ...
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            moved = order[i]
            to = i
            while to >= gap and order[to - gap] > moved:
                order[to] = order[to - gap]
                to -= gap
            order[to] = moved
        gap //= 3
    for c in range(k):
        profile.missing[c] = 0
    size = 0
    # one run of equal codes after the other; missing values, of the largest code, come last
    for i in range(n):
        at = order[i] & 0xFFFFFFFF
        code = order[i] >> 32
        if code == n_codes:
            profile.missing[label[at]] += weight[at]
            continue
        if size == 0 or profile.code[size - 1] != code:
            for c in range(k):
                profile.upto[size, c] = profile.upto[size - 1, c] if size > 0 else 0
            profile.code[size] = code
            size += 1
        profile.upto[size - 1, label[at]] += weight[at]
    return size


@inner
def partition(
    cells: Cells, j: int, rows: Ids, cut: int, missing_left: bool, n_codes: int, buffer: Ids
) -> int:
    """Reorder ``rows`` in place, stably: codes up to ``cut`` first. Returns how many those are.

    rows:  | code <= cut ........ | code > cut .......... |
                                    buffered meanwhile
    """
    kept = 0
    moved = 0
    # kept <= i, so nothing is overwritten before it was read; stable, so the rows of a child still ascend
    for i in range(len(rows)):
        row = rows[i]
        code = code_of(cells, j, row)
        goes = int(code <= cut) | (int(missing_left) & int(code == n_codes))
        # both are written and one counts, for a branch would be a toss-up
        rows[kept] = row
        buffer[moved] = row
        kept += goes
        moved += 1 - goes
    for i in range(moved):
        rows[kept + i] = buffer[i]
    return kept


@inner
def partition_by_code(cells: Cells, j: int, rows: Ids, n_codes: int, begin: Counts, buffer: Ids) -> None:
    """Reorder ``rows`` in place, stably, by code; ``begin[c]`` is where code c starts.

    rows:  | code 0 ... | code 1 ...... | ... | missing ... |
           begin[0]     begin[1]              begin[n_codes] begin[n_codes + 1]
    """
    # counting sort: sizes, running sums, then every row to its place
    for code in range(n_codes + 2):
        begin[code] = 0
    for i in range(len(rows)):
        begin[code_of(cells, j, rows[i]) + 1] += 1
        buffer[i] = rows[i]
    for code in range(n_codes + 1):
        begin[code + 1] += begin[code]
    for i in range(len(rows)):
        code = code_of(cells, j, buffer[i])
        rows[begin[code]] = buffer[i]
        begin[code] += 1
    # begin[c] has moved on to where code c ends, which is where code c + 1 begins
    for code in range(n_codes + 1, 0, -1):
        begin[code] = begin[code - 1]
    begin[0] = 0
