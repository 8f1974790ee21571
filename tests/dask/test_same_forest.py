"""The same forest on every engine: here, in blocks, on threads and on processes of a Dask cluster."""

import math
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

import budgetforest.dask as on_cluster
from budgetforest import BudgetForestClassifier, ClusterFailed, InvalidData, InvalidParameter
from budgetforest.dask import bin_edges as edges
from budgetforest.dask import global_order, level_growth
from budgetforest.dask.cluster import check_workers, cluster_of
from budgetforest.data.bin_edges import census_of, merged, points_of, quantile_edges
from budgetforest.data.rows import Rows, totals_of
from budgetforest.selection import crossfit
from budgetforest.selection.evaluation import exact_sum

pytestmark = pytest.mark.usefixtures("quiet", "many_levels")

KILLS = int(os.environ.get("KILLS", "1"))
QUIET = {"dashboard_address": ":0", "silence_logs": 50}


@pytest.fixture
def many_levels(monkeypatch):
    """Small rows act large: nodes are small late, frontiers are sliced, rows have several ranges."""
    monkeypatch.setattr(level_growth, "LEAST_SMALL", 12)
    monkeypatch.setattr(level_growth, "SHARES", 20)
    monkeypatch.setattr(level_growth, "MOST_COUNTS", 6000)
    monkeypatch.setattr(global_order, "RANGE_ROWS", 40)
    monkeypatch.setattr(edges, "FEW", 16)
    monkeypatch.setattr(crossfit, "ENOUGH", 60)


@pytest.fixture(scope="module")
def clients():
    """Clusters by their number of processes; 0 for threads of this one."""
    found = {}

    def client(processes):
        if processes not in found:
            size = {"n_workers": max(1, processes), "threads_per_worker": 1 if processes else 3}
            cluster = LocalCluster(processes=processes > 0, **size, **QUIET)
            found[processes] = Client(cluster)
        return found[processes]

    yield client
    for each in found.values():
        each.close()
        each.cluster.close()


@cache
def table():
    """Numbers, some missing and some tied, categories, and labels that depend on them."""
    rng = np.random.default_rng(3)
    n = 240
    X = rng.normal(size=(n, 5)).round(1)
    kind = rng.choice(["oak", "fir", "elm", "ash"], n)
    y = np.digitize(X[:, 0] + X[:, 1] * (kind == "oak") + rng.normal(0, 0.3, n), [-0.5, 0.6])
    X[rng.random(X.shape) < 0.08] = np.nan
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=kind)
    frame.loc[:7, "kind"] = None
    times = rng.integers(0, 4, n)
    return frame, np.array(["low", "mid", "top"])[y], times, rng.random(n)


def spread_of(counts):
    """An admissible impurity of one's own: the product of the two largest classes."""
    ordered = np.sort(counts)
    return ordered[-1] * ordered[-2]


only_in_full = pytest.mark.skipif("FULL" not in os.environ, reason="minutes more: set FULL=1")

CASES = {
    "binned": {
        "budget": 3,
        "alpha": [0, 4],
        "groups": ["one", "one", "", "", ""],
        "max_trees": 5,
        "max_bins": 9,
    },
    "exact": {
        "splitter": "exact",
        "class_weight": "balanced",
        "answer": "proba",
        "budget": 4,
        "max_trees": 3,
    },
    "random": {"splitter": "random", "alpha": 2, "max_trees": 3},
    "expected": {
        "impurity": "entropy",
        "criterion": "expected",
        "alpha": 0.1,
        "bootstrap": False,
        "max_trees": 1,
    },
    "auto": {
        "method": "auto",
        "budget": 2,
        "groups": ["one", "one", ""],
        "max_disagreement": 0.3,
        "max_trees": 3,
    },
    "auto with turns": {
        "method": "auto",
        "answer": "proba",
        "validation_fraction": 0.2,  # so few that training rows are judged by, too
        "max_trees": 4,
    },
}


