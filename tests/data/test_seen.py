"""What a model remembers of its training rows."""

import numpy as np
import pytest

from budgetforest import BudgetForestClassifier, UnusualData
from budgetforest.data.rows import Rows, keys_of, seen_in, together, totals_of
from budgetforest.data.seen import SKETCH, share_seen


def rows_of(X):
    hashes = np.random.default_rng(int(X[0, 0] * 1e6)).integers(0, 2**63, len(X)).astype(np.uint64)
    return Rows(X, np.zeros(len(X), np.int32), np.ones(len(X), np.int32), hashes)


def test_blocks_of_rows_add_up_to_what_all_rows_leave():
    X = np.random.default_rng(0).normal(size=(9_000, 3))
    X[::5, 1] = np.nan
    whole = rows_of(X)
    parts = [whole.take(slice(0, 10)), whole.take(slice(10, 5_000)), whole.take(slice(5_000, None))]
    seen, added = totals_of(whole, 1).seen, together([totals_of(part, 1) for part in parts]).seen
    for one, other in zip(seen, added, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(seen.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(seen.high, np.nanmax(X, axis=0))


@pytest.mark.parametrize("n", [500, 40_000])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_sketch_tells_how_many_rows_were_seen(n, share):
    rows = rows_of(np.random.default_rng(1).random((n, 1)))
    seen, rng = seen_in(rows), np.random.default_rng(2)
    assert len(seen.sketch) == min(n, SKETCH)
    known = rng.choice(rows.hashes, int(share * 5_000))
    other = rng.integers(0, 2**63, 5_000 - len(known)).astype(np.uint64)
    assert share_seen(seen, keys_of(np.concatenate([known, other]))) == pytest.approx(share, abs=0.06)


def test_too_few_rows_say_nothing():
    seen = seen_in(rows_of(np.random.default_rng(1).random((400_000, 1))))
    assert np.isnan(share_seen(seen, keys_of(np.arange(3, dtype=np.uint64))))


def test_a_report_on_rows_of_training_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    model = BudgetForestClassifier(2, max_trees=5, random_state=0).fit(X[:300], y[:300])
    with pytest.warns(UnusualData, match="training has seen 100% of these rows"):
        report = model.report(X[:200][::-1], y[:200][::-1])
    assert report.facts.seen == 1
    fresh = model.report(X[300:], y[300:], currency="EUR", row_name="patient")
    assert fresh.facts.seen == 0
    assert fresh.facts.verdicts[fresh.facts.chosen].startswith("Better than always answering")


def test_ranges_are_those_of_the_rows():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = BudgetForestClassifier(2, max_trees=3, random_state=0).fit(X, X[:, 0] > 0)
    assert model.feature_ranges_ == {
        f"x{j}": (pytest.approx(X[:, j].min()), pytest.approx(X[:, j].max())) for j in range(2)
    }
