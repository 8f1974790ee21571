"""Live acquisition: one flow, many drivers, the same answers; certain means certain."""

import asyncio
import contextlib
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from budgetforest import (
    UNAVAILABLE,
    BudgetForestClassifier,
    Decision,
    FeatureUnavailable,
    InvalidData,
    InvalidParameter,
    InvalidValue,
    Need,
    acquire,
    step,
)
from budgetforest.runtime.arrays import LEAF
from budgetforest.trees.tree import next_node
from trees import labelled_rows

pytestmark = pytest.mark.usefixtures("quiet")

VOTING = st.sampled_from(["majority", "soft", "counts"])
ANSWER = st.sampled_from(["label", "proba"])
PRICES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]), min_size=5, max_size=5)


def fitted(X, y, **parameters):
    settings = {"alpha": 0, "max_trees": 5, "random_state": 0} | parameters
    return BudgetForestClassifier(**{"method": "paper"} | settings).fit(X, y)


def panel(prices, m):
    """Prices in which the first two features share an opening of 1."""
    names = [f"x{j}" for j in range(m)]
    rows = [
        f"{name},{price + (j < 2)},{'a' if j < 2 else ''},{price}"
        for j, (name, price) in enumerate(zip(names, prices, strict=False))
    ]
    return "\n".join(["feature,cost,group,discount_cost", *rows])


def value_of(row, feature):
    return float(row[int(feature[1:])])


def drive(flow, row):
    try:
        need = next(flow)
        while True:
            need = flow.send(value_of(row, need.feature))
    except StopIteration as end:
        return end.value


def by_steps(forest, row, **options):
    known, paid = {}, []
    while isinstance(next_step := step(forest, known, paid, **options), Need):
        known[next_step.feature] = value_of(row, next_step.feature)
        paid.append(next_step.feature)
    return next_step


def told(decision):
    return decision.label, decision.spent, decision.acquired, decision.certain


@settings(max_examples=12)
@given(labelled_rows(missing=True, max_rows=25), PRICES, VOTING, ANSWER)
def test_all_drivers_agree(tmp_path_factory, data, prices, voting, answer):
    X, y = data
    path = tmp_path_factory.mktemp("prices") / "prices.csv"
    path.write_text(panel(prices, X.shape[1]))
    model = fitted(X, y, costs=path, voting=voting, answer=answer)
    labels, costs, acquired = model.predict(X), model.acquisition_cost(X), model.acquired_features(X)
    bulk = model.predict_from(lambda feature, rows: [value_of(X[i], feature) for i in rows], range(len(X)))
    np.testing.assert_array_equal(bulk.labels, labels)
    np.testing.assert_allclose(bulk.spent, costs)
    np.testing.assert_array_equal(bulk.acquired, acquired)
    assert bulk.certain[~np.isnan(X).any(axis=1)].all()
    for i, row in enumerate(X):
        decision = drive(model.acquire(), row)

        async def source(feature, row=row):
            return value_of(row, feature)

        assert decision.label == labels[i]
        assert decision.spent == pytest.approx(costs[i])
        assert {f"x{j}" for j in np.flatnonzero(acquired[i])} == set(decision.acquired)
        assert decision.certain or np.isnan(row).any()
        assert decision.certain == bulk.certain[i]
        assert told(by_steps(model.forest_, row, answer=answer)) == told(decision)
        assert told(model.predict_one(lambda f, row=row: value_of(row, f))) == told(decision)
        assert told(asyncio.run(model.predict_one_async(source))) == told(decision)
        if answer == "proba":
            np.testing.assert_allclose(decision.proba, model.predict_proba(X[i : i + 1])[0])


@given(labelled_rows(missing=True), VOTING, st.integers(1, 9), PRICES)
def test_certain_exit_changes_no_label_and_never_costs_more(data, voting, trees, prices):
    X, y = data
    model = fitted(X, y, voting=voting, max_trees=trees, costs=prices[: X.shape[1]])
    full = model.predict_proba(X).argmax(axis=1)
    bulk = model.predict_from(lambda feature, rows: [value_of(X[i], feature) for i in rows], range(len(X)))
    np.testing.assert_array_equal(bulk.labels, model.classes_[full])
    full_cost = model.acquisition_cost(X, answer="proba")
    assert (model.acquisition_cost(X) <= full_cost * (1 + 1e-12)).all()
    assert (model.acquired_features(X) <= model.acquired_features(X, answer="proba")).all()