def case(name):
    """Parameters, rows, labels and weights of a case."""
    frame, y, times, shares = table()
    parameters = {"method": "paper", "random_state": 5} | CASES[name]
    if parameters["method"] == "auto":
        many = frame[["a", "b", "kind"]].assign(b=frame["b"] + np.arange(len(y)) / 997)  # distinct values
        return parameters, many, pd.Series(y), pd.Series(shares)
    if name in ("exact", "expected"):
        return parameters, frame, pd.Series(y), pd.Series(shares if name == "exact" else times)
    return parameters, frame[list("abcde")].to_numpy(), y, times if name == "binned" else None


@cache
def trained_here(name):
    parameters, X, y, weight = case(name)
    return BudgetForestClassifier(**parameters).fit(X, y, sample_weight=weight)


def in_blocks(rows, sizes, order=None):
    """Rows as a Dask collection in blocks of these sizes."""
    ends = np.cumsum(sizes)
    parts = [rows[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    parts = [parts[at] for at in order or range(len(parts))]
    if isinstance(rows, np.ndarray):
        return da.concatenate([da.from_array(part, chunks=-1) for part in parts])
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=rows[:0])


def same_training(one, other):
    """Every array of every forest, the path, and what else a training leaves."""
    assert repr(one.path_) == repr(other.path_)
    assert one.training_ == other.training_
    assert one._trained.prior_error == pytest.approx(other._trained.prior_error, nan_ok=True, abs=0)
    for mine, its in zip(one._trained.candidates, other._trained.candidates, strict=True):
        assert repr(mine.points) == repr(its.points)
        for tree, twin in zip(mine.trees, its.trees, strict=True):
            for part, same in zip(tree, twin, strict=True):
                assert part.dtype == same.dtype
                np.testing.assert_array_equal(part, same)
    np.testing.assert_array_equal(one.forest_.prior, other.forest_.prior)
    assert one.forest_.schema == other.forest_.schema


UNEVEN = [1, 90, 0, 13, 60, 6, 70]
ENGINES = {
    "one block": (0, [240], None, "rows"),
    "three blocks": (0, [80, 80, 80], None, "rows"),
    "seven uneven blocks": (0, UNEVEN, None, "rows"),
    "shuffled blocks": (0, UNEVEN, [3, 6, 0, 5, 2, 1, 4], "rows"),
    "two processes": (2, [80, 80, 80], None, "rows"),
    "four processes": (4, UNEVEN, None, "rows"),
    "trees over workers": (2, [80, 80, 80], None, "trees"),
}


def pairs():
    """Every case on every engine; by default one case on most engines, the others on two."""
    few = ["seven uneven blocks", "two processes"]
    shown = {"binned": set(ENGINES) - {"four processes"}, "auto": {"three blocks"}}
    for engine, name in product(ENGINES, CASES):
        marks = () if engine in shown.get(name, few) else only_in_full
        yield pytest.param(engine, name, marks=marks)


@pytest.mark.parametrize(("engine", "name"), list(pairs()))
def test_every_engine_grows_the_same_forest(engine, name, clients, monkeypatch):
    processes, sizes, order, spread = ENGINES[engine]
    if name == "auto with turns":
        monkeypatch.setattr(level_growth, "LEAST_SMALL", 4096)  # as it is: few rows are brought together
    parameters, *rows = case(name)
    X, y, weight = (None if part is None else in_blocks(part, sizes, order) for part in rows)
    model = on_cluster.fit(
        BudgetForestClassifier(**parameters),
        X,
        y,
        sample_weight=weight,
        client=clients(processes),
        spread=spread,
    )
    same_training(trained_here(name), model)


@pytest.mark.parametrize("spread", ["rows", "trees"])
def test_validation_rows_of_the_caller_are_spread_too(spread, clients):
    frame, y, _, _ = table()
    X = frame[list("abcde")].to_numpy()
    here = BudgetForestClassifier(3, method="paper", alpha=0, max_trees=4, random_state=0)
    here.fit(X[:150], y[:150], validation=(X[150:], y[150:]))
    there = BudgetForestClassifier(3, method="paper", alpha=0, max_trees=4, random_state=0)
    validation = (in_blocks(X[150:], [40, 50]), in_blocks(y[150:], [40, 50]))
    train = in_blocks(X[:150], [100, 50]), in_blocks(y[:150], [100, 50])
    on_cluster.fit(there, *train, validation=validation, client=clients(0), spread=spread)
    same_training(here, there)


def test_method_auto_grows_its_forests_on_the_workers(clients):
    frame, y, _, _ = table()
    here = BudgetForestClassifier(3, max_trees=4, random_state=0).fit(frame, y)
    there = BudgetForestClassifier(3, max_trees=4, random_state=0)
    blocks = in_blocks(frame, [100, 140]), in_blocks(pd.Series(y), [100, 140])
    on_cluster.fit(there, *blocks, client=clients(2))
    same_training(here, there)


@only_in_full
def test_an_impurity_of_ones_own_goes_to_the_workers(clients):
    frame, y, _, _ = table()
    X = frame[["a", "b", "c"]].to_numpy()
    parameters = {"method": "paper", "impurity": spread_of, "max_trees": 2, "random_state": 0}
    here = BudgetForestClassifier(**parameters).fit(X, y)
    for spread in ("rows", "trees"):
        there = BudgetForestClassifier(**parameters)
        on_cluster.fit(there, X, y, client=clients(2), spread=spread)
        same_training(here, there)


def test_a_folder_of_parquet_files_is_read_on_the_workers(clients, tmp_path):
    frame, y, weight, _ = table()
    whole = frame.assign(state=y, times=weight)
    for at, rows in enumerate(np.array_split(np.arange(240), 3)):
        whole.iloc[rows].to_parquet(tmp_path / f"part-{at}.parquet")
    own = BudgetForestClassifier(3, method="paper", alpha=0, max_trees=3, random_state=0)
    here = clone(own).fit(frame, y, sample_weight=weight)
    named = {"sample_weight": "times", "client": clients(2)}
    for rows, spread in (
        (tmp_path, "rows"),
        (tmp_path, "trees"),
        (dd.from_pandas(whole, npartitions=2), "rows"),
    ):
        same_training(here, on_cluster.fit(clone(own), rows, "state", spread=spread, **named))
    with pytest.raises(InvalidData, match="y='stat' is no column of X; did you mean 'state'"):
        on_cluster.fit(own, tmp_path, "stat", **named)
    labels = on_cluster.predict(here, tmp_path).compute(scheduler="sync")  # the folder holds labels, too
    np.testing.assert_array_equal(labels, here.predict(frame))
    with pytest.raises(InvalidData, match="elsewhere' is no folder"):
        on_cluster.fit(own, tmp_path / "elsewhere", "state", **named)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidData, match=r"holds no \*\.parquet"):
        on_cluster.fit(own, tmp_path / "empty", "state", **named)
    with pytest.raises(InvalidData, match=r"sample_weight is a ndarray; .* the name of a"):
        on_cluster.fit(own, tmp_path, "state", sample_weight=np.ones(240), client=clients(2))
    whole.drop(columns="c").to_parquet(tmp_path / "part-3.parquet")
    with pytest.raises(InvalidData, match="blocks differ in their columns"):
        on_cluster.fit(own, tmp_path, "state", spread="trees", **named)
    (tmp_path / "part-3.parquet").write_text("damaged")
    with pytest.raises(InvalidData, match=r"a worker cannot read .*part-3\.parquet"):
        on_cluster.fit(own, tmp_path, "state", **named)


