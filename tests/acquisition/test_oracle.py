"""Every driver against an oracle that has only the exported JSON, on random forests and on trained ones.

A failure names its seed, and ``check_forest(seed, folder)`` reproduces it.
"""

import asyncio
import json
import math
import os
import random
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

import oracle
from budgetforest import UNAVAILABLE, FeatureUnavailable, Model, Need, load, save, step, to_json
from budgetforest.data.costs import Costs
from budgetforest.data.table import Schema
from budgetforest.selection.candidates import Candidate, Point, Recipe
from budgetforest.selection.path import path_of
from budgetforest.selection.result import TrainingResult
from budgetforest.trees.forest import Answer, Context, Voting
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, UNSEEN, Tree
from saved import KINDS, budgets, later_rows, trained

FORESTS = 10_000 if "FULL" in os.environ else 300
BATCH = 50
TABLE = 256
"""So many rows without categories are predicted in another way (``charge.visitor``)."""
CUTS = (-1.0, 0.0, 0.5, 1 / 3, 2.0, 1e6)
ANSWERS = ("label", "proba")


@pytest.fixture(autouse=True)
def no_warnings_of_small_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


# Random forests ------------------------------------------------------------------------------------------


def random_model(rng, filed):
    """A model that nobody trained; ``filed``: one that a file can hold, where not every voting exits."""
    voting, schema, k = rng.choice(list(Voting)), random_schema(rng), rng.randint(2, 6)
    size, depth = rng.choice([0, *range(1, 13), *range(1, 13)]), rng.randint(0, 5)
    counts = random_counts(rng, k, voting)
    trees = [random_tree(rng, schema, depth, counts) for _ in range(size)]
    exit_at = rng.choice([math.inf, rng.uniform(0.3, 1.0), rng.choice([0.5, 0.75, 1.0])])
    if filed and voting in (Voting.MAJORITY, Voting.COUNTS):
        exit_at = math.inf
    recipe = Recipe(alpha=0.0)
    if voting == Voting.SCORES or (voting == Voting.SOFT and exit_at < math.inf):
        recipe = Recipe(cuts="boosted" if voting == Voting.SCORES else "best")
    context = Context(
        prior=np.array([rng.randint(0, 9) for _ in range(k - 1)] + [5], np.int64),
        costs=random_costs(rng, schema.names),
        schema=schema,
        classes=tuple(rng.choice([range(k), [f"class {c}" for c in range(k)], [c / 2 for c in range(k)]])),
        voting=Voting.MAJORITY if voting == Voting.SCORES else voting,
        unit=1.0,
        threshold=exit_at if recipe.alpha >= 0 else math.inf,
    )
    return Model(training_of(context, recipe, trees, exit_at, rng.choice(list(Answer))), None)


def training_of(context, recipe, trees, exit_at, answer):
    """A training that found one forest, or none."""
    points = [Point(recipe, len(trees), 1.0, 0.5, exit_at)] if trees else []
    candidates = [Candidate(recipe, trees, points, 1)]
    return TrainingResult(
        context=context,
        candidates=candidates,
        path=path_of(candidates, math.inf),
        surest=None,
        budget=math.inf,
        answer=answer,
        unit=1.0,
        proven=False,
        prior_error=math.nan,
        summary={"version": "0", "rows": 9, "validation_rows": 0, "seed": 0, "parameters": {}},
    )


def random_schema(rng):
    """Few features, rarely more than a word has bits; the first may bear the name of a group."""
    n_features = rng.randint(1, 8) if rng.random() < 0.97 else rng.randint(65, 70)
    names = [f"f{j}" for j in range(n_features)]
    names[0] = rng.choice(["f0", "panel", "sensor"])
    kinds = [("a", "b", "c", "d"), (1, 2, 3, 4)]
    categories = [rng.choice(kinds)[: rng.randint(2, 4)] if rng.random() < 0.3 else None for _ in names]
    return Schema(tuple(names), tuple(categories))


def random_costs(rng, names):
    """Multiples of a quarter, whose sums are exact: lone features, a sensor, a panel."""
    labels = [rng.choice([name, "panel", "sensor"]) for name in names]
    labels[0] = ("alone", names[0]) if rng.random() < 0.5 else labels[0]
    groups = list(dict.fromkeys(labels))
    sensor, opening, even = quarters(rng), quarters(rng), rng.random() < 0.5
    cost, discount = [], []
    for label in labels:
        later = quarters(rng) if label == "panel" else 0.0
        first = later + (opening if even else quarters(rng)) if label == "panel" else quarters(rng)
        cost.append(sensor if label == "sensor" else first)
        discount.append(later)
    group = np.array([groups.index(label) for label in labels], np.int32)
    called = tuple(label if isinstance(label, str) else label[1] for label in groups)
    return Costs(np.array(cost), np.array(discount), group, called)


