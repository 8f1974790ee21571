"""Prediction as it is meant to be run: ask for one feature at a time, pay each once, stop when certain.

``acquire`` is a generator: it yields a ``Need``, receives a value, and returns the ``Decision``. Whoever
drives it decides where values come from; ``step`` is the same as a pure function of what is known.
Nothing here is compiled: a decision takes a few milliseconds and needs neither numba nor scikit-learn.
It is also the readable reference for the compiled twin in ``early_exit``.

What the trees of a row expect, given what it knows, is what is believed (``row_state``); a forest with a
threshold takes the leading label as soon as the belief in it reaches the threshold: probable exit. The leaves
that a tree may still reach bound what it can add to each class. When the leader's least beats every rival's
most, no further feature can change the label: certain exit. Until then the next feature, of those that trees
wait for, is the one that may move the belief most per price (its own, or its discount if its group is open);
free ones come first, the lowest column among equals. For probabilities every tree must speak, one after the
other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from budgetforest.acquisition.row_state import RowState
from budgetforest.data.costs import Prices, price
from budgetforest.runtime.errors import InvalidData, InvalidParameter, InvalidValue, near
from budgetforest.runtime.params import as_float
from budgetforest.trees.forest import BELIEF, Answer, Forest, Voting, shares, slack_of


class Unavailable(Enum):
    """The value of a feature that could not be had: not paid for, and averaged over."""

    UNAVAILABLE = "unavailable"

    def __repr__(self) -> str:
        return self.name


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


class Need(NamedTuple):
    """The next feature to acquire."""

    feature: str
    cost: float
    """What it costs this row now, its group considered."""
    group: str
    """Its group; a feature that is alone lends its own name."""
    spent: float
    """What the row has paid before."""
    moves: float
    """How far it may move the belief, between 0 and 1: the mean over the trees of a standard deviation; of
    scores what the sum of these, as log-odds, does to the belief in the leading label."""
    trees: int
    """How many trees may ask for it."""
    of_trees: int
    """How many trees there are."""
    also: tuple[str, ...]
    """What else may be asked for, best first: may be acquired in parallel."""
    together: tuple[str, ...]
    """Those of ``also`` that are worth the same round trip, given ``latency``."""

    @property
    def why(self) -> str:
        """The reason in words."""
        return f"may move the belief by {self.moves:.2g}; {self.trees} of {self.of_trees} trees use it"


class Step(NamedTuple):
    """One line of a decision's trace."""

    feature: str
    value: Any
    cost: float
    """What was paid for it; 0 if it was unavailable."""
    trees: int
    """How many trees might have asked for it."""
    votes: tuple[float, ...]
    """(k) what was certain for each class afterwards."""
    possible: tuple[float, ...]
    """(k) what was still possible for each class."""


