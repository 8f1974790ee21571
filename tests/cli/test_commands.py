"""The command line, as a person or a script uses it."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import budgetforest
from budgetforest import BudgetForestClassifier, save
from budgetforest.cli import COMMANDS, main
from budgetforest.data.costs import PRICE_COLUMNS
from budgetforest.files import piped
from budgetforest.files.piped import Piped
from budgetforest.storage.modelfile import read_result
from budgetforest.trees.text import tree_lines

N = 300
TRAIN = ("--target", "state", "--drop", "id", "--max-trees", "3", "--method", "paper", "--budget", "3")
TRAIN += ("--force",)  # some write the same file twice


def patients(seed, rows=N):
    """A CSV whose labels follow from mri, pressure and sex."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, rows)
    pressure = rng.normal(130, 20, rows).round(1)
    mri = rng.normal(0, 1, rows).round(3)
    sex = rng.choice(["f", "m"], rows)
    ill = mri + 0.02 * (pressure - 130) + 0.5 * (sex == "m") + rng.normal(0, 0.2, rows) > 0.3
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "age", "pressure", "mri", "sex", "state"])
    for i in range(rows):
        shown = pressure[i] if rng.random() > 0.05 else "NA"
        writer.writerow([f"p{i}", age[i], shown, mri[i], sex[i], "ill" if ill[i] else "well"])
    return text.getvalue()


def run(*arguments, **options):
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False, **options)


def ok(*arguments, **options):
    done = run(*arguments, **options)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train and test rows, a filled price list, and a model."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "train.csv").write_text(patients(0))
    (folder / "test.csv").write_text(patients(1))
    (folder / "few.csv").write_text(patients(2, 40))
    (folder / "cost.csv").write_text(patients(1).replace("id,", "cost,", 1))
    template = ("costs", "template", folder / "train.csv", "--target", "state", "--drop", "id")
    ok(*template, "--out", folder / "costs.csv")
    prices = (folder / "costs.csv").read_text().replace("mri,1", "mri,40")
    (folder / "costs.csv").write_text(prices)
    summary = json.loads(
        ok(
            *("train", folder / "train.csv", "--target", "state", "--drop", "id", "--budget", "20", "--json"),
            *("--costs", folder / "costs.csv", "--out", folder / "model.safetensors", "--max-trees", "20"),
        )
    )
    assert summary["mean_cost"] <= 20
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return budgetforest.load(folder / "model.safetensors")


def test_template_lists_every_feature_once(folder):
    lines = list(csv.DictReader((folder / "costs.csv").read_text().splitlines()))
    assert tuple(lines[0]) == PRICE_COLUMNS
    assert [line["feature"] for line in lines] == ["age", "pressure", "mri", "sex"]
    as_json = json.loads(ok("costs", "template", folder / "train.csv", "--target", "state", "--json"))
    assert as_json[0] == {"feature": "id", "cost": 1, "group": None, "discount_cost": None}


def test_the_model_knows_prices_categories_and_target(model):
    schema = model.forest_.schema
    assert schema.names == ("age", "pressure", "mri", "sex")
    assert schema.categories == (None, None, None, ("f", "m"))
    assert schema.target == "state"
    assert model.costs_.cost.tolist() == [1, 1, 40, 1]


def rows_for(model, text):
    """The rows of a CSV as the estimator takes them from Python."""
    pd = pytest.importorskip("pandas")
    return pd.read_csv(io.StringIO(text), na_values=["NA"])[list(model.forest_.schema.names)]


@pytest.mark.parametrize("pipe", [False, True])
def test_predict_is_what_python_predicts(folder, model, monkeypatch, pipe):
    monkeypatch.setattr(piped, "CHUNK", 1000)
    given = {"input": (folder / "test.csv").read_bytes()} if pipe else {}
    data = "-" if pipe else folder / "test.csv"
    out = ok("predict", folder / "model.safetensors", data, "--keep", "id", **given)
    lines = list(csv.DictReader(io.StringIO(out)))
    X = rows_for(model, patients(1))
    assert [line["id"] for line in lines] == [f"p{i}" for i in range(N)]
    assert [line["label"] for line in lines] == model.predict(X).tolist()
    assert np.allclose([float(line["cost"]) for line in lines], model.acquisition_cost(X))
    names = np.array(model.forest_.schema.names)
    paid = [";".join(names[flags]) for flags in model.acquired_features(X)]
    assert [line["acquired"] for line in lines] == paid
    for line, row in list(zip(lines, X.to_dict("records"), strict=True))[:20]:
        belief = model.predict_one(lambda name, row=row: row[name]).belief
        shares = [float(line["proba_ill"]), float(line["proba_well"])]
        assert np.allclose(shares, belief, rtol=0, atol=5e-7)  # six decimals are written


