"""A model file: what is loaded answers as what was saved, whatever happens on the way."""

import json
import math
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from budgetforest import (
    BudgetForestClassifier,
    InvalidData,
    InvalidParameter,
    Model,
    NewerModelFile,
    NotAModelFile,
    __version__,
    load,
    save,
)
from budgetforest.runtime.atomic import replacing
from budgetforest.storage import container, modelfile
from saved import KINDS, budgets, forged, later_rows, source_of, table, trained
from trees import labelled_rows

HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_warnings_of_small_models():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="budgetforest")
        warnings.simplefilter("ignore", UserWarning)
        yield


def saved(model, folder):
    save(model, folder / "model.safetensors")
    return folder / "model.safetensors"


def assert_same_answers(before, after, X):
    assert np.array_equal(before.predict(X), after.predict(X))
    assert np.array_equal(before.predict_proba(X), after.predict_proba(X))
    for answer in ("label", "proba"):
        cost = before.acquisition_cost(X, answer=answer)
        assert np.array_equal(cost, after.acquisition_cost(X, answer=answer))
        paid = before.acquired_features(X, answer=answer)
        assert np.array_equal(paid, after.acquired_features(X, answer=answer))


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_answers_as_before_at_every_budget(kind, tmp_path):
    before, X = trained(kind), later_rows()
    after = load(saved(before, tmp_path))
    assert isinstance(after, Model)
    assert_same_answers(before, after, X)
    assert after.path_ == before.path_ or math.isnan(before.path_[-1].cost)
    for budget in budgets(before):
        assert_same_answers(before.at_budget(budget), after.at_budget(budget), X)
        assert after.at_budget(budget).path_ == before.at_budget(budget).path_


