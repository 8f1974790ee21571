"""The trees of one row, compiled: which wait for which feature, and what all of them can still say.

Trees that wait for the same feature form a list. When the feature comes only they move, all in step: no
branch of the program depends on where a value leads, so the processor is at several trees at a time. The
bounds on every class are updated, not summed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.arrays import LEAF, Floats, Ids, Matrix
from budgetforest.forest import Answer, Forest, beliefs, slack_of
from budgetforest.jit import inner
from budgetforest.ledger import Ledger, Prices, pay
from budgetforest.tree import BY_CATEGORY, MISSING_LEFT, Tree
from budgetforest.walks import child_of

STEP = np.dtype([("threshold", "f8"), ("feature", "i4"), ("left", "i4"), ("right", "i4"), ("route", "i4")])
"""What a step from a node takes, side by side: one line of the cache instead of five."""


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    steps: NDArray[np.void]
    """(d) a ``STEP`` from every node; the feature is -1 where no step can change the answer."""
    nodes: Tree
    """The same nodes, for nominal ones."""
    roots: Ids
    outlook: Floats
    """(d, 3k) the least and the most that the leaves below a node add to each class, and its beliefs, side by
    side to be summed in one go; (d, 2k) if beliefs do not matter. Whole numbers are exact as doubles."""
    slack: float
    asked: Ids
    """The features that some node asks for, ascending."""


def walked_for(forest: Forest, answer: Answer, *, believes: bool = True) -> Walked:
    """A forest without its names; for probabilities no tree has said all before its leaf."""
    asks = forest.open if answer == Answer.LABEL else forest.nodes.feature != LEAF
    steps = np.empty(len(asks), STEP)
    steps["feature"] = np.where(asks, forest.nodes.feature, LEAF)
    for name in ("threshold", "left", "right", "route"):
        steps[name] = getattr(forest.nodes, name)
    parts: list[Any] = [forest.least, forest.most]
    if believes:
        parts.append(beliefs(forest))
    outlook = np.concatenate(parts, axis=1, dtype=np.float64)
    asked = np.unique(forest.nodes.feature[asks])
    return Walked(steps, forest.nodes, forest.roots, outlook, slack_of(forest), asked)


class Queues(NamedTuple):
    """Trees that wait for the same feature form a list: ``first[j]``, ``following[...]``."""

    at: Ids
    """(t) where each tree stands."""
    following: Ids
    """(t) the next tree that waits for the same feature."""
    first: Ids
    """(m) the first tree that waits for a feature, -1 if none does."""
    waiting: Ids
    """(m) how many wait."""
    sums: Floats
    """(3k) the least and the most that all trees can still give to each class, and what they believe."""
    called: Ids
    """(t) the trees that move on, in the order of their list."""
    before: Ids
    """(t) where each of these stood."""
    moving: Ids
    """(t) those that can take another step."""


def queues(forest: Forest) -> Queues:
    """Room for the state of one row."""
    ids = np.int32
    t, m, k = forest.n_trees, len(forest.costs.cost), len(forest.prior)
    return Queues(
        np.empty(t, ids),
        np.empty(t, ids),
        np.full(m, -1, ids),
        np.zeros(m, ids),
        np.zeros(3 * k),
        np.empty(t, ids),
        np.empty(t, ids),
        np.empty(t, ids),
    )


@inner
def start_row(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """All trees from their roots through what is known."""
    for j in forest.asked:
        q.first[j] = -1
        q.waiting[j] = 0
    for c in range(len(q.sums)):
        q.sums[c] = 0.0
    for t in range(len(q.at)):
        q.at[t] = forest.roots[t]
        q.called[t] = t
    _walk(forest, X, i, ledger, q, len(q.at))
    for t in range(len(q.at)):
        for c in range(forest.outlook.shape[1]):
            q.sums[c] += forest.outlook[q.at[t], c]
        _wait(t, forest, q)


@inner
def copy_state(forest: Walked, start: Queues, q: Queues) -> None:
    """Put the trees of a row where those of another one stand."""
    for t in range(len(q.at)):
        q.at[t] = start.at[t]
        q.following[t] = start.following[t]
    for j in forest.asked:
        q.first[j] = start.first[j]
        q.waiting[j] = start.waiting[j]
    for c in range(len(q.sums)):
        q.sums[c] = start.sums[c]


@inner
def acquire_next(
    forest: Walked, X: Matrix, i: int, j: int, prices: Prices, ledger: Ledger, q: Queues
) -> None:
    """Row ``i`` pays for feature ``j``, and the trees that waited for it move on."""
    pay(i, j, prices, ledger)
    size = 0
    t = q.first[j]
    while t >= 0:
        q.called[size] = t
        q.before[size] = q.at[t]
        size += 1
        t = q.following[t]
    q.first[j] = -1
    q.waiting[j] = 0
    _walk(forest, X, i, ledger, q, size)
    for place in range(size):  # apart from the loop below, whose branch would hold up the memory
        old, new = q.before[place], q.at[q.called[place]]
        for c in range(forest.outlook.shape[1]):
            q.sums[c] = q.sums[c] - forest.outlook[old, c] + forest.outlook[new, c]
    for place in range(size):
        _wait(int(np.int64(q.called[place])), forest, q)  # as wide as a loop's, or numba compiles it twice


@inner
def _walk(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues, size: int) -> None:
    """The first ``size`` trees that are called go on through all that is known."""
    more = 0
    for place in range(size):
        t = q.called[place]
        q.moving[more] = t
        more += _can_move(forest, int(np.int64(q.at[t])), i, ledger)
    while more > 0:
        size, more = more, 0
        for place in range(size):
            t = q.moving[place]
            node = _child(forest, int(np.int64(q.at[t])), X, i)
            q.at[t] = node
            q.moving[more] = t
            more += _can_move(forest, node, i, ledger)


@inner
def _can_move(forest: Walked, node: int, i: int, ledger: Ledger) -> int:
    """1 if a node asks for a feature that is known, else 0."""
    j = forest.steps[node]["feature"]
    return int((j >= 0) & ledger.acquired[i, j])


@inner
def _child(forest: Walked, node: int, X: Matrix, i: int) -> int:
    """Where a row goes from a node."""
    step = forest.steps[node]
    x = X[i, step["feature"]]
    if step["route"] == BY_CATEGORY:
        return child_of(forest.nodes, node, x)
    left, right = step["left"], step["right"]  # both are read, so that the choice is no branch
    goes_left = (x <= step["threshold"]) | ((x != x) & (step["route"] == MISSING_LEFT))
    return int(np.int64(left if goes_left else right))


@inner
def _wait(t: int, forest: Walked, q: Queues) -> None:
    """Let a tree wait if it has more to say."""
    j = forest.steps[q.at[t]]["feature"]
    if j >= 0:
        q.following[t] = q.first[j]
        q.first[j] = t
        q.waiting[j] += 1


@inner
def leader_of(sums: Floats) -> int:
    """The class of most belief, the lowest among equals."""
    k = len(sums) // 3
    best = 0
    for c in range(k):
        if sums[2 * k + c] > sums[2 * k + best]:
            best = c
    return best


@inner
def belief_in(sums: Floats, label: int) -> float:
    """The sum of the trees' beliefs in a class, a whole number."""
    return float(sums[2 * (len(sums) // 3) + label])


@inner
def certain_label(sums: Floats, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    k = len(sums) // 3
    leader = 0
    for c in range(k):
        if sums[c] > sums[leader]:
            leader = c
    for c in range(k):
        lead = sums[leader] - sums[k + c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inner
def next_feature(forest: Walked, q: Queues, prices: Prices, ledger: Ledger, i: int, limit: float) -> int:
    """The affordable feature that most trees wait for per cost, the lowest column among equals; else -1."""
    best = -1
    most = 0.0
    for j in forest.asked:
        if q.waiting[j] > 0:
            opened = ledger.opened[i, prices.group[j]]
            price = prices.discount[j] if opened else prices.cost[j]
            if price == 0.0:
                return int(j)
            if q.waiting[j] / price > most and ledger.spent[i] + price <= limit:
                best = int(j)
                most = q.waiting[j] / price
    return best


@inner
def final_label(forest: Walked, q: Queues) -> int:
    """The label when every tree has spoken, summed in the order of the trees."""
    best = 0
    for c in range(len(q.sums) // 3):
        q.sums[c] = 0.0
        for t in range(len(q.at)):
            q.sums[c] += forest.outlook[q.at[t], c]
        if q.sums[c] > q.sums[best]:
            best = c
    return best
