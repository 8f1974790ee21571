"""Exports: another language and another runtime give our labels, probabilities and bills."""

import json
import math
import sys
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from budgetforest import BudgetForestClassifier, InvalidData, MissingExtra, load, save, to_json, to_onnx
from budgetforest.data.table import to_matrix
from budgetforest.trees.forest import Voting
from budgetforest.trees.walk import visit_leaves
from saved import KINDS, budgets, later_rows, source_of, trained

WHOLE = slice(100, 101)
"""A row with every value."""


@pytest.fixture(autouse=True)
def no_warnings_of_small_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def run(model, X):
    """Labels and probabilities of onnxruntime."""
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    return session.run(None, {"X": X})


def matrix(model, X):
    return np.ascontiguousarray(to_matrix(X, model.forest_.schema))


def whole_rows(model, X):
    """Those whose values training had wherever they are asked for: where not, ONNX takes the larger side."""
    forest, given = model.forest_, matrix(model, X)
    lost, total = np.zeros(len(X), bool), np.zeros((len(X), len(forest.classes)))
    visit_leaves(
        forest.nodes, forest.roots, forest.least, given, total, np.zeros((len(X), 0), np.uint64), lost
    )
    return X[~lost]


def likeliest(model, X):
    return model.classes_[model.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_gives_our_labels_and_probabilities(kind):
    model = trained(kind)
    for at in [model, *(model.at_budget(budget) for budget in budgets(model)[::4])]:
        X = whole_rows(at, later_rows())
        assert len(X) > 100
        labels, probabilities = run(at, matrix(at, X))
        assert np.array_equal(labels, likeliest(at, X))
        exact = at.forest_.voting != Voting.SCORES  # softmax: but for the last digits
        np.testing.assert_allclose(probabilities, at.predict_proba(X), rtol=0 if exact else 1e-13)
        if at.forest_.threshold == math.inf:
            assert np.array_equal(labels, at.predict(X))


def test_values_just_above_and_below_a_threshold_go_our_way():
    model = trained("paper")
    nodes = model.forest_.nodes
    by_number = (nodes.feature >= 0) & (nodes.route != 2) & np.isfinite(nodes.threshold)
    X = np.repeat(matrix(model, later_rows()[WHOLE]), 3 * by_number.sum(), axis=0)
    for at, node in enumerate(np.flatnonzero(by_number)):
        cut = nodes.threshold[node]
        X[3 * at : 3 * at + 3, nodes.feature[node]] = (
            np.nextafter(cut, -np.inf),
            cut,
            np.nextafter(cut, np.inf),
        )
    columns = later_rows().iloc[:0].to_dict("list")
    rows = later_rows()[WHOLE].iloc[np.zeros(len(X), int)].reset_index(drop=True)
    for j, (name, kinds) in enumerate(zip(columns, model.forest_.schema.categories, strict=True)):
        if kinds is None:
            rows[name] = X[:, j]
    labels, probabilities = run(model, X)
    assert np.array_equal(labels, likeliest(model, rows))
    assert np.array_equal(probabilities, model.predict_proba(rows))


def test_ten_classes_and_many_trees_sum_in_our_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] * 3 + rng.normal(size=400)).round().astype(int).clip(-4, 5)
    model = BudgetForestClassifier(
        method="paper", alpha=4.0, voting="soft", max_trees=40, random_state=0, impurity="pairs"
    ).fit(X, y)
    labels, probabilities = run(model, X)
    assert np.array_equal(labels, likeliest(model, X))
    assert np.allclose(probabilities, model.predict_proba(X), rtol=1e-15, atol=0)  # the last digit at most


def test_the_graph_names_its_features_and_categories():
    props = {entry.key: entry.value for entry in to_onnx(trained("auto")).metadata_props}
    features = json.loads(props["features"])
    assert [feature["name"] for feature in features] == trained("auto").feature_names_in_.tolist()
    assert features[4]["categories"] == ["blue", "green", "rare", "red"]


def test_a_missing_onnx_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"budgetforest\[onnx\]"):
        to_onnx(trained("paper"))


def test_what_json_cannot_hold_is_refused():
    X, days = np.arange(20.0)[:, None], np.repeat(np.array(["2020-01-01", "2020-01-02"], "M8[D]"), 10)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1).fit(X, days)
    for export in (to_json, to_onnx):
        with pytest.raises(InvalidData, match="turn the others into text"):
            export(model)


# A reader of the JSON that shares nothing with the package, as docs/modelfile.md describes it -----------


def child_of(tree, row, features, node):
    """Where a row goes from a node, None if its value is lost there; without a row all are."""
    feature = tree["feature"][node]
    if row is None:
        return None
    name, categories = features[feature]["name"], features[feature]["categories"]
    value = row[name]
    if isinstance(value, float) and math.isnan(value):
        value = None
    if categories is not None:
        return tree["branches"][node][categories.index(value) if value in categories else -1]
    if value is None:
        return tree["missing"][node]
    if tree["threshold"][node] is None or value <= tree["threshold"][node]:
        return tree["left"][node]
    return tree["right"][node]


