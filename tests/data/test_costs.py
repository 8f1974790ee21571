"""Price lists from every source, what groups mean, and what rows pay in the end."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from budgetforest import BudgetForestClassifier, InvalidCosts
from budgetforest.data.costs import read_costs

NAMES = ["age", "mri", "bp"]
TABLE = {"feature": ["mri", "bp", "age"], "cost": [300.0, 5.0, 1.0]}


@pytest.fixture
def price_list(tmp_path):
    def write(text):
        path = tmp_path / "prices.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def prices(costs, groups=None):
    return read_costs(costs, groups, NAMES)


def test_no_price_list_means_one_each():
    assert prices(None).cost.tolist() == [1, 1, 1]
    assert prices(None).group_names == ("age", "mri", "bp")


@pytest.mark.parametrize(
    "costs",
    [
        np.array([1, 300, 5]),
        [1, 300, 5],
        (1.0, 300.0, 5.0),
        {"mri": 300, "bp": 5, "age": 1},
        pd.Series({"mri": 300, "bp": 5, "age": 1}),
        pd.Series([1, 300, 5]),
        pl.Series([1, 300, 5]),
        pd.DataFrame(TABLE),
        pl.DataFrame(TABLE),
    ],
    ids=lambda costs: f"{type(costs).__module__.split('.')[0]}-{type(costs).__name__}",
)
def test_every_source_gives_prices_in_feature_order(costs):
    found = prices(costs)
    assert found.cost.tolist() == [1, 300, 5]
    assert found.group.tolist() == [0, 1, 2]


def test_series_indexed_by_number_is_by_name_when_features_are_numbers():
    assert read_costs(pd.Series([1, 2], index=[1, 0]), None, ["0", "1"]).cost.tolist() == [2, 1]


@pytest.mark.parametrize("as_type", [str, lambda path: path])
def test_csv_may_start_with_a_byte_order_mark(price_list, as_type):
    path = price_list("\ufefffeature,cost\nbp,5\nage,1\nmri,300\n")
    assert prices(as_type(path)).cost.tolist() == [1, 300, 5]


def test_csv_columns_beyond_the_known_are_ignored(price_list):
    path = price_list("note,cost,feature\nx,1,age\n,300,mri\nz,5,bp\n")
    assert prices(path).cost.tolist() == [1, 300, 5]


def test_csv_with_groups_and_discounts_is_a_panel(price_list):
    path = price_list("feature,cost,group,discount_cost\nage,1,,\nmri,300,scan,20\nbp,5,scan,2\n")
    found = prices(path)
    assert found.group.tolist() == [0, 1, 1]
    assert found.group_names == ("age", "scan")
    assert found.discount.tolist() == [0, 20, 2]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframe_with_groups_and_discounts_is_a_panel(frame):
    found = prices(frame({**TABLE, "group": ["scan", "scan", None], "discount_cost": [20.0, 2.0, None]}))
    assert found.group.tolist() == [0, 1, 1]
    assert found.discount.tolist() == [0, 20, 2]


@pytest.mark.parametrize(
    "groups",
    [
        ["desk", "desk", None],
        ["desk", "desk", ""],
        ["desk", "desk", float("nan")],
        ["desk", "desk", pd.NA],
        np.array(["desk", "desk", ""]),
        {"age": "desk", "mri": "desk"},
        pd.Series({"age": "desk", "mri": "desk"}),
        pd.Series(["desk", "desk", None]),
    ],
    ids=lambda groups: f"{type(groups).__name__}-{list(groups)[-1]!r}",
)
def test_groups_by_position_or_name_leave_the_rest_alone(groups):
    found = prices(None, groups)
    assert found.group.tolist() == [0, 0, 1]
    assert found.group_names == ("desk", "bp")


def test_groups_replace_those_of_the_price_list():
    found = prices(pd.DataFrame({**TABLE, "cost": 1, "group": "all"}), {"age": "a", "bp": "a"})
    assert found.group.tolist() == [0, 1, 0]


def test_group_and_feature_of_the_same_name_stay_apart():
    assert prices(None, ["bp", "bp", None]).group.tolist() == [0, 0, 1]


def test_sensor_is_free_once_opened():
    found = prices([7, 7, 2], ["camera", "camera", None])
    assert found.discount[:2].tolist() == [0, 0]
    assert found.least.tolist() == [0, 0, 2]


def test_panel_member_costs_at_least_its_discount():
    table = {**TABLE, "group": ["p", "p", None], "discount_cost": [20, 2, None]}
    assert prices(pd.DataFrame(table)).least.tolist() == [1, 20, 2]


def test_panel_member_without_discount_always_costs_the_same():
    table = {**TABLE, "group": ["p", "p", None], "discount_cost": [20, None, None]}
    found = prices(pd.DataFrame(table))
    assert found.discount[2] == found.least[2] == 5


def test_everything_costs_what_the_dearest_order_does():
    table = {**TABLE, "group": ["p", "p", "p"], "discount_cost": [20, 2, 1]}  # mri, bp, age
    found = prices(pd.DataFrame(table))
    orders = itertools.permutations(range(3))
    dearest = max(found.cost[first] + found.discount[list(later)].sum() for first, *later in orders)
    assert found.most == dearest == 303
    assert prices([7, 7, 2], ["camera", "camera", None]).most == 9
    assert prices([1, 2, 3]).most == 6


def test_feature_alone_in_its_group_never_uses_its_discount():
    table = {**TABLE, "group": ["p", None, None], "discount_cost": [20, 2, None]}
    assert prices(pd.DataFrame(table)).least.tolist() == [1, 300, 5]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"age": 1, "mri": -3, "bp": 5}, r"cost of 'mri' is -3\.0; costs must be zero or more"),
        ([1, float("nan"), 5], "cost of 'mri' is nan; costs must be finite"),
        ([1, float("inf"), 5], "cost of 'mri' is inf; costs must be finite"),
        ([1, None, 5], "cost of 'mri' is None; costs must be numbers"),
        ([1, "dear", 5], "cost of 'mri' is 'dear'; costs must be numbers"),
        ({"age": 1}, r"no price for 2 of 3 features \('mri', 'bp'\); every feature needs one"),
        ({"age": 1, "mir": 3, "bp": 5}, "'mir', which is not a feature; did you mean 'mri'"),
        (
            {"age": 1, "mri": 3, "bp": 5, "?": 1},
            r"'\?', which is not a feature; known names: 'age', 'mri', 'bp'",
        ),
        (pd.Series([1, 2, 3], index=[5, 6, 7]), "'5', which is not a feature"),
        (
            pd.Series([1, 2, 3, 4], index=["age", "age", "mri", "bp"]),
            "feature 'age' is listed twice",
        ),
        ([1, 2], r"costs has shape \(2,\); .* each of the 3 features"),
        ([], r"costs has shape \(0,\); .* each of the 3 features"),
        (np.ones((3, 1)), r"costs has shape \(3, 1\); .* each of the 3 features"),
        (np.ones((1, 3)), r"costs has shape \(1, 3\); .* each of the 3 features"),
        (np.array(5.0), r"costs has shape \(\); .* each of the 3 features"),
        (5, r"costs has shape \(\); .* each of the 3 features"),
        (pd.DataFrame({"feature": NAMES, "price": 1}), "no column 'cost'; it needs 'feature,cost'"),
        (pd.DataFrame({"name": NAMES, "cost": 1}), "no column 'feature'; it needs 'feature,cost'"),
        (
            pd.DataFrame({**TABLE, "group": "g", "discount_cost": [1, -2, 1]}),
            r"discount_cost of 'bp' is -2\.0; costs must be zero or more",
        ),
    ],
)
def test_unusable_costs_are_refused(costs, message):
    with pytest.raises(InvalidCosts, match=message):
        prices(costs)


@pytest.mark.parametrize(
    "text",
    [
        "feature;cost;group;discount_cost\nage;0,5;;\nmri;300,25;scan;20,5\nbp;5;scan;2\n",
        "feature\tcost\tgroup\tdiscount_cost\nage\t0,5\nmri\t300.25\tscan\t20,5\nbp\t5\tscan\t2\n",
        "\r\n feature |cost|group|discount_cost\r\n\r\nage|0,5\r\n||\r\n mri|300,25|scan|20,5\r\nbp|5|scan|2",
        'feature,cost,group,discount_cost\n"age",0.5\nmri,300.25, "scan",20.5\nbp,5,scan,2\n,,,\n',
    ],
    ids=["semicolon", "tab", "bar", "comma"],
)
def test_the_same_prices_however_they_are_written(price_list, text):
    found = prices(price_list(text))
    assert found.cost.tolist() == [0.5, 300.25, 5]
    assert found.discount.tolist() == [0, 20.5, 2]
    assert found.group_names == ("age", "scan")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feature,cost\nage,1\nage,2\n", ", line 3: feature 'age' is listed twice in the price list"),
        ("feature\nage\n", ": the price list has no column 'cost'; it needs 'feature,cost'"),
        ("name,cost\nage,1\n", ": the price list has no column 'feature'; it needs 'feature,cost'"),
        ("Feature,cost\nage,1\n", ": the price list has a column 'Feature'; did you mean 'feature'"),
        ("feature;Discount cost\nage;1\n", ": .* column 'Discount cost'; did you mean 'discount_cost'"),
        ("name,price\n", ": the price list has no column 'cost'; it needs 'feature,cost'"),
        ("", ": the price list has no column 'cost'; it needs 'feature,cost'"),
        ("feature,cost\n", ": costs list no price for 3 of 3 features"),
        ("feature,cost\nage,1\nmri,\nbp,5\n", ", line 3: cost of 'mri' is ''; costs must be numbers"),
        ("feature,cost\nage,1\nmri\nbp,5\n", ", line 3: cost of 'mri' is ''; costs must be numbers"),
        ("feature;cost\n\nage;1,5,0\n", ", line 3: cost of 'age' is '1,5,0'; costs must be numbers"),
        ('feature,cost\nage,"1,5"\n', ", line 2: cost of 'age' is '1,5'; costs must be numbers"),
        ("feature,cost\nage,1,5\n", ", line 2: it has 3 cells, the header 2 columns; .* a decimal point"),
        ("feature;cost\nage;-1\n", r", line 2: cost of 'age' is -1\.0; costs must be zero or more"),
        ("feature,cost\nage,inf\n", ", line 2: cost of 'age' is inf; costs must be finite numbers"),
        ("feature,cost\nage,1\nMRI,3\n", ", line 3: .* 'MRI', which is not a feature; did you mean 'mri'"),
        ("feature,cost,discount_cost\nage,1,2\n", r", line 2: discount_cost of 'age' is 2\.0, more than"),
        ("feature,cost,group\nage,1,g\nmri,2,g\nbp,1,\n", ", line 3: group 'g' has two prices"),
        ('feature,cost\nage,1\n"mri,2\nbp,3\n', ", line 4: unexpected end of data; write a quote"),
    ],
)
def test_unusable_csv_is_refused_with_its_file_and_line(price_list, text, message):
    path = price_list(text)
    with pytest.raises(InvalidCosts, match="^" + re.escape(str(path)) + message):
        prices(path)


def test_csv_that_does_not_exist_is_named():
    with pytest.raises(InvalidCosts, match=r"cannot read the price list 'nowhere\.csv': .*No such"):
        prices("nowhere.csv")


def test_csv_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidCosts, match=r"cannot read the price list .*prices\.csv.*not UTF-8"):
        prices(path)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "a"], r"groups has shape \(2,\); .* each of the 3 features"),
        ("aab", r"groups has shape \(\); .* each of the 3 features"),
        ({"agee": "a"}, "groups name 'agee', which is not a feature; did you mean 'age'"),
    ],
)
def test_unusable_groups_are_refused(groups, message):
    with pytest.raises(InvalidCosts, match=message):
        prices(None, groups)


def test_sensor_with_two_prices_is_refused():
    with pytest.raises(
        InvalidCosts, match=r"'cam' has two prices, 1\.0 for 'age' and 3\.0 for 'mri'; a sensor has"
    ):
        prices([1, 3, 5], ["cam", "cam", None])


# What rows pay ---------------------------------------------------------------------------------


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(150, 5))
    return X, (X[:, 0] + X[:, 1] + X[:, 2] + X[:, 3] > 0).astype(int)


def forest(rows, **parameters):
    return BudgetForestClassifier(method="paper", alpha=0, max_trees=4, random_state=0, **parameters).fit(
        *rows
    )


def test_feature_is_charged_once(rows):
    costs = np.array([1, 2, 4, 8, 16])
    model = forest(rows, costs=costs)
    acquired = model.acquired_features(rows[0])
    assert acquired.any()
    assert np.array_equal(model.acquisition_cost(rows[0]), acquired @ costs)


def test_sensor_is_charged_once(rows):
    model = forest(rows, costs=[3] * 5, groups=["cam", "cam", None, None, None])
    acquired = model.acquired_features(rows[0])
    camera = acquired[:, :2].any(axis=1)
    assert acquired[:, :2].all(axis=1).any()
    expected = 3 * camera + 3 * acquired[:, 2:].sum(axis=1)
    assert np.array_equal(model.acquisition_cost(rows[0]), expected)


def test_later_members_of_a_panel_are_charged_the_discount(rows):
    table = pd.DataFrame(
        {
            "feature": [f"x{j}" for j in range(5)],
            "cost": [10, 10, 10, 9, 9],
            "group": ["blood", "blood", "blood", None, None],
            "discount_cost": [2, 2, 2, None, None],
        }
    )
    model = forest(rows, costs=table)
    acquired = model.acquired_features(rows[0])
    members = acquired[:, :3].sum(axis=1)
    assert members.max() > 1
    expected = np.where(members > 0, 10 + 2 * (members - 1), 0) + 9 * acquired[:, 3:].sum(axis=1)
    assert np.array_equal(model.acquisition_cost(rows[0]), expected)


def test_opening_member_of_a_panel_pays_its_own_cost(rows):
    table = pd.DataFrame({"feature": ["x0", "x1"], "cost": [9, 8], "group": "g", "discount_cost": [4, 0.5]})
    X = rows[0][:, :2]
    model = forest((X, X.sum(axis=1) > 0), costs=table)
    both = model.acquired_features(X).all(axis=1)
    assert both.any()
    root = model.trees_to_dataframe().loc[0, "column"]
    assert set(model.acquisition_cost(X)[both]) == {[9 + 0.5, 8 + 4][root]}


def test_trees_that_ask_again_are_not_paid_again(rows):
    """Also where the order of a panel's members matters, for scores of all trees."""
    table = pd.DataFrame({"feature": ["x0", "x1"], "cost": [9, 8], "group": "g", "discount_cost": [4, 0.5]})
    X = rows[0][:, :2]
    model = forest((X, X.sum(axis=1) > 0), costs=table)
    assert model.costs_.order_matters
    both = model.acquired_features(X, answer="proba").all(axis=1)
    paid = model.acquisition_cost(X, answer="proba")
    assert set(paid[both]) <= {9 + 0.5, 8 + 4}
    assert set(paid[~both]) <= {9, 8}
    assert both.any()


