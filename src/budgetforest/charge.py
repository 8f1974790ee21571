"""What rows get from a forest and what they pay for it, compiled.

A row pays for each feature it meets, once for the whole forest. To know every score it meets all trees;
to know its label it stops as soon as no further feature can change it (``settle_row``, twin of
``acquire``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.arrays import LEAF, Counts, Flags, Floats, Ids, Keys, Matrix
from budgetforest.costs import Costs
from budgetforest.draws import ONE
from budgetforest.forest import Answer, Context, Forest, Votes, join, slack_of
from budgetforest.jit import inner, kernel
from budgetforest.tree import Tree
from budgetforest.walks import TILE, child_of, leaves_in_step, leaves_of, met_before, paces

BLOCK = 4096
"""Rows evaluated at a time; results do not depend on it."""


class Ledger(NamedTuple):
    """What rows have paid so far."""

    acquired: Flags
    """(n, m) which features."""
    opened: Flags
    """(n, groups) which groups."""
    spent: Floats
    """(n) how much in all."""


def open_ledger(n_rows: int, costs: Costs) -> Ledger:
    """A ledger of rows that have paid nothing."""
    return Ledger(
        np.zeros((n_rows, len(costs.cost)), bool),
        np.zeros((n_rows, len(costs.group_names)), bool),
        np.zeros(n_rows),
    )


def scores(forest: Forest, X: Matrix, pool: Executor | None = None) -> Floats:
    """(n, k) summed votes of every row; the prior where there are no trees."""
    total = np.zeros((len(X), len(forest.prior)))
    if forest.n_trees == 0:
        return total + forest.prior
    find_leaves = walker(forest, len(X))

    def block(rows: slice, part: Matrix) -> None:
        add_votes(forest.least, find_leaves(part), total[rows])

    _for_blocks(block, X, pool)
    return total


def walker(forest: Forest, n_rows: int) -> Callable[[Matrix], Ids]:
    """A function from rows to their leaves, (t, n); packing the nodes pays for many rows."""
    if n_rows < TILE or len(forest.nodes.branches):

        def one_by_one(part: Matrix) -> Ids:
            leaves = np.empty((forest.n_trees, len(part)), np.int32)
            leaves_of(forest.nodes, forest.roots, part, leaves)
            return leaves

        return one_by_one
    packed = paces(forest.nodes, forest.roots)

    def in_step(part: Matrix) -> Ids:
        leaves = np.empty((forest.n_trees, len(part)), np.int32)
        leaves_in_step(packed, forest.roots, part, np.empty(TILE, np.int32), leaves)
        return leaves

    return in_step


def charge(forest: Forest, X: Matrix, answer: Answer, pool: Executor | None = None) -> Ledger:
    """What every row acquires and pays for its label, or for every score."""
    ledger = open_ledger(len(X), forest.costs)
    if forest.n_trees == 0:
        return ledger
    prices = Prices(*forest.costs[:3])
    if answer == Answer.LABEL:
        walked = _walked(forest)

        def block(rows: slice, part: Matrix) -> None:
            room = queues(forest.n_trees, len(prices.cost), len(forest.prior))
            paid = Ledger._make(column[rows] for column in ledger)
            settle_rows(walked, part, prices, paid, room, np.empty(len(part), np.int32))

    elif forest.costs.order_matters:

        def block(rows: slice, part: Matrix) -> None:
            paid = Ledger._make(column[rows] for column in ledger)
            charge_rows(forest.nodes, forest.roots, part, prices, paid)

    else:
        find_leaves = walker(forest, len(X))
        masks = met_before(forest.nodes, forest.roots[:-1], len(prices.cost))

        def block(rows: slice, part: Matrix) -> None:
            paid = Ledger._make(column[rows] for column in ledger)
            met = np.zeros((len(part), masks.shape[1]), np.uint64)
            charge_leaves(masks, find_leaves(part), prices, met, paid)

    _for_blocks(block, X, pool)
    return ledger


class Prices(NamedTuple):
    """``Costs`` as kernels take them, without names."""

    cost: Floats
    discount: Floats
    group: Ids


class Walked(NamedTuple):
    """A ``Forest`` as kernels take it, without names."""

    nodes: Tree
    roots: Ids
    least: Votes
    most: Votes
    open: Flags
    slack: float


def _walked(forest: Forest) -> Walked:
    return Walked(forest.nodes, forest.roots, forest.least, forest.most, forest.open, slack_of(forest))


def _for_blocks(block: Callable[[slice, Matrix], None], X: Matrix, pool: Executor | None = None) -> None:
    def at(start: int) -> None:
        rows = slice(start, start + BLOCK)
        block(rows, np.require(X[rows], requirements=["C", "W"]))

    starts = range(0, len(X), BLOCK)
    list(pool.map(at, starts) if pool else map(at, starts))


class Look(NamedTuple):
    """What some rows need next."""

    needs: Ids
    """(n) a feature, -1 where nothing is needed."""
    labels: Ids
    """(n) the label where nothing is needed."""
    certain: Flags
    """(n) whether that label is certain."""
    least: Floats
    """(n, k) what is certain for each class."""
    most: Floats
    """(n, k) what is possible for each class."""


def look_at(
    forest: Forest, values: Floats, ledger: Ledger, rows: Ids, answer: Answer, limit: float, pool: Executor
) -> Look:
    """What ``rows`` need next, from the roots of all trees through what is known."""
    n, k = len(rows), len(forest.prior)
    look = Look(
        np.full(n, -1, np.int32),
        np.full(n, forest.prior.argmax(), np.int32),
        np.ones(n, bool),
        np.zeros((n, k)),
        np.zeros((n, k)),
    )
    if forest.n_trees == 0:
        return look
    walked = _walked(forest)
    if answer == Answer.PROBA:
        walked = walked._replace(open=forest.nodes.feature != LEAF)
    prices = Prices(*forest.costs[:3])

    def block(start: int) -> None:
        part = slice(start, start + BLOCK)
        room = queues(forest.n_trees, len(prices.cost), k)
        label = answer == Answer.LABEL
        out = Look._make(column[part] for column in look)
        look_rows(walked, values, rows[part], prices, ledger, label, limit, room, out)

    list(pool.map(block, range(0, n, BLOCK)))
    return look


class Meter:
    """Adds trees to a forest one by one and tells its mean cost and error on validation rows.

    The cost of all scores only grows with each tree and is known after each. The cost of labels is that of
    the whole forest anew, so it is measured at growing distances: after 1, 2, ... 16, 18, ... trees.
    """

    def __init__(
        self,
        X: Matrix,
        label: Ids,
        weight: Floats,
        context: Context,
        answer: Answer,
        most: int,
        pool: Executor,
    ) -> None:
        self.X = np.require(X, requirements=["C", "W"])
        self.label, self.context, self.answer, self.most, self.pool = label, context, answer, most, pool
        self.share = weight / math.fsum(weight)
        self.ledger = open_ledger(len(X), context.costs)
        self.scores = np.zeros((len(X), len(context.prior)))
        self.met = np.zeros((len(X), -(-X.shape[1] // 64)), np.uint64)
        self.trees: list[Tree] = []

    def add(self, tree: Tree) -> tuple[float, float] | None:
        """Mean cost and error of the forest with one more tree; None where it is not measured."""
        self.trees.append(tree)
        one = join([tree], self.context)
        self.scores += scores(one, self.X, self.pool)
        if self.answer == Answer.LABEL:
            if not is_measured(len(self.trees), self.most):
                return None
            spent = charge(join(self.trees, self.context), self.X, self.answer, self.pool).spent
        else:
            self._charge_scores(one)
            spent = self.ledger.spent
        wrong = self.scores.argmax(axis=1) != self.label
        # fsum: the same mean whatever the order of the rows
        return math.fsum(self.share * spent), math.fsum(self.share[wrong])

    def _charge_scores(self, one: Forest) -> None:
        """Add what one more tree costs to what was paid before."""
        prices = Prices(*one.costs[:3])
        if one.costs.order_matters:
            charge_rows(one.nodes, one.roots, self.X, prices, self.ledger)
        else:
            masks = met_before(one.nodes, one.roots[:-1], len(prices.cost))
            charge_leaves(masks, walker(one, len(self.X))(self.X), prices, self.met, self.ledger)


def is_measured(trees: int, most: int) -> bool:
    """Whether the cost of labels is measured after so many trees: steps of an eighth, and the last."""
    step = max(1, 2 ** (trees.bit_length() - 4))
    return trees == most or trees % step == 0


@kernel
def charge_leaves(masks: Keys, leaves: Ids, prices: Prices, met: Keys, ledger: Ledger) -> None:
    """Charge each row for every feature above its leaves; ``met`` (n, words) collects them as bits."""
    for t in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            for word in range(masks.shape[1]):
                met[i, word] |= masks[leaves[t, i], word]
    for i in range(leaves.shape[1]):
        charge_met(met, i, prices, ledger)


@inner
def charge_met(met: Keys, i: int, prices: Prices, ledger: Ledger) -> None:
    """What one row pays in all, in the order of the columns; without shared groups, without branches."""
    spent = 0.0
    alone = ledger.opened.shape[1] == len(prices.cost)
    for j in range(len(prices.cost)):
        bit = (met[i, j >> 6] >> np.uint64(j & 63)) & ONE
        ledger.acquired[i, j] = bit
        if alone:
            spent += bit * prices.cost[j]
    ledger.spent[i] = spent
    if not alone:
        for g in range(ledger.opened.shape[1]):
            ledger.opened[i, g] = False
        for j in range(len(prices.cost)):
            if ledger.acquired[i, j]:
                pay(i, j, prices, ledger)


@inner
def pay(i: int, j: int, prices: Prices, ledger: Ledger) -> None:
    """Row ``i`` acquires feature ``j``."""
    opened = ledger.opened[i, prices.group[j]]
    ledger.spent[i] += prices.discount[j] if opened else prices.cost[j]
    ledger.acquired[i, j] = True
    ledger.opened[i, prices.group[j]] = True


@kernel
def charge_rows(nodes: Tree, roots: Ids, X: Matrix, prices: Prices, ledger: Ledger) -> None:
    """Pay for what each row meets, in the order it meets it: where the order of a group matters."""
    for t in range(len(roots) - 1):
        for i in range(len(X)):
            charge_row(nodes, roots[t], X, i, prices, ledger)


@inner
def charge_row(nodes: Tree, node: int, X: Matrix, i: int, prices: Prices, ledger: Ledger) -> None:
    """One row in one tree."""
    while nodes.feature[node] != LEAF:
        j = nodes.feature[node]
        if not ledger.acquired[i, j]:
            pay(i, j, prices, ledger)
        node = child_of(nodes, node, X[i, j])


@kernel
def add_votes(votes: Votes, leaves: Ids, scores: Floats) -> None:
    """Add what each tree's leaf gives, in the order of the trees."""
    for t in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            for c in range(scores.shape[1]):
                scores[i, c] += votes[leaves[t, i], c]


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
    low: Floats
    """(k) the least that all trees together can still give to each class."""
    high: Floats
    """(k) the most."""