def leaves_below(nodes, node, known):
    """Leaves that what is known does not rule out."""
    feature = nodes.feature[node]
    if feature == LEAF:
        return [node]
    if feature in known:
        return leaves_below(nodes, next_node(nodes, node, known[feature]), known)
    return leaves_below(nodes, nodes.left[node], known) + leaves_below(nodes, nodes.right[node], known)


def full_label(forest, values):
    votes = np.zeros(len(forest.classes))
    for root in forest.roots[:-1]:
        node = int(root)
        while forest.nodes.feature[node] != LEAF:
            node = next_node(forest.nodes, node, values[forest.nodes.feature[node]])
        votes += forest.least[node]
    return votes.argmax()


@settings(max_examples=40)
@given(labelled_rows(max_rows=12, max_features=3, max_classes=3, max_value=3), st.integers(1, 4))
def test_exit_fires_exactly_when_no_choice_of_leaves_can_change_the_label(data, trees):
    """Sound: no completion of the unknown features changes the label. Tight: while it has not fired, some
    choice of one leaf of each tree that can still be reached would, as if trees were independent."""
    X, y = data
    forest = fitted(X, y, max_trees=trees).forest_
    grid = [np.unique(X[:, j]) for j in range(X.shape[1])]
    for row in X[:4]:
        flow = acquire(forest)
        while True:
            known = flow._state.values
            completions = itertools.product(
                *([known[j]] if j in known else grid[j] for j in range(len(grid)))
            )
            reachable = {full_label(forest, values) for values in completions}
            leaves = [leaves_below(forest.nodes, root, known) for root in forest.roots[:-1]]
            votes = {forest.least[list(choice)].sum(axis=0).argmax() for choice in itertools.product(*leaves)}
            if flow.need is None:
                assert {forest.classes.index(flow.decide().label)} == reachable == votes
                break
            assert len(votes) > 1
            try:
                flow.send(value_of(row, flow.need.feature))
            except StopIteration:
                continue


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.random((200, 5))
    y = (X[:, 0] + X[:, 1] > 1).astype(int) + (X[:, 2] > 0.8)
    parameters = {"alpha": 0, "impurity": "entropy", "criterion": "expected", "max_trees": 15}
    model = BudgetForestClassifier(
        method="paper", random_state=0, costs=[1.0, 2.0, 3.0, 4.0, 5.0], **parameters
    )
    return model.fit(X, y)


ROW = [0.5, 0.52, 0.79, 0.2, 0.9]


def test_known_values_are_free_and_never_asked_for(model):
    asked = []

    def source(feature):
        asked.append(feature)
        return value_of(ROW, feature)

    decision = model.predict_one(source, known={"x0": 0.5, "x1": 0.52})
    assert not {"x0", "x1"} & set(asked)
    assert decision.acquired == tuple(asked)
    assert decision.spent == sum({"x2": 3, "x3": 4, "x4": 5}[f] for f in asked)
    assert decision.label == model.predict([ROW])[0]


def test_the_next_feature_may_move_the_belief_most_per_cost(model):
    need, forest = next(model.acquire()), model.forest_
    moves, trees, standing = np.zeros(5), np.zeros(5), np.zeros(5, bool)
    for root in forest.roots[:-1]:
        moved = np.zeros(5)
        add_moves(forest, root, 1.0, moved)
        moves, trees = moves + moved / forest.n_trees, trees + (moved > 0)
        standing[forest.nodes.feature[root]] = True
    assert need.feature == f"x{np.where(standing, moves / [1, 2, 3, 4, 5], 0).argmax()}"
    best = int(need.feature[1:])
    assert (need.moves, need.trees) == (pytest.approx(moves[best], rel=1e-3), trees[best])
    assert need.why == f"may move the belief by {need.moves:.2g}; {need.trees} of 15 trees use it"
    assert set(need.also) == {f"x{j}" for j in np.flatnonzero(standing)} - {need.feature}
    assert need.together == ()
    assert need.group == need.feature
    assert (need.cost, need.spent) == (1 + int(need.feature[1:]), 0)


def frequencies(nodes, node):
    return nodes.counts[node] / nodes.counts[node].sum()


