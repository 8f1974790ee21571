"""Every wrong input is refused, or warned of, by a message with the value, the rule and a hint."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from budgetforest import (
    BudgetForestClassifier,
    BudgetTooSmall,
    Entropy,
    InvalidData,
    InvalidParameter,
    Polynomial,
    Powers,
    ThresholdPairs,
    UnusualData,
    prune,
    save,
)
from budgetforest.selection.result import best_within, warn_of_idle

X = np.random.default_rng(0).normal(size=(120, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
SAME = np.zeros_like(X)


def fit(X=X, y=Y, *, validation=None, sample_weight=None, **parameters):
    model = BudgetForestClassifier(
        **{"method": "paper", "alpha": 0, "max_trees": 4, "random_state": 0, **parameters}
    )
    return model.fit(X, y, validation=validation, sample_weight=sample_weight)


def with_constant(*columns):
    return np.where(np.isin(np.arange(3), columns), 7.0, X)


# Rows and labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (X[:0], Y[:0], r"0 sample\(s\) .*minimum of 1 is required"),
        (pd.DataFrame(X[:0]), Y[:0], r"0 sample\(s\) .*minimum of 1 is required"),
        (X[:, :0], Y, r"0 feature\(s\) .*minimum of 1 is required"),
        (pd.DataFrame(X)[[]], Y, r"0 feature\(s\) .*minimum of 1 is required"),
        (X, Y[:50], r"inconsistent numbers of samples: \[120, 50\]"),
        (X[0], Y, "Expected 2D array, got 1D array"),
        (X, np.column_stack([Y, Y]), r"y should be a 1d array, got .* \(120, 2\)"),
        (X, X[:, 0], "Unknown label type: continuous"),
        (X, np.where(Y, 1, np.nan), "Input y contains NaN"),
        (np.where(X > 2, np.inf, X), Y, "Input X contains infinity"),
        (pd.DataFrame(np.where(X > 2, np.inf, X)), Y, "Input X contains infinity"),
    ],
)
def test_unusable_rows_are_refused(rows, labels, message):
    with pytest.raises(ValueError, match=message):
        fit(rows, labels)


def test_infinite_value_is_refused_when_predicting():
    with pytest.raises(ValueError, match="Input X contains infinity"):
        fit().predict([[0, np.inf, 0]])


def test_other_number_of_features_is_refused_when_predicting():
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
        fit().predict(X[:, :2])


def test_missing_labels_are_refused():
    with pytest.raises(InvalidData, match=r"requires y to be passed, .* y is None; give a label"):
        fit(y=None)


def test_one_class_is_refused():
    with pytest.raises(InvalidData, match=r"one class \(\['ill'\]\).*at least two classes"):
        fit(y=["ill"] * 120)


def test_one_class_of_positive_weight_is_refused():
    with pytest.raises(InvalidData, match=r"one class \(\[1\]\).*positive weight; .*two classes"):
        fit(sample_weight=Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(120) // 4, "labels of 120 rows are 30 different numbers, .*cut them into ranges"),
        ([f"p{i // 2}" for i in range(119)] + ["p"], "labels of 120 rows are 61 classes, .*right ones"),
    ],
)
def test_labels_that_may_be_no_classes_are_pointed_out(labels, message):
    with pytest.warns(UnusualData, match=message):
        fit(y=labels)


@pytest.mark.parametrize(
    "labels", [np.arange(120) // 6, np.arange(120) // 5, [f"c{i // 2}" for i in range(120)]]
)
def test_few_rows_of_a_class_are_no_reason_for_a_warning(labels, recwarn):
    model = fit(y=labels)
    assert not recwarn.list
    assert model.classes_.tolist() == np.unique(labels).tolist()


def test_very_many_numbers_are_pointed_out_however_many_rows_they_have():
    numbers = np.arange(256 * 6) % 256
    with pytest.warns(UnusualData, match="256 different numbers"):
        fit(numbers[:, None], numbers)


def test_constant_features_are_named():
    with pytest.warns(UnusualData, match="1 of 3 features are constant .*never be acquired: 'x1'"):
        model = fit(with_constant(1))
    assert not model.acquired_features(X)[:, 1].any()


def test_constant_features_of_a_frame_go_by_name():
    frame = pd.DataFrame(with_constant(0, 2), columns=["a", "b", "c"])
    with pytest.warns(UnusualData, match="2 of 3 features are constant .*: 'a', 'c'"):
        fit(frame)


def test_missing_everywhere_is_constant():
    with pytest.warns(UnusualData, match="1 of 3 features are constant .*: 'x2'"):
        fit(np.where([False, False, True], np.nan, X))


def test_all_features_constant_predicts_the_prior_at_no_cost():
    with pytest.warns(UnusualData, match="3 of 3 features are constant .*: 'x0', 'x1', 'x2'"):
        model = fit(SAME)
    assert set(model.predict(X)) == {np.bincount(Y).argmax()}
    assert not model.acquisition_cost(X).any()


@pytest.mark.filterwarnings("ignore::budgetforest.runtime.errors.BudgetTooSmall")
def test_all_features_constant_is_the_complaint_with_a_budget_too():
    with pytest.warns(UnusualData, match="3 of 3 features are constant"):
        fit(SAME, validation=(X, Y), budget=1)
    with pytest.raises(InvalidData, match=r"rows holds out none.*(constant|distinct|equal)"):
        fit(SAME, budget=1)


@pytest.mark.filterwarnings("ignore::budgetforest.runtime.errors.UnusualData")
def test_no_tree_that_splits_is_the_complaint_without_a_budget():
    with pytest.warns(UnusualData, match="no feature lowers the impurity") as caught:
        model = fit(SAME, alpha="auto", validation=(X, Y))
    assert model.n_trees_ == 0
    assert not any(warning.category is BudgetTooSmall for warning in caught)


# Validation rows -------------------------------------------------------------------------------


def test_validation_labels_must_be_known():
    with pytest.raises(InvalidData, match=r"label 2, .*not among the training classes \[0, 1\]"):
        fit(validation=(X, Y + 1))


def test_validation_labels_must_be_of_the_training_type():
    with pytest.raises(InvalidData, match=r"label '0', .*not among the training classes \[0, 1\]"):
        fit(validation=(X, Y.astype(str)))


@pytest.mark.filterwarnings("ignore:.*expected to be wrong:budgetforest.UnusualData")
def test_class_absent_from_validation_is_named():
    with pytest.warns(UnusualData, match=r"no validation row has the class 1 \(1 of 2 classes"):
        fit(validation=(X, Y * 0))


def test_class_absent_from_held_out_rows_is_named():
    labels = np.append(Y[:-1], 2)
    with pytest.warns(UnusualData, match=r"no validation row has the class 2 \(1 of 3 classes"):
        fit(y=labels, budget=2)


@pytest.mark.parametrize(("given", "kind"), [(X, "ndarray"), (5, "int"), ((X, Y, Y), "tuple")])
def test_validation_must_be_a_pair(given, kind):
    with pytest.raises(InvalidData, match=rf"validation is a {kind}; it must be a pair \(X, y\)"):
        fit(validation=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, Y[:5]), r"inconsistent numbers of samples: \[120, 5\]"),
        ((X[:0], Y[:0]), r"0 sample\(s\)"),
        ((X[:, :2], Y), "X has 2 features, but .* expecting 3"),
    ],
)
def test_unusable_validation_rows_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fit(validation=given)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2.5, float("nan"), "a third", None])
def test_validation_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(
        InvalidParameter, match=f"validation_fraction is {fraction!r}; it must lie between 0 and 1"
    ):
        fit(validation_fraction=fraction, budget=2)


def test_validation_fraction_must_hold_out_rows():
    with pytest.raises(InvalidData, match=r"=0\.001 of 120 rows holds out none, .*give more distinct rows"):
        fit(validation_fraction=0.001, budget=2)


# Parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, -0.5, float("nan"), "ten", [3], True])
def test_budget_is_positive(budget):
    shown = repr(budget).replace("[", r"\[")
    with pytest.raises(InvalidParameter, match=f"budget is {shown}; it must be a positive number"):
        fit(budget=budget)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("impurity", "'pairs', 'powers', 'entropy', 'gini'"),
        ("splitter", "random, binned, exact"),
        ("criterion", "'minimax' or 'expected'"),
        ("voting", "majority, soft, counts"),
        ("alpha", "a number, a list or 'auto'"),
    ],
)
def test_unknown_choice_lists_the_known(name, hint):
    with pytest.raises(InvalidParameter, match=f"{name}='best' is unknown; take .*{hint}"):
        fit(**{name: "best"})


@pytest.mark.parametrize("name", ["splitter", "criterion", "voting"])
@pytest.mark.parametrize("value", [None, 3, ["exact"]])
def test_choice_of_another_type_is_unknown(name, value):
    with pytest.raises(InvalidParameter, match=f"{name}=.* is unknown; take"):
        fit(**{name: value})


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), None])
def test_alpha_is_a_finite_number_from_zero_up(value):
    for given in (value, [0, value]):
        with pytest.raises(InvalidParameter, match=f"alpha is {value}; it must be a finite number"):
            fit(alpha=given)


def test_alpha_list_is_not_empty():
    with pytest.raises(InvalidParameter, match="alpha is an empty list; give at least one"):
        fit(alpha=[])


def test_alpha_must_not_contradict_the_impurity():
    with pytest.raises(
        InvalidParameter, match=r"alpha=3 contradicts impurity=ThresholdPairs\(alpha=2.*leave one"
    ):
        fit(alpha=3, impurity=ThresholdPairs(2))
    assert fit(alpha=2, impurity=ThresholdPairs(2)).alpha_ == 2


def test_alpha_of_the_impurity_object_is_checked_too():
    with pytest.raises(InvalidParameter, match="alpha is -2; it must be a finite number, zero"):
        fit(alpha="auto", impurity=Entropy(-2))


def test_alpha_without_effect_is_warned_of():
    with pytest.warns(UnusualData, match=r"alpha=3 has no effect with impurity=Powers\(l=2\)"):
        fit(alpha=3, impurity=Powers(2))


@pytest.mark.parametrize("value", [1, 0, 257, 2.5, True, "many", None])
def test_max_bins_fits_a_byte(value):
    with pytest.raises(
        InvalidParameter, match=f"max_bins is {value!r}; it must be a whole number, from 2 to 256"
    ):
        fit(max_bins=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None])
def test_max_trees_is_at_least_one(value):
    with pytest.raises(
        InvalidParameter, match=f"max_trees is {value!r}; it must be a whole number, 1 or more"
    ):
        fit(max_trees=value)


# Weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(120), "Negative values in data passed to `sample_weight`"),
        (np.ones(12), r"sample_weight.shape == \(12,\), expected \(120,\)"),
        (np.full(120, np.nan), "sample_weight contains NaN"),
        (np.full(120, np.inf), "sample_weight contains infinity"),
        (np.zeros(120), "at least one non-zero"),
        (np.full(120, 1e8), r"sample_weight sums to 1\.2e\+10, more than .* rows; .*by 1e\+08"),
    ],
)
def test_unusable_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        fit(sample_weight=weight)


def test_huge_weights_do_not_overflow():
    program = (
        "import numpy as np, budgetforest as b\n"
        "X = np.arange(40.0).reshape(20, 2); y = np.arange(20) % 2\n"
        "model = b.BudgetForestClassifier(method='paper', alpha=0, max_trees=1, bootstrap=False)\n"
        "try: print(model.fit(X, y, sample_weight=np.full(20, 3e9)).score(X, y))\n"
        "except b.InvalidData as error: print(error)\n"
    )
    # in a process of its own: an overflow in a kernel takes the process with it
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("1.0", "sample_weight"))


# Budgets that fit nothing, and other budgets -------------------------------------------------------


def test_budget_below_the_cheapest_tree_predicts_the_prior_at_no_cost():
    with pytest.warns(BudgetTooSmall, match=r"fits budget 0\.5: the cheapest costs 1 on average"):
        model = fit(budget=0.5, alpha="auto")
    assert model.n_trees_ == 0
    assert set(model.predict(X)) == {np.bincount(Y).argmax()}
    assert np.allclose(model.predict_proba(X), np.bincount(Y) / len(Y), atol=0.02)
    assert not model.acquisition_cost(X).any()
    assert not model.acquired_features(X).any()
    assert model.path_ == []
    assert model.certificates_ == []


def test_forest_of_no_trees_looks_like_any_other():
    with pytest.warns(BudgetTooSmall):
        model = fit(budget=0.5)
    assert model.feature_importances_.tolist() == [0, 0, 0]
    assert model.feature_importances_.dtype == np.float64
    assert len(model.trees_to_dataframe()) == 0
    assert list(model.trees_to_dataframe()) == list(fit().trees_to_dataframe())


def test_cheapest_cost_is_a_budget_that_fits():
    with pytest.warns(BudgetTooSmall) as caught:
        fit(budget=0.5, costs=[3, 3, 3])
    cheapest = float(str(caught[0].message).split("costs ")[1].split(" on")[0])
    assert fit(budget=cheapest * (1 + 1e-5), costs=[3, 3, 3]).n_trees_ >= 1


def test_smaller_budget_warns_when_nothing_fits():
    model = fit(budget=3)
    with pytest.warns(BudgetTooSmall, match=r"fits budget 0\.25: the cheapest costs"):
        assert model.at_budget(0.25).n_trees_ == 0


def test_larger_budget_than_trained_for_is_refused():
    with pytest.raises(InvalidParameter, match=r"budget 4 is larger than 3\.0, .*train again"):
        fit(budget=3).at_budget(4)


@pytest.mark.parametrize("budget", [-1, float("nan"), "ten"])
def test_other_budget_is_positive_too(budget):
    with pytest.raises(InvalidParameter, match=f"budget is {budget!r}; it must be a positive"):
        fit(budget=3).at_budget(budget)


def test_other_budget_needs_validation_rows():
    with pytest.raises(InvalidParameter, match=r"without validation rows, .*train with a budget"):
        fit().at_budget(1)


def test_other_budget_needs_a_fitted_forest():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        BudgetForestClassifier().at_budget(1)


# Impurities ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([], "needs at least one term"),
        ([3], r"term 3 is not \(gamma, \(p_1, \.\.\., p_k\)\)"),
        ([(1,)], r"term \(1,\) is not \(gamma"),
        ([("a", (1, 1))], r"term \('a', \(1, 1\)\) is not \(gamma"),
        ([(1, (1, 1, 1))], r"\(1, \(1, 1, 1\)\) has 3 exponents; there are 2 classes"),
        ([(-1, (1, 1))], r"\(-1, \(1, 1\)\) is not admissible: gamma must be zero or more"),
        ([(float("nan"), (1, 1))], r"\(nan, \(1, 1\)\) is not admissible: gamma must be"),
        ([(1, (2, 0))], r"\(1, \(2, 0\)\) is not admissible: .*at least two of them positive"),
        ([(1, (2, -1))], r"\(1, \(2, -1\)\) is not admissible: .*zero or more"),
        ([(1, (1.5, 1))], r"\(1, \(1\.5, 1\)\) is not .*whole exponents"),
    ],
)
def test_malformed_polynomial_is_refused(terms, message):
    for given in (terms, Polynomial(terms)):
        with pytest.raises(InvalidParameter, match=message):
            fit(impurity=given)


@pytest.mark.parametrize("power", [1, 0, -2, 2.5, "two"])
def test_powers_are_whole_from_two_up(power):
    with pytest.raises(InvalidParameter, match=f"l={power!r}; it must be a whole number, 2 up"):
        fit(impurity=Powers(power))


def test_impurity_of_another_type_is_refused():
    with pytest.raises(InvalidParameter, match="impurity=5 is of type int; take a name"):
        fit(impurity=5)


def reads_a_file(n):
    return open(str(n))


def is_text(n):
    return "mixed"


def takes_two(n, m):
    return n[0] * m[0]


@pytest.mark.parametrize("function", [reads_a_file, is_text, takes_two])
def test_impurity_function_must_compile(function):
    with pytest.raises(InvalidParameter, match=f"'{function.__name__}' does not compile with numba"):
        fit(impurity=function)


def nowhere_defined(n):
    return np.nan


def undefined_on_pure_rows(n):
    return -(n * np.log(n)).sum()


def below_zero(n):
    return -1.0


def test_impurity_function_must_be_finite():
    with pytest.raises(InvalidParameter, match="'nowhere_defined' is nan for the class counts"):
        fit(impurity=nowhere_defined)


def test_impurity_function_must_be_finite_on_pure_rows():
    with pytest.raises(InvalidParameter, match="'undefined_on_pure_rows' is nan"):
        fit(impurity=undefined_on_pure_rows)


def test_impurity_function_must_not_be_negative():
    with pytest.raises(InvalidParameter, match=r"'below_zero' is -1\.0"):
        fit(impurity=below_zero)


@pytest.mark.parametrize("method", ["auto", "paper"])
@pytest.mark.parametrize(
    "given", [{"sample_weight": np.full(20, 1e308)}, {"class_weight": {0: 1e308, 1: 1e308}}], ids=str
)
def test_weights_whose_sum_is_no_number_are_refused(method, given):
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    model = BudgetForestClassifier(method=method, class_weight=given.get("class_weight"))
    with pytest.raises(InvalidData, match=r"sample_weight sums to inf, .* divide the weights by their mean"):
        model.fit(X, y, sample_weight=given.get("sample_weight"))


@pytest.mark.parametrize("method", ["auto", "paper"])
def test_weights_next_to_nothing_are_refused(method):
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    with pytest.raises(InvalidData, match="too little to be told from nothing"):
        BudgetForestClassifier(method=method).fit(X, y, sample_weight=np.full(20, 1e-310))


@pytest.mark.parametrize("name", ["alpha", "rate", "max_features", "max_disagreement"])
def test_whole_numbers_too_large_for_a_float_are_refused(name):
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    method = "paper" if name == "alpha" else "auto"
    with pytest.raises(InvalidParameter, match=name):
        BudgetForestClassifier(method=method, **{name: 10**400}).fit(X, y)


def test_a_budget_too_large_for_a_float_is_no_limit():
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    model = BudgetForestClassifier(10**400, method="paper", alpha=0, max_trees=1).fit(X, y)
    assert model.predict_one(lambda feature: 3.0, limit=10**400).spent == 1


def test_warnings_point_at_the_line_of_the_caller():
    X = np.random.default_rng(0).random((200, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model = BudgetForestClassifier(method="paper", alpha=0, budget=2, confidence=0.5, max_trees=2)
    with pytest.warns(UnusualData) as caught:
        model.fit(np.c_[X, np.ones(200)], y)
    assert len(caught) == 2  # an idle parameter, a constant column
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(BudgetTooSmall) as caught:
        model.at_budget(0.1)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_budget_of_nothing_pays_nothing():
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(budget=3, max_trees=5, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free = model.at_budget(0)
    assert not free.acquisition_cost(X).any()
    assert len(set(free.predict(X))) == 1
    assert model.at_budget(model.path_[0].cost).acquisition_cost(X).mean() <= 3


def test_weak_models_of_the_default_are_not_told_to_take_the_default():
    X, y = load_wine(return_X_y=True)
    trained = BudgetForestClassifier(budget=3, max_trees=2, random_state=0).fit(X, y)._trained
    hopeless = trained._replace(prior_error=0.0)  # as if all rows were of one class
    with pytest.warns(UnusualData, match="most common class: raise the budget, or give more rows"):
        warn_of_idle(hopeless, 3, best_within(hopeless, 3))


def test_two_columns_of_one_name_are_refused():
    X = pd.DataFrame(np.zeros((4, 3)), columns=["a", "b", "a"])
    with pytest.raises(InvalidData, match="X has two columns 'a'; every feature needs a name of its own"):
        BudgetForestClassifier().fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib"])
def test_a_model_is_not_saved_as_a_pickle(tmp_path, ending):
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"a model file is no pickle: name it 'm\.safetensors'"):
        save(model, tmp_path / f"m{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", [None, LogisticRegression(), GradientBoostingClassifier(), "forest"])
def test_prune_names_the_models_it_knows(model):
    with pytest.raises(
        InvalidParameter, match=r"the model is a \w+; it must be a RandomForestClassifier, an"
    ):
        prune(model, [[0.0]], [0], budget=1)


def test_boosted_trees_show_scores_and_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = BudgetForestClassifier(budget=4, random_state=0, max_trees=20).fit(X, y)
    boosted = [point for point in model.path_ if point.recipe.scores]
    assert boosted
    table = model.at_budget(boosted[-1].cost).trees_to_dataframe()
    assert table["risk"].isna().all()
    assert table["impurity"].isna().all()
    assert "counts" not in table
    assert (table.groupby("tree")["rows"].max() > 0).all()
    assert table["rows"].notna().all()


def test_noise_needs_no_larger_budget():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 6)), (rng.random(400) < 0.2).astype(int)
    model = BudgetForestClassifier(method="auto", max_trees=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    told = r"no forest that fits budget .* is expected to be better than the most common class"
    trained = model._trained._replace(path=[])
    with pytest.warns(UnusualData, match=told):
        warn_of_idle(trained, 100, None)
