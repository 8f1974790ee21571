"""Other forests are charged as ours are; the counter is checked against each library's own paths."""

import json

import catboost
import lightgbm
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from budgetforest import InvalidCosts, InvalidParameter
from budgetforest.data.costs import read_costs
from budgetforest.inference.predict import charge, scores
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.convert import from_catboost, from_lightgbm, from_sklearn
from budgetforest.trees.forest import Answer, Context, first_trees, join, tree_of
from budgetforest.trees.tree import next_node

PRICES = {
    "uneven": lambda m: (np.arange(m) % 7 + 0.5, None),
    "sensors": lambda m: (3.0 * (np.arange(m) % 4) + 1, [f"sensor {j % 4}" for j in range(m)]),
    "panels": lambda m: (panels(m), None),
}


def panels(m):
    """A price list in which it matters which member of a group comes first."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "feature": [f"x{j}" for j in range(m)],
            "cost": np.arange(m) + 2.0,
            "group": [("blood", "", "scan")[j % 3] for j in range(m)],
            "discount_cost": np.where(np.arange(m) % 3 == 1, np.arange(m) + 2.0, 0.5 * np.arange(m)),
        }
    )


def prices(kind, m):
    return read_costs(*PRICES[kind](m), [f"x{j}" for j in range(m)])


def rows(load, missing=0.0, seed=0):
    X, y = load(return_X_y=True)
    return with_gaps(X, missing, seed), y


def with_gaps(X, missing, seed=0):
    X = X.astype(np.float32)
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    return X


def bill(met, costs):
    """What a row pays for features in the order it meets them, by the definition of a price list."""
    total, opened = 0.0, set()
    for j in dict.fromkeys(met):
        total += costs.discount[j] if costs.group[j] in opened else costs.cost[j]
        opened.add(costs.group[j])
    return total


def assert_charged(forest, X, paths, costs):
    """``paths``: for every row the features it meets, in the order of trees and nodes."""
    ledger = charge(forest, X, Answer.PROBA)
    assert [set(np.flatnonzero(row)) for row in ledger.acquired] == [set(met) for met in paths]
    np.testing.assert_allclose(ledger.spent, [bill(met, costs) for met in paths], rtol=1e-12)


def sklearn_paths(model, X):
    met = [[] for _ in X]
    for tree in getattr(model, "estimators_", [model]):
        # node numbers of scikit-learn are in preorder, so a path is in ascending order
        path = tree.decision_path(X)
        for i, features in enumerate(met):
            nodes = np.sort(path.indices[path.indptr[i] : path.indptr[i + 1]])
            features += [int(j) for j in tree.tree_.feature[nodes] if j >= 0]
    return met


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("priced", PRICES)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_row_of_scikit_learn_pays_for_its_decision_paths(kind, priced, missing):
    X, y = rows(load_wine, missing)
    model = kind(random_state=0).fit(X[::2], y[::2])
    costs = prices(priced, X.shape[1])
    assert_charged(from_sklearn(model, costs), X, sklearn_paths(model, X), costs)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_values_missing_only_at_prediction_take_the_way_of_scikit_learn(kind):
    X, y = rows(load_breast_cancer)
    model = kind(20, random_state=0).fit(X, y)
    X, costs = with_gaps(X, 0.3), prices("uneven", X.shape[1])
    forest = from_sklearn(model, costs)
    assert_charged(forest, X, sklearn_paths(model, X), costs)
    np.testing.assert_allclose(scores(forest, X) / 20, model.predict_proba(X))


def lightgbm_paths(booster, X):
    """Features above each row's leaf: LightGBM says which leaf, and its dump what stands above."""
    trees = booster.dump_model()["tree_info"]
    leaves = booster.predict(X, pred_leaf=True).reshape(len(X), len(trees)).astype(int)
    met = [[] for _ in X]
    for t, tree in enumerate(trees):
        above = features_above(tree["tree_structure"])
        for i, features in enumerate(met):
            features += above[leaves[i, t]]
    return met


def features_above(node, met=()):
    if "split_feature" not in node:
        return {node.get("leaf_index", 0): list(met)}
    met = (*met, node["split_feature"])
    return features_above(node["left_child"], met) | features_above(node["right_child"], met)


