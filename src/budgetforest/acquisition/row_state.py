"""The trees of one row in plain Python: what they expect, what they wait for, and what they can still say.

The readable twin of ``inference.exit_state``. A tree stands at the first node whose feature is unknown. From
there its reach is shared out: a known value takes all of it to its child, at an unknown one each child gets
its share by training weight. A node speaks for all below it where nothing further down is known, or where
less than a 16th of the tree arrives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from budgetforest.runtime.arrays import LEAF, Counts, Flags, Keys
from budgetforest.trees.forest import BELIEF, Answer, Forest, Voting, odds_for, pull_of, vote_pull_of
from budgetforest.trees.odds import FOLLOWED, REACH, SHIFT, WHOLE, Odds, children_of
from budgetforest.trees.tree import BY_CATEGORY, UNSEEN, levels

MOST_SEEN = 2**14
"""Nodes kept in plain numbers: about 10 MB."""


class Range(NamedTuple):
    """What leaves add to each class."""

    least: tuple[float, ...]
    most: tuple[float, ...]


class Said(NamedTuple):
    """What a node says, given what is known below it."""

    expected: tuple[int, ...]
    """(k) its belief, in units of 1 / ``BELIEF``."""
    range: Range
    """What the leaves add that may still be reached."""


@dataclass(slots=True, eq=False)
class Node:
    """All that a decision asks of a node; slots are read faster than the fields of a tuple."""

    feature: int
    """What it asks for, -1 where no step can change the answer."""
    threshold: float
    route: int
    children: list[int]
    """Left and right, or those of all categories; of the latter ``~child`` where training had no row."""
    until: list[int]
    """The share of each child of its own and those before it, in units of 1 / ``WHOLE``."""
    leads: list[Node | None]
    """The children as nodes, None where training had no row; empty until they are met (``met``)."""
    sides: list[tuple[Node, int]]
    """The same of its own ones, each with ``until``."""
    below: int
    """The features asked for here and below, a bit each."""
    moves: dict[int, int]
    """How far each of them may move what it expects."""
    said: Said
    """With nothing known below it."""


class PlainForest:
    """A forest for decisions without the compiler; nodes become plain numbers as they are met."""

    def __init__(self, forest: Forest, answer: Answer) -> None:
        self.forest, self.odds = forest, odds_for(forest)
        self.asks = forest.open if answer == Answer.LABEL else forest.nodes.feature != LEAF
        self.below, self.starts, self.movers, self.moves = moves_of(forest, self.odds, self.asks)
        self.pull: list[int] = pull_of(forest, self.odds).tolist()
        self.vote_pull: list[float] = vote_pull_of(forest, self.odds).tolist()
        self.n_open = int(forest.open[forest.roots[:-1]].sum())
        self.seen: dict[int, Node] = {}
        self.ranges: dict[Range, Range] = {}
        self.roots = [self.node(root) for root in forest.roots[:-1].tolist()]
        self.whole = sum(sum(root.moves.values()) for root in self.roots)

    def node(self, number: int) -> Node:
        """A node in plain numbers; decisions meet few of them, most of them often."""
        node = self.seen.get(number)
        if node is None:
            if len(self.seen) >= MOST_SEEN:
                self.seen.clear()
            node = self.seen[number] = self._node(number)
        return node

    def met(self, node: Node) -> Node:
        """A node with its children."""
        if not node.leads:
            node.leads.extend(self.node(child) if child >= 0 else None for child in node.children)
            node.sides.extend(zip((lead for lead in node.leads if lead), node.until, strict=True))
        return node

    def _node(self, number: int) -> Node:
        forest, nodes, until = self.forest, self.forest.nodes, self.odds.until
        children: list[int] = []
        upto: list[int] = []
        if self.asks[number]:
            children = [int(nodes.left[number]), int(nodes.right[number])]
            if nodes.route[number] == BY_CATEGORY:
                first, categories = children
                children = nodes.branches[first : first + categories + 1].tolist()
            own = [child for child in children if child >= 0]
            upto = [*until[own[:-1]].tolist(), WHOLE]
        entries = slice(*self.starts[number])
        mover, moved = self.movers[entries].tolist(), self.moves[entries].tolist()
        ends = Range(*(tuple(map(float, votes[number].tolist())) for votes in (forest.least, forest.most)))
        return Node(
            feature=int(nodes.feature[number]) if self.asks[number] else LEAF,
            threshold=float(nodes.threshold[number]),
            route=int(nodes.route[number]),
            children=children,
            until=upto,
            leads=[],
            sides=[],
            below=int(self.below[number]),
            moves=dict(zip(mover, moved, strict=True)),
            said=Said(tuple(self.odds.expected[number].tolist()), self.ranges.setdefault(ends, ends)),
        )


_PLAIN: dict[tuple[int, Answer], PlainForest] = {}
"""Forests in use, by the identity of their arrays."""


def plain(forest: Forest, answer: Answer) -> PlainForest:
    """A forest in plain numbers, kept as long as its arrays are."""
    key = id(forest.least), answer
    if key not in _PLAIN:
        _PLAIN[key] = PlainForest(forest._replace(least=forest.least.copy()), answer)
        finalize(forest.least, _PLAIN.pop, key, None)
    return _PLAIN[key]


def moves_of(forest: Forest, odds: Odds, asks: Flags) -> tuple[Keys, Counts, Counts, Counts]:
    """What is asked for at and below every node, and how far each of these features may move it.

    Features are bits, modulo 64. How far is the sum of what the questions at and below a node gain, by the
    share of rows that reach them. It is listed: (d, 2) where a node's entries begin and end, the features,
    and how far.
    """
    nodes, m = forest.nodes, len(forest.costs.cost)
    below = np.zeros(len(asks), np.uint64)
    starts = np.zeros((len(asks), 2), np.int64)
    movers, moves = np.empty(0, np.int64), np.empty(0, np.int64)
    for level in reversed(list(levels(nodes, forest.roots[:-1]))):
        parents, first, children = children_of(nodes, level)
        if not len(parents):
            continue
        sizes = np.diff([*first, len(children)])
        part = np.diff(odds.until[children].astype(np.int64), prepend=0)
        part[first] = odds.until[children[first]]
        asked = np.bitwise_or.reduceat(below[children], first)
        asked |= np.uint64(1) << (nodes.feature[parents] & 63).astype(np.uint64)
        below[parents] = np.where(asks[parents], asked, np.uint64(0))
        # the entries of all children of all parents, and one of each parent itself
        n_entries = starts[children, 1] - starts[children, 0]
        entry = np.repeat(starts[children, 0] - np.cumsum(n_entries) + n_entries, n_entries)
        entry += np.arange(len(entry))
        owner = np.concatenate(
            [np.repeat(np.repeat(np.arange(len(parents)), sizes), n_entries), np.arange(len(parents))]
        )
        feature = np.concatenate([movers[entry], nodes.feature[parents]])
        moved = np.concatenate(
            [np.repeat(part, n_entries) * moves[entry], odds.gain[parents].astype(np.int64) << SHIFT]
        )
        key, which = np.unique(owner * m + feature, return_inverse=True)
        total = np.zeros(len(key), np.int64)
        np.add.at(total, which, moved)
        total = np.minimum(total >> SHIFT, 2**31 - 1)
        kept = (total > 0) & asks[parents][key // m]
        ends = len(movers) + np.cumsum(np.bincount(key[kept] // m, minlength=len(parents)))
        starts[parents] = np.stack([np.concatenate([[len(movers)], ends[:-1]]), ends], axis=1)
        movers, moves = np.concatenate([movers, key[kept] % m]), np.concatenate([moves, total[kept]])
    return below, starts, movers, moves


class RowState:
    """Where the trees of a row stand, and all that follows from what it knows."""

    def __init__(self, forest: Forest, answer: Answer) -> None:
        self.forest, self.answer = forest, answer
        self.plain = plain(forest, answer)
        self.values: dict[int, float] = {}
        """What is known, NaN where it is missing or cannot be had."""
        self.at: list[Node] = list(self.plain.roots)
        self.said: list[Said] = [root.said for root in self.at]
        """What every tree says."""
        self.scores: defaultdict[int, int] = defaultdict(int)
        """How far each feature may move what the trees that have more to say expect, in all."""
        self._known = 0
        self._heeds = [root.below for root in self.at]
        self.open: list[Node | None] = [None] * len(self.at)
        """Where each tree stands that has more to say, None if it is settled."""
        for tree in range(len(self.at)):
            self._count_moves(tree)
        self.least: list[float]
        """(k) what is certain for each class."""
        self.most: list[float]
        """(k) what is possible for each class."""
        self.belief: list[int]
        """(k) what is expected, drawn to the base rate as far as trees may still move."""
        self._sum_up()

    def learn(self, values: dict[int, float]) -> None:
        """Let all trees hear of some values."""
        self.values |= values
        learnt = _bits(values)
        self._known |= learnt
        for tree, node in enumerate(self.at):
            if self._heeds[tree] & learnt:
                self.at[tree], self.said[tree], self._heeds[tree] = self._follow(node)
                self._count_moves(tree)
        self._sum_up()

    def _child(self, node: Node) -> Node | None:
        """Where what is known leads from a node, None if its feature is unknown or the value is lost."""
        value = self.values.get(node.feature)  # None at leaves, too
        if value is None:
            return None
        leads = self.plain.met(node).leads
        if node.route == BY_CATEGORY:
            return leads[int(value) if 0 <= value < len(leads) - 1 else -1]  # the last of NaN
        if value != value:
            return None if node.route & UNSEEN else leads[1 - node.route]
        return leads[0 if value <= node.threshold else 1]

    def _below(self, node: Node) -> list[tuple[Node, int]]:
        """The children that may still be reached, each with its share and of those before it."""
        child = self._child(node)
        return self.plain.met(node).sides if child is None else [(child, WHOLE)]

    def _follow(self, start: Node) -> tuple[Node, Said, int]:
        """Let a tree go on from a node: where it stands then, what it says, and which values may change that.

        The latter are those of features that nodes ask for which the tree is followed into, and those of
        features below the others where enough of it arrives.
        """
        known, values, start = self._known, self.values, self._stand(start)
        if not start.below & known:
            return start, start.said, start.below
        queue, ends, parts, heeds = [(start, REACH)], [], [], 0
        for node, reach in queue:  # grows meanwhile
            heeds |= 1 << (node.feature & 63)
            before = 0
            for child, until in node.sides or self.plain.met(node).sides:
                upto = reach * until >> SHIFT
                part, before = upto - before, upto
                if part >= FOLLOWED:
                    if child.feature in values:
                        child = self._stand(child)
                    if child.below & known:
                        queue.append((child, part))
                        continue
                    heeds |= child.below
                ends.append(child.said)
                parts.append(part)
        return start, _mean_of(ends, parts, start.said), heeds

    def _stand(self, node: Node) -> Node:
        """The first node from here on whose feature is unknown."""
        values = self.values
        # stops at leaves: nothing is known of the feature that they ask for
        while node.feature in values and (child := self._child(node)) is not None:
            node = child
        return node

    def _is_settled(self, tree: int) -> bool:
        """Whether a tree has said all: for a label, if it can say but one thing."""
        least, most = self.said[tree].range
        agree = self.answer == Answer.LABEL and least == most
        return agree or self.at[tree].feature == LEAF

    def _count_moves(self, tree: int) -> None:
        """Count how far features may move a tree where it stands now, and no longer where it stood."""
        stood, stands = self.open[tree], None if self._is_settled(tree) else self.at[tree]
        if stood is stands:
            return
        scores = self.scores
        if stood is not None:
            for j, moved in stood.moves.items():
                scores[j] -= moved
        if stands is not None:
            for j, moved in stands.moves.items():
                scores[j] += moved
        self.open[tree] = stands

    # What follows ----------------------------------------------------------------------------------

    def waiting(self) -> list[int]:
        """What trees would ask for next, in their order; where one cannot be had, on all sides of it."""
        found: dict[int, None] = {}
        for node in self.open:
            if node is not None:
                found |= dict.fromkeys(self._questions(node))
        return list(found)

    def _questions(self, node: Node) -> list[int]:
        """The unknown features that come first from a node on, left before right."""
        if node.feature not in self.values:
            return [node.feature]
        stack, found = [node], []
        while stack:
            node = stack.pop()
            if node.feature in self.values:
                stack += [child for child, _ in reversed(self._below(node))]
            elif node.feature != LEAF:
                found.append(node.feature)
        return found

    def votes(self) -> list[float]:
        """What the trees give if no more can be had, the mean of all sides of what is lost.

        That is drawn to the base rate by the share of trees that know nothing, as far as their leaves allow.
        """
        given, ends, lost = [], [], 0
        for root, node, said in zip(self.plain.roots, self.open, self.said, strict=True):
            if node is None:
                mean, end = said.range.least, Range(said.range.least, said.range.least)
            else:
                mean, end = self._given(node)
                lost += node is root and end.least != end.most
            given.append(mean)
            ends.append(end)
        total = self._sums(given)
        if not lost:
            return total
        left = lost / self.plain.n_open
        least, most = self._sums([end.least for end in ends]), self._sums([end.most for end in ends])
        drawn = (vote + pull * left for vote, pull in zip(total, self.plain.vote_pull, strict=True))
        return [min(max(vote, low), high) for vote, low, high in zip(drawn, least, most, strict=True)]

    def _given(self, start: Node) -> tuple[tuple[float, ...], Range]:
        """What a tree gives that stands at a node, from the leaves up, and what its leaves there give."""
        path = [(start, self._below(start))]
        for _, sides in path:  # grows meanwhile: children come after their parents
            path += [(child, self._below(child)) for child, _ in sides]
        gives: dict[int, tuple[float, ...]] = {}
        for node, sides in reversed(path):
            given = [(gives[id(child)], until) for child, until in sides]
            gives[id(node)] = _mean_vote(given) if given else node.said.range.least
        leaves = list(zip(*(gives[id(node)] for node, sides in path if not sides), strict=True))
        return gives[id(start)], Range(tuple(map(min, leaves)), tuple(map(max, leaves)))

    def uses(self, j: int) -> int:
        """How many trees a feature may move."""
        return sum(node is not None and j in node.moves for node in self.open)

    def _sum_up(self) -> None:
        """Sum what all trees say."""
        self.least = self._sums([said.range.least for said in self.said])
        self.most = self._sums([said.range.most for said in self.said])
        left = sum(self.scores.values()) / self.plain.whole if self.plain.whole else 1.0
        expected = self._sums([said.expected for said in self.said])
        self.belief = [e + round(pull * left) for e, pull in zip(expected, self.plain.pull, strict=True)]
        if self.forest.voting == Voting.SCORES:
            bounds = zip(self.least, self.belief, self.most, strict=True)
            # exact: scores are multiples of 1 / BELIEF
            self.belief = [int(min(max(low * BELIEF, b), high * BELIEF)) for low, b, high in bounds]

    def _sums(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The sum of every column, in the order of the trees."""
        return [sum(column) for column in zip(*rows, strict=True)] or [0] * len(self.forest.classes)


