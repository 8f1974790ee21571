"""Arrays and dataframes of every kind are the same rows; nominal and missing values."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from budgetforest import BudgetForestClassifier, InvalidData, InvalidParameter
from budgetforest.data.table import Schema, learn_schema, to_matrix

N = 160


def numeric(dtype=np.float64):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3)).astype(dtype)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def coloured():
    """Numbers and a colour that explains the label."""
    X, y = numeric()
    colour = np.random.default_rng(2).choice(["red", "green", "blue"], N)
    return {"a": X[:, 0], "b": X[:, 1]}, colour.tolist(), np.where(colour == "red", 1, y)


def forest(X, y, **parameters):
    model = BudgetForestClassifier(
        **{"method": "paper", "alpha": 0, "max_trees": 5, "random_state": 0, **parameters}
    )
    return model.fit(X, y)


def one_tree(X, y, **parameters):
    return forest(X, y, max_trees=1, bootstrap=False, splitter="exact", **parameters)


def all_numbers(m):
    return Schema(tuple(f"x{j}" for j in range(m)), (None,) * m)


KINDS = {
    "pandas-string": lambda a, c: pd.DataFrame({**a, "c": c}),
    "pandas-object": lambda a, c: pd.DataFrame({**a, "c": pd.Series(c, dtype=object)}),
    "pandas-category": lambda a, c: pd.DataFrame({**a, "c": pd.Categorical(c)}),
    "polars-string": lambda a, c: pl.DataFrame({**a, "c": c}),
    "polars-categorical": lambda a, c: pl.DataFrame({**a, "c": pl.Series(c, dtype=pl.Categorical)}),
    "polars-enum": lambda a, c: pl.DataFrame(
        {**a, "c": pl.Series(c, dtype=pl.Enum(["red", "green", "blue"]))}
    ),
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("missing", [False, True])
def test_frames_and_arrays_grow_the_same_forest(frame, missing):
    X, y = numeric()
    if missing:
        X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    framed = frame(dict(zip(["x0", "x1", "x2"], X.T, strict=True)))
    plain, other = forest(X, y), forest(framed, y)
    assert np.array_equal(plain.predict_proba(X), other.predict_proba(framed))
    assert np.array_equal(plain.acquisition_cost(X), other.acquisition_cost(framed))
    assert plain.trees_to_dataframe().equals(other.trees_to_dataframe())


def test_lists_are_arrays():
    X, y = numeric()
    assert np.array_equal(forest(X.tolist(), y.tolist()).predict(X.tolist()), forest(X, y).predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numeric_array_is_not_copied(dtype):
    X, _ = numeric(dtype)
    assert to_matrix(X, all_numbers(3)) is X


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frame_of_one_float_type_keeps_it(frame, dtype):
    X, _ = numeric(dtype)
    matrix = to_matrix(frame(X), all_numbers(3))
    assert matrix.dtype == dtype
    assert np.array_equal(matrix, X)


def test_homogeneous_pandas_frame_is_not_copied():
    frame = pd.DataFrame(numeric(np.float32)[0])
    assert np.shares_memory(to_matrix(frame, all_numbers(3)), frame.to_numpy())


def test_float32_rows_fall_where_their_float64_values_do():
    X, y = numeric(np.float32)
    narrow, wide = forest(X, y), forest(X.astype(np.float64), y)
    assert narrow.trees_to_dataframe().equals(wide.trees_to_dataframe())
    assert np.array_equal(narrow.predict_proba(X), wide.predict_proba(X.astype(np.float64)))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": [True, False, True]}),
        pd.DataFrame({"a": [1, 2, np.nan], "b": pd.array([1, 0, 1], dtype="boolean")}),
        pl.DataFrame({"a": [1, 2, None], "b": [True, False, True]}),
    ],
    ids=["pandas-Int64", "pandas-boolean", "polars"],
)
def test_integers_booleans_and_nulls_become_numbers(frame):
    assert np.array_equal(to_matrix(frame, all_numbers(2)), [[1, 1], [2, 0], [np.nan, 1]], equal_nan=True)


def test_boolean_column_splits_at_one_half():
    flag = np.arange(40) % 2 == 0
    table = one_tree(pd.DataFrame({"flag": flag, "z": 1.0 * (np.arange(40) > 20)}), flag)
    assert table.trees_to_dataframe().loc[0, ["feature", "threshold"]].tolist() == ["flag", 0.5]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_category_grows_the_same_forest(kind):
    numbers, colour, y = coloured()
    frame, reference = KINDS[kind](numbers, colour), KINDS["pandas-string"](numbers, colour)
    model, other = forest(frame, y), forest(reference, y)
    assert model.trees_to_dataframe().equals(other.trees_to_dataframe())
    assert np.array_equal(model.predict(frame), other.predict(reference))
    assert model.trees_to_dataframe()["category"].isin(["red", "green", "blue"]).any()


def test_categories_are_what_the_training_rows_contain_sorted():
    column = pd.Categorical(["b", "a", None, "b"], categories=["z", "b", "a"])
    frame = pd.DataFrame({"c": column, "x": [1.0, 2, 3, 4]})
    assert learn_schema(frame, ["c", "x"]).categories == (("a", "b"), None)


@pytest.mark.parametrize("listed", [["a"], [0], [np.int64(0)], [True, False], np.array([True, False])])
def test_categorical_features_by_name_position_or_mask(listed):
    frame = pd.DataFrame({"a": [3, 1, 3, 2], "b": [1.0, 2, 3, 4]})
    assert learn_schema(frame, ["a", "b"], listed).categories == ((1, 2, 3), None)


def test_categorical_features_of_an_array_go_by_made_up_names_too():
    X = np.array([[3.0, 1], [1, 2], [3, 3]])
    assert learn_schema(X, ["x0", "x1"], ["x0"]) == learn_schema(X, ["x0", "x1"], [0])


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (["colour"], "lists 'colour', which is not a feature; did you mean 'color'"),
        ([7], "lists 7, which is not a feature; known names: 'a', 'b', 'color'"),
        ([-1], "lists -1, which is not a feature"),
        ([["a"]], r"lists \['a'\], which is not a feature"),
        ([True, False], "mask of 2 flags; there are 3 features"),
        ("ab", "categorical_features.*'ab'"),
        (5, "categorical_features.*5"),
    ],
)
def test_unusable_categorical_features_are_refused(listed, message):
    X, y = numeric()
    with pytest.raises(InvalidParameter, match=message):
        forest(pd.DataFrame(X, columns=["a", "b", "color"]), y, categorical_features=listed)


def test_nominal_array_column_splits_by_category():
    kind = np.arange(90) % 3
    X = np.column_stack([kind, np.arange(90) // 45])
    model = one_tree(X, kind == 1, categorical_features=[0])
    table = model.trees_to_dataframe()
    assert table.loc[1:, "category"].tolist() == [0, 1, 2]
    assert np.array_equal(model.predict(X), kind == 1)


@pytest.mark.parametrize("null", [None, np.nan, "violet"])
def test_unseen_category_is_missing(null):
    numbers, colour, y = coloured()
    model = forest(pd.DataFrame({**numbers, "c": colour}), y)
    unseen = pd.DataFrame({**numbers, "c": "turquoise"})
    assert np.array_equal(model.predict_proba(unseen), model.predict_proba(unseen.assign(c=null)))
    assert np.array_equal(model.acquired_features(unseen), model.acquired_features(unseen.assign(c=null)))


def test_missing_category_has_its_own_child_if_trained():
    frame = pd.DataFrame({"c": ["r", "g", None] * 10, "x": np.arange(30) % 2.0})
    model = one_tree(frame, frame["c"].isna())
    asked = pd.DataFrame({"c": ["r", "g", None, "unseen"], "x": 0.0})
    assert model.predict(asked).tolist() == [False, False, True, True]
    assert "missing" in model.trees_to_dataframe()["category"].tolist()


def test_missing_category_goes_to_the_largest_child_if_not_trained():
    frame = pd.DataFrame({"c": ["r"] * 5 + ["g"] * 3, "x": np.arange(8) % 2.0})
    model = one_tree(frame, ["yes"] * 5 + ["no"] * 3, costs=[1, 100])
    asked = pd.DataFrame({"c": [None, "unseen", "g"], "x": 0.0})
    assert model.predict(asked).tolist() == ["yes", "yes", "no"]


@pytest.fixture
def absent_below():
    """Category "b" is seen at the root and absent from the nominal node below it."""
    frame = pd.DataFrame({"a": [0.0] * 10 + [1.0] * 8, "c": ["b"] * 10 + ["r"] * 5 + ["g"] * 3})
    return one_tree(frame, [0] * 10 + [1] * 5 + [0] * 3, costs={"a": 1, "c": 100})


def test_category_absent_from_a_node_goes_to_its_largest_child(absent_below):
    asked = pd.DataFrame({"a": [1.0, 1.0, 1.0, 0.0], "c": ["b", "r", "g", "r"]})
    assert absent_below.predict(asked).tolist() == [1, 1, 0, 0]


def test_children_are_listed_under_the_category_they_were_grown_on(absent_below):
    table = absent_below.trees_to_dataframe()
    children = table[table["category"].notna()]
    found = dict(zip(children["category"], children["counts"], strict=True))
    assert found == {"g": (3, 0), "r": (0, 5)}


def test_255_categories_are_told_apart_and_256_refused():
    column = [f"k{i:03}" for i in range(256)] * 2
    frame = pd.DataFrame({"c": column, "x": np.arange(512.0)})
    y = np.array([int(c[1:]) % 2 for c in column])
    few = frame["c"] != "k255"
    model = one_tree(frame[few], y[few], costs=[1, 1e6])
    assert model.score(frame[few], y[few]) == 1
    assert model.acquired_features(frame[few])[:, 0].all()
    with pytest.raises(InvalidData, match=r"'c' has 256 categories; at most 255 .*merge the rare"):
        forest(frame, y)


def test_missing_numbers_learn_their_side():
    X = np.array([[1.0], [1], [1], [5], [5], [np.nan], [np.nan]])
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    model = one_tree(X, y)
    assert model.predict([[np.nan], [1], [5]]).tolist() == [1, 0, 1]
    assert model.trees_to_dataframe().loc[0, "missing"] == "right"
    assert one_tree(X, 1 - y).predict([[np.nan]]).tolist() == [0]
    mirrored = one_tree(-X, y)
    assert mirrored.predict([[np.nan], [-1], [-5]]).tolist() == [1, 0, 1]
    assert mirrored.trees_to_dataframe().loc[0, "missing"] == "left"


def test_missing_against_present_is_a_split():
    X = np.array([[1.0], [2], [3], [np.nan], [np.nan]])
    model = one_tree(X, [0, 0, 0, 1, 1])
    assert model.trees_to_dataframe().loc[0, "threshold"] == np.inf
    assert model.predict([[np.nan], [-9], [99]]).tolist() == [1, 0, 0]


def test_missing_number_not_trained_goes_to_the_larger_child():
    model = one_tree(np.array([[1.0], [1], [1], [5], [5]]), [0, 0, 0, 1, 1])
    assert model.predict([[np.nan]]).tolist() == [0]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series([pd.Timestamp("2024-01-01")] * N), "Datetime"),
        (pd.Series([{}] * N), "Object"),
        (pl.Series([datetime.date(2024, 1, 1)] * N), "Date"),
        (pl.Series([[1, 2]] * N), "List"),
    ],
    ids=["pandas-datetime", "pandas-object", "polars-date", "polars-list"],
)
def test_column_of_another_type_is_refused(column, kind):
    X, y = numeric()
    frame = pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame
    with pytest.raises(InvalidData, match=f"feature 'when' holds values of type {kind}.*are numbers"):
        forest(frame({"a": X[:, 0], "when": column}), y)


def test_text_where_training_had_numbers_is_refused():
    X, y = numeric()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = forest(frame, y)
    with pytest.raises(InvalidData, match="feature 'b' holds values of type String"):
        model.predict(frame.assign(b="high"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["b", "a", "c"]], "must be in the same order"),
        (lambda f: f.rename(columns={"a": "q"}), "unseen at fit time:\n- q"),
        (lambda f: f[["a", "b"]], "yet now missing:\n- c"),
    ],
)
def test_other_feature_names_are_refused(change, message):
    X, y = numeric()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        forest(frame, y).predict(change(frame))


def test_array_after_a_frame_warns_about_names():
    X, y = numeric()
    model = forest(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert len(model.predict(X)) == N


def test_feature_names_are_those_of_the_frame():
    X, y = numeric()
    model = forest(pl.DataFrame(X, schema=["a", "b", "c"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert set(model.trees_to_dataframe()["feature"].dropna()) <= {"a", "b", "c"}
    assert not hasattr(forest(X, y), "feature_names_in_")
