"""A training that is killed goes on where it was, to the same forest."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import namedtuple
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_wine

from budgetforest import BudgetForestClassifier, InvalidParameter, NotAModelFile
from budgetforest.storage.checkpoint import described

pytestmark = pytest.mark.usefixtures("quiet")

KILLS = int(os.environ.get("KILLS", "3"))
PAPER = {"method": "paper", "alpha": [0, 2, 4, 8, 16], "max_trees": 30}
AUTO = {"max_trees": 12}

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
from sklearn.datasets import load_wine
from budgetforest import BudgetForestClassifier
X, y = load_wine(return_X_y=True)
print("ready", flush=True)
BudgetForestClassifier(4, random_state=1, **eval(sys.argv[2])).fit(X, y, checkpoint=sys.argv[1])
"""


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def same_forests(one, other):
    assert one.path_ == other.path_
    for point in one.path_[1:]:
        a, b = one.at_budget(point.cost), other.at_budget(point.cost)
        for mine, its in zip(a.forest_.nodes, b.forest_.nodes, strict=True):
            np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("parameters", [PAPER, AUTO], ids=["paper", "auto"])
def test_a_killed_training_resumes_to_the_same_forest(parameters, wine, tmp_path):
    undisturbed = BudgetForestClassifier(4, random_state=1, **parameters).fit(*wine)
    moment = random.Random(0)
    folder = tmp_path / "kept"
    kept = [0]
    for _ in range(KILLS):
        work = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(folder), repr(parameters)], stdout=subprocess.PIPE, text=True
        )
        work.stdout.readline()
        time.sleep(moment.random())
        work.send_signal(signal.SIGKILL)
        work.wait()
        work.stdout.close()
        kept.append(len(list(folder.glob("*.safetensors"))))
    assert kept == sorted(kept)  # nothing that was done is lost
    resumed = BudgetForestClassifier(4, random_state=1, **parameters).fit(*wine, checkpoint=folder)
    same_forests(undisturbed, resumed)
    again = BudgetForestClassifier(4, random_state=1, **parameters).fit(*wine, checkpoint=folder)
    same_forests(undisturbed, again)  # now without growing anything


def test_another_training_is_refused(wine, tmp_path):
    X, y = wine
    BudgetForestClassifier(4, random_state=1, **PAPER).fit(X, y, checkpoint=tmp_path)
    BudgetForestClassifier(4, random_state=1, n_jobs=2, **PAPER).fit(X, y, checkpoint=tmp_path)
    changed = X.copy()
    changed[0, 0] += 1
    for model, rows in [
        (BudgetForestClassifier(4, random_state=2, **PAPER), X),
        (BudgetForestClassifier(5, random_state=1, **PAPER), X),
        (BudgetForestClassifier(4, random_state=1, costs=np.arange(1, 14), **PAPER), X),
        (BudgetForestClassifier(4, random_state=1, **PAPER), changed),
    ]:
        with pytest.raises(InvalidParameter, match="holds another training"):
            model.fit(rows, y, checkpoint=tmp_path)


def test_other_validation_rows_are_another_training(wine, tmp_path):
    X, y = wine
    model, judged = BudgetForestClassifier(4, random_state=1, **PAPER), (X[1::2], y[1::2])
    model.fit(X[::2], y[::2], validation=judged, checkpoint=tmp_path)
    model.fit(X[::2], y[::2], validation=judged, checkpoint=tmp_path)
    changed = X[1::2].copy()
    changed[0, 0] += 1
    with pytest.raises(InvalidParameter, match="holds another training"):
        model.fit(X[::2], y[::2], validation=(changed, y[1::2]), checkpoint=tmp_path)


def test_a_damaged_step_is_named(wine, tmp_path):
    BudgetForestClassifier(4, random_state=1, **PAPER).fit(*wine, checkpoint=tmp_path)
    step = next(iter(sorted(tmp_path.glob("*.safetensors"))))
    step.write_bytes(step.read_bytes()[:-7])
    with pytest.raises(NotAModelFile, match=step.name):
        BudgetForestClassifier(4, random_state=1, **PAPER).fit(*wine, checkpoint=tmp_path)


