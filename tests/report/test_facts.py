"""The report says what the model does, figure by figure."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from budgetforest import BudgetForestClassifier, InvalidData, MissingExtra, cost_error_curve
from budgetforest.inference.predict import charge
from budgetforest.inference.trace import Trace
from budgetforest.report import facts, flow
from budgetforest.report import sample as rows
from budgetforest.report.curve import FREE
from budgetforest.report.exits import calibration
from budgetforest.report.facts import gather
from budgetforest.report.spending import by_group
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Answer

pytestmark = pytest.mark.usefixtures("quiet")

GROUPS = ["panel"] * 3 + [None] * 10


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    costs = [4.0] * 3 + [1.0] * 9 + [5.0]
    model = BudgetForestClassifier(6, costs=costs, groups=GROUPS, max_trees=8, random_state=0)
    return model.fit(X[::2], y[::2]), X[1::2], y[1::2]


@pytest.fixture(scope="module")
def told(wine):
    return gather(*wine, title="Wine")


def test_figures_are_those_of_the_library(wine, told):
    model, X, y = wine
    for place, point in enumerate(told.points[1:], 1):
        at = model if place == told.chosen else model.at_budget(point.budget)
        assert point.cost == pytest.approx(at.acquisition_cost(X).mean())
        assert point.error == pytest.approx(1 - at.score(X, y))
        assert point.low <= point.error <= point.high
        assert point.features == pytest.approx(at.acquired_features(X).sum(axis=1).mean())
        assert point.full_cost == pytest.approx(at.acquisition_cost(X, answer="proba").mean())
        full = model.classes_[at.predict_proba(X).argmax(axis=1)]
        assert point.full_error == pytest.approx((full != y).mean())
        assert point.trees == at.n_trees_
        live = at.predict_from(lambda feature, asked: X[asked, int(feature[1:])], range(len(X)))
        assert point.certain == pytest.approx(live.certain.mean())
    assert told.points[0].cost == 0
    assert told.points[0].error == told.common_error
    assert told.points[told.chosen].budget == 6
    assert any(0 < point.certain < 1 for point in told.points)


def test_the_most_common_class_is_that_of_training(wine):
    model, X, y = wine
    prior = model.forest_.prior
    rare = model.classes_[prior.argmin()]
    told = gather(model, X[y == rare], y[y == rare], title="")
    assert told.common_error == 1
    assert f"always answering '{model.classes_[prior.argmax()]}' (100.0% wrong)" in told.verdicts[told.chosen]


def test_prices_are_those_of_the_list(wine, told):
    costs = wine[0].costs_
    assert (costs.discount[:3] < costs.cost[:3]).all()
    for line in (line for lines in told.features for line in lines if line.price is not None):
        assert line.price == costs.cost[int(line.name[1:])]
    for name, price, group in told.prices:
        assert price == costs.cost[int(name[1:])]
        assert group == ("panel" if int(name[1:]) < 3 else "")
    prices = [price for _, price, _ in told.prices]
    assert prices == sorted(prices, reverse=True)
    assert len(set(prices)) > 1


def test_a_row_opens_a_group_once(wine):
    """Three rows: one asks for two of the panel, one for the last of it at second, one for nothing."""
    order = np.array([[0, 5, 2], [7, 2, -1], [-1, -1, -1]])
    spent = np.array([[0, 4, 5, 5], [0, 1, 5, 5], [0, 0, 0, 0.0]])
    course = Trace(*np.zeros((3, 3)), order, spent, np.zeros((3, 4)), np.ones((3, 4)))
    [panel] = by_group(course, wine[0].costs_)
    assert (panel.name, panel.paid, panel.rows, panel.turn) == (
        "panel",
        pytest.approx(8 / 3),
        pytest.approx(2 / 3),
        1.5,
    )


def test_calibration_judges_the_label_that_is_believed():
    """Where no more can be asked, votes decide the label, and another one may lead by belief."""
    leader, truth = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1], np.int32)
    course = Trace(
        labels=1 - leader,
        certain=np.zeros(4, bool),
        settled=np.zeros(4, int),
        order=np.zeros((4, 1), int),
        spent=np.ones((4, 2)),
        leader=np.column_stack([1 - leader, leader]),
        belief=np.full((4, 2), 0.75),
    )
    [found] = calibration([course], truth)
    assert (found.belief, found.right, found.rows) == (0.75, 0.75, 4)


def test_every_coin_is_accounted_for(wine, told):
    model, X, _ = wine
    acquired = model.acquired_features(X)
    for point, lines, groups in zip(told.points, told.features, told.groups, strict=True):
        assert sum(line.paid for line in lines) == pytest.approx(point.cost)
        in_group = sum(line.paid for line in lines if line.group == "panel")
        assert sum(line.paid for line in groups) == pytest.approx(in_group)
    for line in told.features[told.chosen]:
        j = int(line.name[1:])
        assert line.rows == pytest.approx(acquired[:, j].mean())
        assert 1 <= line.turn <= acquired.sum(axis=1).max()
    opened = acquired[:, :3].any(axis=1).mean()
    assert sum(line.rows for line in told.groups[told.chosen]) == pytest.approx(opened)


def test_rows_are_neither_lost_nor_counted_twice(told):
    for place, point in enumerate(told.points):
        for what in ("cost", "features", "trees"):
            share = [bar.share for bar in told.exits if bar.at == place and bar.of == what]
            assert sum(share) == pytest.approx(1)
        assert sum(c.rows for c in told.calibration if c.at == place) == told.rows
        counts = np.array(told.confusion[place])
        assert counts.sum() == told.rows
        assert 1 - np.trace(counts) / told.rows == pytest.approx(point.error)


def test_recall_and_precision_are_those_of_every_class(wine, monkeypatch):
    """Also of classes that the matrix counts as others."""
    monkeypatch.setattr(facts, "MOST_CLASSES", 2)
    model, X, y = wine
    told = gather(model, X, y, title="")
    assert told.confusion_classes[-1] == "2 others"
    label, found = model.predict(X), told.by_class[told.chosen]
    assert len(found) == len(told.classes) == 3
    for c, (recall, precision) in zip(model.classes_, found, strict=True):
        assert recall == pytest.approx((label[y == c] == c).mean())
        assert precision == pytest.approx((y[label == c] == c).mean())
    nothing = told.by_class[0]  # always the most common class
    assert [share for _, share in nothing].count(None) == 2
    assert {len(counts) for counts in told.confusion} == {2}


def test_whole_numbers_stand_in_the_middle_of_their_bars(told):
    bars = [bar for bar in told.exits if bar.of == "features"]
    assert {(bar.low + bar.high) / 2 % 1 for bar in bars} == {0}
    assert {bar.high - bar.low for bar in bars} == {1}


def test_blocks_of_the_flow_tile_those_that_they_come_from(told):
    for place in range(len(told.points)):
        blocks = [b for b in told.flow if b.at == place]
        first = [b for b in blocks if b.step == 1]
        assert sum(b.bottom - b.top for b in first) == pytest.approx(1)
        for parent in (b for b in blocks if b.kind == "asked" and b.step < flow.STEPS):
            inside = [
                b
                for b in blocks
                if b.step == parent.step + 1
                and parent.top - 1e-9 <= b.top
                and b.bottom <= parent.bottom + 1e-9
            ]
            assert sum(b.bottom - b.top for b in inside) == pytest.approx(parent.bottom - parent.top)


def test_a_story_is_the_live_decision(wine, told):
    model, X, y = wine
    at_last = [story.tellings[told.chosen] for story in told.stories]
    assert [t.spent for t in at_last] == sorted(t.spent for t in at_last)
    for story, telling in zip(told.stories, at_last, strict=True):
        row = X[story.row]
        decision = model.predict_one(lambda feature, row=row: row[int(feature[1:])])
        assert tuple(story.names[step[0]] for step in telling.steps) == decision.acquired
        assert (telling.label, telling.certain) == (decision.label, decision.certain)
        assert telling.steps[-1][1] == pytest.approx(decision.spent)
        assert telling.steps[-1][3] == pytest.approx(max(decision.belief), abs=1e-3)
        assert story.truth == y[story.row]
        assert float(story.values[0]) == pytest.approx(row[int(story.names[0][1:])], rel=1e-3)


def test_of_many_rows_a_random_part_is_measured(wine, monkeypatch):
    model, X, y = wine
    monkeypatch.setattr(rows, "MOST_ROWS", 30)
    monkeypatch.setattr(facts, "MOST_POINTS", 3)
    monkeypatch.setattr(facts, "MOST_CLASSES", 2)
    told = gather(model, X, y, title="")
    assert (told.rows, told.rows_given) == (30, len(y))
    assert len(told.points) <= 5
    assert [y[story.row] for story in told.stories] == [story.truth for story in told.stories]
    assert told.confusion_classes[-1] == "2 others"
    assert np.sum(told.confusion[-1]) == 30


def test_a_baseline_is_charged_for_what_it_asks(wine):
    model, X, y = wine
    X_train, y_train = (part[::2] for part in load_wine(return_X_y=True))
    forest = RandomForestClassifier(5, random_state=0).fit(X_train, y_train)
    peer = gather(model, X, y, title="", baseline=forest).peer
    assert peer.error == pytest.approx(1 - forest.score(X, y))
    assert peer.cost == charge(from_sklearn(forest, model.costs_), X, Answer.LABEL).spent.mean()
    plain = GaussianNB().fit(X_train, y_train)
    assert gather(model, X, y, title="", baseline=plain).peer.cost == model.costs_.most


def test_categories_and_missing_values_are_told_as_the_caller_has_them(monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROWS", 150)
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 200)
    size = np.where(rng.random(200) < 0.2, np.nan, rng.random(200))
    y = np.where((colour == "red") ^ (np.nan_to_num(size) > 0.5), "yes", "no")
    table = pd.DataFrame({"colour": colour, "size": size})
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=5, random_state=0).fit(table, y)
    told = gather(model, table, y, title="")
    assert len(told.points) == 2  # without validation rows there is no path
    assert told.points[told.chosen].budget is None
    for story in told.stories:
        values = dict(zip(story.names, story.values, strict=True))
        assert values.get("colour", colour[story.row]) == colour[story.row]
        if np.isnan(size[story.row]):
            assert values.get("size", "missing") == "missing"
    assert {"red", "missing"} <= {value for story in told.stories for value in story.values}
    assert told.certificates[0].ratio >= 1


def test_what_rows_lacked_is_told_of_every_forest(wine, told):
    model, X, y = wine
    assert set(told.lacks) == {""}
    X = np.where(np.arange(len(X))[:, None] % 3 == 0, np.nan, X)
    lacking = gather(model, X, y, title="", row_name="bottle")
    assert lacking.lacks[0] == ""  # who asks for nothing lacks nothing
    for place, point in enumerate(lacking.points[1:], 1):
        at = model if place == lacking.chosen else model.at_budget(point.budget)
        asked = at.acquired_features(X) & np.isnan(X)
        most = asked.sum(axis=0)
        expected = (
            f"{asked.any(axis=1).sum()} of {len(X)} bottles lacked a value that they asked for, most often "
            f"'x{most.argmax()}' ({most.max()});"
        )
        assert lacking.lacks[place].startswith(expected)


def test_the_papers_accounting_asks_every_tree(wine):
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=3, answer="proba", random_state=0)
    told = gather(model.fit(X, y), X, y, title="")
    assert told.scored
    assert told.points[told.chosen].cost == told.points[told.chosen].full_cost


def test_input_that_cannot_be_used_is_named(wine, monkeypatch):
    model, X, y = wine
    with pytest.raises(InvalidData, match="label 7, which the model does not know"):
        model.report(X, np.full(len(X), 7))
    with pytest.raises(InvalidData, match="give a label for each row"):
        model.report(X, y[:-1])
    with pytest.raises(ValueError, match="features"):
        model.report(X[:, :5], y)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.delitem(sys.modules, "budgetforest.report.page", raising=False)
    with pytest.raises(MissingExtra, match=r"budgetforest\[report\]"):
        model.report(X, y)


def test_a_bar_appears_for_a_person_who_waits(wine, monkeypatch, capsys):
    gather(*wine, title="")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("budgetforest.runtime.progress.PATIENCE", 0.0)
    gather(*wine, title="")
    assert "measuring the path" in capsys.readouterr().err


def test_what_is_free_is_used_where_nothing_can_be_bought():
    """The report and the curve begin with what ``predict`` does for nothing."""
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(6, costs=[0, 0] + [1] * 11, max_trees=8, random_state=0).fit(
        X[::2], y[::2]
    )
    assert model.path_[0].cost == 0
    X, y = X[1::2], y[1::2]
    error = (model.at_budget(FREE).predict(X) != y).mean()
    told = gather(model, X, y, title="Wine")
    curve = cost_error_curve(model, X, y)
    assert error < told.common_error
    assert (told.points[0].budget, told.points[0].cost, told.points[0].error) == (0, 0, error)
    assert (curve.budget[0], curve.cost[0], curve.error[0]) == (0, 0, error)
    assert curve.what[0] == str(model.path_[0])
    budgets = [point.budget for point in told.points]
    assert budgets == sorted(budgets)
    assert told.chosen == len(budgets) - 1
