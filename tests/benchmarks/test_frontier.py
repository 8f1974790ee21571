"""The table of cells: who errs least at every budget, and the totals."""

import json

import matplotlib as mpl
import numpy as np
import pytest

from benchmarks import frontier
from benchmarks.data import load
from benchmarks.frontier import cells, page
from benchmarks.frontier.cells import OURS
from benchmarks.methods import methods
from budgetforest.data.costs import read_costs

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


def test_budgets_begin_where_something_can_be_bought():
    few = cells.ladder(read_costs([1.0, 2, 0, 1, 4, 2], None, list("abcdef")))
    many = cells.ladder(read_costs(np.ones(200), None, [f"x{j}" for j in range(200)]))
    assert (few[0], few[-1], len(few)) == pytest.approx((1, 4, 8))
    assert (many[0], many[-1]) == pytest.approx((4, 80))
    np.testing.assert_allclose(np.diff(np.log(many)), np.log(20) / 7)


def test_a_row_tested_twice_is_one_row():
    losses = np.array([[1.0, 0, 1]]), np.array([[0.0, 0, 1]])
    mean = cells.mean_losses(losses, [np.array([7, 2, 4]), np.array([4, 9, 2])])
    np.testing.assert_allclose(mean, [[0.5, 0.5, 1, 0]])  # rows 2, 4, 7, 9


def test_few_test_rows_are_split_again():
    assert cells.splits_of(load("wdbc")) == 5
    assert cells.splits_of(load("wdbc"), quick=True) == 2
    many = load("wdbc")
    times = 15
    more = many._replace(X=many.X.iloc[np.tile(np.arange(569), times)], y=np.tile(many.y, times))
    assert cells.splits_of(more) == 1


def figures(**errors):
    """A set of one budget per error; every interval is ten hundredths wide."""
    made = {
        title.replace("_", " "): {
            "at": [(e, e, e) for e in line],
            "apart": {
                own: [(e - o, e - o - 0.05, e - o + 0.05) for e, o in zip(line, errors[OURS], strict=True)]
                for own in cells.OWN
            },
        }
        for title, line in errors.items()
    }
    made["BudgetRF, certain exit"] = made["BudgetRF"]
    made[cells.MEASURED] = made[OURS]
    budgets = [2.0**place for place in range(len(errors[OURS]))]
    return {
        "title": "toy", "note": "", "rows": [4, 2, 2], "splits": 1,
        "budgets": budgets, "methods": made,
    }  # fmt: skip


def test_the_peer_of_a_cell_errs_least_and_is_not_our_own():
    found = page.cells(figures(budgetforest=[0.2, 0.0], BudgetRF=[0.4, 0.3], other=[0.3, 0.1]))
    assert [(cell.peer, cell.theirs, cell.paper, cell.low) for cell in found] == [
        ("other", 0.3, 0.4, True),
        ("other", 0.1, 0.3, False),
    ]


@pytest.mark.parametrize(
    ("other", "paper", "held"),
    [
        ([0.3, 0.3, 0.2, 0.2], [0.3] * 4, [True, True, True]),
        ([0.3, 0.2, 0.2, 0.2], [0.3] * 4, [True, False, True]),
        ([0.3, 0.3, 0.2, 0.1], [0.3] * 4, [False, True, True]),
        ([0.3, 0.3, 0.1, 0.2], [0.3, 0.3, 0.12, 0.3], [False, True, False]),
    ],
)
def test_criteria_fail_where_they_must(other, paper, held):
    found = page.cells(figures(budgetforest=[0.2] * 4, BudgetRF=paper, other=other))
    assert [holds for _, _, holds in page.criteria(found)] == held


def refuses(task):
    raise RuntimeError("measured again")


def test_a_set_is_measured_once_and_the_page_is_written_from_files(tmp_path, monkeypatch):
    mpl.use("svg")
    titles = (*cells.OWN, *page.PAPER)
    monkeypatch.setattr(frontier, "methods", lambda: {title: methods()[title] for title in titles})
    frontier.run(["wdbc"], quick=True, out=tmp_path)
    found = json.loads((tmp_path / "frontier" / "wdbc.json").read_text())
    assert (found["splits"], len(found["budgets"])) == (2, 8)
    assert set(found["methods"]) == set(titles)
    for method in found["methods"].values():
        assert all(low <= mean <= high for own in cells.OWN for mean, low, high in method["apart"][own])
    text = (tmp_path / "frontier.md").read_text()
    assert text.count("**fail**") + text.count("| pass |") == 6
    assert (tmp_path / "frontier.svg").stat().st_size > 5000
    monkeypatch.setattr(frontier, "methods", lambda: {cells.OURS: refuses})
    frontier.run(["wdbc"], quick=True, out=tmp_path)
    assert (tmp_path / "frontier.md").read_text() == text
    with pytest.raises(RuntimeError, match="measured again"):
        frontier.run(["wdbc"], quick=True, out=tmp_path, again=True)
    ours = {title: methods()[title] for title in cells.OWN}
    monkeypatch.setattr(
        frontier, "methods", lambda: ours | dict.fromkeys((*page.PAPER, "never kept"), refuses)
    )
    frontier.run(["wdbc"], quick=True, out=tmp_path, again=True)
    # beside the kept runs: peers without one are left out
    same = json.loads((tmp_path / "frontier" / "wdbc.json").read_text())
    for m in (*found["methods"].values(), *same["methods"].values()):
        del m["seconds"]
    assert same == found


def test_all_methods_on_a_small_set(tmp_path):
    mpl.use("svg")
    frontier.run(["wdbc"], quick=True, out=tmp_path)
    text = (tmp_path / "frontier.md").read_text()
    assert all(f"| {title} |" in text for title in methods() if title != cells.OURS)