def test_costs_by_name_follow_the_columns(rows):
    frame = pd.DataFrame(rows[0], columns=list("abcde"))
    by_name = forest((frame, rows[1]), costs={"e": 5, "d": 4, "c": 3, "b": 2, "a": 1})
    in_order = forest((frame, rows[1]), costs=[1, 2, 3, 4, 5])
    assert np.array_equal(by_name.acquisition_cost(frame), in_order.acquisition_cost(frame))


def test_bad_costs_are_refused_in_fit(rows):
    with pytest.raises(InvalidCosts, match="'x9', which is not a feature; did you mean 'x"):
        forest(rows, costs={f"x{j}": 1 for j in [0, 1, 2, 3, 9]})


@pytest.mark.parametrize("costs", [[-0.0, 1.0], {"x0": np.float64(-0.0), "x1": 1.0}])
def test_a_price_of_minus_zero_is_zero(costs):
    """Kernels divide by prices: trees that wait for a free feature must outweigh all others."""
    X = np.random.default_rng(0).integers(0, 3, (200, 2)).astype(float)
    model = BudgetForestClassifier(method="paper", alpha=0.0, max_trees=3, costs=costs, random_state=0)
    model.fit(X, (X.sum(axis=1) % 3 > 0).astype(int))
    assert not np.signbit(model.costs_.cost).any()
    bulk = model.predict_from(lambda feature, rows: [X[i, int(feature[1:])] for i in rows], range(len(X)))
    np.testing.assert_array_equal(bulk.labels, model.predict(X))