@pytest.mark.parametrize("client", ["tcp://here:8786", 3])
def test_what_is_no_client_is_refused(client):
    with pytest.raises(InvalidParameter, match=r"it must be a distributed\.Client"):
        on_cluster.fit(BudgetForestClassifier(), np.eye(3), [0, 1, 0], client=client)


def test_labels_and_costs_of_blocks_are_those_of_all_rows(clients, tmp_path):
    model = trained_here("binned")
    X = case("binned")[1]
    with clients(0).as_current():
        labels = on_cluster.predict(model, in_blocks(X, UNEVEN))
        costs = on_cluster.acquisition_cost(model, in_blocks(X, UNEVEN))
        np.testing.assert_array_equal(labels.compute(), model.predict(X))
        np.testing.assert_array_equal(costs.compute(), model.acquisition_cost(X))
    model, frame = trained_here("exact"), table()[0]
    turned = frame.set_index(np.arange(1000, 1240))
    turned[:120].to_parquet(tmp_path / "a.parquet")
    turned[120:].to_parquet(tmp_path / "b.parquet")
    with clients(0).as_current():
        for rows in (in_blocks(turned, UNEVEN), tmp_path):
            labels = on_cluster.predict(model, rows).compute()
            costs = on_cluster.acquisition_cost(model, rows).compute()
            assert labels.index.tolist() == turned.index.tolist()
            np.testing.assert_array_equal(labels, model.predict(frame))
            np.testing.assert_array_equal(costs, model.acquisition_cost(frame))
        known = dd.from_pandas(turned, npartitions=3)
        labelled = known.assign(label=on_cluster.predict(model, known)).compute()
        np.testing.assert_array_equal(labelled["label"], model.predict(frame))


