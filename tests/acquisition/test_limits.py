"""What a row may pay, to the last unit: a feature once, a limit exactly, and nothing past it in one trip."""

import contextlib
import json
from pathlib import Path

import pytest

from budgetforest import InvalidData, load

MODELS = Path(__file__).parents[1] / "models"


@pytest.fixture(scope="module")
def model():
    """Prices: age 1, blood 5.2, ecg 7.27 (later of the draw 3.1, 5.17), mri 100, colour 0, ward 1."""
    return load(MODELS / "protocol2.safetensors")


@pytest.fixture(scope="module")
def row():
    row = json.loads((MODELS / "protocol2.json").read_text())["rows"][3]
    return row | {"colour": "red"}


def drive(flow, row):
    """Answer every need."""
    while flow.need is not None:
        with contextlib.suppress(StopIteration):
            flow.send(row[flow.need.feature])
    return flow.decide()


def test_a_feature_sent_twice_is_paid_once(model, row):
    plain, flow = drive(model.acquire(), row), model.acquire()
    first = flow.need.feature
    flow.send({first: row[first]})
    flow.send({first: row[first] + 1, flow.need.feature: row[flow.need.feature]})
    again = drive(flow, row)
    assert again.acquired.count(first) == 1
    assert (again.spent, again.label) == (plain.spent, plain.label)


def test_a_limit_may_be_reached_and_not_passed(model, row):
    full = drive(model.acquire(), row)
    steps = [step.cost for step in full.trace]
    for k in range(1, len(steps) + 1):
        upto = sum(steps[:k])
        assert drive(model.acquire(limit=upto), row).spent == pytest.approx(upto)
        # a hair less buys one feature less, or others that cost less
        assert drive(model.acquire(limit=upto * 0.999), row).spent <= upto * 0.999


def test_many_rows_stop_at_a_limit_as_one_does(model, row):
    ended = set()
    for limit in (0, 0.5, 1, 2, 6.2, 10, 200):
        one = drive(model.acquire(limit=limit), row)
        many = model.predict_from(lambda feature, rows: [row[feature]] * len(rows), range(3), limit=limit)
        assert many.limited.tolist() == [one.limited] * 3
        assert many.spent == pytest.approx([one.spent] * 3)
        assert many.labels.tolist() == [one.label] * 3
        ended.add(one.limited)
    assert ended == {True, False}


def test_values_past_the_limit_are_refused_together(model, row):
    flow = model.acquire(limit=6.2)
    with pytest.raises(InvalidData, match=r"would take the row to 7\.2, past its limit 6\.2; send fewer"):
        flow.send({name: row[name] for name in ("age", "ward", "blood")})
    assert flow.spent == 0
    flow.send({name: row[name] for name in ("age", "blood")})
    assert flow.spent == pytest.approx(6.2)


@pytest.mark.parametrize("limit", [0.5, 1, 2, 6.2, 7.19, 7.2, 50])
def test_one_trip_stays_within_the_limit(model, limit):
    price = {"age": 1, "ward": 1, "blood": 5.2}
    flow = model.acquire(limit=limit, latency=1000)
    if flow.need is None:
        assert limit < 1
        return
    trip = [flow.need.feature, *flow.need.together]
    assert sum(price[name] for name in trip) <= limit + 1e-9
    for other in set(flow.need.also) - set(trip):
        assert sum(price[name] for name in trip) + price[other] > limit


def test_members_of_an_open_group_cost_their_discount(model, row):
    flow = model.acquire()
    flow.send({"blood": row["blood"], "ecg": row["ecg"]})
    assert flow.spent == pytest.approx(5.2 + 5.17)
    flow = model.acquire({"ecg": row["ecg"]})
    flow.send({"blood": row["blood"]})
    assert flow.spent == pytest.approx(3.1)