@pytest.mark.parametrize("cost", [1e308, 1e101, 1e-101, 5e-324])
def test_prices_whose_sums_or_ratios_are_no_numbers_are_refused(cost):
    with pytest.raises(
        InvalidCosts, match=r"cost of 'b' is .*; costs must be zero, or from 1e-100 to 1e\+100"
    ):
        read_costs([1.0, cost], None, ["a", "b"])


@pytest.mark.parametrize("cost", [1e100, 1e-100])
def test_the_largest_and_the_least_price_are_summed_exactly(cost):
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = BudgetForestClassifier(costs=[cost, cost], max_trees=4, random_state=0)
    model.fit(X, (X[:, 0] > 0) + 2 * (X[:, 1] > 0))
    assert model.path_[-1].cost == 2 * cost
    assert model.acquisition_cost(X).max() == 2 * cost


def test_a_small_difference_between_large_openings_matters():
    """The first of a panel pays for opening it; here it makes a difference of 5 which one that is."""
    names = ["a", "b"]
    costs = pd.DataFrame(
        {"feature": names, "cost": [1e10 + 5, 1e10], "group": ["g", "g"], "discount_cost": [0.0, 0.0]}
    )
    assert read_costs(costs, None, names).order_matters


@pytest.mark.parametrize("wrong", [np.nan, -5.0, 1e308, np.inf])
def test_prices_of_another_model_are_checked_again(wrong):
    good = read_costs([1.0, 2.0], None, ["a", "b"])
    changed = good._replace(cost=np.array([1.0, wrong]))
    with pytest.raises(InvalidCosts, match="cost of 'b'"):
        read_costs(changed, None, ["a", "b"])
    zero = read_costs(good._replace(discount=np.array([-0.0, 0.0])), None, ["a", "b"])
    assert not np.signbit(zero.discount).any()


