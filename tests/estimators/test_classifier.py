"""The classifier as scikit-learn's users know one, and what it shows of its inside."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from budgetforest import BudgetForestClassifier, Powers, UnusualData

X, Y = make_classification(
    200, 6, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
)


def forest(**parameters):
    return BudgetForestClassifier(
        **{"method": "paper", "alpha": 0, "max_trees": 6, "random_state": 0, **parameters}
    )


def same(one, other):
    return one.trees_to_dataframe().equals(other.trees_to_dataframe())


def leaf_of(tree, row):
    """The leaf of a row, found by hand in the nodes of one tree."""
    node = tree.iloc[0]
    while pd.notna(node["column"]):
        value = row[node["column"]]
        left = node["missing"] == "left" if np.isnan(value) else value <= node["threshold"]
        node = tree.iloc[node["left" if left else "right"]]
    return node


def leaves(model, row):
    return [leaf_of(tree, row) for _, tree in model.trees_to_dataframe().groupby("tree")]


# scikit-learn ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::budgetforest.runtime.errors.BudgetForestWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"budget": 3, "max_disagreement": 0},
        {"method": "paper"},
        {"method": "paper", "splitter": "exact", "alpha": 0},
    ],
)
def test_every_check_of_scikit_learn_passes(parameters):
    results = check_estimator(BudgetForestClassifier(max_trees=4, **parameters), on_fail=None)
    others = {r["check_name"] for r in results if r["status"] != "passed"}
    assert len(results) > 40
    assert others <= {"check_array_api_input"}  # skipped unless SCIPY_ARRAY_API is set
    assert all(r["status"] != "failed" for r in results)


def test_pipeline_predicts_like_its_steps():
    pipeline = make_pipeline(StandardScaler(), forest()).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    assert np.array_equal(pipeline.predict(X), forest().fit(scaled, Y).predict(scaled))


def test_names_come_through_a_transformer_that_outputs_pandas():
    scaler = StandardScaler().set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(scaler, forest(costs=dict.fromkeys("abcdef", 2))).fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcdef")
    assert pipeline.score(frame, Y) > 0.8


def test_grid_search_tries_impurities_and_budgets():
    grid = {"impurity": ["pairs", Powers(3)], "budget": [4, None]}
    search = GridSearchCV(forest(), grid, cv=2, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.6
    assert search.best_estimator_.predict(X).shape == Y.shape


def test_cross_validation_scores_above_chance():
    assert cross_val_score(forest(budget=4), X, Y, cv=3, error_score="raise").min() > 0.6


def test_clone_is_unfitted_and_equal_in_parameters():
    model = forest(budget=3, costs=[1] * 6, groups={"x0": "g"}, impurity=Powers(3)).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "forest_")


def test_pickle_predicts_the_same():
    model = forest(budget=4, alpha=[0, 4]).fit(X, Y)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.acquisition_cost(X), model.acquisition_cost(X))
    assert loaded.at_budget(2).n_trees_ == model.at_budget(2).n_trees_


def test_fitting_does_not_change_parameters():
    model = forest(alpha=[4, 0], costs=np.ones(6), budget=3)
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(X, Y)
    assert {name: repr(value) for name, value in model.get_params().items()} == before


@pytest.mark.filterwarnings("ignore:.*expected to be wrong:budgetforest.UnusualData")
def test_fitting_again_forgets():
    model = forest(budget=3).fit(X[:, :3], Y > 0)
    assert same(model.fit(X, Y), forest(budget=3).fit(X, Y))


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_number_of_threads_changes_nothing(n_jobs):
    alone, many = forest(budget=4), forest(budget=4, n_jobs=n_jobs)
    assert same(alone.fit(X, Y), many.fit(X, Y))
    assert np.array_equal(alone.predict_proba(X), many.predict_proba(X))
    assert alone.path_ == many.path_


def test_random_state_decides_the_forest():
    assert same(forest().fit(X, Y), forest().fit(X, Y))
    assert not same(forest().fit(X, Y), forest(random_state=1).fit(X, Y))


def test_verbose_shows_progress_on_stderr(capsys):
    forest(verbose=1).fit(X, Y)
    shown = capsys.readouterr()
    assert "6/6" in shown.err
    assert shown.out == ""
    forest().fit(X, Y)
    assert capsys.readouterr().err == ""


# Labels and weights ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["low", "mid", "top"])[Y],
        np.array(["low", "mid", "top"], dtype=object)[Y],
        np.array([-5, 10, 700])[Y],
        Y > 0,
        Y.astype(float),
        pd.Series(Y, dtype="category"),
        Y.tolist(),
    ],
    ids=["string", "object", "integer", "boolean", "float", "category", "list"],
)
def test_any_type_of_label_comes_back(labels):
    model = forest().fit(X, labels)
    found = model.predict(X)
    assert model.classes_.tolist() == sorted(set(labels))
    assert found.dtype == model.classes_.dtype
    assert np.mean(found == np.asarray(labels)) == model.score(X, labels) > 0.9


def test_weight_of_two_is_the_row_twice():
    weight = np.arange(len(Y)) % 3
    repeated = forest(bootstrap=False).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert same(forest(bootstrap=False).fit(X, Y, sample_weight=weight), repeated)


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("scale", [1, 1e-3])
def test_fractional_weights_are_scaled_to_a_mean_of_one(bootstrap, scale):
    weight = np.random.default_rng(0).uniform(0.1, 2, len(Y)) * scale
    model = forest(bootstrap=bootstrap).fit(X, Y, sample_weight=weight)
    root = model.trees_to_dataframe().loc[0]
    weight /= weight.mean()
    assert root["rows"] == pytest.approx(weight.sum(), abs=0.51 if bootstrap else 1e-3)
    if not bootstrap:
        assert root["counts"] == pytest.approx(np.bincount(Y, weight), abs=1e-3)
    assert model.score(X, Y) > 0.9


def test_balanced_classes_weigh_the_same():
    unequal = Y > 1
    model = forest(class_weight="balanced", bootstrap=False, max_trees=1).fit(X, unequal)
    first, second = model.trees_to_dataframe().loc[0, "counts"]
    assert first == pytest.approx(second, rel=1e-4)


def test_class_weight_multiplies_sample_weight():
    by_class = forest(class_weight={0: 1, 1: 2, 2: 3}).fit(X, Y, sample_weight=np.full(len(Y), 2))
    assert same(by_class, forest().fit(X, Y, sample_weight=2 * (Y + 1)))


# Votes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("voting", ["majority", "soft", "counts"])
def test_prediction_is_the_likeliest_class(voting):
    model = forest(voting=voting, alpha=6).fit(X, Y)
    shares = model.predict_proba(X)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])


def test_majority_counts_one_vote_per_tree():
    model = forest(alpha=6).fit(X, Y)
    for row in X[:10]:
        votes = [leaf["label"] for leaf in leaves(model, row)]
        assert model.predict_proba([row])[0] == pytest.approx(np.bincount(votes, minlength=3) / 6)


def test_soft_vote_is_the_mean_of_leaf_frequencies():
    model = forest(alpha=6, voting="soft").fit(X, Y)
    for row in X[:10]:
        shares = [np.array(leaf["counts"]) / leaf["rows"] for leaf in leaves(model, row)]
        assert model.predict_proba([row])[0] == pytest.approx(np.mean(shares, axis=0))


def test_counts_are_summed_over_leaves():
    model = forest(alpha=6, voting="counts").fit(X, Y)
    for row in X[:10]:
        total = np.sum([leaf["counts"] for leaf in leaves(model, row)], axis=0)
        assert model.predict_proba([row])[0] == pytest.approx(total / total.sum())


# Looking inside --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """Nodes of a forest on numbers with gaps and a nominal feature."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcdef"))
    frame["kind"] = rng.choice(["p", "q", "r"], len(Y))
    labels = np.where(frame["kind"] == "p", 0, Y)
    return forest().fit(frame, labels).trees_to_dataframe()