def test_kept_cells_are_quoted_as_they_were(folder, tmp_path):
    odd = ["a,b", '"quoted"', "two\nlines", "", "plain", "ünï"]
    lines = patients(1, len(odd)).splitlines()
    for i, text in enumerate(odd):
        cell = '"' + text.replace('"', '""') + '"'
        lines[i + 1] = lines[i + 1].replace(f"p{i},", f"{cell},", 1)
    (tmp_path / "odd.csv").write_text("\n".join(lines), encoding="utf-8")
    out = ok("predict", folder / "model.safetensors", tmp_path / "odd.csv", "--keep", "id")
    assert [line["id"] for line in csv.DictReader(io.StringIO(out, newline=""))] == odd


def test_predict_for_probabilities_pays_for_all_of_them(folder, model):
    out = ok("predict", folder / "model.safetensors", folder / "test.csv", "--answer", "proba", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    X = rows_for(model, patients(1))
    told = [line["proba_ill"] for line in lines]
    assert np.allclose(told, model.predict_proba(X)[:, 0], atol=1e-6)  # six digits are written
    assert np.allclose([line["cost"] for line in lines], model.acquisition_cost(X, answer="proba"))
    assert isinstance(lines[0]["acquired"], list)


def test_a_smaller_budget_from_the_same_model(folder, model):
    out = ok("predict", folder / "model.safetensors", folder / "test.csv", "--budget", "3")
    costs = [float(line["cost"]) for line in csv.DictReader(io.StringIO(out))]
    assert np.allclose(costs, model.at_budget(3).acquisition_cost(rows_for(model, patients(1))))


def test_predict_writes_parquet_and_reads_it_again(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow_csv = pytest.importorskip("pyarrow.csv")
    parquet.write_table(pyarrow_csv.read_csv(folder / "test.csv"), folder / "test.parquet")
    from_csv = ok("predict", folder / "model.safetensors", folder / "test.csv")
    assert ok("predict", folder / "model.safetensors", folder / "test.parquet") == from_csv
    ok("predict", folder / "model.safetensors", folder / "test.csv", "--out", folder / "answers.parquet")
    written = parquet.read_table(folder / "answers.parquet").to_pydict()
    assert written["label"] == [line["label"] for line in csv.DictReader(io.StringIO(from_csv))]


def test_a_mismatch_ends_with_code_1_and_no_file(tmp_path):
    bad = patients(1).splitlines()
    bad[7] = bad[7].replace(",m,", ",x,").replace(",f,", ",x,")
    (tmp_path / "bad.csv").write_text("\n".join(bad))
    out, model = tmp_path / "answers.csv", tmp_path / "all.safetensors"
    header, *lines = patients(0).splitlines()
    told = (line.rpartition(",")[0] + (",ill" if ",m," in line else ",well") for line in lines)
    (tmp_path / "train.csv").write_text("\n".join([header, *told]))
    ok("train", tmp_path / "train.csv", *TRAIN, "--out", model)  # it asks for sex, which tells all
    done = run("predict", model, tmp_path / "bad.csv", "--out", out)
    assert done.exit_code == 1
    assert "line 8: 'sex' is 'x'" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv", "train.csv", model.name}
    done = run("predict", model, tmp_path / "bad.csv", "--out", out, "--unseen-as-missing")
    note, wrote = done.stderr.splitlines()
    assert note.startswith(f"note: 1 of {N} rows lacked a value that they asked for, most often 'sex' (1);")
    assert (done.stdout, wrote) == ("", f"wrote {out}")
    assert out.read_text().count("\n") == N + 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["predict", "model.safetensors"], 2, "either a file DATA or a query"),
        (["predict", "absent.safetensors", "test.csv"], 2, "does not exist"),
        (["predict", "model.safetensors", "test.csv", "--from", "a.duckdb"], 2, "say with --sql"),
        (["train", "train.csv"], 2, "Missing option '--target'"),
        (["train", "-", "--target", "state"], 2, "name that of the model with --out"),
        (["predict", "model.safetensors", "cost.csv", "--keep", "cost"], 1, "a column of the answers"),
        (["train", "train.csv", "--target", "states"], 1, "did you mean 'state'"),
        (
            ["train", "train.csv", "--target", "state", "--drop", "id", "--budget", "-1"],
            2,
            "not in the range x>0",
        ),
        (["train", "train.csv", "--target", "state"], 1, "'id' has more than 255 categories"),
        (["show", "train.csv"], 1, "cannot be loaded"),
        (["show", "model.safetensors", "--tree", "999"], 1, "the trees 1 to"),
        (["show", "model.safetensors", "--budget", "99"], 1, "larger than 20"),
        (
            ["predict", "model.safetensors", "costs.csv"],
            1,
            "costs.csv: there is no column 'pressure'",
        ),
        (["train", "few.csv", "--target", "state", "--costs", "costs.csv"], 1, "no features with --drop"),
        (["curve", "model.safetensors", "test.csv", "--target", "age"], 1, "'age' is '"),
        (["acquire", "model.safetensors", "--known", "age"], 1, "FEATURE=VALUE"),
        (["acquire", "model.safetensors", "--known", "age=inf"], 1, "a finite number, or unknown"),
        (["acquire", "model.safetensors", "--limit", "-1"], 2, "not in the range x>=0"),
        (
            ["curve", "model.safetensors", "test.csv", "--plot", "c.txt"],
            2,
            "must end in .png or .svg or .pdf",
        ),
        (["acquire", "model.safetensors", "--known", "agee=1"], 1, "did you mean 'age'"),
        (["train", "train.csv", "--target", "state", "--out", "no/m"], 2, "make the folder 'no'"),
        (["export", "model.safetensors", "--out", "m.pmml"], 2, "'m.pmml' must end in .json or .onnx"),
        (["predict", "model.safetensors", "test.csv", "--out", "a.xlsx"], 2, "'a.xlsx' must end in .csv or"),
        (
            ["predict", "model.safetensors", "test.csv", "--out", "a.jsonl"],
            2,
            "'a.jsonl' must end in .csv or",
        ),
        (
            ["predict", "model.safetensors", "test.csv", "--json", "--out", "a.parquet"],
            2,
            "'a.parquet' must end in .jsonl or",
        ),
        (
            ["report", "model.safetensors", "test.csv", "--out", "r.pdf"],
            2,
            "'r.pdf' must end in .html or .htm, or have no ending.",
        ),
        (["train", "train.csv", "--target", "state", "--out", "m.pkl"], 2, "must end in .safetensors, or"),
        (["costs", "template", "train.csv", "--out", "costs.xlsx"], 2, "'costs.xlsx' must end in .csv or"),
        (["report", "model.safetensors", "test.csv", "--out", "no/r.html"], 2, "make the folder 'no'"),
    ],
)
def test_exit_codes_and_reasons(folder, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    done = run(*arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert sorted(folder.iterdir()) == before


PYTHON = re.compile(r"\w=|\bNone\b|\b[a-z]+_[a-z]+|\bX\b|Traceback|\bfit\b")
"""What someone who types options should not have to read."""


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--confidence", "0.9"], 0, "--confidence 0.9: without effect unless --max-disagreement is given"),
        (
            ["--confidence", "0.9", "--method", "paper"],
            0,
            "--confidence 0.9: without effect on --method paper; take --method auto",
        ),
        (["--no-refit", "--method", "paper"], 0, "--no-refit: without effect on --method paper"),
        (["--max-disagreement", "0.001"], 0, "--max-disagreement 0.001 at confidence 0.95 cannot be shown"),
        (["--answer", "proba", "--max-disagreement", "0.1"], 0, "take --answer label"),
        (["--budget", "nan"], 2, "'nan' is not a number"),
        (["--max-disagreement", "nan"], 2, "'nan' is not a number"),
        (["--confidence", "nan"], 2, "'nan' is not a number"),
        (["--jobs", "0"], 2, "take -1 for all cores"),
        (["--seed", "-1"], 2, "0<=x<=4294967295"),
        (["--target", "mri"], 1, "cut what is measured into ranges"),
        (["--target", "age"], 0, "note: the labels of 300 rows are"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
@pytest.mark.filterwarnings("default")
def test_train_speaks_of_options(folder, tmp_path, options, code, message):
    train = ("train", folder / "train.csv", "--target", "state", "--drop", "id", "--max-trees", "2")
    done = run(*train, "--out", tmp_path / "m.safetensors", *options)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    assert not PYTHON.search(done.stderr)


@pytest.mark.parametrize(("option", "refit"), [("--refit", True), ("--no-refit", False)])
def test_validation_rows_may_be_left_out_of_the_trees(folder, tmp_path, option, refit):
    train = ("train", folder / "train.csv", "--target", "state", "--drop", "id", "--max-trees", "4")
    ok(*train, "--out", tmp_path / "m.safetensors", option)
    trained, _ = read_result(tmp_path / "m.safetensors")
    assert trained.summary["parameters"]["refit"] is refit
    assert any(point.recipe.refit for point in trained.path) is refit


def test_a_checkpoint_of_another_training_is_named_by_its_option(folder, tmp_path):
    place = tmp_path / "my max_trees"
    train = ("train", folder / "train.csv", *TRAIN, "--out", tmp_path / "m", "--checkpoint", place)
    ok(*train)
    done = run(*train, "--seed", "1")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: --checkpoint '{place}' holds another training")


def test_rows_that_cannot_be_held_out_ask_for_a_file_of_others(tmp_path):
    (tmp_path / "few.csv").write_text("a,y\n" + "1,p\n" * 5 + "2,q\n" * 5)
    done = run("train", tmp_path / "few.csv", "--target", "y", "--out", tmp_path / "m")
    assert done.exit_code == 1
    assert "Error: a share of 0.3 of 10 rows holds out none" in done.stderr
    assert done.stderr.endswith("give more distinct rows, or --validation FILE\n")


def test_names_from_data_are_no_options(tmp_path):
    """A column may be called like a parameter, a folder, too."""
    place = tmp_path / "max_trees"
    place.mkdir()
    (place / "max_disagreement.csv").write_text("max_trees,y\n1,p\n2,q\n")
    done = run("train", place / "max_disagreement.csv", "--target", "max_tree", "--out", tmp_path / "m")
    assert done.stderr.endswith("did you mean 'max_trees'?\n")
    (place / "max_disagreement.csv").write_text("method=auto,y\n1,p\n2\n")
    done = run("train", place / "max_disagreement.csv", "--target", "y", "--out", tmp_path / "m")
    assert done.stderr.startswith(f"Error: {place / 'max_disagreement.csv'}: the row on line 3")


def test_validation_rows_of_their_own_measure_the_cost(folder, tmp_path):
    summary = json.loads(
        ok(
            *("train", folder / "train.csv", "--validation", folder / "test.csv", "--target", "state"),
            *("--drop", "id", "--max-trees", "4", "--method", "paper", "--budget", "3", "--json"),
            *("--out", tmp_path / "m.safetensors"),
        )
    )
    model = budgetforest.load(tmp_path / "m.safetensors")
    spent = model.acquisition_cost(rows_for(model, patients(1))).mean()
    assert summary["mean_cost"] == pytest.approx(spent)


def test_unlabelled_rows_are_left_out_and_said(folder, tmp_path):
    lines = patients(1).splitlines()
    lines[1:6] = [line.rsplit(",", 1)[0] + "," for line in lines[1:6]]
    (tmp_path / "some.csv").write_text("\n".join(lines))
    done = run("curve", folder / "model.safetensors", tmp_path / "some.csv")
    assert done.exit_code == 0
    assert "5 rows without a label in 'state'" in done.stderr
    assert f"{N - 5} rows" in done.stdout


def test_curve_is_that_of_python(folder, model, tmp_path):
    plot = tmp_path / "curve.svg"
    out = ok("curve", folder / "model.safetensors", folder / "test.csv", "--json", "--plot", plot)
    lines = json.loads(out)
    y = [line["state"] for line in csv.DictReader(io.StringIO(patients(1)))]
    curve = budgetforest.cost_error_curve(model, rows_for(model, patients(1)), y)
    assert [line["budget"] for line in lines] == curve.budget.tolist()
    assert np.allclose([line["cost"] for line in lines], curve.cost)
    assert np.allclose([line["error"] for line in lines], curve.error)
    assert "<svg" in plot.read_text()


def test_curve_without_rows_tells_what_to_expect_on_new_ones(folder, model):
    lines = json.loads(ok("curve", folder / "model.safetensors", "--json"))
    assert [(line["cost"], line["error"], line["low"], line["high"]) for line in lines] == [
        (point.cost, point.error, point.low, point.high) for point in model.path_
    ]
    assert "expected on new rows" in ok("curve", folder / "model.safetensors")
    refused = run("curve", folder / "model.safetensors", "--plot", folder / "no.svg")
    assert refused.exit_code == 2
    assert "--plot needs rows with labels" in refused.stderr


def test_what_costs_nothing_is_called_the_same_with_rows_and_without(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    for cost, free in ((1.0, False), (0.0, True)):
        model = BudgetForestClassifier(2, costs=[cost, 1, 1], max_trees=5, random_state=0)
        save(model.fit(X, (X[:, 0] > 0) ^ (y * X[:, 1] > 0.5)), tmp_path / "m.safetensors")
        with (tmp_path / "rows.csv").open("w") as file:
            file.writelines(["x0,x1,x2,y\n", *(f"{a},{b},{c},{a > 0}\n" for a, b, c in X[:50].tolist())])
        shown = json.loads(ok("show", tmp_path / "m.safetensors", "--json"))["path"][0]
        expected = json.loads(ok("curve", tmp_path / "m.safetensors", "--json"))[0]
        measured = ok("curve", tmp_path / "m.safetensors", tmp_path / "rows.csv", "--target", "y", "--json")
        assert shown["budget"] == expected["budget"] == 0
        assert (shown["forest"] == "no feature") is not free
        assert (shown["trees"] == 0) is not free
        if not free:
            assert expected["what"] == json.loads(measured)[0]["what"] == shown["forest"]


@pytest.mark.filterwarnings("ignore::budgetforest.runtime.errors.BudgetTooSmall")
def test_training_and_show_tell_whether_the_model_is_worth_anything(folder, model, tmp_path):
    told = model.summary()
    shown = ok("show", folder / "model.safetensors")
    assert told.sentence in shown
    assert "classes, on the validation rows" in shown
    out = tmp_path / "again.safetensors"
    train = ("train", folder / "train.csv", "--target", "state", "--drop", "id", "--out", out)
    assert "than always answering" in ok(*train)
    found = json.loads(ok(*train, "--json", "--force"))
    assert found["error_interval"][0] <= found["expected_error"] <= found["error_interval"][1]
    assert {each["label"] for each in found["by_class"]} == {"ill", "well"}
    idle = ok(*train, "--budget", 1e-6, "--force")
    assert "It has no trees and always answers" in idle


def test_show_says_what_the_model_is(folder, model):
    shown = ok("show", folder / "model.safetensors")
    assert "\nbudget: 20\nclasses: ill, well" in shown
    assert "\nbudget: 3\n" in ok("show", folder / "model.safetensors", "--budget", "3")
    dearest = max(certificate.max_cost for certificate in model.certificates_)
    assert f"no row pays more than {dearest:g} in any one tree; no more is proven" in shown
    for name in model.forest_.schema.names:
        assert name in shown
    document = json.loads(ok("show", folder / "model.safetensors", "--json"))
    assert [feature["cost"] for feature in document["features"]] == [1, 1, 40, 1]
    assert len(document["path"]) == len(model.path_)
    assert len(document["certificates"]) == model.n_trees_
    used = [feature["trees"] for feature in document["features"]]
    table = model.trees_to_dataframe().dropna(subset="feature")
    expected = table.groupby("feature")["tree"].nunique()
    assert used == [int(expected.get(name, 0)) for name in model.forest_.schema.names]


def test_show_certifies_trees_of_the_paper(folder, tmp_path):
    model = tmp_path / "m.safetensors"
    train = ("train", folder / "train.csv", "--target", "state", "--drop", "id", "--method", "paper")
    ok(*train, "--max-trees", "3", "--out", model)
    ratios = [c["ratio"] for c in json.loads(ok("show", model, "--json"))["certificates"]]
    shown = ok("show", model, "--certificates")
    assert f"no tree is more than {max(ratios):.3g} times dearer than the best" in shown
    assert all(f"{ratio:.4g}" in shown for ratio in ratios)


def test_a_drawn_tree_has_all_its_leaves(folder, model):
    drawn = ok("show", folder / "model.safetensors", "--tree", "1").splitlines()
    nodes = model.trees_to_dataframe().query("tree == 0")
    assert len(drawn) == len(nodes)
    assert sum("? (" in line for line in drawn) == nodes["feature"].notna().sum()
    root = json.loads(ok("show", folder / "model.safetensors", "--tree", "1", "--json"))
    assert root["feature"] == nodes.iloc[0]["feature"]
    assert len(root["branches"]) == (nodes["parent"] == 0).sum()


def test_a_drawn_tree_prices_a_feature_once():
    X = np.arange(16.0).reshape(-1, 1)
    table = {"feature": ["x0", "x1"], "cost": [9, 8], "group": "g", "discount_cost": [4, 5]}
    costs = pytest.importorskip("pandas").DataFrame(table)
    X, y = np.column_stack([X, X % 4]), np.arange(16) // 4 % 2 + 2 * (np.arange(16) % 4 > 1)
    model = budgetforest.BudgetForestClassifier(
        method="paper", alpha=0, costs=costs, max_trees=1, bootstrap=False, random_state=0
    ).fit(X, y, validation=(X, y))
    prices = [re.search(r"(x\d)\? \((cost \d|paid)", line) for line in tree_lines(model.forest_, 0)]
    told = [found.groups() for found in prices if found]
    assert told[0] in {("x0", "cost 9"), ("x1", "cost 8")}
    assert {("x0", "paid"), ("x1", "cost 5")} <= {*told} or {("x1", "paid"), ("x0", "cost 4")} <= {*told}
    assert {price for _, price in told} <= {told[0][1], "paid", "cost 5", "cost 4"}


def test_export_writes_what_python_exports(folder, model, tmp_path):
    onnx = pytest.importorskip("onnx")
    ok("export", folder / "model.safetensors", "--out", tmp_path / "m.json")
    assert (tmp_path / "m.json").read_text() == budgetforest.to_json(model)
    told = json.loads(
        ok("export", folder / "model.safetensors", "--budget", "3", "--out", tmp_path / "m.ONNX", "--json")
    )
    small = model.at_budget(3)
    assert onnx.load(tmp_path / "m.ONNX") == budgetforest.to_onnx(small)
    size = (tmp_path / "m.ONNX").stat().st_size
    assert told == {"export": str(tmp_path / "m.ONNX"), "trees": small.n_trees_, "bytes": size}


def test_export_names_the_extra_that_is_missing(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = run("export", folder / "model.safetensors", "--out", tmp_path / "m.onnx")
    assert done.exit_code == 1
    assert done.stderr == 'Error: ONNX needs the package onnx: pip install "budgetforest[onnx]"\n'
    assert list(tmp_path.iterdir()) == []


def test_acquire_asks_one_value_at_a_time(folder, model):
    row = {"age": 50.0, "pressure": 150.5, "mri": 1.25, "sex": "m"}
    asked = []

    def source(name):
        asked.append(name)
        return row[name]

    expected = model.predict_one(source)
    typed = "".join(f"{row[name]}\n" for name in asked)
    done = run("acquire", folder / "model.safetensors", input=typed)
    assert done.exit_code == 0
    assert done.stdout == expected.explain() + "\n"
    for name in asked:
        assert f"{name} (costs " in done.stderr
    again = json.loads(run("acquire", folder / "model.safetensors", "--json", input=typed).stdout)
    assert again["label"] == expected.label
    assert again["spent"] == expected.spent
    assert [step["feature"] for step in again["trace"]] == asked


def test_acquire_takes_unknown_and_asks_again_for_nonsense(folder, model):
    first = model.acquire().need.feature
    expected = model.predict_one(lambda name: None if name == first else {"sex": "f"}.get(name, -2.0))
    told = expected.explain().replace("the source returned None", "unavailable")
    rest = [step.feature for step in expected.trace if step.feature != first]
    typed = "what\nunknown\n" + "".join({"sex": "f\n"}.get(name, "-2\n") for name in rest)
    done = run("acquire", folder / "model.safetensors", input=typed)
    assert done.exit_code == 0, done.stderr
    assert "'what'" in done.stderr
    assert f"without {first} (unavailable; might move the belief by " in done.stdout
    assert done.stdout == told + "\n"


def test_known_values_are_free_and_an_early_end_is_an_error(folder):
    everything = ["--known", "age=50", "--known", "pressure=150", "--known", "mri=1", "--known", "sex=m"]
    assert json.loads(ok("acquire", folder / "model.safetensors", *everything, "--json"))["spent"] == 0
    done = run("acquire", folder / "model.safetensors", input="")
    assert done.exit_code == 1
    assert "the input ended when" in done.stderr


def test_acquire_says_that_the_limit_ended_it(folder):
    done = run("acquire", folder / "model.safetensors", "--limit", "0")
    assert done.exit_code == 0
    assert "stopped by the limit: trees would ask for more than the row may pay" in done.stdout


def test_report_is_written_whole(folder, tmp_path):
    pytest.importorskip("altair")
    out = tmp_path / "report.html"
    beside = ("--baseline", folder / "train.csv", "--title", "Who is ill?")
    ok("report", folder / "model.safetensors", folder / "test.csv", "--out", out, *beside)
    page = out.read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "<h1>Who is ill?</h1>" in page
    assert '"RandomForestClassifier"' in page
    assert '"model file":"model.safetensors","data":"test.csv"' in page
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_device_is_written_to_and_stays(folder):
    ok("predict", folder / "model.safetensors", folder / "test.csv", "--out", os.devnull)
    assert not Path(os.devnull).is_file()


def test_shells_complete_commands_options_and_choices():
    shell = ShellComplete(main, {}, "budgetforest", "_BUDGETFOREST_COMPLETE")
    assert [item.value for item in shell.get_completions([], "p")] == ["predict"]
    assert "--checkpoint" in [item.value for item in shell.get_completions(["train"], "--c")]
    assert [item.value for item in shell.get_completions(["train", "--method"], "")] == ["auto", "paper"]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "costs"])
def test_every_command_has_json_and_help(command):
    shown = ok(command, "--help")
    assert "--json" in shown


# New processes --------------------------------------------------------------------------------


def process(*arguments, **options):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["show", "model.safetensors"],
        ["export", "model.safetensors", "--out", "model.json"],
        ["costs", "template", "train.csv"],
    ],
)
def test_what_needs_no_training_starts_at_once(folder, command):
    code = (
        "import sys, time; start = time.process_time()\n"
        "from budgetforest.cli import main\n"
        f"try: main({command!r}, standalone_mode=False)\n"
        "finally: print(time.process_time() - start, [m for m in "
        "('numba', 'sklearn', 'pandas', 'scipy', 'pyarrow') if m in sys.modules], file=sys.stderr)"
    )
    done = process("-c", code, cwd=folder)
    assert done.returncode == 0, done.stderr
    took, heavy = done.stderr.split(" ", 1)
    assert heavy.strip() == "[]"
    assert float(took) < 0.6  # under 0.2 s on a quiet machine


@pytest.mark.parametrize("pipe", ["-", "/dev/stdin", "fifo"])
def test_data_may_come_from_a_pipe(folder, tmp_path, pipe):
    """A child feeds it, so that nothing can be rewound; answers are those from the file."""
    if pipe == "fifo":
        pipe = tmp_path / "fifo.csv"
        os.mkfifo(pipe)
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def both(name, command, *rest):
        from_file = ok(*command, folder / name, *rest)
        into = f"cat {folder / name}" + (f" > {pipe}" if isinstance(pipe, Path) else "")
        feeding = subprocess.Popen(into, shell=True, stdout=subprocess.PIPE)
        done = process(
            *("-m", "budgetforest", *command, pipe, *rest),
            stdin=feeding.stdout,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        feeding.stdout.close()
        assert feeding.wait() == 0
        assert done.returncode == 0
        assert all("rows lacked a value" in line for line in done.stderr.splitlines())
        return done.stdout, from_file

    given, expected = both("train.csv", ["train"], *TRAIN, "--out", tmp_path / "m.safetensors", "--json")
    assert json.loads(given) == json.loads(expected)
    for command in ("predict", "curve"):
        given, expected = both("test.csv", [command, tmp_path / "m.safetensors"])
        assert given == expected
    given, expected = both("train.csv", ["costs", "template"], "--target", "state")
    assert given == expected
    assert list(temporary.iterdir()) == []


def test_a_pipe_streams(folder, monkeypatch):
    """Rows are answered while later ones are still to come."""
    monkeypatch.setattr(piped, "CHUNK", 100)
    read, write = os.pipe()
    with os.fdopen(read, "rb") as pipe, os.fdopen(write, "wb") as feed:
        feed.write(b"a,b\n" + b"1,2\n" * 30)
        feed.flush()
        rows = Piped(pipe, "a pipe").blocks([0, 1], (), ())
        assert len(next(rows).numbers) == 25
        feed.write(b"3,4\n" * 10)
        feed.close()
        assert sum(len(block.numbers) for block in rows) == 15


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'stdin' is empty; its first line must name the columns"),
        ("age,pressure,mri,sex\n1,2,x,f\n", "stdin, line 2: 'mri' is 'x', which is not a finite number"),
        (b"PAR1\0\0", "'stdin' is not a text in UTF-8"),
    ],
)
def test_what_is_wrong_in_a_pipe_is_named(folder, text, message):
    done = run("predict", folder / "model.safetensors", "-", input=text)
    assert done.exit_code == 1
    assert message in done.stderr