def test_rows_in_blocks_take_the_same_turns(clients):
    rng = np.random.default_rng(1)
    hashes = rng.permutation(np.repeat(rng.integers(2**63, size=70).astype(np.uint64), 2))
    rows = Rows(np.zeros((140, 1)), (hashes % 3).astype(np.int32), np.ones(140, np.int64), hashes)
    settings = SimpleNamespace(unit=1.0, n_classes=3)
    expected = [judged.hashes for _, judged in crossfit.turns(rows, rows.take(np.arange(47)), settings)]
    with cluster_of(clients(0)) as cluster:
        blocks = [cluster.hold(rows.take(part)) for part in np.split(np.arange(140), [5, 80])]
        turns = np.concatenate(cluster.values(global_order.turns_of(cluster, blocks, totals_of(rows, 3), 3)))
    assert len(expected) == 3
    for part, judged in enumerate(expected):
        np.testing.assert_array_equal(np.sort(hashes[turns == part]), np.sort(judged))


@pytest.mark.parametrize(
    "small", [pytest.param(200, id="whole trees"), pytest.param(12, id="levels", marks=only_in_full)]
)
def test_rows_that_take_turns_stay_in_their_blocks_if_they_are_many(small, clients, monkeypatch):
    monkeypatch.setattr(level_growth, "LEAST_SMALL", small)
    parameters, X, y, weight = case("auto with turns")
    parameters, X = parameters | {"max_trees": 2}, X[["a", "kind"]]
    here = BudgetForestClassifier(**parameters).fit(X, y, sample_weight=weight)
    blocks = [in_blocks(part, [80, 80, 80]) for part in (X, y, weight)]
    there = BudgetForestClassifier(**parameters)
    on_cluster.fit(there, *blocks[:2], sample_weight=blocks[2], client=clients(0), spread="rows")
    same_training(here, there)


def sizes(dask_scheduler):
    """The largest result of every kind of task, in bytes."""
    found = {}
    for task in dask_scheduler.tasks.values():
        found[task.prefix.name] = max(found.get(task.prefix.name, 0), task.nbytes)
    return found