def add_moves(forest, node, reach, moved):
    """Add to each feature how far it moves a tree of which nothing is known."""
    nodes = forest.nodes
    if not forest.open[node]:
        return
    children = int(nodes.left[node]), int(nodes.right[node])
    part = [nodes.counts[child].sum() / nodes.counts[node].sum() for child in children]
    apart = np.linalg.norm(frequencies(nodes, children[0]) - frequencies(nodes, children[1]))
    moved[nodes.feature[node]] += reach * math.sqrt(part[0] * part[1]) * apart
    for child, share in zip(children, part, strict=True):
        add_moves(forest, child, reach * share, moved)


@pytest.mark.parametrize("bad", ["cold", math.inf, -math.inf, [1], {"a": 1}, object()])
def test_a_bad_value_names_the_feature_and_the_row_can_be_asked_again(model, bad):
    flow = model.acquire()
    need = next(flow)
    with pytest.raises((InvalidValue, InvalidData), match=need.feature if bad != {"a": 1} else "'a'"):
        flow.send(bad)
    assert flow.spent == 0
    assert next(flow) == need
    assert told(drive(flow, ROW)) == told(drive(model.acquire(), ROW))


def test_an_error_thrown_into_the_flow_leaves_it_as_it_was(model):
    flow = model.acquire()
    need = next(flow)
    with pytest.raises(ConnectionError):
        flow.throw(ConnectionError("down"))
    assert flow.send(None) == need
    flow.close()
    assert drive(flow, ROW).certain


def test_several_values_may_come_at_once(model):
    flow = model.acquire()
    need = next(flow)
    names = (need.feature, *need.also)
    while flow.need is not None:
        with contextlib.suppress(StopIteration):
            flow.send({name: value_of(ROW, name) for name in names})
            names = (flow.need.feature, *flow.need.also)
    assert flow.decide().label == model.predict([ROW])[0]


def test_unavailable_follows_the_missing_side_and_costs_nothing(model):
    decision = model.predict_one(lambda feature: None)
    assert decision.spent == 0
    assert decision.acquired == ()
    assert decision.label == model.predict([[np.nan] * 5])[0]
    assert all(s.cost == 0 and s.value is UNAVAILABLE for s in decision.trace)


def test_missing_but_delivered_values_are_paid_for(model):
    decision = model.predict_one(lambda feature: math.nan)
    assert decision.label == model.predict([[np.nan] * 5])[0]
    assert decision.spent == model.acquisition_cost([[np.nan] * 5])[0] > 0


def test_raise_policy_names_feature_and_cause(model):
    def source(feature):
        raise TimeoutError("no answer")

    with pytest.raises(FeatureUnavailable, match=r"'x\d' could not be acquired: TimeoutError: no answer"):
        model.predict_one(source, unavailable="raise")


def test_retry_policy_is_asked_with_feature_error_and_attempt(model):
    heard = []

    def source(feature):
        if len(heard) < 2:
            raise ConnectionError("down")
        return value_of(ROW, feature)

    def retry(feature, error, attempt):
        heard.append((feature, str(error), attempt))
        return attempt < 5

    decision = model.predict_one(source, unavailable=retry)
    assert [h[1:] for h in heard] == [("down", 1), ("down", 2)]
    assert decision.spent == model.acquisition_cost([ROW])[0]


@pytest.mark.parametrize("answer", ["label", "proba"])
@pytest.mark.parametrize("limit", [0, 1, 3, 6, 100])
def test_limit_is_never_passed_and_bounds_hold(model, limit, answer):
    full = model.predict_proba([ROW])[0]
    decision = model.predict_one(lambda f: value_of(ROW, f), limit=limit, answer=answer)
    bulk = model.predict_from(
        lambda f, rows: [value_of(ROW, f) for _ in rows], [0], limit=limit, answer=answer
    )
    low, high = decision.bounds
    share = full[list(model.classes_).index(decision.label)]
    assert decision.spent <= limit
    assert low - 1e-9 <= share <= high + 1e-9
    assert decision.certain or limit < 15
    assert (bulk.labels[0], bulk.spent[0], bulk.certain[0]) == (
        decision.label,
        decision.spent,
        decision.certain,
    )


