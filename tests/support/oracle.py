"""An oracle: it decides rows from the exported JSON alone and shares no code with the package.

Written after docs/modelfile.md, docs/live.md and docs/rules.md with nothing but Python, in the plainest way:
after every value all trees are walked from their roots again, and all that they say is summed again.
"""

import math
from operator import mul
from typing import Any, NamedTuple

UNIT = 2**24
"""Beliefs are whole numbers of 1 / UNIT, and so are the scores of boosted trees."""
PARTS = 2**15
"""Shares of children are whole numbers of 1 / PARTS."""
REACH = 2**20
"""A tree shares out so many parts of itself among its leaves."""
UNAVAILABLE = object()
"""Of a known value: it cannot be had, which is known from the beginning."""


class Node(NamedTuple):
    """A node with all that is below it."""

    feature: int | None
    """What it asks for, None at a leaf."""
    test: Any
    """A list of categories, a threshold, or None where every number goes left."""
    children: list["Node | None"]
    """Of a nominal feature one for each category, of a numeric one left and right; last that of missing.
    None where training had no such row."""
    own: list["Node"]
    """Those children that training rows went to, each once."""
    parts: list[int]
    """The share of each of these by weight, in units of 1 / PARTS."""
    least: list[float]
    """The least that leaves below give to each class."""
    most: list[float]
    belief: list[int]
    """The mean of the leaves below."""
    moves: dict[int, int]
    """How far each feature asked for here and below may move the belief."""
    asks: dict[str, set[int]]
    """What is asked for here and below, for either answer; numbers that differ by 64 count as one."""


class Forest(NamedTuple):
    """The parsed JSON and its trees."""

    json: dict
    column: dict[str, int]
    """The number of each feature."""
    roots: list[Node]
    possible: dict[str, list]
    """Values of each feature that trees tell apart, among them a missing one and an unseen category."""


class Verdict(NamedTuple):
    """What a row gets, and pays for it."""

    label: Any
    spent: float
    acquired: tuple[str, ...]
    settled: bool
    """Whether no value still unknown can change the label."""
    proba: list[float] | None
    belief: list[float]
    values: dict[str, Any]
    """All that was known in the end, None where it was missing or could not be had."""


# The forest ----------------------------------------------------------------------------------------------


def read(json):
    """A forest from the parsed JSON."""
    column = {feature["name"]: j for j, feature in enumerate(json["features"])}
    roots = [planted(tree, json) for tree in json["trees"]]
    return Forest(json, column, roots, {name: possible_values(json, j) for name, j in column.items()})


def planted(tree, json):
    """The root of a tree."""
    grown = {None: None}

    def grow(number):
        if number not in grown:
            feature, branches = tree["feature"][number], tree["branches"][number]
            test = tree["threshold"][number] if branches is None else json["features"][feature]["categories"]
            sides = [tree[side][number] for side in ("left", "right", "missing")]
            numbers = sorted(set(branches or sides) - {None})
            own, parts = [grow(child) for child in numbers], parts_of([tree["weight"][n] for n in numbers])
            votes = votes_of(tree["counts"][number], json["voting"])
            least = [min(column) for column in zip(*(child.least for child in own), strict=True)] or votes
            most = [max(column) for column in zip(*(child.most for child in own), strict=True)] or votes
            belief = belief_of(tree["counts"][number], json["voting"])
            if own:
                belief = mean(parts, [child.belief for child in own])
            moves = moves_of(feature, parts, own, belief) if least != most else {}
            children = [grow(child) for child in branches or sides] if own else []
            asks = {"label": set(), "proba": set()}
            for answer in asks if own else ():
                if answer == "proba" or least != most:
                    asks[answer] = {feature % 64}.union(*(child.asks[answer] for child in own))
            grown[number] = Node(feature, test, children, own, parts, least, most, belief, moves, asks)
        return grown[number]

    return grow(0)


def parts_of(weights):
    """The share of each in the weight of all, in units of 1 / PARTS; rounded in sum, so that none is lost."""
    if not any(weights):
        weights = [1] * len(weights)
    upto = [round(sum(weights[: i + 1]) / sum(weights) * PARTS) for i in range(len(weights))]
    return [after - before for before, after in zip([0, *upto], upto, strict=False)]