def boost(X, y, rounds=12, nominal="auto", **parameters):
    several = {"objective": "multiclass", "num_class": int(y.max()) + 1}
    fixed = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5}
    objective = several if y.max() > 1 else {"objective": "binary"}
    data = lightgbm.Dataset(X, y, categorical_feature=nominal)
    return lightgbm.train(objective | fixed | parameters, data, rounds)


def shifted(return_X_y):
    """Rows around zero, so that it matters whether a missing value is taken for zero."""
    return make_classification(400, 12, n_informative=6, n_classes=3, random_state=0)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, shifted])
@pytest.mark.parametrize("priced", PRICES)
@pytest.mark.parametrize("missing", ["never", "in training", "at prediction"])
def test_a_row_of_lightgbm_pays_for_what_is_above_its_leaves(load, priced, missing):
    X, y = rows(load, 0.1 if missing == "in training" else 0.0)
    booster = boost(X[::2], y[::2])
    X = with_gaps(X, 0.2) if missing == "at prediction" else X
    costs = prices(priced, X.shape[1])
    assert_charged(from_lightgbm(booster, costs), X, lightgbm_paths(booster, X), costs)


def test_values_on_a_threshold_and_beyond_all_training_values_reach_the_leaves_of_lightgbm():
    X, y = rows(shifted, 0.05)
    booster = boost(X, y)
    costs = prices("uneven", X.shape[1])
    forest = from_lightgbm(booster, costs)
    inner = forest.nodes.feature != LEAF
    rng = np.random.default_rng(0)
    asked = np.append(
        forest.nodes.threshold[inner].astype(np.float32), [np.inf, -np.inf, 0, 1e-36, -1e-36, np.nan]
    )
    X = rng.choice(asked, (2000, X.shape[1]))
    assert_charged(forest, X, lightgbm_paths(booster, X), costs)


def test_a_tree_without_splits_costs_nothing():
    X, y = rows(load_iris)
    booster = boost(X, y, cegb_tradeoff=1e6, cegb_penalty_feature_coupled=[1.0] * 4)
    forest = from_lightgbm(booster, prices("uneven", 4))
    assert forest.n_trees == booster.num_trees()
    assert (forest.nodes.feature == LEAF).all()
    assert not charge(forest, X, Answer.PROBA).spent.any()


def test_some_trees_of_a_round_may_be_single_leaves():
    X, y = rows(load_iris)
    booster = boost(X[:, :1], y, 60, learning_rate=0.9, min_gain_to_split=1.0)
    forest = from_lightgbm(booster, costs := prices("uneven", 1))
    assert 1 in np.diff(forest.roots)
    assert forest.n_trees % 3 == 0
    assert_charged(forest, X[:, :1], lightgbm_paths(booster, X[:, :1]), costs)


def test_counts_are_the_training_rows_at_every_node():
    X, y = rows(load_breast_cancer)
    nodes = from_lightgbm(boost(X, y), prices("uneven", 30)).nodes
    inner = nodes.feature != LEAF
    assert nodes.counts[0, 0] == len(X)
    split = nodes.counts[nodes.left[inner]] + nodes.counts[nodes.right[inner]]
    np.testing.assert_array_equal(nodes.counts[inner], split)
    np.testing.assert_array_equal(nodes.left[inner], np.flatnonzero(inner) + 1)


def test_first_rounds_are_the_first_trees():
    X, y = rows(load_iris)
    booster, costs = boost(X, y), prices("uneven", 4)
    whole, three = from_lightgbm(booster, costs), from_lightgbm(booster, costs, rounds=3)
    assert three.n_trees == 9
    assert_same_forest(first_trees(whole, 9), three)


def test_first_trees_are_a_forest_of_these_trees():
    X, y = rows(load_wine)
    whole = from_sklearn(RandomForestClassifier(9, random_state=0).fit(X, y), prices("uneven", 13))
    context = Context(*whole[5:])
    for n in range(1, 10):
        part = first_trees(whole, n)
        assert_same_forest(part, join([tree_of(whole, t) for t in range(n)], context))
        np.testing.assert_array_equal(
            scores(part, X), scores(join([tree_of(whole, t) for t in range(n)], context), X)
        )


