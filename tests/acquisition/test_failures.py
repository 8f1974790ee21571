"""Failures are failures: mistakes of a source are told, and what cannot be had is not evidence."""

import asyncio
import contextlib
import math
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

import budgetforest.dask as on_cluster
from budgetforest import (
    UNAVAILABLE,
    BudgetForestClassifier,
    FeatureUnavailable,
    InvalidData,
    InvalidParameter,
    Need,
    SourceFailed,
    UnusualData,
    step,
)
from trees import labelled_rows


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y


@pytest.fixture(scope="module")
def model(rows):
    X, y = rows
    return BudgetForestClassifier(budget=5, max_trees=20, random_state=0).fit(X[:400], y[:400])


@pytest.fixture
def new(rows):
    return rows[0][400:]


def test_with_nothing_available_the_belief_is_the_base_rate(model, rows):
    decision = model.predict_one(lambda feature: None)
    base = np.bincount(rows[1][:400])
    assert decision.spent == 0
    assert not decision.certain
    assert decision.belief[1] == pytest.approx(model.forest_.prior[1] / model.forest_.prior.sum(), abs=1e-5)
    assert decision.belief[1] == pytest.approx(base[1] / base.sum(), abs=0.02)


@pytest.mark.parametrize("wrap", [lambda row: row, dict, lambda row: row.to_numpy(), list])
def test_a_source_that_cannot_be_called_is_refused(model, new, wrap):
    with pytest.raises(InvalidParameter, match=r"source is a \w+; it must be a function of a feature's name"):
        model.predict_one(wrap(new.iloc[0]))
    with pytest.raises(InvalidParameter, match="must be a function of a feature's name and rows"):
        model.predict_from(wrap(new.iloc[0]), new.index)
    with pytest.raises(InvalidParameter, match="must be a function"):
        asyncio.run(model.predict_one_async(wrap(new.iloc[0])))


def misspelt(feature):
    return no_such_name  # noqa: F821


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (misspelt, "NameError: name 'no_such_name' is not defined"),
        (lambda feature: {}[feature], "KeyError"),
        (lambda feature: "1.5", "value of '.*' is '1.5'; it must be a finite number"),
        (lambda feature: np.array([1.0]), r"value of '.*' is array\(\[1\.\]\); it must"),
        (lambda feature: pd.Series([1.0]), r"value of '.*' is 0 +1\.0"),
        (lambda feature: math.inf, "value of '.*' is inf"),
        (lambda feature: (1.0,), r"value of '.*' is \(1.0,\)"),
    ],
)
def test_mistakes_of_a_source_are_raised_at_once(model, source, told):
    with pytest.raises(SourceFailed, match=f"the source of '.*' failed: {told}"):
        model.predict_one(source)

    async def later(feature):
        return source(feature)

    with pytest.raises(SourceFailed, match=told):
        asyncio.run(model.predict_one_async(later))
    with pytest.raises(SourceFailed, match=r"the source of '.*' failed"):
        model.predict_from(lambda feature, rows: [source(feature) for _ in rows], range(3))


def test_the_error_keeps_what_was_paid_for(model, new):
    row, asked = new.iloc[1], []

    def source(feature):
        asked.append(feature)
        if len(asked) == 2:
            raise ZeroDivisionError
        return row[feature]

    with pytest.raises(SourceFailed, match="ZeroDivisionError; if ZeroDivisionError means") as caught:
        model.predict_one(source)
    assert caught.value.known == {asked[0]: row[asked[0]]}
    assert caught.value.spent == 1
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "error",
    [FeatureUnavailable("closed"), TimeoutError(), ConnectionResetError(), LookupError("no such test")],
)
def test_errors_that_mean_unavailable(model, new, error):
    row = new.iloc[0]
    lost = model.acquire().need.feature

    def source(feature):
        if feature == lost:
            raise error
        return row[feature]

    decision = model.predict_one(source, unavailable_on=LookupError)
    assert list(decision.unavailable) == [lost]
    assert str(error) in decision.unavailable[lost]
    assert lost not in decision.acquired
    assert decision.at_stake[lost] >= 0
    with pytest.raises(FeatureUnavailable, match=f"'{lost}' could not be acquired"):
        model.predict_one(source, unavailable="raise", unavailable_on=(LookupError,))


@pytest.mark.parametrize("kinds", ["TimeoutError", [1], KeyboardInterrupt, (ValueError, "x")])
def test_unavailable_on_lists_classes_of_errors(model, kinds):
    with pytest.raises(InvalidParameter, match=r"unavailable_on has .*; it must list classes of exceptions"):
        model.predict_one(lambda feature: 0.0, unavailable_on=kinds)