class Decision(NamedTuple):
    """The answer for one row."""

    label: Any
    proba: tuple[float, ...] | None
    """(k) shares of the votes; None unless every tree was asked (``answer="proba"``)."""
    spent: float
    acquired: tuple[str, ...]
    """What was paid for, in order."""
    unavailable: dict[str, str]
    """What could not be had, and why."""
    at_stake: dict[str, float]
    """How far each of these might still move the belief, as ``Need.moves``."""
    limited: bool
    """Whether the limit ended the questions."""
    trees_used: int
    """How many trees had nothing more to say."""
    certain: bool
    """Whether no value still unknown can change the forest's label; not so after probable exit or when a
    limit stopped the row."""
    belief: tuple[float, ...]
    """(k) what is expected of the trees, given what is known; with nothing known the base rate."""
    bounds: tuple[float, float]
    """Between what the label's share of the votes lies."""
    trace: tuple[Step, ...]
    classes: tuple[Any, ...]
    """The labels that votes in the trace refer to."""

    def explain(self) -> str:
        """The trace as text, a line per feature: what it cost, how many trees used it, and the votes then."""
        scored = any(min(s.votes) < 0 for s in self.trace)  # boosted trees add scores
        what, digits = ("scores", ".3g") if scored else ("votes", "g")
        lines = []
        for s in self.trace:
            outlook = zip(self.classes, s.votes, s.possible, strict=True)
            votes = ", ".join(
                f"{quoted(c)} {low:{digits}} to {high:{digits}}" for c, low, high in outlook if high
            )
            lost = s.value is UNAVAILABLE
            value, used = ("unavailable", "would use") if lost else (f"= {s.value!r}", "used")
            lines.append(f"{s.feature} {value} (cost {s.cost:g}, {s.trees} trees {used} it); {what}: {votes}")
        if self.unavailable:
            missed = (
                f"{name} ({reason}; might move the belief by {self.at_stake[name]:.2g})"
                for name, reason in self.unavailable.items()
            )
            lines.append(f"without {', '.join(missed)}")
        if self.limited:
            lines.append("stopped by the limit: trees would ask for more than the row may pay")
        sure = "certain" if self.certain else f"believed to {max(self.belief):.0%}, not certain"
        share = f"{self.bounds[0]:.0%} to {self.bounds[1]:.0%} of the votes"
        if scored:
            share = f"{self.bounds[0]:.0%} to {self.bounds[1]:.0%} if every tree were asked"
        return "\n".join([*lines, f"{quoted(self.label)}: {sure}, {share}, {self.spent:g} paid"])


def quoted(label: Any) -> str:
    """A label for people, told apart from figures beside it."""
    return repr(str(label))


def acquire(
    forest: Forest,
    known: Mapping[str, Any] | None = None,
    answer: str = "label",
    *,
    limit: float | None = None,
    latency: float = 0.0,
) -> Acquisition:
    """Decide one row, asking for values as they are needed.

    ``known`` values are free. Send a value, a mapping of several by name, or ``UNAVAILABLE``; NaN is a
    value that was paid for and is missing. ``limit`` is the most the row may pay. ``latency`` is what a
    round trip costs: it widens ``Need.together``. A bad value raises ``InvalidValue`` and the same need
    can be answered again.

    >>> flow = acquire(forest, {"age": 63})                     # doctest: +SKIP
    >>> need = next(flow)                                       # doctest: +SKIP
    >>> need = flow.send(120.0)   # StopIteration.value is the decision  # doctest: +SKIP
    """
    return Acquisition(forest, known or {}, (), answer, limit, latency)


def step(
    forest: Forest,
    known: Mapping[str, Any],
    paid: Collection[str] = (),
    answer: str = "label",
    *,
    limit: float | None = None,
    latency: float = 0.0,
) -> Need | Decision:
    """What to do next, given what is known: nothing else is remembered.

    ``paid`` names the known features that were paid for, in order; the others were free.
    """
    flow = Acquisition(forest, known, paid, answer, limit, latency)
    return flow.need or flow.decide()