def quarters(rng):
    return rng.choice([0.0, 1.0, rng.randint(0, 16) / 4, rng.randint(1, 16) / 4])


def random_counts(rng, k, voting):
    """A function that draws the counts of a node: few different ones and many ties, or a likely class."""
    most, likely, often = rng.choice([1, 2, 5, 1000, 2**22]), rng.randrange(k), rng.choice([0, 0.5, 0.9])

    def scores():
        drawn = [rng.randint(-most, most) * rng.choice([1, 2**22 // most]) for _ in range(k)]
        drawn[likely] += 2**22 * (rng.random() < often)
        return [score - sum(drawn) // k for score in drawn]

    def counts():
        drawn = [rng.choice([0, rng.randint(0, most)]) for _ in range(k)]
        drawn[rng.randrange(k)] += not any(drawn)
        drawn[likely] += most * (rng.random() < often)
        return drawn

    def nearly_level():
        """Two classes that are ahead of each other by about the slack of soft votes."""
        drawn = [0] * k
        drawn[likely] = 2**29 - 64 + rng.choice([0, 1, 2, 50])
        drawn[likely - 1] = 2**29 - 64 + rng.choice([0, 0, 1])
        return drawn

    if voting == Voting.SOFT and rng.random() < 0.25:
        return nearly_level
    return scores if voting == Voting.SCORES else counts


def random_tree(rng, schema, depth, counts):
    """Random nodes in preorder; counts of inner nodes are those of their children, or random, too."""
    nodes, branches, summed = [], [], rng.random() < 0.5

    def grow(depth):
        node = len(nodes)
        nodes.append((-1, math.nan, -1, -1, 0, counts()))
        if depth == 0 or rng.random() < 0.15:
            return node
        feature = rng.randrange(len(schema.names))
        kinds = schema.categories[feature]
        if kinds is None:
            children = left, right = grow(depth - 1), grow(depth - 1)
            cut, route = rng.choice([*CUTS, rng.gauss(0, 1), math.inf]), [MISSING_LEFT, MISSING_RIGHT]
            split = cut, left, right, rng.choice(route) + rng.choice([0, UNSEEN])
        else:
            slots = range(len(branches), len(branches) + len(kinds) + 1)
            branches.extend([0] * len(slots))
            own = {slot: grow(depth - 1) for slot in slots if slot == slots[0] or rng.random() < 0.7}
            children = tuple(own.values())
            for slot in slots:
                branches[slot] = own[slot] if slot in own else ~rng.choice(children)
            split = math.nan, slots[0], len(kinds), BY_CATEGORY
        held = [sum(column) for column in zip(*(nodes[child][-1] for child in children), strict=True)]
        nodes[node] = (feature, *split, held if summed and max(map(abs, held)) < 2**24 else nodes[node][-1])
        return node

    grow(depth)
    feature, threshold, left, right, route, held = zip(*nodes, strict=True)
    return Tree(
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        route=np.array(route, np.uint8),
        counts=np.array(held, np.int32),
        impurity=np.zeros(len(nodes)),
        weight=np.array([rng.choice([0, 1, 3, 1000]) for _ in nodes], np.int32),
        branches=np.array(branches, np.int32),
        floor=np.full(1, np.inf),
    )


# Rows and what is known of them --------------------------------------------------------------------------


class Case(NamedTuple):
    """A row, what is known of it from the beginning, and what cannot be had."""

    row: dict[str, Any]
    known: dict[str, Any]
    failing: set[str]

    def ask(self, name):
        return UNAVAILABLE if name in self.failing else self.row[name]

    def source(self, name):
        """As a source gives it: what it has not is an error or None."""
        if name not in self.failing:
            return self.row[name]
        if sum(name.encode()) % 3 == 0:
            raise ConnectionError("closed")
        if sum(name.encode()) % 3 == 1:
            raise FeatureUnavailable("closed for good")
        return None


def random_row(rng, judge):
    """Values at thresholds and beside them, missing ones, unseen categories."""
    row = {}
    for feature in judge.json["features"]:
        found = [value for value in judge.possible[feature["name"]] if value is not None]
        if feature["categories"] is None:
            found += [rng.gauss(0, 1), *(math.nextafter(cut, -math.inf) for cut in found)]
        row[feature["name"]] = math.nan if rng.random() < 0.15 else rng.choice(found)
    return row


def random_case(rng, judge, row):
    """Some of a row is known, some cannot be had; nor can an unseen category, which is no value."""
    unseen = {
        feature["name"]
        for feature in judge.json["features"]
        if feature["categories"] is not None
        and row[feature["name"]] == row[feature["name"]]
        and row[feature["name"]] not in feature["categories"]
    }
    often = rng.choice([0, 0.1, 0.4])
    known = {name: row[name] for name in row if rng.random() < often}
    known |= {name: UNAVAILABLE for name in known if name in unseen or rng.random() < 0.2}
    return Case(row, known, unseen | {name for name in row if rng.random() < 0.12})


def random_limit(rng, judge):
    """A sum that may be reached to the last cent, or one that is not."""
    total = sum(feature["cost"] for feature in judge.json["features"])
    return rng.randint(0, min(48, int(4 * total))) / 4 + rng.choice([0.0, 0.0, 0.1])


# Comparing -------------------------------------------------------------------------------------------------


def verdict_on(judge, case, answer, limit):
    known = {name: oracle.UNAVAILABLE if v is UNAVAILABLE else v for name, v in case.known.items()}
    return oracle.decide(judge, case.row, known=known, unavailable=case.failing, limit=limit, answer=answer)


def alike(found, told):
    """Whether numbers are the same but for the last digits; None is only like None."""
    if found is None or told is None:
        return found is told
    return all(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in zip(found, told, strict=True))


def check_live(model, judge, cases, answer, limit, where):
    """Every driver that asks for values; returns what the oracle says."""
    verdicts = [verdict_on(judge, case, answer, limit) for case in cases]
    settings = {"answer": answer, "limit": limit}
    answers = in_bulk(model, cases, settings)
    awaited = asyncio.run(all_async(model, cases, settings))
    for i, (case, verdict) in enumerate(zip(cases, verdicts, strict=True)):
        at = where, i, settings, case  # an assertion shows it
        one = model.predict_one(case.source, known=case.known, **settings)
        check_decision(one, verdict, ("predict_one", *at))
        check_decision(awaited[i], verdict, ("predict_one_async", *at))
        check_decision(by_steps(model.forest_, case, settings), verdict, ("step", *at))
        check_bulk(answers, i, list(judge.column), verdict, ("predict_from", *at))
    return verdicts


def by_steps(forest, case, settings):
    """A row by the pure function, which remembers nothing."""
    known, paid = dict(case.known), []
    while isinstance(what := step(forest, known, paid, **settings), Need):
        known[what.feature] = case.ask(what.feature)
        paid += [what.feature] if known[what.feature] is not UNAVAILABLE else []
    return what


async def all_async(model, cases, settings):
    """All rows at the same time."""

    def waiting_for(case):
        async def source(name):
            return case.source(name)

        return model.predict_one_async(source, known=case.known, **settings)

    return await asyncio.gather(*map(waiting_for, cases))


def in_bulk(model, cases, settings):
    """All rows at once; what cannot be had is None or UNAVAILABLE."""

    def source(name, rows):
        nothing = UNAVAILABLE if sum(name.encode()) % 2 else None
        return [nothing if name in case.failing else case.row[name] for case in rows]

    known = {name: [case.known.get(name) for case in cases] for name in cases[0].row}
    return model.predict_from(source, cases, known=known, in_flight=1 + len(cases) % 2, **settings)


def check_decision(decision, verdict, where):
    """One row, decided alone."""
    found = decision.label, decision.spent, decision.acquired, decision.certain
    assert found == (verdict.label, verdict.spent, verdict.acquired, verdict.settled), where
    assert alike(decision.belief, verdict.belief), where
    assert alike(decision.proba, verdict.proba), where


def check_bulk(answers, i, names, verdict, where):
    """One row of many that were decided at once."""
    found = answers.labels[i], answers.spent[i], answers.certain[i]
    assert found == (verdict.label, verdict.spent, verdict.settled), where
    assert {names[j] for j in np.flatnonzero(answers.acquired[i])} == set(verdict.acquired), where
    if answers.proba is not None and verdict.proba is None:
        assert np.isnan(answers.proba[i]).all(), where
    else:
        assert alike(None if answers.proba is None else answers.proba[i], verdict.proba), where


def check_table(model, judge, rows, X, where):
    """Whatever takes a table, which repeats the rows; an unseen category was paid for and is missing."""
    for answer in ANSWERS:
        told, at = [oracle.decide(judge, row, answer=answer) for row in rows], ("table", where, answer, rows)
        acquired = [[name in verdict.acquired for name in judge.column] for verdict in told]
        assert np.array_equal(model.acquired_features(X, answer=answer), again(acquired, X)), at
        spent = again([verdict.spent for verdict in told], X)
        assert np.allclose(model.acquisition_cost(X, answer=answer), spent, rtol=1e-12, atol=0), at
        if answer == "label":
            assert np.array_equal(model.predict(X), again([verdict.label for verdict in told], X)), at
        else:
            proba = again([verdict.proba for verdict in told], X)
            assert np.allclose(model.predict_proba(X), proba, rtol=1e-12, atol=1e-12), at


def again(values, X):
    """What is told of a few rows for a table that repeats them."""
    return np.concatenate([values] * (len(X) // len(values)))


def check_certainty(judge, verdicts, tries, rng, where):
    """No completion of what was not known may change a label that is certain."""
    for verdict in verdicts:
        if verdict.settled:
            sure = oracle.settled_by_completions(judge, verdict.values, verdict.label, tries, rng)
            assert sure, ("not certain", where, verdict)


# The tests -----------------------------------------------------------------------------------------------


def check_forest(seed, folder):
    """One random forest: all drivers, both answers, with a limit and without."""
    rng, filed = random.Random(seed), seed % 4 == 0
    model = random_model(rng, filed)
    model = through_a_file(model, folder) if filed else model
    judge = oracle.read(json.loads(to_json(model)))
    cases = [random_case(rng, judge, random_row(rng, judge)) for _ in range(rng.randint(2, 4))]
    for answer in ANSWERS:
        for limit in (None, random_limit(rng, judge)):
            verdicts = check_live(model, judge, cases, answer, limit, f"{seed=}")
            check_certainty(judge, verdicts, 5, rng, f"{seed=}")
    rows, X = random_table(rng, judge)
    check_table(model, judge, rows, X, f"{seed=}")


def through_a_file(model, folder):
    """The model again, as a file has it."""
    save(model, folder / "model")
    again = load(folder / "model")
    assert to_json(again) == to_json(model)
    return again


def random_table(rng, judge):
    """Some rows, and a table of them: again and again if they are numbers, and some in single precision."""
    rows = [random_row(rng, judge) for _ in range(5)]
    if any(feature["categories"] for feature in judge.json["features"]):
        return rows, np.array([list(row.values()) for row in rows], dtype=object)
    X = np.array([list(row.values()) for row in rows], rng.choice([np.float32, np.float64]))
    rows = [dict(zip(judge.column, values, strict=True)) for values in X.tolist()]
    return rows, np.tile(X, (-(-TABLE // len(X)), 1))


@pytest.mark.parametrize("first", range(0, FORESTS, BATCH))
def test_every_driver_decides_random_forests_as_the_oracle_does(first, tmp_path):
    for seed in range(first, first + BATCH):
        check_forest(seed, tmp_path)


def test_random_forests_end_in_every_way():
    """Else the test above would show less than it seems to."""
    seen = Counter()
    for seed in range(100):
        rng = random.Random(seed)
        judge = oracle.read(json.loads(to_json(random_model(rng, filed=False))))
        row, voting = random_row(rng, judge), judge.json["voting"]
        label, proba = (oracle.decide(judge, row, answer=answer) for answer in ANSWERS)
        short = [oracle.decide(judge, row, answer=answer, limit=1.0) for answer in ANSWERS]
        prices = sum(f["cost"] for f in judge.json["features"] if f["name"] in proba.acquired)
        seen[voting, "certain early"] += label.settled and len(label.acquired) < len(proba.acquired)
        seen[voting, "believed"] += not label.settled
        seen["another label"] += label.label != proba.label
        seen[voting, "limited"] += short[0].spent < label.spent
        seen[voting, "certain without probabilities"] += short[1].settled and short[1].proba is None
        seen[voting, "a discount"] += proba.spent < prices
    assert len(seen) == 5 * len(Voting) + 1
    assert min(seen.values()) > 0, seen


@pytest.mark.parametrize("kind", KINDS)
def test_every_driver_decides_trained_forests_as_the_oracle_does(kind):
    rng, X = random.Random(kind), later_rows()[:40]
    rows = X.to_dict("records")
    model = trained(kind)
    for at in [model, *(model.at_budget(budget) for budget in budgets(model)[:-1][-1:])]:
        judge, where = oracle.read(json.loads(to_json(at))), f"{kind} at {at.budget}"
        cases = [random_case(rng, judge, row) for row in rows]
        for answer in ANSWERS:
            for limit in (None, 6.0):
                verdicts = check_live(at, judge, cases, answer, limit, where)
                check_certainty(judge, verdicts, 2, rng, where)
        check_table(at, judge, rows, X, where)