def test_a_policy_is_asked_before_a_mistake_is_raised(model, new):
    row, attempts = new.iloc[0], []

    def source(feature):
        attempts.append(feature)
        if len(attempts) == 1:
            raise RuntimeError("overloaded")
        return row[feature]

    decision = model.predict_one(source, unavailable=lambda feature, error, attempt: attempt < 3)
    assert not decision.unavailable
    attempts.clear()
    with pytest.raises(SourceFailed, match="overloaded"):
        model.predict_one(source, unavailable=lambda feature, error, attempt: False)


# Many rows ------------------------------------------------------------------------------------------


def shuffled(column):
    return column.sample(frac=1, random_state=1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda column: column,
        shuffled,
        lambda column: shuffled(column).to_dict(),
        lambda column: column.to_numpy(),
        lambda column: column.tolist(),
        iter,
    ],
)
def test_values_are_matched_by_index_keys_or_order(model, new, answer):
    found = model.predict_from(lambda feature, rows: answer(new[feature].loc[rows]), new.index)
    np.testing.assert_array_equal(found.labels, model.predict(new))
    np.testing.assert_allclose(found.spent, model.acquisition_cost(new))
    assert not found.unavailable.any()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda column: column.to_frame(), "it returned a dataframe; it must return a value for each row"),
        (lambda column: column.tolist()[1:], r"it returned \d+ values for \d+ rows"),
        (lambda column: column.reset_index(drop=True), "it returned a value for 0, which was not asked for"),
        (lambda column: pd.concat([column, column.iloc[:1]]), "it returned more than one value for 400"),
        (lambda column: column.to_frame().to_numpy(), r"it returned an array of shape \(\d+, 1\)"),
        (lambda column: column.astype(str), r"for 400, value of '.*' is '[\d.]+'"),
        (lambda column: "12", "it returned '12'; it must return a value for each row"),
        (lambda column: 3.5, r"it returned 3\.5; it must return a value for each row"),
        (lambda column: set(column), "it returned a set, which has no order"),
    ],
)
def test_answers_that_match_no_rows_are_refused(model, new, answer, told):
    with pytest.raises(SourceFailed, match=f"the source of '.*' failed: {told}"):
        model.predict_from(lambda feature, rows: answer(new[feature].loc[rows]), new.index)


def test_known_columns_are_matched_by_their_index(model, new):
    feature = model.acquire().need.feature
    shuffled = new[feature].sample(frac=1, random_state=0)

    def source(name, rows):
        return new[name].loc[rows]

    right = model.predict_from(source, new.index, known={feature: new[feature].tolist()})
    found = model.predict_from(source, new.index, known={feature: shuffled})
    np.testing.assert_array_equal(found.labels, right.labels)
    with pytest.raises(InvalidData, match=f"known '{feature}' holds a value for 0, which was not asked for"):
        model.predict_from(source, new.index, known={feature: shuffled.reset_index(drop=True)})


def test_what_cannot_be_known_or_rows_is_refused(model, new):
    def source(name, rows):
        return new[name].loc[rows]

    feature = model.acquire().need.feature
    for call in (model.acquire, lambda known: model.predict_from(source, new.index, known=known)):
        with pytest.raises(InvalidParameter, match="known is a list; it must map features to values"):
            call([1.0])
    with pytest.raises(InvalidParameter, match="known is a DataFrame"):
        model.predict_from(source, new.index, known=new)
    with pytest.raises(InvalidData, match=f"known '{feature}' holds 5.0; it must return a value"):
        model.predict_from(source, new.index, known={feature: 5.0})
    for rows in (5, None):
        with pytest.raises(InvalidParameter, match=f"rows is {rows}; it must list what the source knows"):
            model.predict_from(source, rows)


def test_an_error_of_ours_that_a_source_raises_is_its_own(model, new):
    inner = "limit is -1; it must be a number, zero or more, or None"

    def nested(feature, rows=None):
        return model.predict_one(lambda name: 1.0, limit=-1).label

    async def nested_async(feature, rows=None):
        return nested(feature)

    for call in (
        lambda: model.predict_one(nested),
        lambda: model.predict_from(nested, new.index),
        lambda: asyncio.run(model.predict_one_async(nested_async)),
        lambda: asyncio.run(model.predict_from_async(nested_async, new.index)),
    ):
        with pytest.raises(
            SourceFailed, match=f"the source of '.*' failed: InvalidParameter: {inner}"
        ) as got:
            call()
        assert np.sum(got.value.spent) == 0