class Acquisition(Generator[Need, Any, Decision]):
    """The generator that ``acquire`` returns. Unlike a generator function it survives a bad value."""

    def __init__(
        self,
        forest: Forest,
        known: Mapping[str, Any],
        paid: Collection[str],
        answer: str,
        limit: float | None,
        latency: Any,
    ) -> None:
        if answer not in ("label", "proba"):
            raise InvalidParameter(f"answer={answer!r} is unknown; take 'label' or 'proba'")
        if not isinstance(latency, Real) or not 0 <= as_float(latency) < math.inf:
            raise InvalidParameter(f"latency is {latency!r}; it must be a finite cost, zero or more")
        self.forest = forest
        self.answer = Answer[answer.upper()]
        self.limit = checked_limit(limit, len(forest.costs.cost))
        self.latency = float(latency)
        self.spent = 0.0
        self.trace: list[Step] = []
        self.reasons: dict[str, str] = {}
        """Why features are unavailable, as far as somebody said so."""
        self._column = {name: j for j, name in enumerate(forest.schema.names)}
        self._prices = Prices._make(column.tolist() for column in forest.costs.bare)
        self._group: list[int] = self._prices.group
        self._shared: list[bool] = forest.costs.shared.tolist()
        self._opened: set[int] = set()
        self._acquired: list[int] = []
        self._unavailable: list[int] = []
        self._state = RowState(forest, self.answer)
        checked = {self._find(name): self._check(name, value) for name, value in known.items()}
        bought = dict.fromkeys(self._find(name) for name in paid)
        self._take_free(checked, bought)
        for j in bought:
            self._learn(j, checked[j], known[forest.schema.names[j]])
        self.need: Need | None = self._next_need()

    # The generator protocol --------------------------------------------------------------------

    def send(self, value: Any) -> Need:
        """Answer the current need; ``None`` asks for it again."""
        if value is not None and self.need is not None:
            given = value if isinstance(value, Mapping) else {self.need.feature: value}
            checked = {self._find(name): self._check(name, v) for name, v in given.items()}
            self._check_limit(checked)
            for (j, code), shown in zip(checked.items(), given.values(), strict=True):
                self._learn(j, code, shown)
            self.need = self._next_need()
        if self.need is None:
            raise StopIteration(self.decide())
        return self.need

    def throw(self, kind: Any, value: Any = None, traceback: Any = None) -> Need:
        """Raise an error at the caller; the row is kept as it is."""
        raise value if value is not None else kind

    def close(self) -> None:
        """Nothing is held that needs closing."""

    # Steps ---------------------------------------------------------------------------------------

    def _find(self, name: str) -> int:
        if name not in self._column:
            raise InvalidData(f"{name!r} is not a feature of this forest; {near(str(name), self._column)}")
        return self._column[name]

    def _check(self, name: str, value: Any) -> float | None:
        """A value as a number, None if it is unavailable."""
        return None if value is UNAVAILABLE else number_of(self.forest, self._find(name), value)

    def _take_free(self, checked: Mapping[int, float | None], bought: Collection[int]) -> None:
        """Take what was known at the start for nothing; it opens its groups."""
        for j in bought:
            if checked.get(j) is None:
                name = self.forest.schema.names[j]
                raise InvalidData(f"{name!r} is listed as paid but has no known value; give both or neither")
        free = {}
        for j, code in checked.items():
            if code is None:
                self._unavailable.append(j)
                free[j] = math.nan
            elif j not in bought:
                self._opened.add(self._group[j])
                free[j] = code
        self._state.learn(free)

    def _check_limit(self, checked: Mapping[int, float | None]) -> None:
        """Refuse values that together cost more than the row may still pay."""
        opened, total = set(self._opened), self.spent
        for j, code in checked.items():
            if code is not None and j not in self._state.values:
                total += price(self._prices, j, self._group[j] in opened)
                opened.add(self._group[j])
        if total > self.limit:
            raise InvalidData(
                f"these values would take the row to {total:g}, past its limit {self.limit:g}; send fewer"
            )

    def _price(self, j: int) -> float:
        cost: float = price(self._prices, j, self._group[j] in self._opened)
        return cost

    def _charge(self, j: int) -> float:
        cost = self._price(j)
        self.spent += cost
        self._opened.add(self._group[j])
        self._acquired.append(j)
        return cost

    def _learn(self, j: int, code: float | None, shown: Any) -> None:
        """A feature has come, or will not: trees hear of it."""
        if j in self._state.values:
            return
        price, trees = 0.0, self._state.uses(j)
        if code is None:
            self._unavailable.append(j)
        else:
            price = self._charge(j)
        self._state.learn({j: math.nan if code is None else code})
        name = self.forest.schema.names[j]
        shown = shown.item() if hasattr(shown, "item") else shown
        votes, possible = tuple(self._state.least), tuple(self._state.most)
        self.trace.append(Step(name, shown, price, trees, votes, possible))

    def _certain_label(self) -> int | None:
        """The class that no further feature can beat; ties go to the lowest class."""
        slack, low = slack_of(self.forest), self._state.least
        leader = low.index(max(low))
        for c, high in enumerate(self._state.most):
            lead = low[leader] - high - slack
            if c != leader and (lead < 0 or (lead == 0 and (c < leader or slack > 0))):
                return None
        return leader

    def _is_decided(self) -> bool:
        """Whether the label is certain, or believed enough."""
        return self._certain_label() is not None or max(self._state.belief) >= self.forest.enough

    @property
    def bought(self) -> dict[str, Any]:
        """The values that were paid for."""
        names = {self.forest.schema.names[j] for j in self._acquired}
        return {each.feature: each.value for each in self.trace if each.feature in names}

    @property
    def limited(self) -> bool:
        """Whether the limit ended the questions: trees wait for what the row may not pay."""
        decided = self.answer == Answer.LABEL and self._is_decided()
        return self.need is None and bool(self._state.waiting()) and not decided

    def _next_need(self) -> Need | None:
        """The feature to ask for, None when the row is decided or can afford no more."""
        if self.answer == Answer.LABEL and self._is_decided():
            return None
        scores = self._state.scores
        asked = self._state.waiting()  # one tree after the other
        price = {j: self._price(j) for j in asked}
        wanted = [j for j in asked if self.spent + price[j] <= self.limit]
        if not wanted:
            return None
        if self.answer == Answer.LABEL:
            wanted.sort(key=lambda j: (price[j] > 0, -self._worth(j) / price[j] if price[j] else 0.0, j))
        best, *others = wanted
        names = self.forest.schema.names
        return Need(
            feature=names[best],
            cost=price[best],
            group=self.forest.costs.group_names[self._group[best]],
            spent=self.spent,
            moves=self._moves(best),
            trees=self._state.uses(best),
            of_trees=self.forest.n_trees,
            also=tuple(names[j] for j in others),
            together=tuple(names[j] for j in self._together(best, others, price, scores)),
        )

    def _moves(self, j: int) -> float:
        """How far a feature may move the belief (``Need.moves``)."""
        moved = self._state.scores.get(j, 0) / BELIEF
        if self.forest.voting != Voting.SCORES:
            return moved / max(self.forest.n_trees, 1)
        most = max(self._as_shares([belief / BELIEF for belief in self._state.belief]))
        odds = math.exp(min(moved, 700.0))  # more changes nothing
        # the leader's odds divided by so much, or as many times as large
        fall, rise = most / (most + (1 - most) * odds), most * odds / (most * odds + 1 - most)
        return max(most - fall, rise - most)

    def _worth(self, j: int) -> int:
        """How far a price may move the belief: with the first of a sensor come the others for nothing.

        What a tree waits for is worth something, however little.
        """
        scores, group = self._state.scores, self._group
        worth = scores.get(j, 0)
        if self._shared[j] and group[j] not in self._opened:
            worth *= self._prices.discount[j] > 0
            worth += sum(
                score
                for other, score in scores.items()
                if group[other] == group[j]
                and self._prices.discount[other] == 0
                and other not in self._state.values
            )
        return max(worth, 1)

    def _together(
        self, best: int, others: list[int], price: Mapping[int, float], scores: Mapping[int, int]
    ) -> Iterable[int]:
        """Those of the others that are worth the same round trip, as far as the limit reaches.

        With its share of all that may still move the belief as the chance that a feature is needed anyway, a
        saved round trip weighs against a wasted price.
        """
        total = self.spent + price[best]
        every = sum(score for j, score in scores.items() if j not in self._state.values)
        for j in others if self.latency else ():
            share = scores.get(j, 0) / every if every else 0.0
            if self.latency * share > price[j] * (1 - share) and total + price[j] <= self.limit:
                total += price[j]
                yield j

    # The answer ----------------------------------------------------------------------------------

    def decide(self) -> Decision:
        """The decision, the best so far if more is needed to be certain."""
        forest, state = self.forest, self._state
        settled = state.open.count(None)
        label = self._certain_label() if forest.n_trees else int(forest.prior.argmax())
        certain = label is not None or settled == forest.n_trees
        exhausted, believed = not state.waiting(), state.belief
        votes = state.votes() if exhausted else []
        if label is None:
            # trees would ask for more, or only for what cannot be had
            chosen: list[Any] = votes if exhausted else believed
            label = chosen.index(max(chosen))
        belief = self._as_shares([belief / BELIEF for belief in believed])
        lost = {forest.schema.names[j]: j for j in self._unavailable}
        proba = self._as_shares(votes) if self.answer == Answer.PROBA and exhausted else None
        return Decision(
            label=forest.classes[label],
            proba=proba,
            spent=self.spent,
            acquired=tuple(forest.schema.names[j] for j in self._acquired),
            unavailable={name: self.reasons.get(name, "unavailable") for name in lost},
            at_stake={name: self._moves(j) for name, j in lost.items()},
            limited=self.limited,
            trees_used=settled,
            certain=certain,
            belief=belief,
            bounds=self._bounds(label),
            trace=tuple(self.trace),
            classes=forest.classes,
        )

    def _as_shares(self, total: Sequence[float]) -> tuple[float, ...]:
        """What all trees give as shares of 1; without trees, those of the training rows."""
        voting = self.forest.voting if self.forest.n_trees else Voting.COUNTS
        given = np.array([total if self.forest.n_trees else self.forest.prior], np.float64)
        return tuple(shares(given, voting)[0].tolist())

    def _bounds(self, label: int) -> tuple[float, float]:
        """Least and most share of the votes for a label."""
        if not self.forest.n_trees:
            share = float(self.forest.prior[label] / self.forest.prior.sum())
            return share, share
        return share_bounds(self.forest, self._state.least, self._state.most, label)


