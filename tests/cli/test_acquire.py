"""One case at the keyboard: help, answers taken back, records."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import budgetforest
from budgetforest import BudgetForestClassifier, save
from budgetforest.cli import main
from budgetforest.estimators.model import Model

ROW = {"age": "52", "dose": "7.5", "mri": "0.25", "sex": "f"}


def run(*arguments, **options):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False, **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file whose trees ask for four features."""
    rng, n = np.random.default_rng(0), 400
    rows = pd.DataFrame(
        {
            "age": rng.choice([30.0, 52.0, 80.0], n),
            "dose": rng.choice([0.3, 7.5, 14.0], n),
            "mri": rng.choice([-1.0, 0.25, 1.0], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    ill = rows["mri"] + (rows["dose"] - 7) / 7 + (rows["age"] - 55) / 40 + (rows["sex"] == "m") > 0.4
    forest = BudgetForestClassifier(
        costs=[1, 2, 4, 5], alpha=0.0, max_trees=15, method="paper", answer="proba", random_state=0
    )
    path = tmp_path_factory.mktemp("acquire") / "model.safetensors"
    save(forest.fit(rows, np.where(ill, "ill", "well")), path)
    return path


@pytest.fixture(scope="module")
def asked(model):
    """The features that the row is asked for, in order."""
    features = [step.feature for step in budgetforest.load(model).predict_one(typed_value).trace]
    assert len(features) >= 3
    assert features[0] != "sex"
    return features


def typed_value(name):
    return ROW[name] if name == "sex" else float(ROW[name])


def typed(*answers):
    return "".join(f"{answer}\n" for answer in answers)


def decided(model, *options, answers):
    """The decision, without what took place before it."""
    done = run("acquire", model, "--json", *options, input=typed(*answers))
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_help_says_what_why_and_what_is_known(model, asked):
    answers = [ROW[name] for name in asked]
    plain, _ = decided(model, answers=answers)
    for word in ("?", "help", "HELP"):
        helped, said = decided(model, answers=[word, answers[0], word, *answers[1:]])
        assert helped == plain
        assert "accepted: a number, 30 to 80 in training; unknown if it cannot be had" in said
        assert f"why {asked[0]}: may move the belief by" in said
        assert f"price: costs {plain['trace'][0]['cost']:g}; 0 spent so far" in said
        assert "known: nothing yet" in said
        assert f"known: {asked[0]} = {answers[0]}" in said


def test_undone_answers_leave_nothing_behind(model, asked):
    answers = [ROW[name] for name in asked]
    plain, _ = decided(model, answers=answers)
    wrong = {"sex": "m"}.get(asked[1], "1")
    once, said = decided(model, answers=[answers[0], wrong, "undo", *answers[1:]])
    assert once == plain
    assert f"took back {asked[1]}\n  known: {asked[0]} = {answers[0]}\n" in said
    again, said = decided(model, answers=[*answers[:2], "undo", "UNDO", "undo", *answers])
    assert again == plain
    assert said.count("took back") == 2
    assert said.count("there is nothing to undo") == 1
    lost, _ = decided(model, answers=["unknown", "undo", *answers])
    assert lost == plain


def test_a_category_is_a_value_before_it_is_a_command(tmp_path):
    last = np.array(["undo", "redo"] * 50)
    model = BudgetForestClassifier(method="paper", alpha=0.0, max_trees=1, random_state=0)
    save(model.fit(pd.DataFrame({"last": last}), last == "undo"), tmp_path / "m.safetensors")
    decision, said = decided(tmp_path / "m.safetensors", answers=["undo"])
    assert (decision["trace"][0]["value"], decision["label"]) == ("undo", True)
    assert "redo, undo, or unknown:" in said


def test_what_is_known_is_repeated_before_the_first_question(model):
    done = run("acquire", model, "--known", "sex=m", "--known", "age=unknown", input="")
    assert done.stderr.startswith("  known: sex = m, age = unknown\n")


def test_numbers_outside_of_training_are_asked_for_again(model, asked, monkeypatch):
    ranges = {name: (0.3, 14.0) for name in asked if name != "sex"}
    monkeypatch.setattr(Model, "feature_ranges_", ranges, raising=False)
    done = run("acquire", model, "--json", input=typed("14000", "7", *["unknown"] * 3))
    assert "a number, 0.3 to 14 in training, or unknown:" in done.stderr
    assert "14000 is outside 0.3 to 14; type it again to keep it" in done.stderr
    assert json.loads(done.stdout)["trace"][0]["value"] == 7.0
    done = run("acquire", model, "--json", input=typed("14000", "14000", *["unknown"] * 3))
    assert json.loads(done.stdout)["trace"][0]["value"] == 14000.0
    done = run("acquire", model, input=typed("14000", "15000", "15000", *["unknown"] * 3))
    assert done.stderr.count("type it again") == 2
    for inside in ("0.3", "14", "unknown"):
        assert "type it again" not in run("acquire", model, input=typed(inside)).stderr


def test_known_numbers_outside_of_training_are_pointed_out(model, asked):
    done = run(
        "acquire", model, "--known", "age=200", input=typed(*[ROW[name] for name in asked if name != "age"])
    )
    assert done.exit_code == 0
    assert done.stderr.startswith(
        "note: 200 is outside 30 to 80, where 'age' was in training; it is taken as known\n"
    )
    for inside in ("age=30", "age=80", "age=unknown", "sex=m"):
        assert "outside" not in run("acquire", model, "--known", inside).stderr


def test_what_could_not_be_had_is_null_beside_the_reason(model, asked):
    decision, _ = decided(model, answers=["unknown", *[ROW[name] for name in asked[1:]], "1", "1"])
    first, second, *_ = decision["trace"]
    assert (first["value"], first["unavailable"]) == (None, "unavailable")
    assert decision["unavailable"] == {asked[0]: "unavailable"}
    assert second["value"] == typed_value(asked[1])
    assert second["unavailable"] is None


def test_a_comma_that_may_part_thousands_is_asked_about(model, asked, tmp_path):
    told = "'age' is '1,200': is that 1200 or 1.2? Write one of these, or say with --decimal"
    known = ("acquire", model, "--known", "age=1,200", "--record", tmp_path / "case.json")
    refused = run(*known)
    assert refused.exit_code == 1
    assert told in refused.stderr
    for option, number in (("--decimal", 1.2), ("--thousands", 1200.0)):
        run(*known, option, ",", "--force", input="")
        assert json.loads((tmp_path / "case.json").read_text())["known"] == {"age": number}
    done = run("acquire", model, "--json", input=typed("1,200", "7,5", "7,5", *["unknown"] * 3))
    assert f"{asked[0]!r} is '1,200': is that 1200 or 1.2?" in done.stderr
    assert json.loads(done.stdout)["trace"][0]["value"] == 7.5
    plain = ("acquire", model, "--known", "age=1.234", "--record", tmp_path / "case.json", "--force")
    run(*plain, input="")
    run(
        "acquire",
        model,
        "--resume",
        tmp_path / "case.json",
        "--record",
        tmp_path / "again.json",
        "--decimal",
        ",",
    )
    assert json.loads((tmp_path / "again.json").read_text())["known"] == {"age": 1.234}


def test_a_record_keeps_the_whole_case(model, asked, tmp_path):
    path = tmp_path / "case.json"
    answers = ["unknown", *[ROW[name] for name in asked[1:]], "1", "1"]
    options = ("--record", path, "--limit", "60", "--known", "sex=m")
    decision, _ = decided(model, *options, answers=[a for a in answers if a != "m"])
    record = json.loads(path.read_text())
    assert record["model"] == "model.safetensors"
    assert (record["limit"], record["known"]) == (60, {"sex": "m"})
    assert record["steps"][0] == {"feature": decision["trace"][0]["feature"], "value": None, "cost": 0}
    assert [s["cost"] for s in record["steps"]] == [s["cost"] for s in decision["trace"]]
    assert record["spent"] == decision["spent"] == sum(step["cost"] for step in record["steps"])
    assert (record["label"], record["decided"]) == (decision["label"], True)
    assert list(record["belief"].values()) == decision["belief"]
    assert record["time"].endswith("+00:00")
    refused = run("acquire", model, "--record", path)
    assert refused.exit_code == 2
    assert "exists; pass --force to replace it." in refused.stderr


def test_a_case_that_ends_early_goes_on_where_it_was(model, asked, tmp_path):
    answers = [ROW[name] for name in asked]
    plain, _ = decided(model, "--limit", "50", answers=answers)
    done = run("acquire", model, "--limit", "50", "--record", tmp_path / "a.json", input=typed(*answers[:2]))
    assert done.exit_code == 1
    assert f"saved the answers so far; go on with --resume {tmp_path / 'a.json'}" in done.stderr
    assert f"the input ended when {asked[2]!r} was asked for" in done.stderr
    early = json.loads((tmp_path / "a.json").read_text())
    assert not early["decided"]
    assert len(early["steps"]) == 2
    resumed = ("--resume", tmp_path / "a.json")
    after, said = decided(model, *resumed, "--record", tmp_path / "b.json", answers=answers[2:])
    assert after == plain
    assert f"  known: {asked[0]} = {answers[0]}, {asked[1]} = {answers[1]}" in said
    undone, _ = decided(model, *resumed, answers=["undo", *answers[1:]])
    assert undone == plain
    nothing_left, said = decided(model, "--resume", tmp_path / "b.json", answers=[])
    assert nothing_left == plain
    assert said == ""


def test_options_count_more_than_the_record(model, asked, tmp_path):
    answers = [ROW[name] for name in asked]
    run("acquire", model, "--record", tmp_path / "a.json", input=typed(*answers[:2]))
    resumed = ("--resume", tmp_path / "a.json")
    known = [f"--known={name}={ROW[name]}" for name in asked]
    decision, _ = decided(model, *resumed, *known, answers=[])
    assert decision["spent"] == 0
    _, said = decided(model, *resumed, f"--known={asked[0]}=80", answers=answers[2:])
    assert f"known: {asked[0]} = 80, {asked[1]} = {answers[1]}\n" in said
    done = run("acquire", model, *resumed, "--limit", "0.5")
    assert done.exit_code == 1
    assert "--limit is 0.5; it must be as much as the record has paid" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"known": {"mrii": 1}},
            "is of another model: 'mrii' is not a feature of this one; did you mean 'mri'?",
        ),
        (
            {"steps": [{"feature": "crp", "value": 1}]},
            "is of another model: 'crp' is not a feature of this one",
        ),
        ({"known": {"sex": "x"}}, "is of another model: 'sex' is 'x'; it must be one of f, m, or"),
        ({"known": {"age": "old"}}, "is of another model: 'age' is 'old'; it must be a finite number"),
        ({"steps": 3}, "must be a record as `acquire --record` writes it"),
        ({"steps": [{"feature": 3, "value": 1}]}, "must be a record as `acquire --record` writes it"),
        ({"known": [1]}, "must be a record as `acquire --record` writes it"),
        ({"limit": "much"}, "must be a record as `acquire --record` writes it"),
        (None, "must be a record as `acquire --record` writes it"),
    ],
)
def test_records_of_other_models_and_other_files_are_refused(model, tmp_path, change, message):
    empty = {"model": model.name, "budget": None, "limit": None, "answer": None, "known": {}, "steps": []}
    (tmp_path / "a.json").write_text("a,b" if change is None else json.dumps(empty | change))
    done = run("acquire", model, "--resume", tmp_path / "a.json", "--record", tmp_path / "b.json")
    assert done.exit_code == 1
    assert message in done.stderr
    assert not (tmp_path / "b.json").exists()


def test_another_name_of_the_model_is_noted(model, tmp_path):
    other = {
        "model": "m.safetensors",
        "budget": None,
        "limit": None,
        "answer": None,
        "known": {},
        "steps": [],
    }
    (tmp_path / "a.json").write_text(json.dumps(other))
    done = run("acquire", model, "--resume", tmp_path / "a.json", input="")
    assert "note: the record is of the model 'm.safetensors', this one is 'model.safetensors'" in done.stderr


def test_ctrl_c_saves_the_record(model, asked, tmp_path):
    command = [sys.executable, "-m", "budgetforest", "acquire", model, "--record", tmp_path / "a.json"]
    listens = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(list(map(str, command)), text=True, env=os.environ, **listens, **pipes) as running:
        running.stdin.write(f"{ROW[asked[0]]}\n")
        running.stdin.flush()
        heard = ""
        while heard.count("or unknown:") < 2:
            heard += running.stderr.read(1)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "saved the answers so far" in errors
    assert errors.endswith("stopped\n")
    assert [step["feature"] for step in json.loads((tmp_path / "a.json").read_text())["steps"]] == asked[:1]