@pytest.mark.parametrize("timeout", [-1, 0, math.nan, math.inf, "5", True])
def test_a_timeout_is_a_number_of_seconds(model, new, timeout):
    async def source(feature, rows=None):
        return new[feature].iloc[0] if rows is None else new[feature].loc[rows]

    told = f"timeout is {timeout!r}; it must be a number of seconds above 0"
    with pytest.raises(InvalidParameter, match=told):
        asyncio.run(model.predict_one_async(source, timeout=timeout))
    with pytest.raises(InvalidParameter, match=told):
        asyncio.run(model.predict_from_async(source, new.index, timeout=timeout))


def test_a_warning_of_many_rows_points_at_the_line_that_asked(model, new):
    async def nothing(feature, rows):
        return [None] * len(rows)

    async def ask():
        return await model.predict_from_async(nothing, new.index)

    with pytest.warns(UnusualData, match="rows lacked features") as told:
        asyncio.run(ask())
    assert told[0].filename == __file__
    with pytest.warns(UnusualData, match="rows lacked features") as told:
        model.predict_from(lambda feature, rows: [None] * len(rows), new.index)
    assert told[0].filename == __file__


def test_what_moves_a_belief_is_a_share(model, new):
    flow = model.acquire()
    moves = []
    while flow.need is not None:
        moves.append(flow.need.moves)
        with contextlib.suppress(StopIteration):
            flow.send(UNAVAILABLE)
    at_stake = flow.decide().at_stake
    assert len(at_stake) > 3
    assert all(0 < each < 1 for each in [*moves, *at_stake.values()])


def test_a_zero_that_was_not_asked_for_is_seen(model, new):
    with pytest.raises(SourceFailed, match="value for 0, which was not asked for"):
        model.predict_from(lambda feature, rows: {0: 1.0}, new.index)


def test_rows_that_a_mapping_lacks_are_unavailable(model, new):
    lost = new.index[3]
    first = model.acquire().need.feature

    def source(feature, rows):
        return new[feature].loc[[row for row in rows if (feature, row) != (first, lost)]]

    found = model.predict_from(source, new.index)
    j = model.forest_.schema.names.index(first)
    assert found.unavailable[3, j]
    assert found.unavailable.sum() == 1
    assert found.reasons == {first: f"the source has no value for {lost}"}
    others = np.arange(len(new)) != 3
    np.testing.assert_array_equal(found.labels[others], model.predict(new)[others])


def test_bulk_keeps_what_was_delivered_beside_a_mistake(model, new):
    def source(feature, rows):
        values = new[feature].loc[rows].tolist()
        return [*values[:-1], "lost"]

    with pytest.raises(SourceFailed) as caught:
        model.predict_from(source, new.index)
    [(first, values)] = caught.value.known.items()
    assert values[:-1] == new[first].tolist()[:-1]
    assert values[-1] is None
    assert caught.value.spent.tolist() == [1.0] * (len(new) - 1) + [0.0]
    done = model.predict_from(
        lambda feature, rows: new[feature].loc[rows], new.index, known=caught.value.known
    )
    np.testing.assert_array_equal(done.labels, model.predict(new))
    np.testing.assert_allclose(done.spent + caught.value.spent, model.acquisition_cost(new))


def test_a_mistake_is_told_also_beside_what_cannot_be_had(model, new):
    with pytest.raises(SourceFailed, match=r"for 401, value of '.*' is 'lost'"):
        model.predict_from(lambda feature, rows: [None, "lost", *rows[2:]], new.index)


def test_an_asynchronous_source_decides_many_rows(model, new):
    async def source(feature, rows):
        await asyncio.sleep(0)
        return new[feature].loc[rows]

    with pytest.raises(InvalidParameter, match="the source is asynchronous; use predict_from_async"):
        model.predict_from(source, new.index)
    found = asyncio.run(model.predict_from_async(source, new.index, in_flight=4))
    np.testing.assert_array_equal(found.labels, model.predict(new))
    np.testing.assert_allclose(found.spent, model.acquisition_cost(new))
    with pytest.raises(InvalidParameter, match="the source returned values, not an awaitable"):
        asyncio.run(model.predict_from_async(lambda feature, rows: new[feature].loc[rows], new.index))