def test_trace_tells_what_was_asked_why_and_what_it_cost(model):
    decision = model.predict_one(lambda f: value_of(ROW, f))
    assert [s.feature for s in decision.trace] == list(decision.acquired)
    assert sum(s.cost for s in decision.trace) == decision.spent
    assert all(s.trees > 0 for s in decision.trace)
    assert decision.trace[-1].votes[decision.label] / 15 == decision.bounds[0]
    text = decision.explain()
    assert len(text.splitlines()) == len(decision.trace) + 1
    assert f"{decision.spent:g} paid" in text
    assert "trees used it" in text
    assert "votes: '0' " in text
    assert text.splitlines()[-1].startswith(f"'{decision.label}': ")


def test_what_was_unavailable_is_one_line(model):
    decision = model.predict_one(lambda feature: None)
    assert len(decision.unavailable) > 1
    assert set(decision.at_stake) == set(decision.unavailable)
    assert max(decision.at_stake.values()) > 0
    lost = [line for line in decision.explain().splitlines() if line.startswith("without ")]
    assert len(lost) == 1
    for name, reason in decision.unavailable.items():
        assert reason == "the source returned None"
        assert f"{name} ({reason}; might move the belief by {decision.at_stake[name]:.2g})" in lost[0]


def test_a_flow_says_whether_its_limit_ended_it(model):
    for limit in (None, 0, 1, 3):
        flow = model.acquire(limit=limit)
        while flow.need is not None:
            assert not flow.limited
            with contextlib.suppress(StopIteration):
                flow.send(value_of(ROW, flow.need.feature))
        assert flow.limited == (limit is not None and not flow.decide().certain)


def test_latency_trades_round_trips_for_cost(model):
    trips = []

    async def source(feature):
        trips[-1].append(feature)
        await asyncio.sleep(0)
        return value_of(ROW, feature)

    def run(latency):
        trips.clear()
        flow = model.acquire(latency=latency)

        async def rounds():
            while flow.need is not None:
                trips.append([])
                names = (flow.need.feature, *flow.need.together)
                values = await asyncio.gather(*map(source, names))
                try:
                    flow.send(dict(zip(names, values, strict=True)))
                except StopIteration:
                    break
            return flow.decide()

        return asyncio.run(rounds()), len(trips)

    (slow, many), (fast, few) = run(0), run(1000)
    assert few < many
    assert fast.spent >= slow.spent
    assert fast.label == slow.label
    concurrent = asyncio.run(model.predict_one_async(_awaitable, latency=1000))
    assert concurrent.spent == fast.spent


async def _awaitable(feature):
    return value_of(ROW, feature)


def test_a_source_that_hangs_is_given_up_after_the_timeout(model):
    async def source(feature):
        if feature == "x1":
            await asyncio.sleep(60)
        return value_of(ROW, feature)

    decision = asyncio.run(model.predict_one_async(source, timeout=0.02))
    assert "x1" not in decision.acquired
    assert decision.label == model.predict([[0.5, np.nan, 0.79, 0.2, 0.9]])[0]


def test_bulk_asks_once_per_feature_and_round(model):
    X = np.random.default_rng(1).random((300, 5))
    calls = []

    def source(feature, rows):
        calls.append((feature, len(rows)))
        return [value_of(X[i], feature) for i in rows]

    bulk = model.predict_from(source, range(300), in_flight=3)
    np.testing.assert_array_equal(bulk.labels, model.predict(X))
    assert sum(n for _, n in calls) == bulk.acquired.sum()
    assert len(calls) <= 5 * bulk.rounds
    known = model.predict_from(source, range(300), known={"x0": X[:, 0]})
    assert not known.acquired[:, 0].any()
    np.testing.assert_array_equal(known.labels, bulk.labels)


def test_bulk_shows_its_progress(model, capsys):
    model.predict_from(lambda f, rows: [0.5] * len(rows), range(10), progress=True)
    assert "rows decided" in capsys.readouterr().err


def test_bulk_of_no_rows_and_forest_of_no_trees(model):
    assert len(model.predict_from(lambda f, rows: [], []).labels) == 0
    X, y = np.zeros((10, 2)), [0] * 6 + [1] * 4
    empty = BudgetForestClassifier(method="paper", random_state=0).fit(X, y, validation=(X, y))
    assert empty.predict_from(lambda f, rows: [], [1, 2]).labels.tolist() == [0, 0]
    decision = empty.predict_one(lambda f: 1)
    assert (decision.label, decision.spent, decision.bounds) == (0, 0, (0.6, 0.6))


