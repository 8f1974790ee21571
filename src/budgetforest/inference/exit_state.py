r"""The trees of a row, compiled: what they expect, what they wait for, and what they can still say.

A tree stands at the first node whose feature is unknown. It expects the mean of both children, by their
training weight, and so on below, so that whatever is known further down counts; and it can say what the
leaves say that may still be reached:

              o age?    unknown: the reach of the tree, 2^20, is shared out by training weight
            /   \
   700,000 o     o 348,576               pulse is unknown, and so is all below:
        sex?     pulse?                  the node speaks for all of it, 348,576 parts
       / \
          o 700,000     sex is known: all goes one way; and on, as long as something below is known

A node also speaks for all below it if less than a 16th of the tree reaches it. A value changes only trees
that *heed* its feature: they ask for it at a node that they are followed into, or below one that a 16th
reaches. These are followed anew, side by side, and the sums over all trees updated.
Expectations are whole numbers, kept in doubles: the order in which values come changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from budgetforest.data.costs import Prices
from budgetforest.data.price_kernel import price
from budgetforest.inference.exit_forest import (
    ABOVE_ALL,
    BELOW,
    LEFT,
    NOMINAL,
    OWN,
    RANK,
    RIGHT,
    SLOT,
    SLOTS,
    START,
    STOP,
    UNKNOWN,
    UNTIL,
    Walked,
    width_of,
)
from budgetforest.inference.ledger import Ledger, pay
from budgetforest.runtime.arrays import Counts, Floats, Ids, Keys, Matrix, in_lines
from budgetforest.runtime.jit import inlined, inner
from budgetforest.runtime.random import ONE
from budgetforest.runtime.simd import OCTET, add_octet, add_part_or_most, first_of, take_octet
from budgetforest.trees.forest import BELIEF, Forest
from budgetforest.trees.odds import FOLLOWED, REACH, SHIFT
from budgetforest.trees.walk import Sides, add_ends, add_mean, draw_to_base_rate, list_sides, sides_for

NOWHERE = -1
"""The child of a value that is unknown."""
SETTLED, STUCK = -1, -2
"""What a tree waits for that has said all; and one that stands at a value that cannot be had."""
LOW_HALF, HALF = np.uint64(2**32 - 1), np.uint64(32)


class State(NamedTuple):
    """The trees of a row, and all that follows from what it knows."""

    rank: Ids
    """(SLOTS m + 1) for each feature how many of its thresholds lie below the row's value: where missing
    values go right, where they go left, and where they are unknown. The last is never known: leaves ask
    for it."""
    at: Ids
    """(t) where each tree stands: as far as all that is asked on the way is known."""
    heeds: Keys
    """(t) the features whose values change what it says, a bit each, modulo 64; others may be among them."""
    awaits: Ids
    """(t) the feature that it waits for, or ``SETTLED`` or ``STUCK``."""
    waiting: Ids
    """(m) how many trees wait for each feature."""
    waits: Keys
    """(words) which features any tree waits for, a bit each."""
    wanted: Keys
    """(words) the same with what trees would ask for that are stuck."""
    stuck: Counts
    """(1) how many are."""
    score: Counts
    """(m) how far each feature may move what the trees that have more to say expect."""
    freed: Counts
    """(groups) the scores of those features that come for nothing with another of their group."""
    open: Counts
    """(2) all scores together, now and with nothing known."""
    sums: Floats
    """(width) what all trees say."""
    believed: Floats
    """(k) what is believed, in units of 1 / ``BELIEF``."""
    said: Floats
    """(t, width) what each tree says."""
    known: Keys
    """(1) the known features, a bit each, modulo 64."""
    heard: Ids
    """(t) the trees that a value concerns,"""
    stood: Ids
    """(t) and where each of them stood before."""
    work: Keys
    """Nodes that trees are followed into, from the first place on, and those that speak for all below them,
    from the last place back: the node in the low half, the parts of its tree that get there in the high."""
    owner: Ids
    """Whose they are."""
    path: Ids
    """Nodes on the way to what a tree asks for."""
    found: Ids
    """Features that trees ask for on all sides of a lost value."""
    sides: Sides
    """Room for trees on all sides of lost values."""


def state_for(forest: Forest) -> State:
    """Room for the trees of a row; what is never written takes no memory."""
    t, m, k, d = forest.n_trees, len(forest.costs.cost), len(forest.prior), len(forest.nodes.feature)
    words = -(-m // 64)
    return State(
        rank=np.full(SLOTS * m + 1, UNKNOWN, np.int32),
        at=np.zeros(t, np.int32),
        heeds=np.zeros(t, np.uint64),
        awaits=np.zeros(t, np.int32),
        waiting=np.zeros(m, np.int32),
        waits=np.zeros(words, np.uint64),
        wanted=np.zeros(words, np.uint64),
        stuck=np.zeros(1, np.int64),
        score=np.zeros(m, np.int64),
        freed=np.zeros(len(forest.costs.group_names), np.int64),
        open=np.zeros(2, np.int64),
        sums=in_lines((width_of(k),), np.float64),
        believed=np.zeros(k),
        said=in_lines((t, width_of(k)), np.float64),
        known=np.zeros(1, np.uint64),
        heard=np.zeros(t, np.int32),
        stood=np.zeros(t, np.int32),
        work=np.empty(d + 2, np.uint64),
        owner=np.empty(d + 2, np.int32),
        path=np.empty(d + 1, np.int32),
        found=np.empty(d + 1, np.int32),
        sides=sides_for(d, k),
    )


@inlined
def start_row(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: State) -> None:
    """All trees of a row, given what it knows."""
    q.known[0] = 0
    # entries of features that no node asks for are never read
    for j in forest.asked:
        for slot in range(SLOTS):
            q.rank[SLOTS * j + slot] = UNKNOWN
        q.score[j] = 0
        q.waiting[j] = 0
        if ledger.acquired[i, j]:
            _know(forest, int(np.int64(j)), X[i, j], q)
    for word in range(len(q.waits)):
        q.waits[word] = 0
    for c in range(len(q.sums)):
        q.sums[c] = 0.0
    q.stuck[0] = q.open[0] = q.open[1] = 0
    for t in range(len(q.at)):
        root = forest.roots[t]
        for place in range(forest.steps[root, START], forest.steps[root, STOP]):
            q.open[1] += forest.moves[place]
        q.at[t], q.awaits[t], q.heard[t] = root, SETTLED, t
    _hear(forest, X, i, np.uint64(len(q.at)), q)


@inlined
def copy_state(forest: Walked, start: State, q: State) -> None:
    """The trees of a row as those of another one of which nothing is known."""
    q.open[0], q.open[1], q.stuck[0], q.known[0] = start.open[0], start.open[1], 0, 0
    for j in forest.asked:
        for slot in range(SLOTS):
            q.rank[SLOTS * j + slot] = UNKNOWN
        q.score[j], q.waiting[j] = start.score[j], start.waiting[j]
    for word in range(len(q.waits)):
        q.waits[word] = start.waits[word]
    for t in range(len(q.at)):
        q.at[t], q.heeds[t], q.awaits[t] = start.at[t], start.heeds[t], start.awaits[t]
        for c in range(q.said.shape[1]):
            q.said[t, c] = start.said[t, c]
    for c in range(len(q.sums)):
        q.sums[c] = start.sums[c]
    for c in range(len(q.believed)):
        q.believed[c] = start.believed[c]


@inlined
def acquire(forest: Walked, X: Matrix, i: int, j: int, prices: Prices, ledger: Ledger, q: State) -> None:
    """A row pays for feature ``j``, and its trees learn the value."""
    pay(i, j, prices, ledger)
    _know(forest, j, X[i, j], q)
    said, width = q.said.reshape(-1), np.uint64(len(q.sums))
    bit, n = ONE << np.uint64(j & 63), np.uint64(0)
    for t in range(len(q.at)):
        # written always, counted if it is so: whether a tree is concerned is a toss-up
        q.heard[n] = t
        n += np.uint64(q.heeds[t] & bit != 0)
    for place in range(np.uint64(0), n):
        # minus the old term, plus the new one: exact but for soft votes (``slack_of``)
        for c in range(np.uint64(0), width, np.uint64(OCTET)):
            take_octet(q.sums, c, said, np.uint64(q.heard[place]) * width + c)
    _hear(forest, X, i, n, q)


@inlined
def _hear(forest: Walked, X: Matrix, i: int, n: Any, q: State) -> None:
    """Let the first ``n`` trees of ``heard`` go on through what is known, and add to the sums what they say.

    They are followed side by side: while one waits for memory, the processor is at the others.
    """
    said, width = q.said.reshape(-1), np.uint64(len(q.sums))
    for place in range(np.uint64(0), n):
        t = np.uint64(q.heard[place])
        node = np.uint64(q.at[t])
        q.stood[place] = q.at[t]
        child = _child(forest, X, i, node, q)
        while child != NOWHERE:
            node = np.uint64(child)
            child = _child(forest, X, i, node, q)
        q.at[t] = np.int32(node)
    _expect(forest, X, i, n, q)
    for place in range(np.uint64(0), n):
        t = np.uint64(q.heard[place])
        for c in range(np.uint64(0), width, np.uint64(OCTET)):
            add_octet(q.sums, c, said, t * width + c)
        _wait(forest, t, q.stood[place], q)
    _believe(forest, q)


@inlined
def _know(forest: Walked, j: int, x: float, q: State) -> None:
    """The value of feature ``j`` as a rank."""
    # how many thresholds lie below the value: binary search among a power of two less one
    first, low = np.uint64(forest.begin[j]), np.uint64(0)
    for halving in range(forest.halvings[j] - 1, -1, -1):  # written with shifts: a branch would be a toss-up
        middle = first + low + (ONE << np.uint64(halving)) - ONE
        low += np.uint64(forest.cuts[middle] < x) << np.uint64(halving)
    below = np.int32(low)
    missing = x != x
    # x <= cuts[r] if and only if at most r thresholds lie below x; 0 is at most r, ABOVE_ALL never is
    q.rank[SLOTS * j] = np.int32(ABOVE_ALL) if missing else below
    q.rank[SLOTS * j + 1] = np.int32(0) if missing else below
    q.rank[SLOTS * j + 2] = np.int32(UNKNOWN) if missing else below
    q.known[0] |= ONE << np.uint64(j & 63)


@inlined
def _child(forest: Walked, X: Matrix, i: int, node: Any, q: State) -> Any:
    """Where what is known leads from a node, ``NOWHERE`` if its feature is unknown."""
    # a leaf asks for the slot that is never known
    known, rank = q.rank[np.uint64(forest.steps[node, SLOT])], forest.steps[node, RANK]
    if (rank == NOMINAL) & (known != UNKNOWN):  # by the raw value, not its rank
        return _branch(forest, int(np.int64(node)), X[i, forest.feature[node]])
    child = forest.steps[node, LEFT] if known <= rank else forest.steps[node, RIGHT]
    return child if known != UNKNOWN else np.int32(NOWHERE)


@inner
def _branch(forest: Walked, node: int, x: float) -> Any:
    """Where a category leads; one that training did not have there is as good as unknown."""
    categories = forest.nodes.right[node]
    at = int(x) if 0 <= x < categories else int(np.int64(categories))
    child = forest.nodes.branches[forest.nodes.left[node] + at]
    return child if child >= 0 else np.int32(NOWHERE)


@inlined
def _expect(forest: Walked, X: Matrix, i: int, n: Any, q: State) -> None:
    """What the first ``n`` trees of ``heard`` expect, what leaves they may reach say, and what they heed."""
    known, low, high = q.known[0], np.int32(q.known[0] & LOW_HALF), np.int32(q.known[0] >> HALF)
    tail, last = np.uint64(0), np.uint64(len(q.work) - 1)
    top, whole = last, np.uint64(REACH) << HALF
    k, width, said = np.uint64(len(q.believed)), np.uint64(len(q.sums)), q.said.reshape(-1)
    for place in range(np.uint64(0), n):
        tree = q.heard[place]
        row, node = np.uint64(tree), np.uint64(q.at[np.uint64(tree)])
        for c in range(width):
            said[row * width + c] = 0.0 if c < k else -np.inf
        below = forest.below[node]
        follows = below & known != 0
        q.heeds[row] = np.uint64(0) if follows else below
        at = tail if follows else top
        q.work[at], q.owner[at] = node | whole, tree
        tail, top = tail + np.uint64(follows), top - np.uint64(not follows)
    head = np.uint64(0)
    # no branch depends on what is known, so the processor is at many nodes at a time
    while head < tail:
        node, part = q.work[head] & LOW_HALF, np.int64(q.work[head] >> HALF)
        tree = q.owner[head]
        head += ONE
        rank_of, rank = q.rank[np.uint64(forest.steps[node, SLOT])], forest.steps[node, RANK]
        if rank == NOMINAL:
            q.heeds[np.uint64(tree)] |= forest.below[node]
            tail, top = _offer_branches(forest, X, i, int(np.int64(node)), rank_of, part, tree, q, tail, top)
            continue
        unknown, goes_left = rank_of == UNKNOWN, rank_of <= rank
        left = (part * forest.steps[node, UNTIL]) >> SHIFT
        left = left if unknown else part
        right = part - left if unknown else part
        on_left, on_right = unknown | goes_left, unknown | (not goes_left)
        asks_left = (forest.steps[node, BELOW] & low) | (forest.steps[node, BELOW + 1] & high)
        asks_right = (forest.steps[node, BELOW + 2] & low) | (forest.steps[node, BELOW + 3] & high)
        _heed(
            forest,
            node,
            unknown,
            on_left & (left >= FOLLOWED) & (asks_left == 0),
            on_right & (right >= FOLLOWED) & (asks_right == 0),
            np.uint64(tree),
            q,
        )
        tail, top = _offer(forest.steps[node, LEFT], left, on_left, asks_left != 0, tree, q, tail, top)
        tail, top = _offer(forest.steps[node, RIGHT], right, on_right, asks_right != 0, tree, q, tail, top)
    while top < last:
        top += ONE
        node, share = q.work[top] & LOW_HALF, np.float64(q.work[top] >> HALF)
        row = np.uint64(q.owner[top]) * width
        for c in range(np.uint64(0), width, np.uint64(OCTET)):
            add_part_or_most(said, row + c, forest.said, node * width + c, share, c, k)
    for place in range(np.uint64(0), n):
        row = np.uint64(q.heard[place]) * width
        for c in range(k):
            said[row + c] = np.floor(said[row + c] * (1.0 / REACH))


@inlined
def _heed(forest: Walked, node: Any, own: bool, left: bool, right: bool, row: Any, q: State) -> None:
    """Note whose values change what a tree says: what a node asks for, or all at and below a child."""
    own_, left_, right_ = -np.int32(own), -np.int32(left), -np.int32(right)
    low = (
        (forest.steps[node, OWN] & own_)
        | (forest.steps[node, BELOW] & left_)
        | (forest.steps[node, BELOW + 2] & right_)
    )
    high = (
        (forest.steps[node, OWN + 1] & own_)
        | (forest.steps[node, BELOW + 1] & left_)
        | (forest.steps[node, BELOW + 3] & right_)
    )
    q.heeds[row] |= (np.uint64(low) & LOW_HALF) | (np.uint64(high) << HALF)


@inlined
def _offer(
    child: Any, part: Any, is_reached: bool, asks: bool, tree: Any, q: State, tail: Any, top: Any
) -> tuple[Any, Any]:
    """Follow a tree into a child if enough gets there and it ``asks`` for something known; else it speaks.

    It is always written, and counted if it is reached.
    """
    follows = is_reached & asks & (part >= FOLLOWED)
    place = tail if follows else top
    q.work[place] = np.uint64(child) | np.uint64(part) << HALF
    q.owner[place] = tree
    return tail + np.uint64(follows), top - np.uint64(is_reached & (not follows))


@inner
def _offer_branches(
    forest: Walked,
    X: Matrix,
    i: int,
    node: int,
    known: int,
    part: Any,
    tree: Any,
    q: State,
    tail: Any,
    top: Any,
) -> tuple[Any, Any]:
    """The same for the children of a nominal node."""
    child = np.int32(NOWHERE)
    if known != UNKNOWN:
        child = _branch(forest, node, X[i, forest.feature[node]])
    if child != NOWHERE:
        return _offer(child, part, True, forest.below[child] & q.known[0] != 0, tree, q, tail, top)
    first, before = int(np.int64(forest.nodes.left[node])), np.int64(0)
    for branch in range(first, first + int(np.int64(forest.nodes.right[node])) + 1):
        child = forest.nodes.branches[branch]
        if child >= 0:  # a child of its own
            upto = (part * np.int64(forest.until[child])) >> SHIFT
            asks = forest.below[child] & q.known[0] != 0
            tail, top = _offer(child, upto - before, True, asks, tree, q, tail, top)
            before = upto
    return tail, top


@inlined
def _wait(forest: Walked, t: Any, stood: Any, q: State) -> None:
    """Let a tree wait for what it asks for now; it has moved from where it ``stood``, or heard of a value."""
    was, now = q.awaits[t], _asks(forest, t, q)
    if was == now and stood == q.at[t]:
        return
    if was != SETTLED:
        _move(forest, np.uint64(stood), np.int64(-1), q)
    if now != SETTLED:
        _move(forest, np.uint64(q.at[t]), np.int64(1), q)
    q.stuck[0] += int(now == STUCK) - int(was == STUCK)
    if was >= 0:
        q.waiting[was] -= 1
        if q.waiting[was] == 0:
            q.waits[was >> 6] ^= ONE << np.uint64(was & 63)
    if now >= 0:
        q.waiting[now] += 1
        q.waits[now >> 6] |= ONE << np.uint64(now & 63)
    q.awaits[t] = now


@inlined
def _asks(forest: Walked, t: Any, q: State) -> Any:
    """What a tree waits for where it stands; for a label nothing if it can say but one thing."""
    k, row = len(q.believed), np.uint64(t)
    j = forest.feature[np.uint64(q.at[row])]
    same = forest.for_labels
    for c in range(k, 2 * k):
        same = same & (-q.said[row, c] == q.said[row, k + c])
    if same or j < 0:
        return np.int32(SETTLED)
    return j if q.rank[SLOTS * j] == UNKNOWN else np.int32(STUCK)


@inlined
def _move(forest: Walked, node: Any, sign: Any, q: State) -> None:
    """Count how far features may move a tree that stands at a node, or no longer."""
    for place in range(np.uint64(forest.steps[node, START]), np.uint64(forest.steps[node, STOP])):
        moved = sign * forest.moves[place]
        q.score[np.uint64(forest.mover[place])] += moved
        q.open[0] += moved


@inlined
def _believe(forest: Walked, q: State) -> None:
    """What is expected, drawn to the base rate as far as trees may still move."""
    left, k = q.open[0] / q.open[1] if q.open[1] > 0 else 1.0, len(q.believed)
    for c in range(k):
        believed = q.sums[c] + np.rint(forest.pull[c] * left)
        # scores, but not shares, know bounds: what their leaves can still say is exact
        if forest.scored:
            believed = min(max(believed, -q.sums[k + c] * BELIEF), q.sums[2 * k + c] * BELIEF)
        q.believed[c] = believed


@inlined
def leader_of(belief: Floats) -> int:
    """The class of most belief, the lowest among equals."""
    best = 0
    for c in range(len(belief)):
        if belief[c] > belief[best]:
            best = c
    return best


@inlined
def least_of(q: State, c: int) -> float:
    """What all trees give to a class at least."""
    return float(-q.sums[len(q.believed) + c])


@inlined
def certain_label(q: State, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    k, leader = len(q.believed), 0
    for c in range(k):
        if least_of(q, c) > least_of(q, leader):
            leader = c
    for c in range(k):
        # certain: least(leader) > most(c), or equal and the tie is the leader's; never within slack
        lead = least_of(q, leader) - q.sums[2 * k + c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inlined
def next_feature(
    forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, limit: float, q: State
) -> int:
    """Of the affordable features that trees wait for, the one that may move the belief most per price.

    The lowest column among equals; -1 if there is none. With the first feature of a sensor come the others:
    their scores count for it, too.
    """
    if forest.sensors:
        _sum_freed(forest, i, prices, ledger, q)
    for word in range(len(q.waits)):
        q.wanted[word] = q.waits[word]
    if q.stuck[0] > 0:
        _add_wanted(forest, X, i, q)
    best, most = -1, 0.0
    for word in range(len(q.wanted)):
        # the features that trees wait for, a bit each, from the lowest column up
        features = q.wanted[word]
        while features != 0:
            j = np.uint64(64 * word) + first_of(features)
            features &= features - ONE
            group = np.uint64(prices.group[j])
            # what a tree waits for is worth something, however little
            cost, worth = price(prices, j, ledger.opened[i, group]), max(q.score[j], 1)
            if forest.sensors and not ledger.opened[i, group]:
                worth = max(q.freed[group] + (q.score[j] if prices.discount[j] > 0.0 else 0), 1)
            per_cost = worth / cost  # infinite where it is free
            # strictly: columns ascend, so the lowest wins ties, also among those that are free
            if per_cost > most and ledger.spent[i] + cost <= limit:
                best, most = int(np.int64(j)), per_cost
    return best


@inner
def _sum_freed(forest: Walked, i: int, prices: Prices, ledger: Ledger, q: State) -> None:
    """Sum the scores of the features of each group that come for nothing with another one."""
    for j in forest.asked:
        q.freed[prices.group[j]] = 0
    for j in forest.asked:
        if prices.discount[j] == 0.0 and not ledger.acquired[i, j]:
            q.freed[prices.group[j]] += q.score[j]


@inner
def _add_wanted(forest: Walked, X: Matrix, i: int, q: State) -> None:
    """What trees that are stuck would ask for next, on all sides of the value that cannot be had."""
    for t in range(len(q.at)):
        if q.awaits[t] == STUCK:
            for place in range(questions_below(forest, X, i, t, q)):
                j = q.found[place]
                q.wanted[j >> 6] |= ONE << np.uint64(j & 63)


@inner
def questions_below(forest: Walked, X: Matrix, i: int, t: int, q: State) -> int:
    """List in ``found`` the unknown features that a tree comes to first, left before right; how many."""
    q.path[0] = q.at[t]
    top, found = 1, 0
    while top > 0:
        top -= 1
        node = int(np.int64(q.path[top]))
        j = forest.feature[node]
        if j < 0:
            continue
        child = _child(forest, X, i, node, q)
        if child != NOWHERE:
            q.path[top] = child
            top += 1
        elif q.rank[SLOTS * j] == UNKNOWN:
            q.found[found] = j
            found += 1
        elif forest.steps[node, RANK] != NOMINAL:
            q.path[top], q.path[top + 1] = forest.steps[node, RIGHT], forest.steps[node, LEFT]
            top += 2
        else:
            first = int(np.int64(forest.nodes.left[node]))
            for branch in range(first + int(np.int64(forest.nodes.right[node])), first - 1, -1):
                if forest.nodes.branches[branch] >= 0:
                    q.path[top] = forest.nodes.branches[branch]
                    top += 1
    return found


@inner
def final_label(forest: Walked, X: Matrix, i: int, q: State) -> int:
    """The label when no more can be asked, summed in the order of the trees."""
    # summed afresh, as ``scores`` and the plain walk do: exchanged sums of soft votes round otherwise
    k, best = len(q.believed), 0
    votes, ends, lost = q.sums[k : 2 * k], q.sides.ends, 0
    votes[:], ends[:] = 0.0, 0.0
    for t in range(len(q.at)):
        if q.awaits[t] == SETTLED:
            for c in range(k):
                votes[c] -= q.said[t, k + c]
                ends[0, c] -= q.said[t, k + c]
                ends[1, c] -= q.said[t, k + c]
        else:
            size = list_sides(forest.nodes, int(np.int64(q.at[t])), forest.until, X, i, q.sides)
            add_mean(forest.nodes, forest.votes, size, q.sides, votes)
            if add_ends(forest.nodes, forest.votes, size, q.sides) and q.at[t] == forest.roots[t]:
                lost += 1
    draw_to_base_rate(votes, forest.vote_pull, lost, forest.n_open, q.sides)
    for c in range(k):
        if votes[c] > votes[best]:
            best = c
    return best


@inlined
def all_settled(q: State) -> bool:
    """Whether every tree has said all it can."""
    waits = np.uint64(q.stuck[0])
    for word in q.waits:
        waits |= word
    return bool(waits == np.uint64(0))