def test_an_asynchronous_source_that_hangs_is_unavailable_or_cancelled(model, new):
    async def hangs(feature, rows):
        await asyncio.sleep(60)

    with pytest.warns(UnusualData, match="rows lacked features"):
        found = asyncio.run(model.predict_from_async(hangs, new.index[:20], timeout=0.01))
    assert not found.spent.any()
    assert set(found.reasons.values()) == {"TimeoutError"}

    async def cancelled():
        task = asyncio.create_task(model.predict_from_async(hangs, new.index[:5]))
        await asyncio.sleep(0.1)
        running = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        return task.cancelled() or isinstance(task.exception(), Exception)

    assert asyncio.run(cancelled())


def test_many_rows_that_lack_something_are_told_of(model, new):
    first = model.acquire().need.feature

    def without(share):
        lost = set(new.index[: int(share * len(new))])

        def source(feature, rows):
            column = new[feature].loc[rows]
            return [None if feature == first and row in lost else value for row, value in column.items()]

        return model.predict_from(source, new.index)

    with pytest.warns(UnusualData, match=rf"84 of 169 rows lacked features .*: '{first}' \(84\)"):
        without(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without(0.05)


def test_what_a_limit_ended_says_so(model, new):
    for limit in (0, 1, 2, None):
        bulk = model.predict_from(lambda feature, rows: new[feature].loc[rows], new.index, limit=limit)
        ones = [model.predict_one(row.__getitem__, limit=limit) for _, row in new.iterrows()]
        assert bulk.limited.tolist() == [one.limited for one in ones]
        assert bulk.limited.any() == (limit is not None)
        assert not (bulk.limited & bulk.certain).any()
    assert "stopped by the limit" in model.predict_one(new.iloc[0].__getitem__, limit=0).explain()


WRONG = {
    "raises": lambda column: (_ for _ in ()).throw(RuntimeError("boom")),
    "strings": lambda column: column.astype(str),
    "duplicates": lambda column: pd.concat([column, column]),
    "short": lambda column: column.tolist()[1:],
    "one for all": lambda column: float(column.iloc[0]),
    "two dimensions": lambda column: column.to_numpy()[:, None],
    "frame": lambda column: column.to_frame(),
    "of other rows": lambda column: column.reset_index(drop=True),
}
"""Mistakes of a source."""
HARMLESS = {
    "fine": lambda column: column,
    "reorders": shuffled,
    "keys": lambda column: column.to_dict(),
    "reorders keys": lambda column: shuffled(column).to_dict(),
}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_ten_thousand_decisions_through_bad_sources(model, new, asynchronous):
    """Each ends in the right decision or in an error that names the source; the bill is of what came."""
    rng = np.random.default_rng(0)
    right = {i: model.predict_one(row.__getitem__) for i, row in new.iterrows()}
    ways = [*HARMLESS, *WRONG, "lacks", *(["hangs"] if asynchronous else [])]
    for batch in range(-(-10_000 // len(new))):
        how, bad = ways[batch % len(ways)], int(rng.integers(4))
        calls, delivered, culprit = [], pd.Series(0.0, new.index), []

        def source(feature, rows, how=how, bad=bad, calls=calls, delivered=delivered, culprit=culprit):
            calls.append(feature)
            column = new[feature].loc[rows]
            if how not in HARMLESS and len(calls) == bad + 1:
                culprit.append(feature)
                if how in ("lacks", "hangs"):
                    raise ConnectionError
                return WRONG[how](column)
            delivered[list(rows)] += 1
            return HARMLESS.get(how, HARMLESS["fine"])(column)

        async def later(feature, rows, how=how, source=source):
            try:
                return source(feature, rows)
            except ConnectionError:
                await asyncio.sleep(60 if how == "hangs" else 0)
                raise

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnusualData)
                if asynchronous:
                    found = asyncio.run(model.predict_from_async(later, new.index, timeout=0.1))
                else:
                    found = model.predict_from(source, new.index)
        except SourceFailed as failure:
            paid, message = failure.spent, str(failure)
            assert how in WRONG
            assert f"'{culprit[0]}'" in message
            np.testing.assert_array_equal(paid, delivered)
        else:
            assert how not in WRONG or not culprit
            np.testing.assert_array_equal(found.spent, delivered)
            lost = found.unavailable.any(axis=1)
            assert lost.any() == bool(culprit)
            assert set(found.reasons) == set(culprit)
            assert not (found.unavailable & found.acquired).any()
            assert found.labels[~lost].tolist() == [right[i].label for i in new.index[~lost]]


def test_what_came_beside_a_failed_call_is_paid_for(model, new):
    """Of calls at the same time one fails: those that came before are in the error, with their price."""
    row = new.iloc[0]
    first = model.acquire(latency=1000).need
    assert first.together

    async def source(feature):
        if feature == first.feature:
            await asyncio.sleep(0.01)
            raise RuntimeError("boom")
        return row[feature]

    with pytest.raises(SourceFailed, match="boom") as caught:
        asyncio.run(model.predict_one_async(source, latency=1000))
    assert set(caught.value.known) == set(first.together)
    assert caught.value.spent == len(first.together)


def test_unavailable_known_values_are_denied_not_paid(model, new):
    first = model.acquire().need.feature
    known = {first: [UNAVAILABLE, *new[first].iloc[1:]]}
    found = model.predict_from(lambda feature, rows: new[feature].loc[rows], new.index, known=known)
    assert found.unavailable.sum() == 1
    assert not found.acquired[:, model.forest_.schema.names.index(first)].any()


# Laws -----------------------------------------------------------------------------------------------


def by_steps(forest, source):
    """A row by the pure function, which remembers nothing."""
    known, paid = {}, []
    while isinstance(what := step(forest, known, paid), Need):
        value = source(what.feature)
        known[what.feature] = UNAVAILABLE if value is None else value
        paid += [what.feature] if value is not None else []
    return what


@settings(max_examples=30)
@given(
    labelled_rows(max_rows=25, max_features=4, max_classes=4),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]), min_size=4, max_size=4),
    st.sampled_from([{"voting": "majority"}, {"voting": "soft"}, {"voting": "counts"}, {"method": "auto"}]),
    st.sampled_from([0.1, 0.4, 0.8]),
)
@pytest.mark.filterwarnings("ignore::budgetforest.BudgetForestWarning")
def test_what_cannot_be_had_is_neither_learnt_nor_paid_by_any_driver(data, prices, parameters, often):
    """One at a time, by steps, at the same time, in bulk; and in tables, where it is NaN and was paid for."""
    X, y = data
    price = np.array(prices[: X.shape[1]])
    chosen = {"method": "paper", "max_trees": 5, "random_state": 0, "budget": 4.0} | parameters
    model = BudgetForestClassifier(costs=price, **chosen).fit(X, y, validation=(X, y))
    lost = np.random.default_rng(len(X)).random(X.shape) < often
    holes = np.where(lost, math.nan, X)
    delivered = []

    def value(feature, i):
        j = int(feature[1:])
        if lost[i, j]:
            return None
        delivered.append((i, j))
        return X[i, j]

    async def later(feature, i):
        if (found := value(feature, i)) is None:
            raise ConnectionError
        return found

    bulk = model.predict_from(lambda feature, rows: [value(feature, i) for i in rows], range(len(X)))
    assert sorted(delivered) == [(i, j) for i, j in np.argwhere(bulk.acquired).tolist()]
    np.testing.assert_allclose(bulk.spent, bulk.acquired @ price)
    assert not (bulk.acquired & lost).any()
    assert not (bulk.unavailable & ~lost).any()
    for table, labels_of, costs_of in (
        (holes, model.predict, model.acquisition_cost),
        (da.from_array(holes, chunks=(7, -1)), *in_blocks(model)),
    ):
        np.testing.assert_array_equal(labels_of(table), bulk.labels)
        np.testing.assert_allclose(costs_of(table), bulk.spent + bulk.unavailable @ price)
    for i in range(0, len(X), 4):
        drivers = (
            lambda i=i: model.predict_one(lambda feature: value(feature, i)),
            lambda i=i: asyncio.run(model.predict_one_async(lambda feature: later(feature, i))),
            lambda i=i: by_steps(model.forest_, lambda feature: value(feature, i)),
        )
        for driver in drivers:
            delivered.clear()
            one = driver()
            assert [j for _, j in delivered] == [int(name[1:]) for name in one.acquired]
            assert one.spent == pytest.approx(sum(price[j] for _, j in delivered))
            assert set(one.unavailable) == {f"x{j}" for j in np.flatnonzero(bulk.unavailable[i])}
            assert set(one.acquired) == {f"x{j}" for j in np.flatnonzero(bulk.acquired[i])}
            assert (one.label, one.certain) == (bulk.labels[i], bulk.certain[i])
            assert all((s.value is UNAVAILABLE) == (s.feature in one.unavailable) for s in one.trace)


def in_blocks(model):
    """Labels and costs as a cluster computes them, block by block."""
    return (
        lambda table: on_cluster.predict(model, table).compute(scheduler="sync"),
        lambda table: on_cluster.acquisition_cost(model, table).compute(scheduler="sync"),
    )
