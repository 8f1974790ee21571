"""Commands replace no file unasked, never one that they read, and read only what a model asks for."""

import csv
import gzip
import json
import math

import pytest
from click.testing import CliRunner

import budgetforest
from budgetforest.cli import main


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def ok(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows whose label follows from ``a``; neither ``b`` nor ``colour`` tell anything."""
    folder = tmp_path_factory.mktemp("work")
    rows = [
        (i % 10, i * 7 % 11, "red" if i % 3 else "blue", "yes" if i % 10 > 4 else "no") for i in range(200)
    ]
    with (folder / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("a", "b", "colour", "label"), *rows])
    train = ("--target", "label", "--method", "paper", "--max-trees", "2", "--budget", "1")
    ok("train", folder / "rows.csv", *train, "--out", folder / "model.safetensors")
    ok("costs", "template", folder / "rows.csv", "--target", "label", "--out", folder / "costs.csv")
    return folder


TRAIN = ("--target", "label", "--method", "paper", "--max-trees", "1")


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (("costs", "template", "rows.csv", "--target", "label", "--out", "costs.csv"), "costs.csv"),
        (("train", "rows.csv", *TRAIN, "--out", "model.safetensors"), "model.safetensors"),
        (("predict", "model.safetensors", "rows.csv", "--out", "answers.csv"), "answers.csv"),
        (("curve", "model.safetensors", "rows.csv", "--plot", "curve.svg"), "curve.svg"),
        (("report", "model.safetensors", "rows.csv", "--out", "page.html"), "page.html"),
        (("export", "model.safetensors", "--out", "forest.json"), "forest.json"),
    ],
)
def test_files_are_replaced_only_if_asked(folder, tmp_path, monkeypatch, command, written):
    if "--plot" in command:
        pytest.importorskip("matplotlib", reason='plots need matplotlib: pip install "budgetforest[plot]"')
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    if written != "model.safetensors":
        (tmp_path / written).write_text("somebody's work")
    before = (tmp_path / written).read_bytes()
    refused = run(*command)
    assert refused.exit_code == 2
    assert f"'{written}' exists; pass --force to replace it." in refused.stderr
    assert (tmp_path / written).read_bytes() == before
    ok(*command, "--force")
    assert (tmp_path / written).read_bytes() != before


def test_default_names_are_not_replaced_either(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.safetensors").write_text("a model")
    (tmp_path / "model.html").write_text("a page")
    for command in (
        ("train", folder / "rows.csv", *TRAIN),
        ("report", folder / "model.safetensors", folder / "rows.csv"),
    ):
        done = run(*command)
        assert done.exit_code == 2
        assert "exists; pass --force to replace it." in done.stderr
    assert sorted(file.read_text() for file in tmp_path.iterdir()) == ["a model", "a page"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_never_replaced(folder, tmp_path, monkeypatch, force):
    monkeypatch.chdir(tmp_path)
    rows = (folder / "rows.csv").read_bytes()
    (tmp_path / "rows.csv").write_bytes(rows)
    (tmp_path / "link.csv").symlink_to("rows.csv")
    for out in ("rows.csv", "./rows.csv", "link.csv"):
        done = run("predict", folder / "model.safetensors", "rows.csv", "--out", out, *force)
        assert done.exit_code == 2
        assert "is read by this command; write to another file." in done.stderr
    assert (tmp_path / "rows.csv").read_bytes() == rows


def test_columns_that_no_tree_asks_for_may_be_absent_or_odd(folder, tmp_path):
    whole = ok("predict", folder / "model.safetensors", folder / "rows.csv").stdout
    lines = [line.split(",") for line in (folder / "rows.csv").read_text().splitlines()]
    (tmp_path / "without.csv").write_text("".join(f"{a},{label}\n" for a, _, _, label in lines))
    odd = [lines[0], *([a, "what?", "green", label] for a, _, _, label in lines[1:])]
    (tmp_path / "odd.csv").write_text("".join(",".join(line) + "\n" for line in odd))
    for name in ("without.csv", "odd.csv"):
        assert ok("predict", folder / "model.safetensors", tmp_path / name).stdout == whole
        ok("curve", folder / "model.safetensors", tmp_path / name)
        ok("report", folder / "model.safetensors", tmp_path / name, "--out", tmp_path / f"{name}.html")
    (tmp_path / "lacks.csv").write_text("b,colour,label\n1,red,yes\n")
    done = run("predict", folder / "model.safetensors", tmp_path / "lacks.csv")
    assert done.exit_code == 1
    assert "there is no column 'a', which the model needs" in done.stderr


def test_values_that_rows_lacked_are_counted(folder, tmp_path):
    """Of ``b`` and ``colour`` nobody asks, so nobody lacks them."""
    rows = [("" if i < 3 else i % 10, "", "", "yes") for i in range(12)]
    (tmp_path / "new.csv").write_text(
        "".join(f"{a},{b},{c},{y}\n" for a, b, c, y in [("a", "b", "colour", "label"), *rows])
    )
    told = "note: 3 of 12 rows lacked a value that they asked for, most often 'a' (3); it was paid for, and"
    predict = ("predict", folder / "model.safetensors", tmp_path / "new.csv")
    for options in ((), ("--json",), ("--out", tmp_path / "answers.parquet")):
        assert ok(*predict, *options).stderr.count(told) == 1
    assert {line.split(",")[1] for line in ok(*predict).stdout.splitlines()[1:]} == {"1"}
    assert told in ok("curve", folder / "model.safetensors", tmp_path / "new.csv").stderr
    for command in ("predict", "curve"):
        assert "lacked" not in ok(command, folder / "model.safetensors", folder / "rows.csv").stderr


def test_a_model_that_asks_for_nothing_answers_any_file(tmp_path):
    rows = "".join(f"{i % 40},{'yes' if i % 5 == 0 else 'no'}\n" for i in range(400))
    (tmp_path / "rows.csv").write_text(f"a,label\n{rows}")
    costly = ("--costs", tmp_path / "costs.csv", "--budget", "1")
    (tmp_path / "costs.csv").write_text("feature,cost\na,100\n")
    ok("train", tmp_path / "rows.csv", *TRAIN, *costly, "--out", tmp_path / "m.safetensors")
    (tmp_path / "new.csv").write_text("z\n5\n6\n")
    answers = ok("predict", tmp_path / "m.safetensors", tmp_path / "new.csv").stdout.splitlines()
    assert len(answers) == 3
    assert all(line.startswith("no,0,") for line in answers[1:])


def test_compressed_files_are_read_as_they_were(folder, tmp_path):
    rows = (folder / "rows.csv").read_bytes()
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(rows))
    whole = ok("predict", folder / "model.safetensors", folder / "rows.csv").stdout
    assert ok("predict", folder / "model.safetensors", tmp_path / "rows.csv.gz").stdout == whole
    template = ok("costs", "template", tmp_path / "rows.csv.gz", "--target", "label").stdout
    assert template == ok("costs", "template", folder / "rows.csv", "--target", "label").stdout
    trained = ("train", tmp_path / "rows.csv.gz", *TRAIN, "--json", "--out", tmp_path / "m.safetensors")
    assert json.loads(ok(*trained).stdout)["rows"] == 200
    (tmp_path / "odd.csv.gz").write_bytes(gzip.compress(rows.replace(b"\n4,", b"\nfour,", 1)))
    done = run("predict", folder / "model.safetensors", tmp_path / "odd.csv.gz")
    assert done.exit_code == 1
    assert "odd.csv.gz, line 6: 'a' is 'four'" in done.stderr
    (tmp_path / "broken.csv.gz").write_bytes(b"no such thing")
    done = run("predict", folder / "model.safetensors", tmp_path / "broken.csv.gz")
    assert done.exit_code == 1
    assert "Not a gzipped file" in done.stderr


def test_keys_of_json_have_no_spaces(folder, tmp_path):
    trained = ("train", folder / "rows.csv", *TRAIN, "--json", "--out", tmp_path / "m.safetensors")
    shown = ("show", folder / "model.safetensors", "--json")
    curve = ("curve", folder / "model.safetensors", folder / "rows.csv", "--json")
    for command in (trained, shown, curve):
        document = json.loads(ok(*command).stdout)
        for part in document if isinstance(document, list) else [document]:
            assert not [key for key in part if " " in key]


def table(*cells):
    rows = "".join(
        f"{cell};{i % 7};{'yes' if i % len(cells) else 'no'}\n" for i, cell in enumerate(cells * 20)
    )
    return f"income;b;label\n{rows}"


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (("1.200", "950"), "'1.200' beside whole numbers: is that 1200 or 1.2? Say so with --decimal ',' or"),
        (("1,200", "950"), "'1,200' beside whole numbers: is that 1200 or 1.2? Say so with --decimal '.' or"),
        (("-1,200", "-950"), "'-1,200' beside whole numbers: is that -1200 or -1.2? Say so with"),
    ],
)
def test_thousands_in_data_are_asked_about(tmp_path, cells, told):
    (tmp_path / "rows.csv").write_text(table(*cells))
    train = ("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")
    refused = run(*train)
    assert refused.exit_code == 1
    assert told in refused.stderr
    sign, whole = cells[0][-4], float(cells[1])
    for decimal, value in ((sign, 1.2), ({".": ",", ",": "."}[sign], 1200.0)):
        ok(*train, "--decimal", decimal, "--force")
        [threshold] = thresholds(tmp_path / "m.safetensors")
        assert threshold == pytest.approx((math.copysign(value, whole) + whole) / 2)
        answers = ok("predict", tmp_path / "m.safetensors", tmp_path / "rows.csv", "--decimal", decimal)
        labels = [line.split(",")[0] for line in answers.stdout.splitlines()[1:]]
        assert labels == ["no", "yes"] * 20


@pytest.mark.parametrize("cells", [("1.200", "950"), ("1,200", "950")])
def test_thousands_in_later_files_are_asked_about(tmp_path, cells):
    """Also in a pipe, and in files of another encoding, whose rows are read once."""
    (tmp_path / "rows.csv").write_text(table("1200", "950"))
    ok("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")
    (tmp_path / "new.csv").write_text(table(*cells))
    report = ("--out", tmp_path / "page.html")
    commands = [("predict",), ("curve",), ("report", *report), ("predict", "--encoding", "cp1252")]
    told = f"new.csv has {cells[0]!r} beside whole numbers: is that 1200 or 1.2? Say so with --decimal"
    sign = cells[0][1]
    for command, *options in commands:
        done = run(command, tmp_path / "m.safetensors", tmp_path / "new.csv", *options)
        assert done.exit_code == 1
        assert told in done.stderr
        ok(command, tmp_path / "m.safetensors", tmp_path / "new.csv", *options, "--thousands", sign)
    predict = ("predict", tmp_path / "m.safetensors", tmp_path / "new.csv")
    labels = [line.split(",")[0] for line in ok(*predict, "--thousands", sign).stdout.splitlines()[1:]]
    assert labels == ["no", "yes"] * 20
    clear = table(*cells, cells[0][:2] + "27")
    (tmp_path / "new.csv").write_text(clear)
    ok(*predict)


def test_what_is_wrong_with_later_rows_is_still_told_with_its_line(tmp_path):
    (tmp_path / "rows.csv").write_text(table("1200", "950"))
    ok("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")
    (tmp_path / "new.csv").write_text("income;b;label\n950;1;yes\n950;1;yes;3;4\n")
    done = run("predict", tmp_path / "m.safetensors", tmp_path / "new.csv")
    assert done.exit_code == 1
    assert "the row on line 3 has 4 cells" in done.stderr


def test_the_sign_of_thousands_is_said_in_one_way(tmp_path):
    (tmp_path / "rows.csv").write_text(table("1.200", "950"))
    train = ("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")
    ok(*train, "--thousands", ".", "--decimal", ",")
    assert thresholds(tmp_path / "m.safetensors") == {1075.0}
    for options in (("--thousands", ",", "--decimal", ","), ("--decimal", ".", "--thousands", ".")):
        done = run(*train, "--force", *options)
        assert done.exit_code == 2
        assert f"--decimal and --thousands are both {options[1]!r}; give one of them." in done.stderr


def thresholds(path):
    nodes = budgetforest.load(path).forest_.nodes
    return {float(t) for t, j in zip(nodes.threshold, nodes.feature, strict=True) if j == 0}


@pytest.mark.parametrize("cells", [("1.200", "7.27", "950"), ("0,125", "1,250", "3"), ("1,250", "3,500")])
def test_decimals_in_data_are_told_by_the_others(tmp_path, cells):
    (tmp_path / "rows.csv").write_text(table(*cells))
    ok("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("delimiter", "cell", "thousands", "told"),
    [
        (",", "1,200", ",", "beside whole numbers: is that 1200 or 1.2? Say so with --decimal '.' or"),
        (",", "1,234,567", ",", "beside plain numbers: is that 1234567? Say so with --thousands ','"),
        (",", "-1,200.5", ",", "beside plain numbers: is that -1200.5? Say so with --thousands ','"),
        (";", "1.234.567", ".", "beside plain numbers: is that 1234567? Say so with --thousands '.'"),
        (";", "1.200,5", ".", "beside plain numbers: is that 1200.5? Say so with --thousands '.'"),
    ],
)
def test_numbers_that_spreadsheets_part_are_asked_about(tmp_path, delimiter, cell, thousands, told):
    """They used to become categories."""
    rows = "".join(
        f'"{cell}"{delimiter}{i}{delimiter}yes\n950{delimiter}{i}{delimiter}no\n' for i in range(20)
    )
    (tmp_path / "rows.csv").write_text(f"income{delimiter}b{delimiter}label\n{rows}")
    train = ("train", tmp_path / "rows.csv", *TRAIN, "--out", tmp_path / "m.safetensors")
    refused = run(*train)
    assert refused.exit_code == 1
    assert f"column 'income' of {tmp_path / 'rows.csv'} has {cell!r} {told}" in refused.stderr
    ok(*train, "--thousands", thousands)
    predict = ("predict", tmp_path / "m.safetensors", tmp_path / "rows.csv")
    refused = run(*predict)
    assert refused.exit_code == 1
    assert f"line 2: 'income' is {cell!r}, which is not a finite number" in refused.stderr
    assert f"say so with --thousands {thousands!r}" in refused.stderr
    assert ok(*predict, "--thousands", thousands).stdout.count("yes,1,income") == 20
    value = float(cell.replace(thousands, "").replace(",", "."))
    assert thresholds(tmp_path / "m.safetensors") == {(value + 950) / 2}
    ok(*train, "--categorical", "income", "--force")
    assert set(budgetforest.load(tmp_path / "m.safetensors").forest_.schema.categories[0]) == {cell, "950"}


@pytest.mark.parametrize(
    ("cells", "options", "prices"),
    [
        (("1.200", "950", "3"), ("--thousands", "."), [1200.0, 950.0, 3.0]),
        (("1.200", "950", "3"), ("--decimal", "."), [1.2, 950.0, 3.0]),
        (("1,200", "950", "3"), ("--decimal", "."), [1200.0, 950.0, 3.0]),
        (("1.234.567,5", "7.27", "3,5"), ("--decimal", ","), [1234567.5, 7.27, 3.5]),
    ],
)
def test_thousands_in_price_lists_are_what_the_options_say(folder, tmp_path, cells, options, prices):
    lines = zip(("a", "b", "colour"), cells, strict=True)
    (tmp_path / "costs.csv").write_text("feature;cost\n" + "".join(f"{a};{cell}\n" for a, cell in lines))
    costly = (folder / "rows.csv", "--costs", tmp_path / "costs.csv")
    train = ("train", *costly, *TRAIN, "--out", tmp_path / "m.safetensors")
    assert run(*train).exit_code == 1
    assert run("check", *costly, "--target", "label").exit_code == 1
    ok(*train, *options)
    ok("check", *costly, "--target", "label", *options)
    assert budgetforest.load(tmp_path / "m.safetensors").costs_.cost.tolist() == prices