def queues(n_trees: int, n_features: int, n_classes: int) -> Queues:
    """Room for the state of one row."""
    ids, votes = np.int32, np.float64
    return Queues(
        np.empty(n_trees, ids),
        np.empty(n_trees, ids),
        np.empty(n_features, ids),
        np.empty(n_features, ids),
        np.empty(n_classes, votes),
        np.empty(n_classes, votes),
    )


@kernel
def settle_rows(forest: Walked, X: Matrix, prices: Prices, ledger: Ledger, q: Queues, labels: Ids) -> None:
    """Acquire for each row, one by one, the feature that most trees wait for per cost, until certain."""
    for i in range(len(X)):
        labels[i] = settle_row(forest, X, i, prices, ledger, q)


@inner
def settle_row(forest: Walked, X: Matrix, i: int, prices: Prices, ledger: Ledger, q: Queues) -> int:
    """One row. A feature that comes moves all trees that wait for it, through all that is known."""
    k = len(q.low)
    _start(forest, X, i, ledger, q)
    label = certain_label(q.low, q.high, forest.slack)
    while label < 0:
        j = next_feature(q.waiting, prices, ledger, i, np.inf)
        if j < 0:
            return _final_label(q.at, forest.least, q.low)
        pay(i, j, prices, ledger)
        t = q.first[j]
        q.first[j] = -1
        q.waiting[j] = 0
        while t >= 0:
            after = q.following[t]
            for c in range(k):
                q.low[c] -= forest.least[q.at[t], c]
                q.high[c] -= forest.most[q.at[t], c]
            _wait(t, forest, X, i, ledger, q)
            t = after
        label = certain_label(q.low, q.high, forest.slack)
    return label


