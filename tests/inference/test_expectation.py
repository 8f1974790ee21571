"""What is believed, and how it changes with what is known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from budgetforest import UNAVAILABLE, BudgetForestClassifier, acquire
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.forest import BELIEF, Voting, belief_for
from budgetforest.trees.tree import next_node
from trees import labelled_rows

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.filterwarnings("ignore::budgetforest.BudgetTooSmall"),
]

VOTING = st.sampled_from(["majority", "soft", "counts"])


def fitted(X, y, **parameters):
    settings = {"method": "paper", "alpha": 0, "max_trees": 5, "random_state": 0} | parameters
    return BudgetForestClassifier(**settings).fit(X, y, validation=(X, y))


def base_rate(forest):
    return forest.prior / forest.prior.sum()


@pytest.mark.parametrize(
    "parameters",
    [{"voting": v} for v in ("majority", "soft", "counts")] + [{"method": "auto", "alpha": "auto"}],
)
def test_rows_of_which_all_is_missing_get_the_base_rate(parameters):
    X, y = load_wine(return_X_y=True)
    model = fitted(X, y, max_trees=20, **parameters)
    share = model.predict_proba(X[:3] * math.nan)
    np.testing.assert_allclose(share, np.tile(base_rate(model.forest_), (3, 1)), atol=1e-4)
    assert model.predict(X[:3] * math.nan).tolist() == [base_rate(model.forest_).argmax()] * 3
    nothing = model.predict_one(lambda feature: None, answer="proba")
    assert nothing.label == base_rate(model.forest_).argmax()
    np.testing.assert_allclose(nothing.proba, share[0])
    np.testing.assert_allclose(nothing.belief, share[0], atol=1e-4)


@given(labelled_rows(max_classes=4), VOTING)
def test_with_nothing_known_the_base_rate_is_believed(data, voting):
    X, y = data
    forest = fitted(X, y, voting=voting).forest_
    decision = acquire(forest).decide()
    np.testing.assert_allclose(decision.belief, base_rate(forest), atol=1e-6)


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_boosted_trees_and_all_others_believe_the_base_rate_too(budget):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.7).astype(int)
    model = BudgetForestClassifier(budget, random_state=0).fit(X, y)
    for point in (point for point in model.path_ if point.cost):
        forest = model.at_budget(point.cost).forest_
        np.testing.assert_allclose(acquire(forest).decide().belief, base_rate(forest), atol=1e-6)
        without = acquire(forest, dict.fromkeys(forest.schema.names, UNAVAILABLE)).decide()
        np.testing.assert_allclose(without.belief, base_rate(forest), atol=1e-4)
        assert not without.certain
        assert without.spent == 0


@pytest.mark.parametrize("threshold", [0.4, 0.55, 2 / 3, 0.9])
def test_a_share_is_reached_by_the_least_belief_that_is_no_less(threshold):
    X = np.random.default_rng(0).random((60, 3))
    forest = fitted(X, X.argmax(axis=1), max_trees=7).forest_
    enough = belief_for(threshold, forest)
    assert (enough - 1) / (7 * BELIEF) < threshold <= enough / (7 * BELIEF)

    def share(score):
        """Of the leader of three classes whose scores add up to 0, the others level."""
        return math.exp(score) / (math.exp(score) + 2 * math.exp(-score / 2))

    enough = belief_for(threshold, forest._replace(voting=Voting.SCORES))
    assert share((enough - 1) / BELIEF) < threshold <= share(enough / BELIEF)


@settings(max_examples=40)
@given(labelled_rows(max_rows=12, max_features=3, max_value=3), st.data())
def test_a_tree_expects_the_mean_over_completions_drawn_by_training_weight(data, draw):
    """Brute force: every unknown question of a tree is answered each way, as often as in training."""
    X, y = data
    forest = fitted(X, y, max_trees=2, voting="soft").forest_
    row = X[draw.draw(st.integers(0, len(X) - 1))]
    known = {j: row[j] for j in range(len(row)) if draw.draw(st.booleans())}
    state = acquire(forest, {forest.schema.names[j]: value for j, value in known.items()})._state
    for root, said in zip(forest.roots[:-1], state.said, strict=True):
        mean = np.zeros(len(forest.classes))
        total = 0.0
        for answers in itertools.product([0, 1], repeat=n_unknown(forest, int(root), known)):
            leaf, chance = completed(forest, int(root), known, list(answers))
            mean += chance * forest.least[leaf]
            total += chance
        np.testing.assert_allclose(np.array(said.expected) / 2**24, mean / total, atol=2e-3)


def n_unknown(forest, node, known):
    """How many unknown questions a row may meet at most."""
    nodes = forest.nodes
    if nodes.feature[node] == LEAF:
        return 0
    below = max(n_unknown(forest, int(child), known) for child in (nodes.left[node], nodes.right[node]))
    return below + (nodes.feature[node] not in known)


def completed(forest, node, known, answers):
    """The leaf where some answers to the unknown questions lead, and how likely they are."""
    nodes, chance = forest.nodes, 1.0
    while (j := int(nodes.feature[node])) != LEAF:
        if j in known:
            node = next_node(nodes, node, known[j])
        else:
            children = int(nodes.left[node]), int(nodes.right[node])
            child = children[answers.pop()]
            chance *= nodes.counts[child].sum() / nodes.counts[node].sum()
            node = child
    return node, chance * 0.5 ** len(answers)


@given(labelled_rows(max_rows=12, max_features=3, max_value=3), VOTING, st.data())
def test_what_no_reachable_node_asks_for_changes_nothing(data, voting, draw):
    X, y = data
    forest = fitted(X, y, voting=voting).forest_
    row, names = X[draw.draw(st.integers(0, len(X) - 1))], forest.schema.names
    for size in range(len(names)):
        for known in itertools.combinations(range(len(names)), size):
            before = acquire(forest, {names[j]: row[j] for j in known})
            reachable = reachable_features(forest, known, row)
            assert set(before._state.waiting()) <= reachable
            for j in set(range(len(names))) - set(known) - reachable:
                after = acquire(forest, {names[i]: row[i] for i in (*known, j)}).decide()
                assert (after.belief, after.bounds) == (before.decide().belief, before.decide().bounds)


def reachable_features(forest, known, row):
    """Features that some node asks for that may still be met and can change a vote."""
    nodes, found = forest.nodes, set()

    def visit(node):
        if forest.open[node]:
            j = int(nodes.feature[node])
            if j in known:
                visit(next_node(nodes, node, row[j]))
            else:
                found.add(j)
                visit(int(nodes.left[node]))
                visit(int(nodes.right[node]))

    for root in forest.roots[:-1]:
        visit(int(root))
    return found


@given(labelled_rows(max_rows=30, max_features=4, max_value=4), VOTING, st.data())
def test_values_say_the_same_in_any_order(data, voting, draw):
    X, y = data
    forest = fitted(X, y, voting=voting).forest_
    names = list(forest.schema.names)
    row = dict(zip(names, X[draw.draw(st.integers(0, len(X) - 1))], strict=True))
    decisions = []
    for order in itertools.islice(itertools.permutations(names), 6):
        flow = acquire(forest)
        for name in order[:-1]:
            flow._state.learn({names.index(name): row[name]})
        decisions.append((order[-1], flow.decide()))
    for last, decision in decisions:
        at_once = acquire(forest, {name: row[name] for name in names if name != last}).decide()
        assert (decision.belief, decision.bounds, decision.label) == (
            at_once.belief,
            at_once.bounds,
            at_once.label,
        )


@pytest.mark.parametrize("voting", ["majority", "soft", "counts"])
def test_what_is_missing_is_averaged_over_unless_training_had_it_missing(voting):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0.5).astype(int)
    never, at_times = X.copy(), X.copy()
    at_times[y == 1, 0] = np.where(rng.random((y == 1).sum()) < 0.5, np.nan, at_times[y == 1, 0])
    unknown, learnt = (fitted(table, y, voting=voting, max_trees=9) for table in (never, at_times))
    row = [[math.nan, 0.0]]
    # nothing tells where it belongs: about the base rate; else the class that lacks it
    np.testing.assert_allclose(unknown.predict_proba(row)[0], base_rate(unknown.forest_), atol=0.05)
    assert learnt.predict_proba(row)[0, 1] > 0.9
    for model, label in ((unknown, 0), (learnt, 1)):
        assert model.predict(row).tolist() == [label]
        decision = model.predict_one(lambda feature: math.nan if feature == "x0" else 0.0, answer="proba")
        assert decision.label == label
        np.testing.assert_allclose(decision.proba, model.predict_proba(row)[0], rtol=1e-12)