@pytest.mark.parametrize("kind", KINDS)
def test_single_rows_are_decided_as_before(kind, tmp_path):
    before, X = trained(kind), later_rows()
    after = load(saved(before, tmp_path))
    for _, row in X[::30].iterrows():
        decision = after.predict_one(source_of(row))
        assert decision == before.predict_one(source_of(row))
        assert type(decision.label) is type(before.classes_.tolist()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_about_a_model_is_kept(kind, tmp_path):
    before = trained(kind)
    after = load(saved(before, tmp_path))
    assert after.classes_.tolist() == before.classes_.tolist()
    assert after.feature_names_in_.tolist() == before.feature_names_in_.tolist()
    assert after.n_features_in_ == before.n_features_in_
    assert after.n_trees_ == before.n_trees_
    assert after.budget == before.budget
    assert after.training_ == before.training_
    assert after.training_["parameters"]["method"] == before.method
    assert after.training_["rows"] + after.training_["validation_rows"] == len(table()[0])
    for old, new in zip(before.costs_, after.costs_, strict=True):
        assert np.array_equal(old, new)
    assert np.array_equal(before.certificates_, after.certificates_, equal_nan=True)
    assert before.trees_to_dataframe().equals(after.trees_to_dataframe())
    assert np.array_equal(before.feature_importances_, after.feature_importances_)


def test_a_loaded_model_can_be_saved_again_to_the_same_bytes(tmp_path):
    path = saved(trained("auto"), tmp_path)
    save(load(path), tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_model_at_a_smaller_budget_keeps_the_larger_ones(tmp_path):
    before, X = trained("paper"), later_rows()
    small = min(budgets(before))
    after = load(saved(before.at_budget(small), tmp_path))
    assert after.budget == small
    assert_same_answers(before.at_budget(small), after, X)
    assert_same_answers(before, after.at_budget(20), X)
    with pytest.raises(InvalidParameter, match=r"larger than 20\.0"):
        after.at_budget(21)


@pytest.mark.parametrize("kind", ["auto", "paper"])
def test_budgets_can_be_taken_down_and_up_again(kind):
    model, X = trained(kind), later_rows()
    low, *_, high = budgets(model)
    assert_same_answers(model.at_budget(low).at_budget(high), model.at_budget(high), X)


def test_a_model_that_fits_no_file_is_refused_before_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "LONGEST_HEADER", 100)
    with pytest.raises(InvalidData, match="train with fewer categories or trees"):
        save(trained("auto"), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@given(labelled_rows(missing=True), st.sampled_from(["label", "proba"]), st.booleans())
def test_any_small_forest_survives(tmp_path, quiet, rows, answer, nominal):
    X, y = rows
    model = BudgetForestClassifier(
        method="paper",
        alpha=0.0,
        max_trees=3,
        answer=answer,
        categorical_features=[0] if nominal else None,
        random_state=0,
    ).fit(X, y)
    assert_same_answers(model, load(saved(model, tmp_path)), X)


def test_a_forest_of_nothing_survives(tmp_path, quiet):
    """Where no feature tells anything no forest is measured."""
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    model = BudgetForestClassifier(1, method="paper", random_state=0).fit(X, y, validation=(X, y))
    assert not [point for candidate in model._trained.candidates for point in candidate.points]
    assert_same_answers(model, load(saved(model, tmp_path)), X)


def test_rows_come_as_any_table_and_wrong_ones_are_refused(tmp_path):
    model, X = load(saved(trained("auto"), tmp_path)), later_rows()
    labels = model.predict(X)
    assert np.array_equal(labels, model.predict(pl.from_pandas(X)))
    assert np.array_equal(labels, model.predict(X.to_numpy(dtype=object)))
    assert model.score(X, labels) == 1
    with pytest.raises(InvalidData, match=r"'colour' stands where 'mri' was.*order"):
        model.predict(X[["age", "blood", "ecg", "colour", "mri", "ward"]])
    with pytest.raises(InvalidData, match=r"'bloud' stands where 'blood' was.*did you mean 'blood'"):
        model.predict(X.rename(columns={"blood": "bloud"}))
    with pytest.raises(InvalidData, match=r"shape \(300, 5\).*6 features"):
        model.predict(X.drop(columns="age"))
    with pytest.raises(InvalidData, match=r"'age' holds an infinite value"):
        model.predict(X.replace({"age": {X["age"].dropna().iloc[0]: np.inf}}))
    with pytest.raises(InvalidData, match="numeric feature 'age'"):
        model.predict(X.assign(age="old").to_numpy(dtype=object))
    with pytest.raises(InvalidData, match="not computed yet"):
        model.predict(pl.from_pandas(X).lazy())


def test_plain_arrays_are_checked_too(tmp_path, quiet):
    X = np.random.default_rng(0).normal(size=(60, 2))
    fitted = BudgetForestClassifier(method="paper", alpha=0, max_trees=2).fit(X, X[:, 0] > 0)
    model = load(saved(fitted, tmp_path))
    assert np.array_equal(model.predict(X.tolist()), fitted.predict(X))
    whole = X.round().astype(int)
    assert np.array_equal(model.predict(whole), fitted.predict(whole))
    with pytest.raises(InvalidData, match="holds what is no number"):
        model.predict([["a", "b"]])
    with pytest.raises(InvalidData, match="array of complex128"):
        model.predict(X * 1j)
    assert "2 trees, 2 features, 2 classes" in repr(model)


def test_bulk_decisions_are_those_of_the_table(tmp_path):
    model, X = load(saved(trained("paper"), tmp_path)), later_rows().replace("purple", "red")
    done = model.predict_from(lambda feature, rows: X[feature].iloc[rows].tolist(), range(len(X)))
    assert np.array_equal(done.labels, model.predict(X))
    assert np.array_equal(done.acquired, model.acquired_features(X))


def test_the_file_is_plain_safetensors_with_a_readable_document(tmp_path):
    path = saved(trained("auto"), tmp_path)
    with safe_open(path, "numpy") as file:
        assert set(file.keys()) == set(modelfile.ARRAYS)
        document = json.loads(file.metadata()["budgetforest"])
        assert np.array_equal(file.get_tensor("cost"), trained("auto").costs_.cost)
    assert document["protocol"] == modelfile.PROTOCOL
    assert document["version"] == __version__
    assert document["features"][4] == {"name": "colour", "categories": ["blue", "green", "rare", "red"]}
    assert document["groups"] == ["age", "draw", "mri", "colour", "ward"]


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_models_of_every_protocol_stay_readable(protocol):
    """Of protocol 1 the labels; what rows pay until then follows the rule of today."""
    told = json.loads((HERE / "models" / f"protocol{protocol}.json").read_text())
    model = load(HERE / "models" / f"protocol{protocol}.safetensors")
    for row, label, spent in zip(told["rows"], told["labels"], told["spent"], strict=True):
        decision = model.predict_one(lambda name, row=row: None if row[name] == "purple" else row[name])
        assert decision.label == label
        assert decision.spent == spent or protocol == 1


def test_a_file_tells_the_error_to_expect_and_the_rows_of_training(tmp_path):
    model, again = trained("auto"), load(saved(trained("auto"), tmp_path))
    assert str(again.summary()) == str(model.summary())
    assert again.summary().classes
    assert [point[3:7] for point in again.path_] == [point[3:7] for point in model.path_]
    assert again.feature_ranges_ == model.feature_ranges_
    assert np.array_equal(again._trained.seen.sketch, model._trained.seen.sketch)


def test_a_file_of_an_older_protocol_knows_no_error_to_expect():
    model = load(HERE / "models" / "protocol2.safetensors")
    assert model.summary().verdict is None
    assert model.feature_ranges_ == {}
    assert "unknown" in str(model.summary())


def test_the_estimator_still_pickles_clones_and_refits(tmp_path):
    model, X = trained("paper"), later_rows()
    again = pickle.loads(pickle.dumps(model))
    assert_same_answers(model, again, X)
    save(again, tmp_path / "model")
    assert clone(model).get_params()["budget"] == 20
    assert_same_answers(model, pickle.loads(pickle.dumps(load(tmp_path / "model"))), X)


def test_what_cannot_be_saved_is_refused(tmp_path, quiet):
    path = tmp_path / "model"
    with pytest.raises(InvalidParameter, match="model is a dict"):
        save({}, path)
    with pytest.raises(NotFittedError):
        save(BudgetForestClassifier(), path)
    X, days = np.arange(20.0)[:, None], np.repeat(np.array(["2020-01-01", "2020-01-02"], "M8[D]"), 10)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1).fit(X, days)
    with pytest.raises(InvalidData, match=r"the classes contain .*a date.*turn the others into text"):
        save(model, path)
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(NotAModelFile, match="no file with content"):
        load(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = saved(trained("paper"), tmp_path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr(container.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(trained("auto"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed_and_permissions_are_ordinary(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "model"
    link.symlink_to(tmp_path / "real" / "model")
    save(trained("auto"), link)
    assert link.is_symlink()
    (tmp_path / "plain").touch()
    assert (tmp_path / "real" / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_newer_protocol_says_to_upgrade(tmp_path):
    path = saved(trained("auto"), tmp_path)
    arrays, document = container.read(path, lambda document: modelfile.ARRAYS)
    path.write_bytes(forged({"news": arrays["cost"]}, document | {"protocol": 6, "version": "9.1"}))
    with pytest.raises(NewerModelFile, match=r"version '9\.1' wrote it in protocol 6.*pip install --upgrade"):
        load(path)


SAVE_FOREVER = """
import sys
from budgetforest import load, save
models = [load(path) for path in sys.argv[2:]]
print("ready", flush=True)
while True:
    for model in models:
        save(model, sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new(tmp_path):
    paths = [tmp_path / "small", tmp_path / "large"]
    for path, kind in zip(paths, ["paper", "auto"], strict=True):
        save(trained(kind), path)
    whole = [path.read_bytes() for path in paths]
    target = tmp_path / "model"
    target.write_bytes(whole[0])
    chance = random.Random(0)
    for _ in range(int(os.environ.get("KILLS", "6"))):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOREVER, target, *paths], stdout=subprocess.PIPE, text=True
        )
        with saver:
            assert saver.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                saver.wait(chance.random() / 20)
            saver.send_signal(signal.SIGKILL)
        assert target.read_bytes() in whole
        assert load(target).n_features_in_ == 6


def test_loading_and_deciding_imports_nothing_heavy(tmp_path):
    path = saved(trained("auto"), tmp_path)
    code = (
        "import sys; from budgetforest import load\n"
        f"model = load({str(path)!r}); model.predict_one(lambda feature: None); next(model.acquire())\n"
        "heavy = ('numba', 'sklearn', 'scipy', 'pandas', 'narwhals', 'joblib', 'asyncio')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_that_is_replaced_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "model"
    path.touch()
    path.chmod(mode)
    save(trained("paper"), path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["model"]


def test_a_name_that_no_file_can_hold_is_refused_by_save(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1, groups=["\ud800"]).fit(X, y)
    with pytest.raises(InvalidData, match="the model cannot be saved"):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_a_file_is_the_writers_alone_until_it_is_complete(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"")
    path.chmod(0o644)
    with replacing(path) as beside:
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    if os.getuid() == 0:
        os.chown(path, 12345, 12345)
        save(trained("paper"), path)
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)
