"""An oracle: it decides rows from the exported JSON alone and shares no code with the package.

Written after docs/modelfile.md, docs/live.md and docs/rules.md with nothing but Python, in the plainest way:
after every value all trees are walked from their roots again, and all that they say is summed again.
"""

import math
from typing import Any, NamedTuple

UNIT = 2**24
"""Beliefs are whole numbers of 1 / UNIT, and so are the scores of boosted trees."""
UNAVAILABLE = object()
"""Of a known value: it cannot be had, which is known from the beginning."""


class Node(NamedTuple):
    """A node with all that is below it."""

    feature: int | None
    """What it asks for, None at a leaf."""
    test: Any
    """A list of categories, a threshold, or None where every number goes left."""
    children: list["Node"]
    """Of a nominal feature one for each category, of a numeric one left and right; last that of missing."""
    least: list[float]
    """The least that leaves below give to each class."""
    most: list[float]
    belief: list[int]


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
    grown = {}

    def grow(number):
        if number not in grown:
            feature, branches = tree["feature"][number], tree["branches"][number]
            test = tree["threshold"][number] if branches is None else json["features"][feature]["categories"]
            sides = [tree[side][number] for side in ("left", "right", "missing")]
            below = [grow(child) for child in branches or sides if child is not None]
            counts = tree["counts"][number]
            votes = votes_of(counts, json["voting"])
            least = [min(column) for column in zip(*(child.least for child in below), strict=True)]
            most = [max(column) for column in zip(*(child.most for child in below), strict=True)]
            believed = belief_of(counts, json["voting"])
            grown[number] = Node(feature, test, below, least or votes, most or votes, believed)
        return grown[number]

    return grow(0)


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
    """The child that a value leads to."""
    if value is None or value != value:
        return node.children[-1]
    if isinstance(node.test, list):
        return node.children[node.test.index(value) if value in node.test else -1]
    return node.children[0 if node.test is None or value <= node.test else 1]


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
    values = {j: row[name] for name, j in forest.column.items()}
    stand = [standing(root, values, "proba") for root in forest.roots]
    total = sums((node.least for node in stand), len(forest.json["prior"]))
    return forest.json["classes"][first_largest(total if stand else forest.json["prior"])]


# One row ---------------------------------------------------------------------------------------------------


def decide(forest, row, *, known=None, unavailable=(), limit=None, answer="label"):
    """Decide a row, a dict of values by name, None or NaN where missing.

    ``known`` values cost nothing; asking for what is ``unavailable`` costs nothing and gives nothing.
    """
    names, features = list(forest.column), forest.json["features"]
    values, opened = given(forest, known or {})
    acquired, spent = [], 0.0
    while True:
        stand = [standing(root, values, answer) for root in forest.roots]
        waiting = trees_by_feature(stand, answer)
        if answer == "label" and (certain_class(forest, stand) is not None or is_believed(forest, stand)):
            break
        price = affordable({j: price_of(features[j], opened) for j in waiting}, spent, limit, len(features))
        if not price:
            break
        j = min(price, key=lambda j: turn_of(j, waiting[j], price[j], answer))
        values[j] = None if names[j] in unavailable else row[names[j]]
        if names[j] not in unavailable:
            spent += price[j]
            opened.add(features[j]["group"])
            acquired.append(names[j])
    by_name = {names[j]: value for j, value in values.items()}
    label, settled, proba, belief = answered(forest, stand, bool(waiting), answer)
    return Verdict(label, spent, tuple(acquired), settled, proba, belief, by_name)


def given(forest, known):
    """Values by column, and the groups that they open; nothing is opened by what cannot be had."""
    values, opened = {}, set()
    for name, value in known.items():
        values[forest.column[name]] = None if value is UNAVAILABLE else value
        if value is not UNAVAILABLE:
            opened.add(forest.json["features"][forest.column[name]]["group"])
    return values, opened


def has_more_to_say(node, answer):
    """Whether a tree that stands here is asked further: for a label, only if it can still change its vote."""
    return node.feature is not None and (answer == "proba" or node.least != node.most)


def standing(node, values, answer):
    """How far a tree gets from a node by what is known."""
    while has_more_to_say(node, answer) and node.feature in values:
        node = child_for(node, values[node.feature])
    return node


def trees_by_feature(stand, answer):
    """The numbers of the trees that wait for each feature."""
    waiting = {}
    for number, node in enumerate(stand):
        if has_more_to_say(node, answer):
            waiting.setdefault(node.feature, []).append(number)
    return waiting


def price_of(feature, opened):
    """What a feature costs now; one that is alone has no group that could be open."""
    is_open = feature["group"] is not None and feature["group"] in opened
    return feature["discount"] if is_open else feature["cost"]


def affordable(price, spent, limit, n_features):
    """Those prices by feature that fit in what a row may pay, but for what their sum may round."""
    most = math.inf if limit is None else limit + n_features * math.ulp(limit)
    return {j: p for j, p in price.items() if spent + p <= most}


def turn_of(column, trees, price, answer):
    """The feature with the least of these comes next."""
    if answer == "proba":
        return min(trees)
    return (0, 0, column) if price == 0 else (1, -len(trees) / price, column)


def certain_class(forest, stand):
    """The class that no rival can overtake, whatever is still unknown; None if there is none."""
    k, soft = len(forest.json["classes"]), forest.json["voting"] == "soft"
    least, most = sums((node.least for node in stand), k), sums((node.most for node in stand), k)
    leader = first_largest(least)
    for rival in set(range(k)) - {leader}:
        ahead = least[leader] - most[rival]
        wins_ties = leader < rival and not soft
        if not (ahead > 1e-9 * len(stand) * soft or (ahead == 0 and wins_ties)):
            return None
    return leader


def is_believed(forest, stand):
    """Whether the trees believe enough in some class."""
    level, k = forest.json["exit"], len(forest.json["classes"])
    scored = forest.json["voting"] == "scores"
    if level is None or (scored and level >= 1):
        return False
    enough = (k - 1) / k * math.log((k - 1) * level / (1 - level)) if scored else level * len(stand)
    return max(sums((node.belief for node in stand), k)) >= enough * UNIT


def answered(forest, stand, waits, answer):
    """Label, whether it is settled, probabilities and belief, given where the trees stand."""
    classes, k = forest.json["classes"], len(forest.json["classes"])
    votes, belief = sums((node.least for node in stand), k), sums((node.belief for node in stand), k)
    best, settled = certain_class(forest, stand), True
    if not stand:
        best = first_largest(forest.json["prior"])
    elif best is None:
        best, settled = first_largest(belief if waits else votes), not waits
    proba = shares(forest, votes) if answer == "proba" and not waits else None
    return classes[best], settled, proba, shares(forest, [part / UNIT for part in belief])


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