def count_below(limit):
    """An impurity of one's own that encloses a number."""

    def impurity(counts):
        return max(0.0, counts[0] * counts[1] - limit)

    return impurity


def test_a_mask_of_many_columns_is_told_by_every_entry(tmp_path):
    """numpy shows arrays of more than a thousand entries by their ends."""
    rng = np.random.default_rng(0)
    X = np.zeros((60, 1001))
    X[:, 500] = rng.permutation(np.arange(60) % 6)
    y = np.isin(X[:, 500], (1, 3, 5)).astype(int)
    model = BudgetForestClassifier(None, method="paper", alpha=0.0, max_trees=2, random_state=0)
    mask = np.zeros(1001, bool)
    model.set_params(categorical_features=mask).fit(X, y, checkpoint=tmp_path)
    other = mask.copy()
    other[500] = True
    with pytest.raises(InvalidParameter, match="holds another training"):
        model.set_params(categorical_features=other).fit(X, y, checkpoint=tmp_path)


def test_functions_and_random_states_resume(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    parameters = {"budget": 3, "method": "paper", "alpha": 0.0, "max_trees": 2}

    def train(limit=4.0, seed=1):
        state = np.random.RandomState(seed)
        model = BudgetForestClassifier(impurity=count_below(limit), random_state=state, **parameters)
        return model.fit(X, y, checkpoint=tmp_path)

    first = train()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    same_forests(first, train())
    assert kept == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    for changed in ({"limit": 5.0}, {"seed": 2}):
        with pytest.raises(InvalidParameter, match="holds another training"):
            train(**changed)


FINGERPRINT = """
import numpy as np
from functools import partial
from numba import njit
from budgetforest.storage import checkpoint
LIMIT = 3.0
@njit
def helper(x):
    return np.sqrt(x) + LIMIT
def mine(counts):
    return helper(counts[0]) if len(counts) in {1, 2} else mine(counts[1:])
for value in (mine, helper, partial(mine, 3), np.arange(2000), ("a", (1, 2.5, None)), -0.0, 0.0):
    print(b"".join(checkpoint.described(value)))
"""


def test_descriptions_are_the_same_in_every_process_and_tell_all_apart():
    once, again = (
        subprocess.run([sys.executable, "-c", FINGERPRINT], capture_output=True, check=True).stdout
        for _ in range(2)
    )
    assert once == again
    lines = once.splitlines()
    assert len(set(lines)) == len(lines) == 7


def test_what_cannot_be_told_apart_keeps_no_checkpoint():
    with pytest.raises(InvalidParameter, match="cannot tell whether"):
        b"".join(described(object()))


BEFORE = """
def make(power, settings):
    def impurity(counts, *, scale=SCALE):
        total = counts.sum()
        return max([total**POWER - count**POWER for count in counts]) * settings.weight
    return impurity
"""


def test_all_that_a_function_uses_tells_it_apart():
    """Globals of inner functions, attributes of modules, defaults by keyword, the names of fields."""

    def described_with(power=2.0, weight=1.0, scale=1.0):
        settings = ModuleType("settings")
        settings.weight = weight
        scope = {"POWER": power, "SCALE": scale, "sum": object()}  # not used: the sum is an attribute
        exec(BEFORE, scope)
        return b"".join(described(scope["make"](power, settings)))

    assert described_with() == described_with()
    variants = [
        described_with(),
        described_with(power=3.0),
        described_with(weight=2.0),
        described_with(scale=2.0),
    ]
    assert len(set(variants)) == 4
    one, other = namedtuple("Rule", "a b"), namedtuple("Rule", "b a")
    assert b"".join(described(one(1, 2))) != b"".join(described(other(1, 2)))
