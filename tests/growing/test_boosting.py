"""Boosted trees: every split against the same in plain Python, and their exits."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetforest import BudgetForestClassifier
from budgetforest.data.table import Schema
from budgetforest.growing.boosting import LARGEST, LEAST_GAIN, Boost, boosted_trees
from budgetforest.inference.predict import answerer, charge, labels, ladder, scores
from budgetforest.runtime.arrays import LEAF
from budgetforest.selection.candidates import thresholds
from budgetforest.trees.forest import BELIEF, Answer, Context, Voting, first_trees, join, shares
from budgetforest.trees.tree import BY_CATEGORY, next_node
from samples import parts_of, priced, sample_of
from trees import labelled_rows

pytestmark = pytest.mark.usefixtures("quiet")

WHOLE = {"tries": 1.0, "share": 1.0, "least_rows": 1}


def boost_for(m, k, **others):
    return Boost(np.ones(m, bool), 0.0, k)._replace(**WHOLE | others)


def slopes_of(F, y):
    """Gradient and curvature of the log loss, (n, q), in the kernel's precision."""
    p = np.exp(F - F.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    if F.shape[1] == 2:
        p, hit = p[:, 1:], (y == 1)[:, None]
    else:
        hit = y[:, None] == np.arange(F.shape[1])
    return np.rint((p - hit) * 2**20) / 2**20, np.rint(np.maximum(p * (1 - p), 1e-4) * 2**20) / 2**20


def worth(g, h, rows):
    G, H = g[rows].sum(axis=0), h[rows].sum(axis=0)
    return float((G**2 / (H + 1)).sum() / 2)


def score(g, h, rows, speed, k):
    """What a node adds to each class."""
    step = -speed * g[rows].sum(axis=0) / (h[rows].sum(axis=0) + 1)
    step = step.clip(-LARGEST, LARGEST)
    return np.array([-step[0], step[0]]) / 2 if k == 2 else step - step.mean()


@given(
    labelled_rows(missing=True, max_rows=20),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=5, max_size=5),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.booleans(),
)
def test_every_split_saves_most(data, prices, rate, with_nominal):
    X, y = data
    m, k = X.shape[1], int(y.max()) + 1
    nominal = {0} if with_nominal else set()
    if with_nominal:
        X = X.copy()
        X[:, 0] = np.abs(np.nan_to_num(X[:, 0], nan=0.0)).astype(int) % 4
    costs = priced(prices[:m], [0, 0, *range(1, m - 1)][:m], [p / 2 for p in prices[:m]])
    boost = boost_for(m, k, rate=rate, depth=3)
    owned = np.zeros((m, len(y)), bool)
    opened = np.zeros((len(costs.group_names), len(y)), bool)
    prior = np.log(np.maximum(np.bincount(y, minlength=k), 0.5) / len(y))
    start = np.rint((prior - prior.mean()) * BELIEF) / BELIEF
    F = np.tile(start, (len(y), 1))
    for number, tree in enumerate(
        islice(boosted_trees(sample_of(X, y, nominal=nominal), boost, costs, 0), 3)
    ):
        g, h = slopes_of(F, y)
        waiting = [(0, np.arange(len(y)), 0)]
        while waiting:
            node, rows, depth = waiting.pop()
            assert tree.weight[node] == len(rows)
            added = tree.counts[node] / BELIEF - (start if number == 0 else 0)
            np.testing.assert_allclose(added, score(g, h, rows, boost.speed, k), atol=1e-6)

            def price(j, rows=rows):
                lacking = rows[~owned[j, rows]]
                each = np.where(opened[costs.group[j], lacking], costs.discount[j], costs.cost[j])
                return rate * float(each.sum())

            best = 0.0
            if depth < boost.depth and len(rows) > 1:
                best = max(
                    sum(worth(g, h, rows[mask]) for mask in masks) - worth(g, h, rows) - price(j)
                    for j in range(m)
                    for masks in [(np.ones(len(rows), bool),), *parts_of(X[rows, j], j in nominal)]
                )
            j = int(tree.feature[node])
            if j == LEAF:
                assert best <= LEAST_GAIN + 1e-9
                F[rows] += tree.counts[node] / BELIEF - (start if number == 0 else 0)
                continue
            assert (tree.route[node] == BY_CATEGORY) == (j in nominal)
            children = np.array([next_node(tree, node, X[i, j]) for i in rows])
            parts = [rows[children == child] for child in np.unique(children)]
            saved = sum(worth(g, h, part) for part in parts) - worth(g, h, rows) - price(j)
            assert saved == pytest.approx(best, abs=1e-9)
            owned[j, rows] = opened[costs.group[j], rows] = True
            for child in sorted(np.unique(children), reverse=True):  # the left child is grown first
                waiting.append((int(child), rows[children == child], depth + 1))