def assert_same_forest(one, other):
    for a, b in zip((*one.nodes, *one[1:5]), (*other.nodes, *other[1:5]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_boosters_that_cannot_be_charged_are_refused():
    X, y = rows(shifted)
    costs = prices("uneven", 12)
    with pytest.raises(InvalidParameter, match="zero_as_missing=False"):
        from_lightgbm(boost(X, y, zero_as_missing=True), costs)
    X[:, 0] = y
    with pytest.raises(InvalidParameter, match="categorical"):
        from_lightgbm(boost(X, y, nominal=[0], min_data_per_group=1), costs)
    with pytest.raises(InvalidParameter, match="linear"):
        from_lightgbm(boost(X, y, linear_tree=True), costs)
    with pytest.raises(InvalidCosts, match="4 prices for a model of 12 features"):
        from_lightgbm(boost(X, y), prices("uneven", 4))


def catboost_model(X, y, kind="SymmetricTree", **parameters):
    fixed = {"iterations": 8, "depth": 3, "learning_rate": 0.3, "grow_policy": kind, "thread_count": 1}
    quiet = {"allow_writing_files": False, "verbose": False, "loss_function": "MultiClass"}
    return catboost.CatBoostClassifier(**fixed | quiet | parameters).fit(X, y)


def catboost_paths(model, X, folder):
    """Features met in a walk over CatBoost's dump; that the walk is CatBoost's own is seen by the scores."""
    model.save_model(str(folder / "model.json"), format="json")
    dumped = json.loads((folder / "model.json").read_text())
    columns = dumped["features_info"]["float_features"]

    def goes_right(split, row):
        j = split["float_feature_index"]
        if np.isnan(row[j]):
            return columns[j]["nan_value_treatment"] == "AsTrue"
        return row[j] > np.float32(split["border"])

    met, raw = [[] for _ in X], np.zeros((len(X), len(model.classes_)))
    for i, row in enumerate(X):
        for tree in dumped.get("oblivious_trees", []):
            leaf = sum(int(goes_right(split, row)) << level for level, split in enumerate(tree["splits"]))
            met[i] += [split["float_feature_index"] for split in tree["splits"]]
            raw[i] += np.reshape(tree["leaf_values"], (-1, raw.shape[1]))[leaf]
        for node in dumped.get("trees", []):
            while "split" in node:
                met[i].append(node["split"]["float_feature_index"])
                node = node["right" if goes_right(node["split"], row) else "left"]
            raw[i] += node["value"]
    np.testing.assert_allclose(raw, model.predict(X, prediction_type="RawFormulaVal"), atol=1e-9)
    return met


@pytest.mark.parametrize("kind", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("missing", ["never", "in training", "as the largest", "at prediction"])
def test_a_row_of_catboost_pays_for_the_splits_it_meets(kind, missing, tmp_path):
    X, y = rows(shifted, 0.1 if missing in ("in training", "as the largest") else 0.0)
    model = catboost_model(X[::2], y[::2], kind, nan_mode="Max" if missing == "as the largest" else "Min")
    X = with_gaps(X[:150], 0.2) if missing == "at prediction" else X[:150]
    paths = catboost_paths(model, X, tmp_path)
    for priced in ("uneven", "panels"):
        costs = prices(priced, X.shape[1])
        assert_charged(from_catboost(model, costs), X, paths, costs)


def leaves_of(forest, X):
    def leaf(node, row):
        while (j := forest.nodes.feature[node]) != LEAF:
            node = next_node(forest.nodes, node, row[j])
        return node

    return np.array([[leaf(root, row) for row in X] for root in forest.roots[:-1]])


def test_leaves_are_those_of_catboost():
    X, y = rows(load_wine, 0.1)
    for kind in ("SymmetricTree", "Depthwise"):
        model = catboost_model(X, y, kind)
        theirs = model.calc_leaf_indexes(X).T
        ours = leaves_of(from_catboost(model, prices("uneven", 13)), X)
        for a, b in zip(ours, theirs, strict=True):
            pairs = set(zip(a.tolist(), b.tolist(), strict=True))
            assert len(pairs) == len(np.unique(a)) == len(np.unique(b))


def test_a_catboost_model_of_categories_is_refused():
    X, y = rows(shifted)
    table = pytest.importorskip("pandas").DataFrame(X).assign(kind=y.astype(str))
    with pytest.raises(InvalidParameter, match="categorical"):
        from_catboost(catboost_model(table, y, cat_features=["kind"]), prices("uneven", 13))
