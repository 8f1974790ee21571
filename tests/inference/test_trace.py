"""The recorded course of many rows is that of one row, acquired live."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import charge, scores
from budgetforest.inference.trace import trace_of
from budgetforest.trees.forest import Answer
from trees import labelled_rows

pytestmark = pytest.mark.usefixtures("quiet")


def told(model, course, i):
    """A row of a course in the words of a decision."""
    names = model.forest_.schema.names
    return {
        "label": model.classes_[course.labels[i]],
        "certain": bool(course.certain[i]),
        "settled": int(course.settled[i]),
        "acquired": tuple(names[j] for j in course.order[i] if j >= 0),
    }


@given(
    labelled_rows(max_classes=4, missing=True),
    st.sampled_from([0.4, 0.7, np.inf]),
    st.sampled_from(["label", "proba"]),
)
def test_a_course_is_the_live_decision(rows, threshold, answer):
    X, y = rows
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=5, random_state=0, answer=answer)
    model.fit(X, y)
    model.forest_ = model.forest_._replace(threshold=threshold)
    course = trace_of(model.forest_, X, Answer[answer.upper()])
    np.testing.assert_allclose(course.spent[:, -1], charge(model.forest_, X, Answer[answer.upper()]).spent)
    for i, row in enumerate(X):
        decision = model.predict_one(lambda feature, row=row: row[int(feature[1:])])
        assert told(model, course, i) == {
            "label": decision.label,
            "certain": decision.certain,
            "settled": decision.trees_used,
            "acquired": decision.acquired,
        }
        steps = np.cumsum([0.0, *(step.cost for step in decision.trace)])
        np.testing.assert_allclose(course.spent[i, : len(steps)], steps)
        np.testing.assert_allclose(course.belief[i, -1], max(decision.belief))


def test_a_value_at_a_threshold_goes_left_in_every_way_of_deciding():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (40, 3)).astype(float)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=3, random_state=0)
    model.fit(X, X.sum(axis=1) > 6)
    nodes = model.forest_.nodes
    model.forest_ = model.forest_._replace(nodes=nodes._replace(threshold=np.floor(nodes.threshold)))
    assert np.isin(model.forest_.nodes.threshold[nodes.feature >= 0], X).any()
    course = trace_of(model.forest_, X, Answer.LABEL)
    np.testing.assert_array_equal(course.labels, scores(model.forest_, X).argmax(axis=1))
    live = [model.predict_one(lambda feature, row=row: row[int(feature[1:])]) for row in X]
    assert [bool(label) for label in course.labels] == [decision.label for decision in live]
    assert course.spent[:, -1].tolist() == [decision.spent for decision in live]


def test_a_forest_of_no_trees_takes_the_most_common_class():
    X, y = np.zeros((6, 2)), np.array([0, 1, 1, 1, 0, 1])
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=2, bootstrap=False).fit(X, y)
    empty = model.forest_._replace(roots=model.forest_.roots[:1])
    course = trace_of(empty, X, Answer.LABEL)
    assert course.order.shape == (6, 0)
    assert course.labels.tolist() == [1] * 6
    assert course.belief[:, 0] == pytest.approx([4 / 6] * 6)
