"""Tables that others printed: the recipes of the rows, and the page."""

import numpy as np
import pytest

from benchmarks import external
from benchmarks.external import relevant, tables

pytestmark = pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")


def test_of_cube_three_features_in_a_row_tell_the_class():
    (X, y), *_ = tables.cube(False, 0)
    assert X.shape == (10_000, tables.FEATURES)
    for c in range(tables.CLASSES):
        mean, spread = X[y == c].mean(axis=0), X[y == c].std(axis=0)
        bits = [(c >> bit) & 1 for bit in range(3)]
        np.testing.assert_allclose(mean[c : c + 3], bits, atol=0.05)
        np.testing.assert_allclose(spread[c : c + 3], tables.SIGMA, atol=0.03)
        others = np.delete(np.arange(tables.FEATURES), np.arange(c, c + 3))
        np.testing.assert_allclose(mean[others], 0.5, atol=0.06)
        assert X[:, others].min() < 0  # of other classes


def test_blocks_are_two_by_two():
    pytest.importorskip("pyarrow")
    try:
        groups = tables.blocks()
    except external.Absent as absent:
        pytest.skip(str(absent))
    names = list(groups)
    assert len(set(groups.values())) == 196
    assert len({groups[names[at]] for at in (0, 1, 28, 29)}) == 1
    assert groups[names[2]] != groups[names[1]]
    assert groups[names[56]] != groups[names[28]]


def test_printed_figures_stand_at_their_budgets():
    for table in tables.TABLES.values():
        for printed in table.printed.values():
            assert set(printed) <= set(table.budgets)
            assert all(0 < accuracy < 1 for accuracy in printed.values())


def test_the_page_shows_ours_beside_theirs(tmp_path, monkeypatch):
    def parts(quick, seed):
        rng = np.random.default_rng(0)
        X = rng.random((900, 2))
        y = (X[:, 0] > 0.5).astype(int)
        return (X[:300], y[:300]), (X[300:600], y[300:600]), (X[600:], y[600:])

    table = external.Table("Halves", "Two features.", parts, (1, 2), {"Others": {2: 0.5}})
    monkeypatch.setitem(tables.TABLES, "cube", table)
    external.run(("cube",), quick=True, out=tmp_path)
    page = (tmp_path / "external.md").read_text()
    assert "| Others |  | 50.00% |" in page
    assert "| budgetforest 0.1 | 4" in page  # as it was measured
    assert "Behind what the others printed at 0 of the 1 budgets that they have." in page
    assert "300 / 300 / 300 rows for training, validation and test" in page


def test_figures_are_means_over_splits(tmp_path, monkeypatch):
    asked = []

    def parts(quick, seed):
        asked.append(seed)
        rng = np.random.default_rng(seed)
        X = rng.random((600, 2))
        y = (X[:, 0] > 0.5).astype(int)
        return (X[:200], y[:200]), (X[200:400], y[200:400]), (X[400:], y[400:] if seed else 1 - y[400:])

    table = external.Table("Halves", "Two features.", parts, (0.3, 2), {}, splits=2)
    found = external.measure(table, quick=False)
    assert asked == [0, 1]
    assert [budget for budget, *_ in found["found"]] == [0.3, 2]
    accuracy = [each[2] for each in found["found"]]
    assert accuracy == pytest.approx([0.5, 0.5], abs=0.1)  # nearly all right, and nearly all wrong


@pytest.mark.parametrize("name", relevant.SETS)
def test_only_relevant_features_matter(name):
    X, y, matters = relevant.rows_of(name, 2_000, seed=0)
    below, above = relevant.SETS[name]
    first = X[:, relevant.SWITCH] < 0
    for rule, where in ((below, first), (above, ~first)):
        assert {tuple(np.flatnonzero(row)) for row in matters[where]} == {
            (*relevant.RULES[rule], relevant.SWITCH)
        }
        others = np.where(matters, X, np.random.default_rng(1).standard_normal(X.shape))
        np.testing.assert_array_equal(relevant.logits(others[where], rule), relevant.logits(X[where], rule))
    # a large logit of the rule means class 0
    sure = np.where(first, relevant.logits(X, below), relevant.logits(X, above)) > 3
    assert sure.sum() > 50
    assert y[sure].mean() < 0.1


def test_features_count_until_the_last_that_matters():
    matters = np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 0, 1, 0]], bool)
    order = np.array([[2, 1, 0, 3], [0, 1, -1, -1], [2, -1, -1, -1]])
    assert relevant.last_that_matters(order, matters).tolist() == [3, 4, 1]  # the second row ended before


def test_the_page_counts_features_until_all_relevant_ones(tmp_path):
    external.run(("relevant",), quick=True, out=tmp_path)
    page = (tmp_path / "external.md").read_text()
    assert "| SEFA | 4.02 |" in page
    assert "of the 1 sets." in page