def test_nominal_values_are_categories(model):
    pd = pytest.importorskip("pandas")
    colour = pd.Series(["red", "blue", "green"] * 20, dtype="category")
    X = pd.DataFrame({"colour": colour, "size": np.arange(60.0) % 7})
    y = (colour == "red").astype(int)
    nominal = fitted(X, y)
    answers = {"colour": "red", "size": 3}
    assert nominal.predict_one(answers.get).label == 1
    flow = nominal.acquire()
    with pytest.raises(InvalidValue, match="'colour' has no category 'rde'; did you mean 'red'"):
        flow.send("rde")
    while flow.need is not None:
        with contextlib.suppress(StopIteration):
            flow.send(answers[flow.need.feature])
    assert flow.decide().label == 1
    assert nominal.acquire({"colour": math.nan}).decide().spent == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m: m.acquire({"y0": 1}),
            InvalidData,
            "'y0' is not a feature of this forest; did you mean 'x0'",
        ),
        (lambda m: m.acquire(limit=-1), InvalidParameter, "limit is -1"),
        (lambda m: m.acquire(latency=math.nan), InvalidParameter, "latency is nan"),
        (lambda m: m.acquire(answer="both"), InvalidParameter, "answer='both' is unknown"),
        (lambda m: acquire(m.forest_, answer="both"), InvalidParameter, "answer='both' is unknown"),
        (lambda m: step(m.forest_, {}, ["x1"]), InvalidData, "'x1' is listed as paid but has no known value"),
        (lambda m: m.predict_one(value_of, unavailable="skip"), InvalidParameter, "unavailable='skip'"),
        (lambda m: m.predict_from(value_of, [1], limit=-2), InvalidParameter, "limit is -2"),
        (lambda m: m.predict_from(value_of, [1], in_flight=0), InvalidParameter, "in_flight is 0"),
        (lambda m: m.predict_from(value_of, [1], known={"x0": [1, 2]}), InvalidData, "2 values for 1 rows"),
        (lambda m: m.predict_from(value_of, [1], known={"z": [1]}), InvalidData, "'z' is not a feature"),
    ],
)
def test_misuse_is_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


def test_ten_thousand_decisions_survive_a_faulty_world(model):
    """A source that fails a fifth of the time and lacks values at times: no wrong charge, no lost row."""
    rng = np.random.default_rng(1)
    X = rng.random((10_000, 5))
    delivered, whole = np.zeros(X.shape, int), np.ones(len(X), bool)
    rubbish = [math.nan, None, UNAVAILABLE]

    def source(feature, rows):
        if rng.random() < 0.2:
            whole[list(rows)] = False
            raise ConnectionError("down")
        values = []
        for i in rows:
            value = value_of(X[i], feature)
            if rng.random() < 0.2:
                value = rubbish[rng.integers(len(rubbish))]
                whole[i] = False
            if isinstance(value, float):
                delivered[i, int(feature[1:])] += 1
            values.append(value)
        return values

    bulk = model.predict_from(source, range(len(X)), unavailable=lambda f, e, attempt: attempt < 3)
    assert not (bulk.acquired & bulk.unavailable).any()
    assert len(bulk.labels) == len(X)
    assert bulk.certain[whole].all()
    assert whole.sum() > 1000
    assert not bulk.certain.all()
    np.testing.assert_array_equal(delivered, bulk.acquired)
    np.testing.assert_allclose(bulk.spent, delivered @ [1.0, 2, 3, 4, 5])


def test_a_thousand_single_decisions_survive_a_faulty_world(model):
    rng = np.random.default_rng(1)
    paid = []

    async def source(feature):
        kind = rng.integers(10)
        if kind == 0:
            raise ConnectionError("down")
        if kind == 1:
            await asyncio.sleep(60)
        value = None if kind == 2 else float(rng.random())
        if value is not None:
            paid.append(int(feature[1:]) + 1)
        return value

    async def drive_all():
        rows = [model.predict_one_async(source, timeout=0.01) for _ in range(1000)]
        return await asyncio.gather(*rows)

    decisions = asyncio.run(drive_all())
    assert len(decisions) == 1000
    assert all(isinstance(d, Decision) and (d.certain or d.unavailable) for d in decisions)
    assert any(d.certain for d in decisions if d.unavailable)
    assert sum(d.spent for d in decisions) == sum(paid)