def test_table_has_a_line_per_node_with_the_usual_columns(table):
    expected = ["tree", "node", "parent", "depth", "feature", "threshold", "left", "right", "counts"]
    assert [name for name in table if name in expected] == expected
    assert table["tree"].unique().tolist() == list(range(6))
    for _, tree in table.groupby("tree"):
        assert tree["node"].tolist() == list(range(len(tree)))


def test_risk_is_the_price_of_a_drop_and_infinite_where_there_is_none(table):
    for _, tree in table.groupby("tree"):
        for node in tree.itertuples():
            worst = tree["impurity"][(tree["parent"] == node.node).fillna(False)].max()
            drop = node.impurity - worst
            if math.isnan(node.cost):  # a leaf
                assert math.isnan(node.risk)
            else:
                assert node.risk == node.cost / drop
    parameters = {"impurity": "entropy", "criterion": "expected", "alpha": 0}
    unequal = forest(**parameters).fit(X, Y).trees_to_dataframe()["risk"].dropna()
    assert np.isinf(unequal).any()
    assert unequal[~np.isinf(unequal)].between(0, 1e9).all()


def test_boosted_trees_have_scores_and_neither_risk_nor_impurity():
    rng = np.random.default_rng(0)
    numbers = rng.random((400, 3))
    model = BudgetForestClassifier(budget=2, max_trees=4, random_state=0)
    model.fit(numbers, numbers[:, 0] + numbers[:, 1] > 1)
    costs = [point.cost for point in model.path_ if point.recipe.cuts in ("blend", "boosted")]
    nodes = model.at_budget(costs[-1]).trees_to_dataframe()
    assert "counts" not in nodes
    assert nodes[["risk", "impurity"]].isna().all(axis=None)
    assert nodes["rows"].between(1, 400).all()
    assert all(abs(sum(scores)) < 1e-6 for scores in nodes["scores"])