def test_what_a_worker_must_hold_falls_with_the_number_of_blocks(clients, monkeypatch):
    frame, y, _, _ = table()
    X = np.tile(frame[list("abcde")].to_numpy(), (20, 1))
    hang, held = level_growth.hang_children, {}

    def look(*arguments):
        held.setdefault(blocks, client.run_on_scheduler(sizes))
        return hang(*arguments)

    monkeypatch.setattr(level_growth, "hang_children", look)
    monkeypatch.setattr(level_growth, "LEAST_SMALL", 400)
    client = clients(0)
    for blocks in (2, 8):
        parts = (
            in_blocks(X, [len(X) // blocks] * blocks),
            in_blocks(np.tile(y, 20), [len(X) // blocks] * blocks),
        )
        model = BudgetForestClassifier(method="paper", alpha=0, max_trees=1, random_state=0)
        on_cluster.fit(model, *parts, client=client, spread="rows")
    for kind in ("encoded", "stand"):
        assert held[8][kind] < held[2][kind] / 2


def spilled(dask_worker):
    """Bytes that a worker has written to its disk."""
    return dask_worker.data.cumulative_metrics["disk-write", "bytes"]


def test_what_does_not_fit_memory_is_spilled_and_changes_nothing(tmp_path):
    parameters, X, y, weight = case("binned")
    blocks = [in_blocks(part, [100, 140]) for part in (X, y, weight)]
    # the workers share a process with all tests: what that takes must not make them pause
    shares = {"target": 1e-6, "spill": False, "pause": False, "terminate": False}
    little = {f"distributed.worker.memory.{what}": share for what, share in shares.items()}
    size = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB", "local_directory": str(tmp_path)}
    with (
        dask.config.set(little),
        LocalCluster(processes=False, **size, **QUIET) as cluster,
        Client(cluster) as client,
    ):
        model = BudgetForestClassifier(**parameters)
        on_cluster.fit(model, *blocks[:2], sample_weight=blocks[2], client=client, spread="rows")
        assert all(client.run(spilled).values())
    same_training(trained_here("binned"), model)


def killing(client, seconds):
    """Kill a worker after a while, as if its machine was lost."""
    pid = random.choice(list(client.run(os.getpid).values()))
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spread"),
    [
        ("random", "rows"),
        *(
            pytest.param(*both, marks=only_in_full)
            for both in (("binned", "rows"), ("auto", "rows"), ("random", "trees"))
        ),
    ],
)
def test_a_killed_worker_changes_nothing(name, spread):
    parameters, *rows = case(name)
    parts = [None if part is None else in_blocks(part, [80, 80, 80]) for part in rows]
    moment = random.Random(0)

    def train(client):
        start = time.monotonic()
        model = BudgetForestClassifier(**parameters)
        on_cluster.fit(model, *parts[:2], sample_weight=parts[2], client=client, spread=spread)
        same_training(trained_here(name), model)
        return time.monotonic() - start

    for _ in range(KILLS):  # a new cluster each: Dask's nannies do not start every killed worker again
        with LocalCluster(n_workers=3, threads_per_worker=1, **QUIET) as cluster, Client(cluster) as client:
            took = [train(client), train(client)][-1]  # undisturbed; the first also loads kernels
            for _ in range(5):  # a training may end before the kill
                timer = killing(client, moment.random() * took)
                train(client)
                if timer.finished.is_set():
                    break
                timer.cancel()
            else:
                pytest.fail("no worker was killed in five trainings")


def test_an_interrupted_training_leaves_no_tasks(clients, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    frame, y, _, _ = table()
    client = clients(0)
    monkeypatch.setattr(level_growth, "hang_children", interrupt)
    blocks = in_blocks(frame, [100, 140]), in_blocks(pd.Series(y), [100, 140])
    with pytest.raises(KeyboardInterrupt):
        on_cluster.fit(BudgetForestClassifier(method="paper"), *blocks, client=client, spread="rows")
    for _ in range(100):  # tasks are given up soon, not at once
        left = [key for key in client.futures if str(key).startswith(("stand", "count", "encoded", "choose"))]
        if not left:
            return
        time.sleep(0.05)
    pytest.fail(f"{left} are still wanted")


@pytest.mark.slow
def test_a_worker_that_is_added_is_used(monkeypatch):
    name = "random"
    parameters, *rows = case(name)
    X, y = (in_blocks(part, [60, 60, 60, 60]) for part in rows[:2])
    hang = level_growth.hang_children
    with LocalCluster(n_workers=1, threads_per_worker=1, **QUIET) as cluster, Client(cluster) as client:

        def add_worker(*arguments):
            if len(client.nthreads()) == 1:
                cluster.scale(2)
                client.wait_for_workers(2, timeout=120)
            return hang(*arguments)

        monkeypatch.setattr(level_growth, "hang_children", add_worker)
        client.get_task_stream()  # from now on
        model = BudgetForestClassifier(**parameters)
        on_cluster.fit(model, X, y, client=client, spread="rows")
        assert len({task["worker"] for task in client.get_task_stream()}) == 2
    same_training(trained_here(name), model)


def test_the_page_about_clusters_runs(clients, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    block = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    here = {"__new__": lambda cls, **options: clients(0), "current": Client.current}  # Dask asks for it, too
    monkeypatch.setattr("distributed.Client", type("Client", (), here))
    scope = {}
    exec(block, scope)
    assert 0 < scope["paid"] <= 3


def started(command, *arguments, cwd):
    """A command of Dask's own."""
    executable = Path(sys.executable).with_name("dask")
    return subprocess.Popen([executable, command, *arguments], cwd=cwd, stderr=subprocess.DEVNULL)


@only_in_full
@pytest.mark.slow
def test_a_lost_scheduler_is_named_and_the_training_resumes(tmp_path):
    parameters, X, y, weight = case("binned")
    model = BudgetForestClassifier(**parameters)
    kept = tmp_path / "kept"
    for lose in (True, False):
        file = tmp_path / f"scheduler-{lose}.json"
        own = ("--scheduler-file", file)
        processes = [
            started("scheduler", *own, "--no-dashboard", "--port", "0", cwd=tmp_path),
            *(started("worker", *own, "--nthreads", "1", "--no-dashboard", cwd=tmp_path) for _ in range(2)),
        ]
        try:
            while not file.exists():
                time.sleep(0.1)
            with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
                client = Client(scheduler_file=str(file))
                client.wait_for_workers(2, timeout=120)
                blocks = [in_blocks(part, [100, 140]) for part in (X, y, weight)]

                def lose_it(scheduler=processes[0]):
                    while not any(kept.glob("*.safetensors")):
                        time.sleep(0.05)
                    scheduler.kill()

                if lose:
                    threading.Thread(target=lose_it).start()
                    with pytest.raises(ClusterFailed, match="with the same checkpoint"):
                        fit_with(model, blocks, client, kept)
                else:
                    fit_with(model, blocks, client, kept)
                client.close()
        finally:
            for process in processes:
                process.kill()
                process.wait()
    same_training(trained_here("binned"), model)


def fit_with(model, blocks, client, checkpoint):
    on_cluster.fit(
        model, *blocks[:2], sample_weight=blocks[2], client=client, spread="rows", checkpoint=checkpoint
    )


class Workers:
    """A client whose workers have these versions."""

    class scheduler:
        address = "tcp://somewhere"

    def __init__(self, *versions):
        self.versions = versions

    def run_on_scheduler(self, function, names):
        return function(names)

    def run(self, function, names, on_error):
        here = function(names)
        found = [[other or mine for other, mine in zip(each, here, strict=True)] for each in self.versions]
        return {f"worker-{at}": [v if v != "none" else "" for v in each] for at, each in enumerate(found)}


def test_workers_that_cannot_be_used_are_named(clients):
    check_workers(Workers(["", "", ""]))
    check_workers(Workers(), needed=False)  # a training that is over needs none
    for workers, message in [
        (Workers(), "has no workers"),
        (Workers(["", "", ""], ["none", "", ""]), "worker-1 lacks budgetforest"),
        (Workers(["0.0.9", "", ""]), "worker-0 has budgetforest 0.0.9"),
        (Workers(["", "0.1", ""]), "worker-0 has numba 0.1"),
    ]:
        with pytest.raises(ClusterFailed, match=message):
            check_workers(workers)
    check_workers(clients(0))


def test_workers_that_join_during_a_training_are_checked_too(clients, monkeypatch):
    joined = iter([None, ClusterFailed("worker-9 has numba 0.1")])

    def check(client, *, needed=True):
        if problem := next(joined):
            raise problem

    monkeypatch.setattr("budgetforest.dask.cluster.check_workers", check)
    frame, y, _, _ = table()
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=2, random_state=0)
    with pytest.raises(ClusterFailed, match="worker-9"):
        on_cluster.fit(model, frame[["a"]].to_numpy(), y, client=clients(0))
    with pytest.raises(NotFittedError):
        on_cluster.predict(model, frame)


def test_progress_tells_of_rows_before_the_first_tree(clients, capsys):
    frame, y, _, _ = table()
    blocks = in_blocks(frame[["a", "b"]].to_numpy(), [100, 140]), in_blocks(y, [100, 140])
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=2, random_state=0, verbose=1)
    on_cluster.fit(model, *blocks, client=clients(0), spread="rows")
    shown = capsys.readouterr().err
    assert "rows" in shown
    assert "blocks" in shown
    assert "3/3" in shown
    assert "2/2" in shown


def test_blocks_that_do_not_match_are_refused(clients):
    frame, y, _, _ = table()
    model = BudgetForestClassifier(method="paper")
    blocks = in_blocks(frame, [100, 140]), in_blocks(pd.Series(y), [100, 70, 70])
    with pytest.raises(InvalidData, match="X 2, y 3; repartition"):
        on_cluster.fit(model, *blocks, client=clients(0))
    with pytest.raises(InvalidData, match="y is a ndarray"):
        on_cluster.fit(model, blocks[0], y, client=clients(0))
    with pytest.raises(InvalidData, match=r"a block has 1[04]0 rows of X and 120 of y"):
        on_cluster.fit(model, blocks[0], in_blocks(pd.Series(y), [120, 120]), client=clients(0))
    with pytest.raises(InvalidData, match="y has 200 rows and X 240"):
        on_cluster.fit(model, da.ones((240, 2)), da.ones(200), client=clients(0))
    with pytest.raises(InvalidData, match="y='label' is the name of a column"):
        on_cluster.fit(model, da.ones((240, 2)), "label", client=clients(0))
    with pytest.raises(InvalidParameter, match="spread='columns'"):
        on_cluster.fit(model, *blocks, client=clients(0), spread="columns")


@given(st.data(), st.integers(2, 9), st.booleans())
def test_points_of_blocks_are_those_of_the_column(data, bins, ranked):
    column = np.array(
        data.draw(st.lists(st.sampled_from([*range(12), np.nan]), min_size=1, max_size=60)), float
    )
    weights = np.array([data.draw(st.integers(1, 3)) for _ in column])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), max_size=4)))
    blocks = zip(np.split(column, cuts), np.split(weights, cuts), strict=True)
    whole = points_of(census_of(column, weights), ranked=ranked, max_bins=bins)
    parts = merged([census_of(*block) for block in blocks])
    np.testing.assert_array_equal(points_of(parts, ranked=ranked, max_bins=bins), whole)