def boosted_forest(X, y, n_trees=8, **others):
    m, k = X.shape[1], int(y.max()) + 1
    costs = priced([1.0, 2.0, 0.5, 3.0, 1.0, *np.ones(m)][:m])
    trees = list(islice(boosted_trees(sample_of(X, y), boost_for(m, k, **others), costs, 0), n_trees))
    schema = Schema(tuple(f"x{j}" for j in range(m)), (None,) * m)
    prior = np.bincount(y, minlength=k).astype(np.int64)
    return join(trees, Context(prior, costs, schema, tuple(range(k)), Voting.SCORES, 1.0))


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=150), [-0.6, 0.6])
    return X, y


def test_the_log_loss_falls_with_every_tree(three):
    X, y = three
    forest, loss = boosted_forest(X, y, 15, speed=0.3), []
    for n in range(1, 16):
        proba = shares(scores(first_trees(forest, n), X), Voting.SCORES)
        loss.append(-np.log(proba[np.arange(len(y)), y]).mean())
    assert (np.diff(loss) < 0).all()
    assert loss[-1] < 0.5 * loss[0]


def test_scores_add_up_to_nothing(three):
    forest = boosted_forest(*three)
    assert np.abs(forest.nodes.counts.sum(axis=1)).max() <= len(forest.classes) * 2


def test_the_order_of_rows_does_not_matter(three):
    X, y = three
    order = np.random.default_rng(1).permutation(len(y))
    one = boosted_forest(X, y, share=0.5, tries=0.5)
    other = boosted_forest(X[order], y[order], share=0.5, tries=0.5)
    for mine, its in zip(one.nodes, other.nodes, strict=True):
        np.testing.assert_array_equal(mine, its)


@given(labelled_rows(missing=True, max_rows=20), st.sampled_from([0.4, 0.6, 0.8, 0.95, math.inf]))
def test_row_by_row_and_batch_agree_on_exits(data, threshold):
    X, y = data
    forest = boosted_forest(X, y, speed=0.5)._replace(threshold=threshold)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1).fit(X, y)
    model.forest_ = forest
    found, paid = labels(forest, X), charge(forest, X, Answer.LABEL)
    told = answerer(forest, Answer.LABEL)(X, None)
    bulk = model.predict_from(lambda f, rows: [float(X[i, int(f[1:])]) for i in rows], range(len(X)))
    np.testing.assert_array_equal(bulk.spent, paid.spent)
    for i, row in enumerate(X):
        decision = model.predict_one(lambda f, row=row: float(row[int(f[1:])]), answer="label")
        assert decision.label == forest.classes[found[i]] == bulk.labels[i]
        assert decision.spent == paid.spent[i]
        np.testing.assert_allclose(decision.belief, told.share[i], atol=1e-9)
        assert decision.bounds[0] <= max(decision.belief) + 1e-9
        if len(forest.classes) == 2 and not decision.certain:
            assert max(decision.belief) >= threshold - 1e-6  # with two classes the exit is exact


def test_belief_lies_within_the_bounds_of_what_can_still_be_said():
    """What draws beliefs to the base rate once drew them past these bounds; hypothesis found these rows."""
    lost = np.nan
    X = np.array(
        [
            [1, 1, 1, lost, 0],
            [0, 0, 0, lost, 1],
            [1, 1, 1, 1, lost],
            [1, 1, lost, 1, 1],
            [0, 1, 1, 0, 0],
            [1, 1, 0, 1, 1],
            [1, 0, 0, 1, 0],
            [1, 0, 0, 0, 0],
            [0, 0, 0, 0, 0],
            [1, 1, lost, 0, 1],
            [1, 0, 0, 1, 1],
            [1, 0, 1, 1, 1],
            [1, 1, 1, lost, 1],
            [0, lost, 1, lost, 1],
            [0, 0, lost, 0, lost],
            [1, 0, 1, 1, 0],
            [1, 1, 0, 0, 1],
            [1, 1, 0, 1, 0],
        ]
    )
    y = np.array([1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1])
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1).fit(X, y)
    model.forest_ = boosted_forest(X, y, speed=0.5)._replace(threshold=0.8)
    for row in X:
        decision = model.predict_one(lambda f, row=row: float(row[int(f[1:])]))
        assert decision.bounds[0] <= max(decision.belief) + 1e-9


def test_certain_exit_changes_no_label(three):
    X, y = three
    forest = boosted_forest(X, y)
    exits = ladder(forest, X, thresholds(3))
    np.testing.assert_array_equal(exits.labels[:, -1], scores(forest, X).argmax(axis=1))
    assert (np.diff(exits.spent, axis=1) >= 0).all()
    assert exits.spent[:, 4].mean() < 0.8 * exits.spent[:, -1].mean()
