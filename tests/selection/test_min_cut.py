"""Pruning by minimum cut, against a linear program over all pairs of rows and features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import lil_array

from budgetforest import BudgetForestClassifier
from budgetforest.inference.predict import charge
from budgetforest.runtime.arrays import LEAF
from budgetforest.selection.min_cut import best_part, closure_of, pruned, value
from budgetforest.trees.forest import Answer, Context, join
from budgetforest.trees.tree import next_node
from trees import labelled_rows


def path(forest, tree, row):
    """The nodes that a row meets in a tree, leaf included."""
    node = int(forest.roots[tree])
    yield node
    while forest.nodes.feature[node] != LEAF:
        node = next_node(forest.nodes, node, row[forest.nodes.feature[node]])
        yield node


def linear_program(forest, X, y, weight, rate):
    """The largest value of any part of the forest: one variable per node, pair and opening."""
    nodes, costs = forest.nodes, forest.costs
    gain, links, pairs = np.zeros(len(nodes.feature)), set(), {}
    alone = np.bincount(costs.group)[costs.group] == 1
    for i, row in enumerate(X):
        for t in range(forest.n_trees):
            met, above = set(), None
            for node in path(forest, t, row):
                wrong = weight[i] * (nodes.counts[node].argmax() != y[i])
                if above is not None:
                    gain[above] -= wrong
                    links.add((node, above))
                above, j = node, nodes.feature[node]
                if j == LEAF:
                    break
                gain[node] += wrong
                own = costs.cost[j] if alone[j] else costs.discount[j]
                for what, price in ((("feature", j), own), (("group", costs.group[j]), costs.cost[j] - own)):
                    if what not in met:
                        met.add(what)
                        bought = pairs.setdefault((i, *what), (weight[i] * price, set()))
                        bought[1].add(node)
    d, total = len(gain), weight.sum()
    rows = [(n, p) for n, p in links if nodes.feature[n] != LEAF]
    rows += [(n, d + at) for at, (_, needed) in enumerate(pairs.values()) for n in needed]
    A = lil_array((len(rows), d + len(pairs)))
    for at, (lower, upper) in enumerate(rows):
        A[at, lower], A[at, upper] = 1, -1
    price = np.array([cost for cost, _ in pairs.values()])
    objective = np.concatenate([-gain / (total * forest.n_trees), rate * price / total])
    bounds = [(0, 0) if f == LEAF else (0, 1) for f in nodes.feature] + [(0, 1)] * len(pairs)
    found = linprog(objective, A.tocsr(), np.zeros(len(rows)), bounds=bounds, method="highs")
    assert found.success
    return -found.fun


def forest_of(X, y, **parameters):
    few = {"method": "paper", "alpha": 0.0, "max_trees": 4, "random_state": 0}
    return BudgetForestClassifier(**few | parameters).fit(X, y).forest_


@pytest.mark.filterwarnings("ignore::budgetforest.runtime.errors.UnusualData")
@given(
    data=labelled_rows(),
    rate=st.sampled_from([0.0, 0.003, 0.02, 0.1, 1.0]),
    panel=st.booleans(),
    seed=st.integers(0, 3),
)
def test_the_cut_is_worth_as_much_as_the_linear_program(data, rate, panel, seed):
    X, y = data
    groups = ["a" if j < 2 else None for j in range(X.shape[1])] if panel else None
    forest = forest_of(X, y, groups=groups, random_state=seed)
    y, weight = np.unique(y, return_inverse=True)[1].astype(np.int32), 1 + np.arange(len(y)) % 3
    problem = closure_of(forest, X, y, weight)
    kept = best_part(problem, rate)
    best = linear_program(forest, X, y, weight, rate)
    assert value(problem, rate, kept) == pytest.approx(best, abs=1e-6)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 8)) + 1.2 * np.eye(8)[y]
    X[:, 5] = rng.integers(4, size=200)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y.astype(np.int32)


def test_pruned_trees_are_worth_no_less_on_their_rows(blobs):
    X, y = blobs
    weight = np.ones(len(y), np.int64)
    forest = forest_of(X, y, costs=np.arange(1.0, 9.0), categorical_features=[5], max_trees=10)
    problem = closure_of(forest, X, y, weight)

    def errors_and_cost(trees):
        some = join(trees, Context._make(forest[-len(Context._fields) :]))
        wrong = 0
        for t in range(some.n_trees):
            leaves = [list(path(some, t, row))[-1] for row in X]
            wrong += (some.nodes.counts[leaves].argmax(axis=1) != y).sum()
        return wrong / (len(y) * some.n_trees), charge(some, X, Answer.PROBA).spent.mean()

    everything = np.ones(len(problem.gain), bool)
    error, cost = errors_and_cost(pruned(forest, everything))
    assert cost == pytest.approx(charge(forest, X, Answer.PROBA).spent.mean())
    kept, sizes = everything, []
    for rate in (1e-4, 1e-3, 1e-2, 1e-1):
        smaller = best_part(problem, rate, kept)
        assert not (smaller & ~kept).any()
        assert (smaller == best_part(problem, rate)).all()
        less, cheaper = errors_and_cost(pruned(forest, smaller))
        assert less + rate * cheaper <= error + rate * cost + 1e-9
        change = value(problem, rate, smaller) - value(problem, rate, everything)
        assert change == pytest.approx(error + rate * cost - less - rate * cheaper, abs=1e-9)
        kept = smaller
        sizes.append(int(kept.sum()))
    assert sizes[0] > sizes[-1] > 0


def test_nothing_is_worth_its_price_at_a_high_rate(blobs):
    X, y = blobs
    forest = forest_of(X, y)
    kept = best_part(closure_of(forest, X, y, np.ones(len(y), np.int64)), 100.0)
    assert not kept.any()
    assert all(len(tree.feature) == 1 for tree in pruned(forest, kept))