def test_a_whole_number_too_large_for_a_float_is_no_price():
    with pytest.raises(InvalidCosts, match="costs must be finite"):
        read_costs([1, 10**400], None, ["a", "b"])


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            ("1.200", "950"),
            r"line 2: '1\.200' may be 1200 or 1\.2, beside numbers without '\.'; write 1200, or",
        ),
        (("950", "1,200"), "line 3: '1,200' may be 1200 or 1.2"),
        (("12.500", "7"), r"'12\.500' may be 12500 or 12\.5"),
    ],
)
def test_numbers_that_may_be_thousands_are_refused(tmp_path, cells, told):
    path = tmp_path / "prices.csv"
    path.write_text("feature;cost\n" + "".join(f"f{i};{cell}\n" for i, cell in enumerate(cells)))
    with pytest.raises(InvalidCosts, match=told):
        read_costs(path, None, ["f0", "f1"])


@pytest.mark.parametrize(
    ("cells", "prices"),
    [
        (("1.200", "7.27", "950"), [1.2, 7.27, 950]),
        (("0.125", "1.250", "3"), [0.125, 1.25, 3]),
        (("1,250", "3,500", "9,000"), [1.25, 3.5, 9]),
        (("1200", "950", "7,5"), [1200, 950, 7.5]),
    ],
)
def test_decimals_are_told_from_thousands_by_the_others(tmp_path, cells, prices):
    path = tmp_path / "prices.csv"
    path.write_text("feature;cost\n" + "".join(f"f{i};{cell}\n" for i, cell in enumerate(cells)))
    assert read_costs(path, None, ["f0", "f1", "f2"]).cost.tolist() == prices