@settings(max_examples=30)
@given(labelled_rows(max_rows=20), PRICES, st.sampled_from([None, 0.3, 2.0, 5.0]), st.data())
def test_drivers_agree_with_known_values_groups_and_limits(tmp_path_factory, data, prices, limit, draw):
    X, y = data
    m = X.shape[1]
    path = tmp_path_factory.mktemp("prices") / "prices.csv"
    path.write_text(panel(prices, m))
    model = fitted(X, y, costs=path)
    free = draw.draw(st.sets(st.integers(0, m - 1), max_size=m))
    known = {f"x{j}": [float(v) for v in X[:, j]] for j in free}
    bulk = model.predict_from(
        lambda feature, rows: [value_of(X[i], feature) for i in rows], range(len(X)), known=known, limit=limit
    )
    for i, row in enumerate(X):
        have = {name: column[i] for name, column in known.items()}
        decision = model.predict_one(lambda f, row=row: value_of(row, f), known=have, limit=limit)
        values, paid = dict(have), []
        while isinstance(what := step(model.forest_, values, paid, limit=limit), Need):
            values[what.feature] = value_of(row, what.feature)
            paid.append(what.feature)
        assert told(what) == told(decision)
        assert what.trace == decision.trace
        assert (bulk.labels[i], bulk.certain[i]) == (decision.label, decision.certain)
        assert bulk.spent[i] == pytest.approx(decision.spent)
        assert bulk.bounds[i] == pytest.approx(decision.bounds)
        assert decision.spent <= (math.inf if limit is None else limit * (1 + 1e-8))


def test_several_values_may_not_pass_the_limit(model):
    flow = model.acquire(limit=2)
    with pytest.raises(InvalidData, match=r"would take the row to 5, past its limit 2"):
        flow.send({"x1": 0.5, "x2": 0.5})
    assert flow.spent == 0


def test_a_limit_allows_for_rounding():
    X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]] * 5), [0, 1, 1, 0] * 5
    xor = fitted(X, y, costs=[0.1, 0.2], bootstrap=False, max_trees=1)
    assert xor.predict_one(lambda f: 1.0, limit=0.3).certain


def test_bulk_gives_probabilities_for_what_was_paid(model):
    X = np.random.default_rng(2).random((50, 5))
    bulk = model.predict_from(lambda f, rows: [value_of(X[i], f) for i in rows], range(50), answer="proba")
    np.testing.assert_allclose(bulk.proba, model.predict_proba(X))
    stopped = model.predict_from(
        lambda f, rows: [value_of(X[i], f) for i in rows], range(50), answer="proba", limit=1
    )
    assert np.isnan(stopped.proba[~stopped.certain]).all()


def test_known_columns_may_have_holes(model):
    X = np.random.default_rng(3).random((40, 5))
    column = [X[i, 0] if i % 2 else None for i in range(40)]
    bulk = model.predict_from(
        lambda f, rows: [value_of(X[i], f) for i in rows], range(40), known={"x0": column}
    )
    np.testing.assert_array_equal(bulk.labels, model.predict(X))
    assert not bulk.acquired[1::2, 0].any()
    assert bulk.acquired[::2, 0].any()


def test_databases_speak_in_decimals_flags_and_their_own_missing_values(model):
    pd = pytest.importorskip("pandas")
    known = {"x0": Decimal("0.5"), "x1": np.bool_(True), "x2": pd.NA, "x3": 0.1, "x4": 0.1}
    decision = model.acquire(known).decide()
    assert (decision.spent, decision.certain) == (0, False)  # x2 might change the label
    assert decision.label == model.predict([[0.5, 1.0, np.nan, 0.1, 0.1]])[0]
    with pytest.raises(InvalidValue, match="value of 'x0'"):
        model.acquire({"x0": 10**400})