def share_bounds(
    forest: Forest, least: Sequence[float], most: Sequence[float], label: int
) -> tuple[float, float]:
    """Least and most share of the votes for a label, given what all trees can still add to each class."""
    low, high = least[label], most[label]
    if forest.voting == Voting.SCORES:
        ends = np.array([most, least])
        ends[:, label] = low, high
        worst, best = shares(ends, forest.voting)[:, label].tolist()
        return worst, best
    if forest.voting != Voting.COUNTS:
        return low / forest.n_trees, max(low, high) / forest.n_trees
    others = [c for c in range(len(least)) if c != label]
    top, bottom = low + sum(most[c] for c in others), high + sum(least[c] for c in others)
    return (low / top if top else 0.0), (high / bottom if bottom else 1.0)


def checked_limit(limit: Any, n_features: int) -> float:
    """The most a row may pay; None is no limit. There is room for what a sum of so many prices may round."""
    if limit is None:
        return math.inf
    if not isinstance(limit, Real) or not as_float(limit) >= 0:
        raise InvalidParameter(f"limit is {limit!r}; it must be a number, zero or more, or None")
    most = as_float(limit)
    return most + n_features * math.ulp(most)


def number_of(forest: Forest, column: int, value: Any) -> float:
    """A value as the number that trees compare; an error names the feature, the value and the rule."""
    name, categories = forest.schema.names[column], forest.schema.categories[column]
    if type(value).__name__ == "NAType":  # pandas' own missing value
        return math.nan
    try:
        if categories is not None and not (isinstance(value, Real) and math.isnan(value)):
            return float(categories.index(value))
        if isinstance(value, Real | Decimal | np.bool_):
            number = float(value)
            if not math.isinf(number):
                return number
    except (TypeError, ValueError, OverflowError):
        pass
    if categories is not None:
        known = near(str(value), map(str, categories))
        raise InvalidValue(f"{name!r} has no category {value!r}; {known}, or send UNAVAILABLE")
    raise InvalidValue(f"value of {name!r} is {value!r}; it must be a finite number, NaN if it is missing")
