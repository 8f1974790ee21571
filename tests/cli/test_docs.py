"""The documentation runs line by line."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from budgetforest.cli import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/live.md", "docs/modelfile.md", "docs/report.md", "README.md"])
@pytest.mark.filterwarnings("ignore::budgetforest.UnusualData")
def test_code_on_the_page_runs(page, capsys, monkeypatch, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in blocks:
        exec(block, scope)
    if page in ("docs/live.md", "docs/modelfile.md"):
        printed = capsys.readouterr().out
        assert "True" in printed
    if page.endswith("live.md"):
        assert "trees used it" in printed


def commands_on(page):
    """The command lines of a page, without prompts and comments."""
    text = "\n".join(re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
    found = re.findall(r"(?m)^\$ budgetforest (.*?)(?:  +#.*)?$", text)
    return [shlex.split(line) for line in found]


def test_the_six_commands_lead_from_prices_to_a_report(monkeypatch, tmp_path):
    pytest.importorskip("altair")
    commands = commands_on("README.md")
    assert commands == commands_on("docs/cli.md")
    assert len(commands) == 6
    rng = np.random.default_rng(0)
    for name in ("patients.csv", "new.csv", "test.csv"):
        age, mri = rng.integers(20, 90, 200), rng.normal(size=200)
        state = np.where(mri + age / 50 > 1.2, "ill", "well")
        lines = [f"p{i},{age[i]},{mri[i]:.3f},{state[i]}" for i in range(200)]
        (tmp_path / name).write_text("\n".join(["id,age,mri,state", *lines]))
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = CliRunner().invoke(main, command, input="0.5\n" * 9, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    expected = {"costs.csv", "model.safetensors", "answers.csv", "curve.svg", "report.html"}
    assert expected <= {path.name for path in tmp_path.iterdir()}
