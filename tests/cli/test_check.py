"""What ``check`` says of data is what ``train`` does with them."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from budgetforest.cli import main

N = 400

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.UnusualData")  # of train


def run(*arguments, **options):
    return CliRunner().invoke(main, list(map(str, arguments)), **options)


def rows(**columns):
    """Labels that follow from ``mri`` and chance, and whatever columns are given."""
    rng = np.random.default_rng(0)
    mri = rng.normal(size=N).round(3)
    state = np.where(mri + rng.normal(size=N) > 0, "ill", "well")
    return pd.DataFrame({**columns, "mri": mri, "sex": rng.choice(["f", "m"], N), "state": state})


@pytest.fixture
def checked(tmp_path):
    """The document about a table; ``train`` must end as it says."""

    def checked(table, *options, **written):
        table.to_csv(tmp_path / "rows.csv", index=False, **written)
        given = (tmp_path / "rows.csv", "--target", "state", *options)
        done = run("check", *given, "--json")
        document = json.loads(done.stdout)
        assert done.exit_code == (0 if document["trains"] else 1)
        fast = ("--method", "paper", "--max-trees", "1", "--force", "--out", tmp_path / "m.safetensors")
        assert run("train", *given, *fast).exit_code == done.exit_code
        return document

    return checked


def messages(document, column):
    return [finding["message"] for finding in document["findings"] if finding["column"] == column]


def column(document, name):
    return next(column for column in document["columns"] if column["name"] == name)


def test_good_data_have_no_findings(checked):
    document = checked(rows())
    assert document["trains"]
    assert document["findings"] == []
    assert document["rows"] == N
    assert sum(document["classes"].values()) == N
    mri, sex, state = document["columns"]
    table = rows()
    assert (mri["kind"], mri["use"], mri["distinct"]) == ("numbers", "numeric", table["mri"].nunique())
    assert (mri["low"], mri["high"]) == (table["mri"].min(), table["mri"].max())
    assert (sex["kind"], sex["use"], sex["distinct"]) == ("categories", "nominal", 2)
    assert (state["kind"], state["use"], state["distinct"]) == ("labels", "target", 2)


@pytest.mark.parametrize(
    ("values", "kind", "message", "trains"),
    [
        (range(5000, 5000 + N), "whole numbers", "may be an id: 400 of 400 values are different", True),
        ([f"p{i}" for i in range(N)], "categories", "may be an id: 400 of 400 values are different", False),
        ([f"p{i % 250}" for i in range(N)], "categories", "has 250 categories in 400 rows", True),
        (
            [f"2024-{i % 12 + 1:02}-03" for i in range(N)],
            "dates",
            "holds dates, and categories know no",
            True,
        ),
        ([f"{i % 28 + 1}.11.24" for i in range(N)], "dates", "holds dates, and categories know no", True),
        ([f"2024-01-03 0{i % 9}:00" for i in range(N)], "dates", "holds dates, and categories know no", True),
        (["same"] * N, "categories", "has one value only", True),
        ([""] * N, "numbers", "has no value in any row", True),
        (
            rows()["state"].map({"ill": 1.25, "well": 0.5}),
            "numbers",
            "alone tells 100.0% of the labels",
            True,
        ),
        (
            rows()["state"].map({"ill": "y", "well": ""}),
            "categories",
            "alone tells 100.0% of the labels",
            True,
        ),
    ],
    ids=["id", "name", "nearly", "date", "german", "time", "constant", "empty", "leak", "missing"],
)
def test_odd_columns_are_pointed_out_with_a_remedy(checked, values, kind, message, trains):
    document = checked(rows(x=values))
    assert document["trains"] == trains
    assert column(document, "x")["kind"] == kind
    [told] = [text for text in messages(document, "x") if message in text]
    assert "--drop 'x'" in told
    mended = checked(rows(x=values), "--drop", "x")
    assert messages(mended, "x") == []
    assert column(mended, "x")["use"] == "dropped"


def test_a_threshold_that_tells_the_labels_is_leakage(checked):
    table = rows()
    late = np.where(table["state"] == "ill", 1.0, -1.0) * np.random.default_rng(1).uniform(1, 2, N)
    assert "may be leakage" in messages(checked(table.assign(late=late)), "late")[0]
    noisy = np.where(np.arange(N) % 10, late, -late)
    assert messages(checked(table.assign(late=noisy)), "late") == []


def test_a_rare_class_is_not_told_by_chance(checked):
    table = rows(x=np.random.default_rng(1).normal(size=N))
    document = checked(table.assign(state=np.where(np.arange(N) < 12, "rare", "usual")))
    assert [finding["message"] for finding in document["findings"]] == []


def test_stray_words_are_named_with_their_line(checked):
    values = [str(i % 70) for i in range(N)]
    values[17], values[30], values[31] = "not yet", "gone", "not yet"
    document = checked(rows(x=values))
    assert column(document, "x")["use"] == "nominal"
    [told] = messages(document, "x")
    assert "because 'not yet' on line 19 is no number; 3 of 400 cells are none ('not yet', 'gone')" in told
    assert "--missing 'not yet'" in told
    mended = checked(rows(x=values), "--missing", "not yet", "--missing", "gone")
    assert messages(mended, "x") == []
    assert column(mended, "x")["use"] == "numeric"
    assert column(mended, "x")["missing"] == 3 / N


def test_all_columns_that_training_refuses_are_listed(checked):
    names = [f"p{i}" for i in range(N)]
    incomes = ["1.200", "950"] * (N // 2)
    document = checked(rows(a=names, b=names, c=incomes), sep=";")
    refused = [finding["column"] for finding in document["findings"] if finding["refused"]]
    assert sorted(refused) == ["a", "b", "c"]
    assert document["format"] == "';' between cells, a point or a comma before decimals"
    assert column(document, "a")["distinct"] == N
    mended = checked(
        rows(a=names, b=names, c=incomes), *("--drop", "a", "--drop", "b", "--decimal", ","), sep=";"
    )
    assert mended["trains"]
    assert "',' before decimals, as --decimal says" in mended["format"]


def test_labels_are_looked_at(checked):
    table = rows()
    table.loc[:2, "state"], table.loc[3:5, "state"] = "", "odd"
    document = checked(table)
    assert document["unlabelled"] == 3
    few, tiny = messages(document, "state")
    assert few == "3 of 400 rows have no label in 'state'; they are left out"
    assert "fewer than 10 rows" in tiny
    assert "1 of 3, 'odd' (3)" in tiny
    one = checked(rows().assign(state="ill"))
    assert "one class only" in messages(one, "state")[0]
    measured = checked(rows().assign(state=np.arange(N) / 8))
    assert "cut what is measured into ranges" in messages(measured, "state")[0]


def test_repeated_rows_are_counted(checked):
    document = checked(pd.concat([rows()[:300], rows()[:100]]))
    assert document["repeated"] == pytest.approx(0.25, abs=0.02)
    assert "repeat another one" in messages(document, None)[0]


def test_rows_that_cannot_be_held_out_are_refused(checked):
    document = checked(rows()[["mri", "state"]].assign(mri=1, state=rows()["state"]))
    assert not document["trains"]
    assert "holds out none" in document["findings"][0]["message"]
    assert "--validation FILE" in document["findings"][0]["message"]


def test_prices_and_features_belong_together(checked, tmp_path):
    prices = tmp_path / "costs.csv"
    prices.write_text("feature,cost\nmri,40\nsexx,1\nage,1\n")
    document = checked(rows(), "--costs", prices)
    told = messages(document, None)
    assert f"{prices}: features without a price: 1 (sex)" in told[0]
    assert f"{prices}: prices without a feature: 2 (sexx, age)" in told[1]
    prices.write_text("feature,cost\nmri,40\nsex,-1\n")
    assert "costs must be zero or more" in messages(checked(rows(), "--costs", prices), None)[0]
    prices.write_text("name,cost\nmri,40\n")
    assert "the price list has no column 'feature'" in messages(checked(rows(), "--costs", prices), None)[0]
    prices.write_text("feature,cost\nmri,40\nsex,1\n")
    assert checked(rows(), "--costs", prices)["trains"]


def test_people_get_a_table_and_a_list(tmp_path):
    rows(nr=range(N)).to_csv(tmp_path / "rows.csv", index=False)
    done = run("check", tmp_path / "rows.csv", "--target", "state")
    assert done.exit_code == 0
    head, classes, *_ = done.stdout.splitlines()
    assert (
        head
        == f"{tmp_path / 'rows.csv'}: 400 rows with a label, 0.0% of them repeated; ',' between cells, "
        + ("a point before decimals")
    )
    assert classes.startswith("classes: ill ")
    assert "\nnr      whole numbers     0.0%       400  0 to 399" in done.stdout
    assert "\n1 finding\n- 'nr' may be an id" in done.stdout
    assert done.stdout.endswith("training would work\n")
    assert done.stderr == ""
    names = rows(nr=[f"p{i}" for i in range(N)])
    names.to_csv(tmp_path / "rows.csv", index=False)
    done = run("check", tmp_path / "rows.csv", "--target", "state")
    assert done.exit_code == 1
    assert "\n- refused: column 'nr' has more than 255 categories" in done.stdout
    assert done.stdout.endswith("training would refuse these data\n")


def test_what_cannot_be_read_ends_as_in_training(tmp_path):
    (tmp_path / "rows.csv").write_text("a,state\n1,ill\n2\n")
    done = run("check", tmp_path / "rows.csv", "--target", "state")
    assert done.exit_code == 1
    assert "the row on line 3 has 1 cell" in done.stderr
    assert "no column 'stat'" in run("check", tmp_path / "rows.csv", "--target", "stat").stderr


def test_typed_columns_and_queries(tmp_path):
    table = rows(when=pd.date_range("2024-01-01", periods=N), x=np.where(np.arange(N) == 7, np.inf, 1.5))
    table.to_parquet(tmp_path / "rows.parquet")
    done = run("check", tmp_path / "rows.parquet", "--target", "state", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["format"]) == (1, None)
    assert column(document, "when")["kind"] == "dates"
    refused = {f["column"]: f["message"] for f in document["findings"] if f["refused"]}
    assert "holds values of type TIMESTAMP" in refused["when"]
    assert "row 8: 'x' is 'inf'" in refused["x"]
    query = f"select mri, sex, state from '{tmp_path / 'rows.parquet'}'"
    done = run("check", "--sql", query, "--target", "state", "--json")
    assert json.loads(done.stdout)["findings"] == []


def test_pipes_and_encodings(tmp_path):
    raw = rows().assign(sex="größer").to_csv(index=False).encode("latin-1")
    done = run("check", "-", "--target", "state", "--encoding", "latin-1", "--json", input=raw)
    assert json.loads(done.stdout)["data"] == "stdin"
