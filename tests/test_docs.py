"""The documentation runs line by line."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["docs/live.md", "docs/modelfile.md", "docs/report.md", "README.md"])
@pytest.mark.filterwarnings("ignore::budgetforest.UnusualData")
def test_code_on_the_page_runs(page, capsys, monkeypatch, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in blocks:
        exec(block, scope)
    if page != "README.md":
        printed = capsys.readouterr().out
        assert "True" in printed
    if page.endswith("live.md"):
        assert "trees waited" in printed