@given(st.lists(st.floats(0, 1e300)), st.integers(0, 9))
def test_exact_sums_of_blocks_add_up_to_the_exact_sum(numbers, cut):
    parts = np.array(numbers[:cut]), np.array(numbers[cut:])
    assert float(sum(exact_sum(part) for part in parts)) == math.fsum(numbers)


@given(st.data(), st.integers(2, 9), st.integers(9, 20))
def test_edges_from_pivots_are_those_of_the_column(data, bins, many):
    """The steps of ``edges.outline``, without a cluster."""
    size = data.draw(st.integers(1, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.integers(0, data.draw(st.sampled_from([5, 30, 1000])), (size, 2)) / 7
    X[rng.random(X.shape) < data.draw(st.sampled_from([0.0, 0.3]))] = np.nan
    weight = rng.integers(1, 4, size) if data.draw(st.booleans()) else np.ones(size, int)
    rows = Rows(X, np.zeros(size, np.int32), weight, np.zeros(size, np.uint64))
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
    blocks = [rows.take(part) for part in np.split(np.arange(size), cuts)]
    sketches = edges.merge(many, [edges.sketch(block, 0, many) for block in blocks])
    upto = edges.add([edges.weigh(block, 0, sketches) for block in blocks])
    wanted = edges.brackets(sketches, upto, bins)
    inside = edges.merge_all([edges.look_inside(block, 0, sketches, wanted) for block in blocks])
    for j in range(2):
        known = sketches[j]
        expected = points_of(census_of(X[:, j], weight), ranked=False, max_bins=bins)
        if known.is_whole:
            found = points_of(known.census, ranked=False, max_bins=bins)
        else:
            census = edges.in_place(known, upto[j], inside[j])
            found = quantile_edges(census, bins - int(known.census.gaps))
        np.testing.assert_array_equal(found, expected)