def test_children_partition_the_parent(table):
    for _, tree in table.groupby("tree"):
        counts = np.array(tree["counts"].tolist())
        for node in np.flatnonzero(tree["feature"].notna()):
            children = np.flatnonzero((tree["parent"] == node).fillna(False))
            assert len(children) >= 2
            assert np.array_equal(counts[children].sum(axis=0), counts[node])
            assert (tree["depth"].iloc[children] == tree["depth"].iloc[node] + 1).all()


def test_numeric_nodes_name_their_children(table):
    for _, tree in table.groupby("tree"):
        for _, node in tree[tree["left"].notna()].iterrows():
            assert node["missing"] in ("left", "right", "both")
            assert tree.iloc[node["left"]]["parent"] == node["node"]
            assert tree.iloc[node["right"]]["parent"] == node["node"]


def test_nominal_nodes_name_the_category_of_each_child(table):
    nominal = table[table["feature"] == "kind"]
    assert len(nominal) > 0
    assert nominal[["threshold", "left", "right"]].isna().all(axis=None)
    assert (nominal["missing"] == "category").all()
    for _, node in nominal.iterrows():
        children = table[(table["tree"] == node["tree"]) & (table["parent"] == node["node"])]
        assert children["category"].is_unique
        assert set(children["category"]) <= {"p", "q", "r"}


def test_leaves_have_neither_feature_nor_children(table):
    leaf = table[table["feature"].isna()]
    columns = ["column", "threshold", "left", "right", "missing", "cost", "risk"]
    assert leaf[columns].isna().all(axis=None)
    assert (leaf["impurity"] == 0).all()


def test_missing_values_take_the_route_of_the_table():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    model = forest(max_trees=1).fit(holes, Y)
    found = model.predict(holes[:40])
    assert found.tolist() == [leaves(model, row)[0]["label"] for row in holes[:40]]


def test_importances_sum_to_one_and_are_zero_for_features_not_used():
    model = forest(costs=[1, 1, 1, 1, 1, 1e9], max_trees=2).fit(X, Y)
    unused = ~np.isin(np.arange(6), model.trees_to_dataframe()["column"].dropna())
    assert unused.any()
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert not model.feature_importances_[unused].any()
    assert (model.feature_importances_ >= 0).all()


def test_certificates_bound_each_tree():
    bits = (X > 0).astype(float)
    model = forest(costs=[1, 2, 3, 4, 5, 6]).fit(bits, bits[:, 0] + bits[:, 3])
    assert len(model.certificates_) == model.n_trees_ == 6
    for certificate in model.certificates_:
        assert 0 < certificate.lower_bound <= certificate.max_cost <= 21
        assert certificate.ratio == pytest.approx(certificate.max_cost / certificate.lower_bound)
        assert certificate.ratio <= certificate.factor


