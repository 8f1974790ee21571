"""Hundreds of classes: counts of classes fit no byte, whoever counts them."""

import csv
import json
from functools import cache

import dask.array as da
import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

import budgetforest.dask
from budgetforest import BudgetForestClassifier, load, save, to_json, to_onnx
from budgetforest.cli import main
from oracle import decide, read

pytestmark = pytest.mark.usefixtures("quiet")

NUMBERS = [127, 128, 150, 255, 256, 300]
METHODS = ["paper", "auto"]


def rows_of(k):
    """Two digits of the class, each told by a feature, and a third feature that tells nothing."""
    label = np.repeat(np.arange(k), 6)
    rng = np.random.default_rng(k)
    X = np.stack([label // 18, label % 18, rng.integers(0, 3, len(label))], axis=1).astype(float)
    return X, label


def untrained(method):
    few = {"alpha": 0.0} if method == "paper" else {}
    return BudgetForestClassifier(3, method=method, max_trees=3, random_state=0, **few)


@cache
def trained(k, method):
    return untrained(method).fit(*rows_of(k))


@pytest.fixture(scope="module")
def client():
    size = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**size) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", NUMBERS)
def test_every_driver_tells_the_classes_apart(k, method, tmp_path):
    X, y = rows_of(k)
    model = trained(k, method)
    assert model.score(X, y) > 0.9
    assert model.acquisition_cost(X).mean() >= 1
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    forest = read(json.loads(to_json(again)))
    bulk = again.predict_from(lambda feature, rows: X[rows, int(feature[1:])], range(len(X)))
    np.testing.assert_array_equal(bulk.labels, model.predict(X))
    np.testing.assert_array_equal(bulk.spent, model.acquisition_cost(X))
    for i in range(0, len(X), len(X) // 5):
        row = {f"x{j}": value for j, value in enumerate(X[i])}
        one = again.predict_one(row.__getitem__)
        told = decide(forest, row)
        assert (one.label, one.spent, one.certain) == (bulk.labels[i], bulk.spent[i], bulk.certain[i])
        assert (told.label, told.spent, told.settled) == (one.label, one.spent, one.certain)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", NUMBERS)
def test_onnxruntime_agrees(k, method):
    X, _ = rows_of(k)
    model = trained(k, method)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    labels, shares = session.run(None, {"X": X})
    np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(labels, model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", NUMBERS)
def test_the_command_line_agrees(k, method, tmp_path):
    X, _ = rows_of(k)
    save(trained(k, method), tmp_path / "model.safetensors")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="x0,x1,x2", comments="", fmt="%g")
    arguments = ["predict", str(tmp_path / "model.safetensors"), str(tmp_path / "rows.csv")]
    ran = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "answers.csv")])
    assert ran.exit_code == 0, ran.output
    with open(tmp_path / "answers.csv", newline="") as file:
        answers = list(csv.DictReader(file))
    assert [int(answer["label"]) for answer in answers] == trained(k, method).predict(X).tolist()
    assert [float(answer["cost"]) for answer in answers] == trained(k, method).acquisition_cost(X).tolist()


@pytest.mark.parametrize(("method", "spread"), [("paper", "rows"), ("paper", "trees"), ("auto", "trees")])
@pytest.mark.parametrize("k", NUMBERS)
def test_a_cluster_grows_the_same_forest(k, method, spread, client):
    X, y = rows_of(k)
    blocks = (da.from_array(X, chunks=(len(X) // 2, 3)), da.from_array(y, chunks=len(X) // 2))
    there = budgetforest.dask.fit(untrained(method), *blocks, client=client, spread=spread)
    for mine, its in zip(trained(k, method).forest_.nodes, there.forest_.nodes, strict=True):
        np.testing.assert_array_equal(mine, its)