def mean(parts, rows):
    """The mean of every column, rounded down."""
    return [sum(map(mul, parts, column)) // PARTS for column in zip(*rows, strict=True)]


def moves_of(feature, parts, children, belief):
    """What the question of a node moves, and the mean of what those below it do."""
    explained = 0.0
    for c, middle in enumerate(belief):
        explained += sum(
            part * float(child.belief[c] - middle) ** 2 for part, child in zip(parts, children, strict=True)
        )
    moves = {}
    for j in {j for child in children for j in child.moves}:
        moves[j] = sum(map(mul, parts, (child.moves.get(j, 0) for child in children))) // PARTS
    moves[feature] = moves.get(feature, 0) + max(round(math.sqrt(explained / PARTS)), 1)
    return {j: moved for j, moved in moves.items() if moved}


def votes_of(counts, voting):
    """What a leaf gives to each class."""
    if voting == "majority":
        return [int(c == first_largest(counts)) for c in range(len(counts))]
    unit = {"soft": sum(counts), "counts": 1, "scores": UNIT}[voting]
    return [count / unit for count in counts]


def belief_of(counts, voting):
    """What a node believes of each class."""
    if voting == "scores":
        return counts
    return [round(count / sum(counts) * UNIT) for count in counts]


def first_largest(numbers):
    """Where the largest number stands, the first of equals."""
    return list(numbers).index(max(numbers))


def child_for(node, value):
    """The child that a value leads to, None if nothing tells."""
    if value is None or value != value:
        return node.children[-1]
    if isinstance(node.test, list):
        return node.children[node.test.index(value) if value in node.test else -1]
    return node.children[0 if node.test is None or value <= node.test else 1]


def below(node, values):
    """The children that may still be reached, with their parts."""
    child = child_for(node, values[node.feature]) if node.feature in values else None
    return list(zip(node.own, node.parts, strict=True)) if child is None else [(child, PARTS)]


def sums(rows, n_classes):
    """The sum of every column; rows come in the order of trees."""
    total = [0] * n_classes
    for row in rows:
        total = [a + b for a, b in zip(total, row, strict=True)]
    return total


def shares(forest, total):
    """What is given to the classes as parts of 1."""
    if not forest.roots:
        total = forest.json["prior"]
    elif forest.json["voting"] == "scores":
        total = [math.exp(score - max(total)) for score in total]
    return [part / sum(total) for part in total]


def full_label(forest, row):
    """The label when every tree is asked; ``row`` has the values by name."""
    view = seen_by(forest, {j: row[name] for name, j in forest.column.items()}, "label")
    best = certain_class(forest, view)
    if best is None:
        best = first_largest(view.votes)
    return forest.json["classes"][best if forest.roots else first_largest(forest.json["prior"])]


# One row ---------------------------------------------------------------------------------------------------


def decide(forest, row, *, known=None, unavailable=(), limit=None, answer="label"):
    """Decide a row, a dict of values by name, None or NaN where missing.

    ``known`` values cost nothing; asking for what is ``unavailable`` costs nothing and gives nothing.
    """
    names, features = list(forest.column), forest.json["features"]
    values, opened = given(forest, known or {})
    acquired, spent = [], 0.0
    while True:
        view = seen_by(forest, values, answer)
        if answer == "label" and (certain_class(forest, view) is not None or is_believed(forest, view)):
            break
        asked = {j: price_of(features[j], opened) for j in view.waiting}
        price = affordable(asked, spent, limit, len(features))
        if not price:
            break
        j = next(iter(price))
        if answer == "label":
            j = min(price, key=lambda j: turn_of(j, view.moves, features, opened, price[j], values))
        values[j] = None if names[j] in unavailable else row[names[j]]
        if names[j] not in unavailable:
            spent += price[j]
            opened.add(features[j]["group"])
            acquired.append(names[j])
    by_name = {names[j]: value for j, value in values.items()}
    label, settled, proba, belief = answered(forest, view, answer)
    return Verdict(label, spent, tuple(acquired), settled, proba, belief, by_name)


class View(NamedTuple):
    """What all trees make of what is known."""

    n_trees: int
    complete: bool
    """Whether every tree has said all."""
    waiting: list[int]
    """The features that trees would ask for next, tree by tree and from left to right."""
    least: list[float]
    """What their leaves that may still be reached give to each class at least."""
    most: list[float]
    votes: list[float]
    """What they give if no more can be had."""
    belief: list[int]
    """What is believed of each class, in units of 1 / UNIT."""
    moves: dict[int, int]
    """How far each feature may move it."""


def seen_by(forest, values, answer):
    """All trees from their roots."""
    k = len(forest.json["prior"])
    waiting, moves, stand = {}, {}, [standing(root, values, answer) for root in forest.roots]
    said = [expectation(node, values, answer) for node in stand]
    more = [
        node.feature is not None and (answer == "proba" or a != b)
        for node, (_, a, b) in zip(stand, said, strict=True)
    ]
    for node in (node for node, has_more in zip(stand, more, strict=True) if has_more):
        waiting |= dict.fromkeys(questions(node, values, answer))
        for j, moved in node.moves.items():
            moves[j] = moves.get(j, 0) + moved
    least, most = sums((low for _, low, _ in said), k), sums((high for _, _, high in said), k)
    belief = sums((expected for expected, _, _ in said), k)
    if stand:
        belief = drawn_to_base_rate(forest, belief, sum(moves.values()))
    if forest.json["voting"] == "scores":
        belief = [
            min(max(b, low * UNIT), high * UNIT) for b, low, high in zip(belief, least, most, strict=True)
        ]
    return View(
        len(stand),
        not any(more),
        list(waiting),
        least,
        most,
        final_votes(forest, stand, values),
        belief,
        moves,
    )


def is_end(node, answer):
    """Whether a node stands for all below it: for a label, if all leaves there vote alike."""
    return node.feature is None or (answer == "label" and node.least == node.most)


def standing(node, values, answer):
    """How far a tree gets from a node by what is known."""
    while not is_end(node, answer) and node.feature in values and child_for(node, values[node.feature]):
        node = child_for(node, values[node.feature])
    return node


def questions(node, values, answer):
    """The unknown features that come first from a node on."""
    if is_end(node, answer):
        return []
    if node.feature not in values:
        return [node.feature]
    return [j for child, _ in below(node, values) for j in questions(child, values, answer)]


def expectation(node, values, answer):
    """What a tree that stands at a node believes, and the least and the most that it may still give.

    A child of which less than a 16th of the tree gets there, or that asks for nothing known, speaks for all
    below it.
    """
    known = {j % 64 for j in values}
    queue, ends = [(node, REACH)], []
    if not node.asks[answer] & known:
        queue, ends = [], queue
    for node, reach in queue:
        before = upto = 0
        for child, part in below(node, values):
            upto += part
            after = reach * upto // PARTS
            followed = after - before >= REACH // 16 and child.asks[answer] & known
            (queue if followed else ends).append((child, after - before))
            before = after
    spoken = sums(([reach * belief for belief in end.belief] for end, reach in ends), len(node.least))
    least = [min(column) for column in zip(*(end.least for end, _ in ends), strict=True)]
    most = [max(column) for column in zip(*(end.most for end, _ in ends), strict=True)]
    return [belief // REACH for belief in spoken], least, most


def votes_expected(node, values):
    """What a tree that stands at a node gives if no more can be had; nothing is rounded where all agree."""
    if node.feature is None:
        return node.least
    found = []
    rows = [(votes_expected(child, values), part / PARTS) for child, part in below(node, values)]
    for c in range(len(node.least)):
        total, column = 0.0, [votes[c] for votes, _ in rows]
        for votes, share in rows:
            total += share * votes[c]
        found.append(column[0] if len(set(column)) == 1 else total)
    return found


def final_votes(forest, stand, values):
    """What all trees give if no more can be had, drawn to the base rate as far as trees know nothing."""
    prior, k = forest.json["prior"], len(forest.json["prior"])
    votes = sums((votes_expected(node, values) for node in stand), k)
    ends = [leaves_below(node, values) for node in stand]
    differ = [any(len(set(column)) > 1 for column in zip(*leaves, strict=True)) for leaves in ends]
    pairs = zip(forest.roots, stand, differ, strict=True)
    lost = sum(root is node and root.feature in values and several for root, node, several in pairs)
    if not lost:
        return votes
    nothing = sums((votes_expected(root, {}) for root in forest.roots), k)
    if forest.json["voting"] == "scores":
        logs = [math.log(max(count, 0.5) / sum(prior)) for count in prior]
        base = [round((log - sum(logs) / len(logs)) * UNIT) / UNIT for log in logs]
    else:
        base = [count / sum(prior) * sum(nothing) for count in prior]
    share = lost / sum(root.least != root.most for root in forest.roots)
    drawn = [vote + (rate - none) * share for vote, rate, none in zip(votes, base, nothing, strict=True)]
    least = sums(([min(column) for column in zip(*leaves, strict=True)] for leaves in ends), k)
    most = sums(([max(column) for column in zip(*leaves, strict=True)] for leaves in ends), k)
    return [min(max(vote, low), high) for vote, low, high in zip(drawn, least, most, strict=True)]


def leaves_below(node, values):
    """The votes of all leaves that may still be reached."""
    if node.feature is None:
        return [node.least]
    return [votes for child, _ in below(node, values) for votes in leaves_below(child, values)]


def drawn_to_base_rate(forest, belief, moves):
    """With nothing known the base rate is believed; the less trees can still move, the less it draws."""
    prior = forest.json["prior"]
    if forest.json["voting"] == "scores":
        logs = [math.log(max(count, 0.5) / sum(prior)) for count in prior]
        base = [round((log - sum(logs) / len(logs)) * UNIT) for log in logs]
    else:
        base = [count * len(forest.roots) * UNIT // sum(prior) for count in prior]
    at_roots = sums((root.belief for root in forest.roots), len(prior))
    whole = sum(sum(root.moves.values()) for root in forest.roots)
    left = moves / whole if whole else 1.0
    pull = [rate - root for rate, root in zip(base, at_roots, strict=True)]
    return [believed + round(float(by) * left) for believed, by in zip(belief, pull, strict=True)]


def given(forest, known):
    """Values by column, and the groups that they open; nothing is opened by what cannot be had."""
    values, opened = {}, set()
    for name, value in known.items():
        values[forest.column[name]] = None if value is UNAVAILABLE else value
        if value is not UNAVAILABLE:
            opened.add(forest.json["features"][forest.column[name]]["group"])
    return values, opened


def price_of(feature, opened):
    """What a feature costs now; one that is alone has no group that could be open."""
    is_open = feature["group"] is not None and feature["group"] in opened
    return feature["discount"] if is_open else feature["cost"]


def affordable(price, spent, limit, n_features):
    """Those prices by feature that fit in what a row may pay, but for what their sum may round."""
    most = math.inf if limit is None else limit + n_features * math.ulp(limit)
    return {j: p for j, p in price.items() if spent + p <= most}


def turn_of(column, moves, features, opened, price, values):
    """The feature with the least of these comes next."""
    if price == 0:
        return 0, 0, column
    return 1, -max(worth_of(column, moves, features, opened, values), 1) / price, column


def worth_of(column, moves, features, opened, values):
    """What a price buys: with the first of a group come all those of it that then cost nothing."""
    group = features[column]["group"]
    if group is None or group in opened:
        return moves.get(column, 0)
    same = [j for j in moves if features[j]["group"] == group and j not in values]
    return sum(moves[j] for j in same if j == column or features[j]["discount"] == 0)


def certain_class(forest, view):
    """The class that no rival can overtake, whatever is still unknown; None if there is none."""
    k, soft = len(forest.json["classes"]), forest.json["voting"] == "soft"
    leader = first_largest(view.least)
    for rival in set(range(k)) - {leader}:
        ahead = view.least[leader] - view.most[rival]
        wins_ties = leader < rival and not soft
        if not (ahead > 1e-9 * view.n_trees * soft or (ahead == 0 and wins_ties)):
            return None
    return leader


def is_believed(forest, view):
    """Whether the trees believe enough in some class."""
    level, k = forest.json["exit"], len(forest.json["classes"])
    scored = forest.json["voting"] == "scores"
    if level is None or (scored and level >= 1):
        return False
    enough = (k - 1) / k * math.log((k - 1) * level / (1 - level)) if scored else level * view.n_trees
    return max(view.belief) >= enough * UNIT


def answered(forest, view, answer):
    """Label, whether it is settled, probabilities and belief."""
    classes = forest.json["classes"]
    best, settled = certain_class(forest, view), True
    if not view.n_trees:
        best = first_largest(forest.json["prior"])
    elif best is None:
        best, settled = first_largest(view.belief if view.waiting else view.votes), view.complete
    proba = shares(forest, view.votes) if answer == "proba" and not view.waiting else None
    return classes[best], settled, proba, shares(forest, [part / UNIT for part in view.belief])


# Whether a label is certain --------------------------------------------------------------------------------


def settled_by_completions(forest, known_values, label, tries, rng):
    """Whether the full forest gives this label on some random completions of what is known."""
    unknown = [name for name in forest.column if name not in known_values]
    completions = ({name: rng.choice(forest.possible[name]) for name in unknown} for _ in range(tries))
    return all(full_label(forest, known_values | completion) == label for completion in completions)


def possible_values(json, column):
    """Values at and just above every threshold, or the categories; a missing one, an unseen one."""
    if json["features"][column]["categories"] is not None:
        return [None, "of no category", *json["features"][column]["categories"]]
    cuts = {
        cut
        for tree in json["trees"]
        for feature, cut in zip(tree["feature"], tree["threshold"], strict=True)
        if feature == column and cut is not None
    }
    return [None, 0.0, *sorted(cuts), *(math.nextafter(cut, math.inf) for cut in sorted(cuts))]