def test_a_source_of_the_wrong_colour_is_refused(model):
    async def source(feature):
        return 0.5

    with pytest.raises(InvalidParameter, match="use predict_one_async"):
        model.predict_one(source)
    with pytest.raises(InvalidParameter, match="use predict_one"):
        asyncio.run(model.predict_one_async(lambda feature: 0.5))

    async def retry(feature, error, attempt):
        await asyncio.sleep(0)
        return attempt < 3

    calls = []

    async def failing(feature):
        calls.append(feature)
        raise ConnectionError("down")

    decision = asyncio.run(model.predict_one_async(failing, unavailable=retry))
    assert all(calls.count(feature) == 3 for feature in decision.unavailable)
    assert "unavailable" in decision.explain()
    with pytest.raises(InvalidParameter, match="only predict_one_async awaits it"):
        model.predict_one(lambda feature: None, unavailable=retry)


def test_a_failed_trip_leaves_no_call_running(model):
    running = []

    async def source(feature):
        if feature == "x0":
            raise ConnectionError("down")
        running.append(feature)
        await asyncio.sleep(0.05)
        running.remove(feature)
        return 0.5

    async def drive_one():
        with pytest.raises(FeatureUnavailable):
            await model.predict_one_async(source, unavailable="raise", latency=1000)
        return len(asyncio.all_tasks())

    assert asyncio.run(drive_one()) == 1


def test_bulk_that_fails_hands_back_what_was_paid_for(model):
    X = np.random.default_rng(4).random((200, 5))
    calls = []

    def source(feature, rows):
        calls.append(feature)
        if len(calls) == 2:
            raise ConnectionError("down")
        return [value_of(X[i], feature) for i in rows]

    with pytest.raises(FeatureUnavailable, match="down") as caught:
        model.predict_from(source, range(200), unavailable="raise")
    known = caught.value.known
    assert calls[0] in known
    assert calls[1] not in known
    again = model.predict_from(source, range(200), unavailable="raise", known=known)
    np.testing.assert_array_equal(again.labels, model.predict(X))
    bought_before = np.array([value is not None for value in known[calls[0]]])
    assert not again.acquired[bought_before, int(calls[0][1:])].any()
    with pytest.raises(InvalidParameter, match=r"pass what the source knows its rows by, as rows\.index"):
        model.predict_from(source, pytest.importorskip("pandas").DataFrame(X))


def test_a_limit_leaves_no_probabilities_in_bulk_either():
    """A label may be certain before every tree has spoken; what the trees would say is not known then."""
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(method="paper", alpha=0.0, max_trees=9, random_state=0).fit(X, y)
    for limit in (0, 2, 4, 6, None):
        bulk = model.predict_from(
            lambda feature, rows: [value_of(X[i], feature) for i in rows],
            range(len(X)),
            answer="proba",
            limit=limit,
        )
        for i in range(0, len(X), 5):
            one = model.predict_one(lambda f, row=X[i]: value_of(row, f), answer="proba", limit=limit)
            assert (one.proba is None) == bool(np.isnan(bulk.proba[i]).all())
            if one.proba is not None:
                np.testing.assert_allclose(bulk.proba[i], model.predict_proba(X[i : i + 1])[0], rtol=1e-12)
    assert not np.isnan(bulk.proba).any()


@pytest.mark.parametrize("price", [5.0, 1e-4])
def test_no_row_pays_more_than_its_limit_however_large_it_is(price):
    """The room for rounding is that of a sum, not a share of the limit."""
    X = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    model = fitted(X, X[:, 0] != X[:, 1], costs=[1e10, price], max_trees=1)
    assert {decision_cost(model, row, None) for row in X[:8]} == {1e10 + price}
    assert {decision_cost(model, row, 1e10) for row in X[:8]} <= {1e10, price}
    assert {decision_cost(model, row, 1e10 + price) for row in X[:8]} == {1e10 + price}


def decision_cost(model, row, limit):
    bulk = model.predict_from(lambda f, rows: [value_of(row, f)], [0], limit=limit)
    one = model.predict_one(lambda f: value_of(row, f), limit=limit)
    assert bulk.spent[0] == one.spent
    return one.spent


def test_prices_that_add_up_to_the_limit_are_within_it():
    """0.1 + 0.2 is a little more than 0.3."""
    X = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    model = fitted(X, X[:, 0] != X[:, 1], costs=[0.1, 0.2], max_trees=1)
    assert decision_cost(model, X[0], 0.3) == 0.1 + 0.2