def test_no_tree_is_cheaper_than_its_own_lower_bound():
    model = forest(costs=[1, 2, 3, 4, 5, 6]).fit(X, Y)
    assert all(c.lower_bound <= c.max_cost for c in model.certificates_)


def test_no_row_pays_more_than_the_max_cost_of_its_tree():
    model = forest(costs=[1, 2, 3, 4, 5, 6], max_trees=1, bootstrap=False).fit(X, Y)
    assert model.acquisition_cost(X).max() == model.certificates_[0].max_cost


def test_nothing_is_certified_without_an_admissible_impurity():
    certificates = forest(impurity="entropy").fit(X, Y).certificates_
    assert all(np.isnan(c.lower_bound) and c.max_cost > 0 for c in certificates)


# Budgets ---------------------------------------------------------------------------------------


def test_path_costs_more_and_errs_less():
    path = forest(budget=5, alpha="auto", max_trees=20).fit(X, Y).path_
    costs, errors = [p.cost for p in path], [p.error for p in path]
    assert len(path) > 1
    assert costs == sorted(set(costs))
    assert costs[-1] <= 5
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("alpha", [0, [0, 4, 20]])
def test_forest_at_another_budget_is_the_one_trained_for_it(alpha):
    model = forest(budget=5, alpha=alpha, max_trees=20, voting="soft").fit(X, Y)
    for budget in [3.5, 4, 4.5, 5]:
        other, fresh = model.at_budget(budget), clone(model).set_params(budget=budget).fit(X, Y)
        assert (other.budget, other.alpha_, other.n_trees_) == (budget, fresh.alpha_, fresh.n_trees_)
        assert same(other, fresh)
        assert np.array_equal(other.predict_proba(X), fresh.predict_proba(X))


def test_forest_at_another_budget_leaves_the_first_alone():
    model = forest(budget=5, max_trees=20).fit(X, Y)
    before = model.n_trees_
    assert model.at_budget(3).n_trees_ < before
    assert (model.budget, model.n_trees_) == (5, before)


def test_given_validation_rows_measure_cost_and_error():
    model = forest(budget=4, max_trees=20).fit(X[:150], Y[:150], validation=(X[150:], Y[150:]))
    assert model.acquisition_cost(X[150:]).mean() <= 4
    points = (point for candidate in model._trained.candidates for point in candidate.points)
    (point,) = (point for point in points if point.trees == model.n_trees_)
    assert model.acquisition_cost(X[150:]).mean() == pytest.approx(point.cost)
    assert 1 - model.score(X[150:], Y[150:]) == pytest.approx(point.error)


def test_all_rows_train_without_budget_and_choice():
    model = forest(bootstrap=False, max_trees=1).fit(X, Y)
    assert model.trees_to_dataframe().loc[0, "rows"] == len(Y)


# Impurities ------------------------------------------------------------------------------------


def pairs_by_hand(n):
    total = 0.0
    for i in range(len(n)):
        for j in range(i + 1, len(n)):
            total += n[i] * n[j]
    return total


@pytest.mark.parametrize(
    "impurity",
    [pairs_by_hand, [(1, (1, 1, 0)), (1, (1, 0, 1)), (1, (0, 1, 1))]],
    ids=["function", "polynomial"],
)
@pytest.mark.parametrize("splitter", ["binned", "exact", "random"])
def test_same_impurity_by_other_means_grows_the_same_forest(impurity, splitter):
    parameters = {"splitter": splitter, "costs": [1, 2, 3, 1, 2, 3]}
    assert same(forest(impurity=impurity, **parameters).fit(X, Y), forest(**parameters).fit(X, Y))


@pytest.mark.parametrize("impurity", ["pairs", "powers", "entropy", "gini", Powers(3)])
@pytest.mark.parametrize("criterion", ["minimax", "expected"])
def test_every_impurity_and_criterion_learns(impurity, criterion):
    model = forest(impurity=impurity, criterion=criterion).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_alpha_of_zero_is_silent_where_alpha_means_nothing():
    with pytest.warns(UnusualData, match="alpha=2 has no effect"):
        idle = forest(impurity=Powers(2), alpha=2).fit(X, Y)
    assert same(idle, forest(impurity=Powers(2), alpha=0).fit(X, Y))
