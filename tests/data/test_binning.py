"""Columns as codes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgetforest.data.bin_edges import BUCKETS_FROM, FINE, census_of, find_points, midpoints, points_of
from budgetforest.data.binning import columns_of, encode, single_valued
from budgetforest.data.table import Picked
from budgetforest.runtime.random import in_order

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(FINITE, min_size=1, max_size=60), st.integers(2, 20), st.data())
def test_code_is_at_most_b_if_and_only_if_the_value_is_at_most_edge_b(values, max_bins, data):
    column = np.array(values) + 0.0
    weights = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(values), max_size=len(values))))
    edges = find_points(column, weights, ranked=False, max_bins=max_bins)
    codes = np.empty(len(column), np.uint8)
    place = np.random.default_rng(len(values)).permutation(len(values)).astype(np.int32)
    encode(column, edges, len(edges) + 1, place, codes)
    assert len(edges) < max_bins
    assert (np.diff(edges) > 0).all()
    for b, edge in enumerate(edges):
        np.testing.assert_array_equal(codes[place] <= b, column <= edge)


@pytest.mark.parametrize("max_bins", [2, 5, 256])
def test_whole_numbers_among_others_have_the_codes_of_a_search(max_bins):
    values = np.array([-3.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 7.5, 1e9, np.inf, np.nan])
    column = np.random.default_rng(0).choice(values[:9], BUCKETS_FROM)
    edges = find_points(column, None, ranked=False, max_bins=max_bins)
    codes = np.empty(len(column), np.uint8)
    column[: len(values)] = values
    assert encode(column, edges, 77, np.arange(len(column), dtype=np.int32), codes)
    expected = np.where(np.isnan(column), 77, np.searchsorted(edges, column))
    np.testing.assert_array_equal(codes, expected)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80), st.integers(2, 10), st.integers(0, 9))
def test_edges_know_neither_row_order_nor_the_difference_of_weight_and_repetition(values, bins, seed):
    column = np.array(values, float)
    times = np.random.default_rng(seed).integers(1, 4, len(column))
    turned = np.random.default_rng(seed).permutation(len(column))
    weighted = find_points(column[turned], times[turned], ranked=False, max_bins=bins)
    once = np.ones(times.sum(), int)
    np.testing.assert_array_equal(
        weighted, find_points(column.repeat(times), once, ranked=False, max_bins=bins)
    )


def test_bins_of_a_continuous_column_are_equally_full():
    column = np.random.default_rng(0).random(10_000)
    edges = find_points(column, np.ones(10_000, int), ranked=False, max_bins=100)
    counts = np.histogram(column, [-1, *edges, 2])[0]
    assert len(counts) == 100
    assert set(counts) == {100}


@given(st.lists(st.integers(0, 300), min_size=1, max_size=400), st.integers(2, 40), st.booleans())
def test_edges_of_rows_that_weigh_1_are_those_of_the_whole_census(values, bins, gaps):
    column = np.array(values, float)
    column[: gaps * len(column) // 3] = np.nan
    whole = points_of(census_of(column, None), ranked=False, max_bins=bins)
    np.testing.assert_array_equal(find_points(column, None, ranked=False, max_bins=bins), whole)


@pytest.mark.parametrize("bins", [2, 20, 256])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["even", "normal", "skewed", "sparse", "rounded", "whole", "huge", "tiny", "one"]
)
@pytest.mark.parametrize("fine", [FINE, BUCKETS_FROM])
def test_edges_of_many_rows_are_those_of_the_whole_census(name, dtype, bins, fine, monkeypatch):
    monkeypatch.setattr("budgetforest.data.bin_edges.FINE", fine)
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=BUCKETS_FROM + 500)
    column = {
        "even": rng.random(len(drawn)),
        "normal": drawn,
        "skewed": np.exp(10 * drawn),
        "sparse": np.where(drawn > 0.5, drawn, 0.0),
        "rounded": np.round(drawn, 1),
        "whole": np.round(900 * drawn),
        "huge": np.sign(drawn) * np.finfo(dtype).max * rng.random(len(drawn)),
        "tiny": np.finfo(dtype).smallest_subnormal * np.round(300 * drawn),
        "one": np.full(len(drawn), 0.1),
    }[name].astype(dtype)
    for gaps in (0, 300):
        column[:gaps] = np.nan
        whole = points_of(census_of(column, None), ranked=False, max_bins=bins)
        edges = find_points(column, None, ranked=False, max_bins=bins)
        np.testing.assert_array_equal(edges, whole)
        codes = np.empty(len(column), np.uint16)
        encode(column, edges, 300, np.arange(len(column), dtype=np.int32), codes)
        expected = np.where(np.isnan(column), 300, np.searchsorted(edges, column.astype(float)))
        np.testing.assert_array_equal(codes, expected)


def test_picked_rows_read_as_copied_ones_do():
    rng = np.random.default_rng(0)
    X = rng.random((2_500, 20), dtype=np.float32)
    X[:, 3], X[:, 4] = 1.0, np.nan
    rows = rng.permutation(len(X))[:2_100].astype(np.int32)
    picked, copied = Picked(X, rows), X[rows]
    np.testing.assert_array_equal(columns_of(picked, 16), copied[:, 16:].T)
    np.testing.assert_array_equal(picked[5:9], copied[5:9])
    assert single_valued(picked).tolist() == [j in (3, 4) for j in range(20)]
    assert (picked.shape, len(picked), picked.dtype) == (copied.shape, len(copied), copied.dtype)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(picked)), copied)


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, np.nextafter(1.0, 2)), (1e308, 1.7e308), (-5e-324, 0.0), (-1.7e308, 1.7e308)]
)
def test_midpoint_parts_its_neighbours(low, high):
    (middle,) = midpoints(np.array([low]), np.array([high]))
    assert low <= middle < high


def test_missing_values_have_the_code_after_the_last():
    column = np.array([1.0, np.nan, 3.0])
    codes = np.empty(3, np.uint8)
    encode(
        column,
        find_points(column, np.ones(3, int), ranked=False, max_bins=256),
        2,
        np.array([1, 0, 2], np.int32),
        codes,
    )
    assert codes.tolist() == [2, 0, 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=30))
def test_rows_stand_in_the_order_of_their_keys_also_where_the_upper_halves_are_tied(halves):
    keys = np.array([(high << 48) + low for high, low in halves], np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("budgetforest.runtime.random.places", lambda hashes, seed: hashes)
        np.testing.assert_array_equal(in_order(keys, 0), np.argsort(keys, kind="stable"))
