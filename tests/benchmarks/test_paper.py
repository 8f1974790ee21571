"""``make paper-quick``: every experiment runs, says what is absent, and gives the same figures again."""

import json
import math
import os

import matplotlib as mpl
import pytest

from benchmarks import pages, paper
from benchmarks.data import load
from benchmarks.paper import ablation, versus
from benchmarks.tasks import task_of
from benchmarks.workers import workers

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


def numbers(figures):
    if isinstance(figures, dict | list):
        for part in figures.values() if isinstance(figures, dict) else figures:
            yield from numbers(part)
    elif isinstance(figures, float):
        yield figures


@pytest.mark.slow
def test_page_is_written_from_figures(tmp_path):
    mpl.use("svg")
    paper.run(quick=True, out=tmp_path)
    page = (tmp_path / "results.md").read_text()
    for name in paper.EXPERIMENTS:
        figures = json.loads((tmp_path / f"{name}.json").read_text())
        assert all(map(math.isfinite, numbers(figures))), name
        for reason in figures.get("absent", []):
            assert f"Not measured: {reason}" in page
    for picture in ("examples", "figure4", "peers", "appendix"):
        assert f"({picture}.svg)" in page
        assert (tmp_path / f"{picture}.svg").stat().st_size > 5000
    if "BUDGETFOREST_DATA" in os.environ:
        assert "MiniBooNE (5,000 of 130,064 rows)" in page
    else:
        assert "Not measured: miniboone_tiny" in page


def test_two_runs_give_the_same_figures():
    task = task_of(load("wdbc"), quick=True)
    with workers(quick=False) as processes, workers(quick=True) as thread:
        first, second = (versus.compare(task, versus.begin(task, 2, pool)) for pool in (processes, thread))
    assert first == second


def test_figures_that_are_kept_still_make_the_page():
    page = (pages.ROOT / "docs" / "results.md").read_text()
    for name, experiment in paper.EXPERIMENTS.items():
        text = experiment.section(json.loads((pages.RESULTS / "paper" / f"{name}.json").read_text()))
        assert text.splitlines()[0] in page
        if experiment is ablation:
            assert text.strip() in page
