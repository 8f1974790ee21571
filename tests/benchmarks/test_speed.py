"""``make bench`` and the page of scale: every topic runs on few rows, and tells what was measured."""

import json
import math
import os
import sys

import matplotlib as mpl
import numpy as np
import pytest

from benchmarks import cluster, machine, speed
from benchmarks.speed import counts, growth, peak, turns
from benchmarks.speed.processes import run
from benchmarks.speed.sets import made
from benchmarks.speed.turns import QUICK_REPEATS
from budgetforest.growing.histogram import counter_for

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


def all_figures(figures):
    """Every measured second, megabyte or byte."""
    if isinstance(figures, float):
        yield figures
    elif isinstance(figures, dict | list):
        for part in figures.values() if isinstance(figures, dict) else figures:
            yield from all_figures(part)


LONG = pytest.mark.skipif("FULL" not in os.environ, reason="compiles, or grows for long: set FULL=1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "topic"),
    [
        pytest.param(
            suite, topic, marks=LONG if topic in ("start", "auto", "memory", "sent", "constants") else ()
        )
        for suite in (speed, cluster)
        for topic in suite.TOPICS
    ],
)
def test_topic_runs_and_its_page_is_written_from_figures(suite, topic, tmp_path):
    mpl.use("svg")
    suite.run((topic,), quick=True, out=tmp_path)
    page = (tmp_path / f"{suite.PAGE.name}.md").read_text()
    figures = json.loads((tmp_path / f"{topic}.json").read_text())
    measured = list(all_figures(figures))
    assert measured
    assert all(map(math.isfinite, measured))
    assert "A quick run on few rows" in page
    criteria = list(suite.TOPICS[topic].criteria(figures))
    assert criteria or topic == "constants"
    for what, found, holds in criteria:
        verdict = "pass" if holds else "**fail**"
        assert f"| {what} | {found} | {verdict}{machine.remark(figures['machine'])} |" in page
    for picture in (word.split(")")[0] for word in page.split("](")[1:]):
        assert (tmp_path / picture).stat().st_size > 1000


def test_a_page_tells_which_figures_others_may_have_disturbed():
    facts = {"day": "2026-01-01", "processor": "one", "cores": 2, "versions": {}, "quick": False}
    assert "not to be cited" in machine.note(facts | {"busy": 0.6})
    assert "not to be cited" not in machine.note(facts | {"busy": 0.1})
    remarks = [machine.remark(each) for each in (None, facts | {"busy": 0.6}, facts | {"busy": 0.1})]
    assert remarks == [", machine not noted", ", on a busy machine", ""]
    found = list(turns.criteria_of({"counts": counts, "growth": growth}, {"counts": {"runs": []}}))
    assert "| growth | not measured | |" in found
    assert not any("counts" in line for line in found)


def test_sides_take_turns_and_every_second_turn_is_reversed():
    calls = []
    times = turns.take_turns({name: lambda name=name: calls.append(name) for name in "ab"}, quick=True)
    assert "".join(calls) == "ab" + "abba"
    assert all(len(taken[kind]) == QUICK_REPEATS for taken in times.values() for kind in ("wall", "cpu"))


def test_the_exponent_of_a_power_is_found():
    sizes = [10, 20, 40, 100]
    taken = [3 * n**1.5 for n in sizes]
    assert growth.exponent(sizes, taken) == pytest.approx(1.5)
    assert growth.worst_doubling(sizes, taken) == pytest.approx(2**1.5)


def test_the_kernel_that_is_timed_counts_classes_by_code():
    codes, ends = counts.made_codes(500, 3, 4)
    label = np.repeat(np.arange(4), np.diff(ends, prepend=0))
    counter = counter_for(256, 4)
    counts.count_classes(codes, np.arange(500, dtype=np.int32), ends, np.ones(500, np.int32), counter)
    expected = np.zeros((4, 257), int)
    np.add.at(expected, (np.broadcast_to(label, codes.shape), codes), 1)
    np.testing.assert_array_equal(counter.tally, expected)


def test_made_rows_have_all_classes_and_something_to_learn():
    rows = made(5_000, 8, 4)
    assert rows.X.dtype == np.float32
    assert np.bincount(rows.y).min() > 1_000
    assert np.corrcoef(rows.X[:, :5].sum(axis=1), rows.y)[0, 1] > 0.8


@pytest.mark.skipif(not peak.RESET.exists(), reason="needs Linux")
def test_the_peak_is_that_of_the_action_alone():
    code = (
        "import numpy as np; from benchmarks.speed.peak import above; big = np.ones(40 << 20, np.uint8); "
        "del big; held = np.ones(20 << 20, np.uint8); print(above(lambda: np.ones(30 << 20, np.uint8).sum()))"
    )
    assert 29 < float(run([sys.executable, "-c", code]).output) < 36


def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match="nothing"):
        run([sys.executable, "-c", "import nothing"])