def test_pipes_get_no_colours_and_no_bars(folder):
    done = process("-m", "budgetforest", "predict", folder / "model.safetensors", folder / "test.csv")
    assert done.returncode == 0
    assert re.fullmatch(r"note: \d+ of 300 rows lacked a value .*\n", done.stderr)
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("shape", [(), ("--json",)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_ends_the_command_quietly(folder, tmp_path, shape, unbuffered):
    lines = (folder / "test.csv").read_text().splitlines()
    (tmp_path / "many.csv").write_text("\n".join([lines[0], *lines[1:] * 200]))  # more than a pipe holds
    command = [sys.executable, "-m", "budgetforest", "predict", folder / "model.safetensors"]
    command = [*map(str, command), str(tmp_path / "many.csv"), *shape]
    options = {"env": os.environ | {"PYTHONUNBUFFERED": unbuffered}, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as running:
        first = subprocess.run(["head", "-1"], stdin=running.stdout, capture_output=True, check=True).stdout
        running.stdout.close()
        assert running.stderr.read() == b""
    assert first.count(b"\n") == 1
    assert running.returncode == 141


@pytest.mark.parametrize("shape", [(), ("--json",)])
def test_the_last_lines_may_find_nobody_either(folder, tmp_path, shape):
    lines = (folder / "test.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[:3]))
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "budgetforest", "predict", folder / "model.safetensors"]
    with os.fdopen(write) as nobody:
        done = subprocess.run(
            [*map(str, command), str(tmp_path / "few.csv"), *shape], stdout=nobody, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_ends_the_command_with_one_line(folder, unbuffered):
    command = [sys.executable, "-m", "budgetforest", "show", str(folder / "model.safetensors")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
        )
    assert (done.returncode, done.stderr) == (1, b"Error: [Errno 28] No space left on device\n")


ENDLESS = """
import time
from budgetforest import BudgetForestClassifier, save
from budgetforest.cli import main
from budgetforest.files import delimited
read = delimited.Delimited.blocks
def blocks(self, *columns):
    while True:
        yield from read(self, *columns)
        print("reading", flush=True)
        time.sleep(0.1)
delimited.Delimited.blocks = blocks
main()
"""


def interrupted(command, ready, **options):
    """What a command says when Ctrl-C comes after ``ready(process)``; it must end with code 130."""
    options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    listens = {
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    }  # shells mute background jobs
    command = [sys.executable, *map(str, command)]
    with subprocess.Popen(command, text=True, **listens, **options) as running:
        ready(running)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors.endswith("stopped\n")
    return errors


@pytest.mark.parametrize(
    "command",
    [
        ["train", "train.csv", "--target", "state", "--drop", "id", "--out", "{}/m.safetensors"],
        ["predict", "model.safetensors", "test.csv", "--out", "{}/answers.csv"],
        ["curve", "model.safetensors", "test.csv", "--plot", "{}/curve.svg"],
        ["report", "model.safetensors", "test.csv", "--out", "{}/report.html"],
    ],
    ids=lambda command: command[0],
)
def test_ctrl_c_leaves_no_file(folder, tmp_path, command):
    def three_times_read(running):
        for _ in range(3):
            assert running.stdout.readline() == "reading\n"

    command = [word.format(tmp_path) for word in command]
    interrupted(["-c", ENDLESS, *command], three_times_read, cwd=folder)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_growing_keeps_the_steps_that_are_done(folder, tmp_path):
    def first_step(running):
        while not list(kept.glob("[!.]*")):
            assert running.poll() is None
            time.sleep(0.01)

    kept, out = tmp_path / "kept", tmp_path / "m.safetensors"
    command = ["train", "train.csv", "--target", "state", "--drop", "id", "--max-trees", "20", "--out", out]
    interrupted(["-m", "budgetforest", *command, "--checkpoint", kept], first_step, cwd=folder)
    assert not out.exists()
    assert {path.suffix for path in kept.iterdir()} == {".safetensors"}
    for path in kept.iterdir():
        read_result(path)


def test_ctrl_c_at_a_question(folder):
    def asked(running):
        heard = ""
        while not heard.endswith("or unknown:"):
            heard += running.stderr.read(1)
        time.sleep(0.5)  # it begins to read after it has asked

    interrupted(["-m", "budgetforest", "acquire", "model.safetensors"], asked, cwd=folder)


def test_no_rows_are_answered_with_none(folder, tmp_path):
    (tmp_path / "none.csv").write_text(patients(1).splitlines()[0] + "\n")
    for name in ("answers.csv", "answers.parquet"):
        ok("predict", folder / "model.safetensors", tmp_path / "none.csv", "--out", tmp_path / name)
    assert len(pd.read_csv(tmp_path / "answers.csv")) == 0
    empty = pd.read_parquet(tmp_path / "answers.parquet")
    assert len(empty) == 0
    assert [*empty] == ["label", "cost", "acquired", "proba_ill", "proba_well"]


def test_no_cell_of_an_answer_is_a_formula(folder, tmp_path):
    """Spreadsheets run cells that begin so; a price list with such names is read back as it was written."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 50, (200, 3)), columns=["=cmd|' /C calc'!A0", "a;b", "plain"])
    label = np.where(X["a;b"] > X["=cmd|' /C calc'!A0"], "@SUM(A1)", "-1")
    X.assign(state=label, note="+1+cmd", id=-np.arange(200)).to_csv(tmp_path / "rows.csv", index=False)
    names = ("--target", "state", "--drop", "note", "--drop", "id")
    ok("costs", "template", tmp_path / "rows.csv", *names, "--out", tmp_path / "costs.csv")
    assert "\n'=cmd" in (tmp_path / "costs.csv").read_text()
    prices = ("--costs", tmp_path / "costs.csv", "--budget", "3", "--out", tmp_path / "model.safetensors")
    ok("train", tmp_path / "rows.csv", *names, *prices)
    kept = ("--keep", "note", "--keep", "id")
    ok("predict", tmp_path / "model.safetensors", tmp_path / "rows.csv", *kept, "--out", tmp_path / "a.csv")
    answers = pd.read_csv(tmp_path / "a.csv", dtype=str)
    assert set(answers["label"]) == {"'@SUM(A1)", "-1"}
    assert set(answers["note"]) == {"'+1+cmd"}
    assert answers["id"].tolist() == [str(-i) for i in range(200)]
    assert any("'=cmd" in cell and "a\\;b" in cell for cell in answers["acquired"])
    assert not any(cell[:1] in "=+@" for column in answers for cell in answers[column])
    as_json = ok("predict", tmp_path / "model.safetensors", tmp_path / "rows.csv", "--json")
    assert "a;b" in json.loads(as_json.splitlines()[0])["acquired"]


def test_show_tells_a_feature_alone_from_a_group_of_its_name(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    prices = pd.DataFrame({"feature": ["a", "b", "c"], "cost": [3.0, 3, 3], "group": ["", "a", "a"]})
    model = BudgetForestClassifier(method="paper", alpha=0.0, max_trees=1, costs=prices, random_state=0)
    save(model.fit(pd.DataFrame(X, columns=list("abc")), X.sum(axis=1) > 0), tmp_path / "model.safetensors")
    shown = json.loads(ok("show", tmp_path / "model.safetensors", "--json"))["features"]
    assert [feature["group"] for feature in shown] == [None, "a", "a"]
    assert [feature["discount_cost"] for feature in shown] == [None, 0.0, 0.0]