def _bits(features: Iterable[int]) -> int:
    """A bit for each feature; those whose numbers differ by 64 share one."""
    return sum({1 << (j & 63) for j in features})


def _mean_of(ends: list[Said], parts: list[int], whole: Said) -> Said:
    """What nodes say by the parts of a tree that get there; ``whole`` is what it says with nothing known."""
    columns = zip(*[said.expected for said in ends], strict=True)
    expected = tuple([sum(map(mul, column, parts)) // REACH for column in columns])
    ranges = {id(said.range): said.range for said in ends}  # few of them differ
    if id(whole.range) in ranges:  # it cannot be wider
        return Said(expected, whole.range)
    least = zip(*[each.least for each in ranges.values()], strict=True)
    most = zip(*[each.most for each in ranges.values()], strict=True)
    return Said(expected, Range(tuple(map(min, least)), tuple(map(max, most))))


def _mean_vote(sides: list[tuple[tuple[float, ...], int]]) -> tuple[float, ...]:
    """What nodes give by their shares; where they agree no mean is taken, which might round."""
    found = []
    for column in zip(*(votes for votes, _ in sides), strict=True):
        total, before = 0.0, 0
        for vote, (_, until) in zip(column, sides, strict=True):
            total += (until - before) / WHOLE * vote
            before = until
        found.append(column[0] if len(set(column)) == 1 else total)
    return tuple(found)