@inner
def _start(forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """All trees from their roots through what is known."""
    for j in range(len(q.first)):
        q.first[j] = -1
        q.waiting[j] = 0
    for c in range(len(q.low)):
        q.low[c] = 0.0
        q.high[c] = 0.0
    for t in range(len(q.at)):
        q.at[t] = forest.roots[t]
        _wait(t, forest, X, i, ledger, q)


@inner
def _wait(t: int, forest: Walked, X: Matrix, i: int, ledger: Ledger, q: Queues) -> None:
    """Move a tree on through what is known, count its outlook, and let it wait if it is open."""
    node = q.at[t]
    while forest.open[node] and ledger.acquired[i, forest.nodes.feature[node]]:
        node = child_of(forest.nodes, node, X[i, forest.nodes.feature[node]])
    q.at[t] = node
    for c in range(len(q.low)):
        q.low[c] += forest.least[node, c]
        q.high[c] += forest.most[node, c]
    if forest.open[node]:
        j = forest.nodes.feature[node]
        q.following[t] = q.first[j]
        q.first[j] = t
        q.waiting[j] += 1


@kernel
def look_rows(
    forest: Walked,
    X: Floats,
    rows: Ids,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    limit: float,
    q: Queues,
    look: Look,
) -> None:
    """Fill ``look`` for some rows."""
    for r in range(len(rows)):
        _start(forest, X, rows[r], ledger, q)
        for c in range(len(q.low)):
            look.least[r, c] = q.low[c]
            look.most[r, c] = q.high[c]
        look.needs[r], look.labels[r], look.certain[r] = look_row(
            forest, rows[r], prices, ledger, labels_only, limit, q
        )


@inner
def look_row(
    forest: Walked,
    i: int,
    prices: Prices,
    ledger: Ledger,
    labels_only: bool,
    limit: float,
    q: Queues,
) -> tuple[int, int, bool]:
    """One row whose trees stand where they wait: (need, label, certain)."""
    label = certain_label(q.low, q.high, forest.slack)
    waits = False
    for j in range(len(q.waiting)):
        waits |= q.waiting[j] > 0
    if not waits:
        return -1, _final_label(q.at, forest.least, q.low), True
    if labels_only and label >= 0:
        return -1, label, True
    need = -1
    if labels_only:
        need = next_feature(q.waiting, prices, ledger, i, limit)
    else:
        for t in range(len(q.at)):  # one tree after the other
            if forest.open[q.at[t]]:
                j = forest.nodes.feature[q.at[t]]
                opened = ledger.opened[i, prices.group[j]]
                if ledger.spent[i] + (prices.discount[j] if opened else prices.cost[j]) <= limit:
                    need = j
                    break
    if need < 0 and label < 0:
        return -1, _likely_label(q.at, forest.nodes.counts, q.low), False
    return need, label, label >= 0


@inner
def certain_label(low: Floats, high: Floats, slack: float) -> int:
    """The class that no further feature can beat, -1 if there is none; ties go to the lowest class."""
    leader = 0
    for c in range(len(low)):
        if low[c] > low[leader]:
            leader = c
    for c in range(len(low)):
        lead = low[leader] - high[c] - slack
        if c != leader and (lead < 0.0 or (lead == 0.0 and (c < leader or slack > 0.0))):
            return -1
    return leader


@inner
def next_feature(waiting: Ids, prices: Prices, ledger: Ledger, i: int, limit: float) -> int:
    """The affordable feature that most trees wait for per cost, the lowest column among equals; else -1."""
    best = -1
    most = 0.0
    for j in range(len(waiting)):
        if waiting[j] > 0:
            opened = ledger.opened[i, prices.group[j]]
            price = prices.discount[j] if opened else prices.cost[j]
            if price == 0.0:
                return j
            if waiting[j] / price > most and ledger.spent[i] + price <= limit:
                best = j
                most = waiting[j] / price
    return best


@inner
def _final_label(at: Ids, least: Votes, low: Floats) -> int:
    """The label when every tree has spoken, summed in the order of the trees."""
    best = 0
    for c in range(len(low)):
        low[c] = 0.0
        for t in range(len(at)):
            low[c] += least[at[t], c]
        if low[c] > low[best]:
            best = c
    return best


@inner
def _likely_label(at: Ids, counts: Counts, share: Floats) -> int:
    """The label of the mean class frequencies at the trees' current nodes."""
    best = 0
    for c in range(len(share)):
        share[c] = 0.0
        for t in range(len(at)):
            size = 0
            for other in range(len(share)):
                size += counts[at[t], other]
            share[c] += counts[at[t], c] / size
        if share[c] > share[best]:
            best = c
    return best
