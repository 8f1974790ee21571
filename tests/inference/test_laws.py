"""Laws that hold for every forest."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import budgetforest.inference.predict
from budgetforest import (
    BudgetForestClassifier,
    BudgetForestWarning,
    InvalidData,
    Polynomial,
    Powers,
    ThresholdPairs,
    check_admissible,
)
from trees import labelled_rows

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.filterwarnings("ignore::budgetforest.BudgetTooSmall"),
]

PRICE = st.just(0.0) | st.floats(1e-100, 9)
SPLITTERS = st.sampled_from(["binned", "exact", "random"])


def forest(X, y, **parameters):
    settings = {"alpha": [0, 1], "max_trees": 4, "random_state": 0, "validation": (X, y)} | parameters
    validation = settings.pop("validation")
    return BudgetForestClassifier(**{"method": "paper"} | settings).fit(X, y, validation=validation)


def same(a, b, scale=1.0):
    """Every array of two forests is equal, bit for bit; costs of the second are ``scale`` times as high."""
    assert a.alpha_ == b.alpha_ or (np.isnan(a.alpha_) and np.isnan(b.alpha_))
    nodes = b.forest_.nodes._replace(floor=b.forest_.nodes.floor / scale)
    for one, other in zip((*a.forest_.nodes, a.forest_.roots), (*nodes, b.forest_.roots), strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.integers(2, 5), st.floats(0, 50), st.booleans())
def test_threshold_pairs_is_admissible(k, alpha, offset):
    assert check_admissible(ThresholdPairs(alpha, offset), k, trials=100)


@given(st.integers(2, 5), st.integers(2, 6))
def test_powers_is_admissible(k, power):
    assert check_admissible(Powers(power), k, trials=100)


@given(
    st.lists(
        st.tuples(st.floats(0, 9), st.lists(st.integers(0, 3), min_size=3, max_size=3)),
        min_size=1,
        max_size=4,
    )
)
def test_polynomial_is_admissible(terms):
    assume(all(sum(p > 0 for p in powers) >= 2 for _, powers in terms))
    assert check_admissible(Polynomial(terms), 3, trials=100)


@pytest.mark.parametrize("name", ["entropy", "gini"])
def test_entropy_and_gini_are_not_monotone(name):
    found = check_admissible(name)
    assert not found
    assert "monotone" in {violation.property for violation in found.violations}
    assert "F(" in str(found)


def test_what_grows_faster_than_powers_is_not_admissible():
    found = check_admissible(lambda n: 2.0 ** (n[0] * n[1]) - 1.0, 2)
    assert "log F = O(log n)" in {violation.property for violation in found.violations}


@given(data=labelled_rows(), budget=st.floats(0.2, 5), splitter=SPLITTERS)
def test_mean_validation_cost_never_exceeds_budget(data, budget, splitter):
    model = forest(*data, budget=budget, splitter=splitter)
    assert model.acquisition_cost(data[0]).mean() <= budget * (1 + 1e-12)


@given(data=labelled_rows(missing=True), costs=st.lists(PRICE, min_size=5, max_size=5))
def test_feature_is_charged_once(data, costs):
    X, y = data
    model = forest(X, y, costs=costs[: X.shape[1]])
    paid = model.acquired_features(X) @ np.array(costs[: X.shape[1]])
    np.testing.assert_allclose(model.acquisition_cost(X), paid)


@given(data=labelled_rows(missing=True), splitter=SPLITTERS, seed=st.integers(0, 9))
def test_row_order_changes_nothing(data, splitter, seed):
    X, y = data
    shuffled = np.random.default_rng(seed).permutation(len(y))
    try:
        a = forest(X, y, splitter=splitter, validation=None, budget=3)
    except InvalidData:  # too few rows to hold any out
        assume(False)
    b = forest(X[shuffled], y[shuffled], splitter=splitter, validation=None, budget=3)
    same(a, b)


@given(data=labelled_rows(), splitter=SPLITTERS, seed=st.integers(0, 9))
def test_order_of_named_columns_changes_nothing_but_ties(data, splitter, seed):
    X, y = data
    rng = np.random.default_rng(seed)
    X = X + rng.random(X.shape)  # no ties
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    turned = frame[rng.permutation(frame.columns)]
    costs = {name: 1 + rng.random() for name in frame}
    a = forest(frame, y, splitter=splitter, costs=costs, alpha=0)
    b = forest(turned, y, splitter=splitter, costs=costs, alpha=0)
    np.testing.assert_allclose(a.acquisition_cost(frame), b.acquisition_cost(turned))
    np.testing.assert_array_equal(a.predict_proba(frame), b.predict_proba(turned))


@given(data=labelled_rows(), splitter=SPLITTERS, budget=st.floats(0.5, 5))
def test_threads_change_nothing(data, splitter, budget):
    one, three = (forest(*data, splitter=splitter, budget=budget, n_jobs=n) for n in (1, 3))
    same(one, three)


@given(data=labelled_rows(), block=st.integers(1, 50))
def test_block_size_changes_nothing(data, block):
    X, y = data
    model = forest(X, y)
    whole = model.predict_proba(X), model.acquisition_cost(X), model.acquired_features(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgetforest.inference.predict, "BLOCK", block)
        parts = model.predict_proba(X), model.acquisition_cost(X), model.acquired_features(X)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


@given(data=labelled_rows(), budget=st.floats(0.5, 5), exponent=st.integers(-20, 20))
def test_scaling_costs_and_budget_together_changes_nothing(data, budget, exponent):
    X, y = data
    costs = np.array([1.0, 2, 3, 0.5, 0])[: X.shape[1]]
    scale = 2.0**exponent
    scaled = forest(X, y, costs=costs * scale, budget=budget * scale)
    same(forest(X, y, costs=costs, budget=budget), scaled, scale)


@given(data=labelled_rows(), budgets=st.tuples(st.floats(0.5, 5), st.floats(0.5, 5)))
def test_larger_budget_never_keeps_fewer_trees_of_the_same_alpha(data, budgets):
    small, large = (forest(*data, alpha=0, budget=b) for b in sorted(budgets))
    assert small.n_trees_ <= large.n_trees_


@given(data=labelled_rows(), budgets=st.tuples(st.floats(0.5, 5), st.floats(0.5, 5)))
def test_at_budget_is_what_training_for_that_budget_gives(data, budgets):
    small, large = sorted(budgets)
    same(forest(*data, budget=large).at_budget(small), forest(*data, budget=small))


@given(data=labelled_rows(), seed=st.integers(0, 9))
def test_whole_weights_are_repeated_rows(data, seed):
    X, y = data
    times = np.random.default_rng(seed).integers(0, 4, len(y))
    assume(len(np.unique(y[times > 0])) > 1)
    a = BudgetForestClassifier(method="paper", max_trees=3, random_state=0, alpha=0).fit(
        X, y, sample_weight=times
    )
    b = BudgetForestClassifier(method="paper", max_trees=3, random_state=0, alpha=0).fit(
        X.repeat(times, 0), y.repeat(times)
    )
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@given(data=labelled_rows(missing=True), splitter=SPLITTERS)
def test_children_partition_the_parent(data, splitter):
    table = forest(*data, splitter=splitter, alpha=0).trees_to_dataframe()
    for _, tree in table.groupby("tree"):
        counts = dict(zip(tree.node, map(np.array, tree.counts), strict=True))
        for node in tree.parent.dropna().unique():
            parts = tree.node[(tree.parent == node).fillna(False)]
            np.testing.assert_array_equal(sum(counts[part] for part in parts), counts[node])


def test_warnings_of_the_package_share_a_base():
    assert issubclass(BudgetForestWarning, UserWarning)


@pytest.mark.parametrize("splitter", ["binned", "exact", "random"])
def test_a_small_forest_learns_pays_and_is_certified(splitter):
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)
    model = forest(X, y, budget=3, splitter=splitter, validation=None)
    assert model.score(X, y) > 0.7
    assert model.acquisition_cost(X).max() <= 3
    assert all(certificate.ratio >= 1 - 1e-9 for certificate in model.certificates_)


@pytest.mark.parametrize("name", ["entropy", "gini", "powers"])
@given(data=labelled_rows())
def test_impurity_falls_from_node_to_node_by_expected_splits(name, data):
    table = forest(*data, impurity=name, alpha="auto", criterion="expected").trees_to_dataframe()
    inner = table[table.feature.notna()]
    assert (inner.impurity > 0).all()
    assert (inner.rows >= 2).all()


@given(data=labelled_rows(max_classes=3), alpha=st.sampled_from([0.0, 0.3]))
def test_entropy_below_alpha_counts_as_pure(data, alpha):
    table = forest(*data, impurity="entropy", alpha=[alpha], criterion="expected").trees_to_dataframe()
    assert ((table.impurity == 0) | (table.impurity >= alpha)).all()


def test_own_function_of_the_counts_grows_the_same_forest():
    rng = np.random.default_rng(1)
    X, y = rng.random((80, 3)), rng.integers(0, 2, 80)
    same(forest(X, y, alpha=0), forest(X, y, alpha=0, impurity=lambda n: n[0] * n[1]))


@pytest.mark.parametrize("voting", ["majority", "soft", "counts"])
@given(data=labelled_rows())
def test_label_is_the_class_of_most_votes(voting, data):
    model = forest(*data, voting=voting)
    best = model.predict_proba(data[0]).argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[best], model.predict(data[0]))


@given(data=labelled_rows(max_features=3))
def test_later_members_of_a_panel_cost_their_discount(data):
    X, y = data
    prices = pd.DataFrame(
        {
            "feature": ["x0", "x1", "x2"],
            "cost": 5.0,
            "group": ["a", "a", ""],
            "discount_cost": [2.0, 2.0, 0.0],
        }
    )[: X.shape[1]]
    model = forest(X, y, costs=prices)
    have = model.acquired_features(X)
    in_panel, alone = have[:, :2].sum(axis=1), have[:, 2:].sum(axis=1)
    np.testing.assert_allclose(model.acquisition_cost(X), 5 * alone + 5 * (in_panel > 0) + 2 * (in_panel > 1))