def leaves_of(tree, row, features, node=0):
    """The leaves of a tree that a row may reach, each with its share of the row."""
    if tree["feature"][node] is None:
        return {node: 1.0}
    child = child_of(tree, row, features, node)
    if child is not None:
        return leaves_of(tree, row, features, child)
    children = set(tree["branches"][node] or [tree["left"][node], tree["right"][node]]) - {None}
    total = sum(tree["weight"][child] for child in children)
    return {
        leaf: share * tree["weight"][child] / total
        for child in children
        for leaf, share in leaves_of(tree, row, features, child).items()
    }


def votes_of(counts, voting):
    if voting == "counts":
        return counts
    if voting == "scores":
        return [count / 2**24 for count in counts]
    if voting == "soft":
        return [count / sum(counts) for count in counts]
    return [int(c == counts.index(max(counts))) for c in range(len(counts))]


def sums(forest, row):
    """What all trees give at least, at most and in the mean; how many lose the value they ask for first."""
    total = np.zeros((3, len(forest["classes"])))
    lost = 0
    for tree in forest["trees"]:
        leaves = leaves_of(tree, row, forest["features"])
        votes = np.array([votes_of(tree["counts"][leaf], forest["voting"]) for leaf in leaves], float)
        ends = votes.min(axis=0), votes.max(axis=0)
        total += [*ends, np.einsum("l,lk->k", list(leaves.values()), votes)]
        differ = (ends[0] != ends[1]).any()
        lost += bool(differ and child_of(tree, row, forest["features"], 0) is None)
    return total, lost


def shares(forest, row):
    prior = np.array(forest["prior"], float)
    (least, most, total), lost = sums(forest, row)
    if lost:
        (_, _, none), n_open = sums(forest, None)
        logs = np.log(np.maximum(prior, 0.5) / prior.sum())
        base = logs - logs.mean() if forest["voting"] == "scores" else prior / prior.sum() * none.sum()
        total = np.clip(total + (base - none) * lost / n_open, least, most)
    if not forest["trees"]:
        total = prior
    if forest["voting"] == "scores":
        total = np.exp(total - max(total))
    return total / total.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_of_the_json_gives_our_probabilities(kind, tmp_path):
    X = later_rows()
    save(trained(kind), tmp_path / "model")
    model = load(tmp_path / "model")
    forest = json.loads(to_json(model))
    told = [shares(forest, row) for row in X.to_dict("records")]
    # shares of children are rounded to 2^-15
    np.testing.assert_allclose(told, model.predict_proba(X), rtol=0, atol=2e-4)
    same = np.isclose(told, model.predict_proba(X), rtol=1e-14, atol=0).all(axis=1)
    assert same.sum() >= len(whole_rows(model, X))


def test_the_json_has_prices_groups_and_the_exit():
    model = trained("auto").at_budget(12)
    forest = json.loads(to_json(model))
    blood, ecg = forest["features"][1:3]
    assert blood == {"name": "blood", "categories": None, "cost": 5.2, "discount": 3.1, "group": "draw"}
    assert ecg["group"] == "draw"
    assert forest["features"][0] | {"categories": None} == {
        "name": "age",
        "categories": None,
        "cost": 1.0,
        "discount": 1.0,
        "group": None,
    }
    assert forest["exit"] == (None if model.forest_.threshold == math.inf else model.forest_.threshold)
    assert forest["answer"] == "label"
    assert sum(len(tree["feature"]) for tree in forest["trees"]) == len(model.forest_.nodes.feature)
    assert model.predict_one(source_of(later_rows().iloc[40])).classes == tuple(forest["classes"])


def test_a_feature_alone_is_told_from_a_group_of_its_name():
    """A reader that keeps opened groups by name must not give the lone feature the group's discount."""
    costs = pd.DataFrame(
        {"feature": ["a", "b", "c"], "cost": [3.0, 3.0, 3.0], "group": ["", "a", "a"]},
    )
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (64, 3)), columns=list("abc")).astype(float)
    y = (X["a"] + X["b"] + X["c"]).to_numpy() % 2
    model = BudgetForestClassifier(method="paper", alpha=0.0, max_trees=1, bootstrap=False, costs=costs)
    features = json.loads(to_json(model.fit(X, y)))["features"]
    assert [feature["group"] for feature in features] == [None, "a", "a"]
    opened, paid = set(), 0.0
    for feature in features:
        paid += feature["discount"] if feature["group"] in opened else feature["cost"]
        opened.add(feature["group"])
    assert paid == model.costs_.total == 6.0
