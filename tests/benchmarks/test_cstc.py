"""Laws of the CSTC baseline: its objective, its bill, and what it buys."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.linear_model import Lasso

from benchmarks.baselines.cstc import CSTC, Problem, bounded, objective, paths_of, reach, start, train


def made(n=400, classes=2, seed=0):
    """Eight features: 0 to 3 speak of the class with falling strength, 4 to 7 are noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    X = rng.normal(size=(n, 8))
    if classes == 2:
        X[:, :4] += np.outer(2 * y - 1, [1.0, 0.8, 0.6, 0.4])
    else:
        X[np.arange(n), y] += 4
    return X, y


def problem_and_nodes(classes):
    X, y = made(150, classes)
    Y = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    Y = Y[:, 1:] if classes == 2 else Y
    problem = Problem(X, Y, np.arange(1.0, 9.0) / 3, 0.02, 1e-3, 2.0, paths_of(2))
    return problem, start(problem, 2)


def test_paths_run_from_the_root_to_every_leaf():
    paths = paths_of(2)
    assert [np.flatnonzero(path).tolist() for path in paths] == [[0, 1, 3], [0, 1, 4], [0, 2, 5], [0, 2, 6]]
    assert paths_of(0).tolist() == [[True]]


def test_chances_of_the_children_sum_to_the_parents():
    problem, nodes = problem_and_nodes(2)
    p = reach(problem, nodes)
    assert np.allclose(p[0], 1)
    for k in range(3):
        assert np.allclose(p[2 * k + 1] + p[2 * k + 2], p[k])
    assert np.allclose(p[3:].sum(0), 1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("k", [0, 1])
def test_gradient_is_the_slope_of_the_objective(classes, k):
    """Where the bounds touch, value and gradient are those of the objective itself."""
    problem, nodes = problem_and_nodes(classes)
    value, scale = bounded(problem, nodes, k, reach(problem, nodes))
    m, scores = nodes.W[k].shape
    now = np.concatenate([nodes.W[k].ravel(), nodes.b[k], nodes.r[k], nodes.theta[[k]]])

    def whole(v):
        W, b, r, theta = np.split(v, m * scores + scores * np.arange(3))
        moved = nodes._replace(W=nodes.W.copy(), b=nodes.b.copy(), r=nodes.r.copy(), theta=nodes.theta.copy())
        moved.W[k], moved.b[k], moved.r[k], moved.theta[k] = W.reshape(m, -1), b, r, theta[0]
        return objective(problem, moved)

    measured = approx_fprime(now, whole, 1e-7)
    if scores == 1:
        measured[m + 1] = 0  # the mixture of a single score is held
    assert np.allclose(value(now / scale)[1] / scale, measured, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("lam", [0.0, 0.01, 0.3])
def test_objective_never_increases(classes, lam):
    X, y = made(classes=classes)
    history = CSTC(depth=2, lam=lam, slope=4, tol=0, max_cycles=8).fit(X, y).objective_
    assert len(history) == 9
    assert history[-1] < history[0]
    assert max(np.diff(history)) <= 1e-6 * history[0]


def test_one_node_is_the_lasso():
    X, y = made()
    Z, Y = (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y[:, None] - 1
    problem = Problem(Z, Y, np.ones(8), 0.2, 0.0, 1.0, paths_of(0))
    nodes, _ = train(problem, 0, 200, 0)
    assert np.allclose(nodes.W[0, :, 0], Lasso(alpha=0.1, tol=1e-8).fit(Z, Y[:, 0]).coef_, atol=1e-3)


@pytest.mark.parametrize("slope", [1, 10])
def test_larger_lambda_never_costs_more(slope):
    X, y = made()
    spent = [
        CSTC(depth=2, lam=lam, slope=slope).fit(X, y).acquisition_cost(X).mean()
        for lam in (0.0, 0.01, 0.1, 0.5, 3.0)
    ]
    assert max(np.diff(spent)) <= 0.25
    assert spent[0] > 7
    assert spent[-1] == 0


def test_feature_is_charged_once_along_a_path():
    X, y = made()
    model = CSTC(depth=2, lam=0.1).fit(X, y)
    assert model.used_[:, 0].all()
    assert np.array_equal(model.acquisition_cost(X), model.acquired_features(X).sum(axis=1))


def test_bill_equals_hand_computation():
    X, y = made()
    model = CSTC(depth=1, costs=[1, 2, 4, 8, 16, 32, 64, 128], lam=0.001).fit(X, y)
    model.used_[:] = False
    model.used_[0, [0, 2]] = model.used_[1, [2, 3]] = model.used_[2, 7] = True
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    right = Z @ model.nodes_.W[0, :, 0] > model.nodes_.theta[0]
    assert 0 < right.sum() < len(X)
    assert np.array_equal(model.acquisition_cost(X), np.where(right, 1 + 4 + 128, 1 + 4 + 8))
    assert np.array_equal(np.flatnonzero(model.acquired_features(X)[right][0]), [0, 2, 7])


def test_later_members_of_a_group_cost_their_discount():
    pd = pytest.importorskip("pandas")
    X, y = made()
    prices = {"cost": [5.0] * 8, "group": ["a"] * 4 + [""] * 4, "discount_cost": [1.0] * 4 + [None] * 4}
    names = [f"f{j}" for j in range(8)]
    prices = pd.DataFrame({"feature": names, **prices})
    model = CSTC(depth=1, costs=prices, lam=0.001).fit(pd.DataFrame(X, columns=names), y)
    model.used_[:] = False
    model.used_[0, [1, 2]] = model.used_[1:, [0, 1, 4]] = True
    assert set(model.acquisition_cost(pd.DataFrame(X, columns=names))) == {5 + 1 + 1 + 5}


def test_features_not_acquired_do_not_matter():
    X, y = made()
    model = CSTC(depth=2, lam=0.2, slope=4).fit(X, y)
    acquired = model.acquired_features(X)
    assert not acquired.all()
    changed = np.where(acquired, X, 1e3)
    assert np.array_equal(model.predict(changed), model.predict(X))
    assert np.array_equal(model.acquired_features(changed), acquired)


def test_expensive_noise_is_not_acquired():
    X, y = made()
    model = CSTC(depth=2, lam=0.01, costs=[1, 1, 1, 1, 1, 1, 1, 50]).fit(X, y)
    assert not model.acquired_features(X)[:, 7].any()
    assert model.acquired_features(X)[:, 0].all()


@pytest.mark.parametrize("classes", [2, 3])
def test_error_on_separable_classes_is_low(classes):
    X, y = made(classes=classes)
    if classes == 2:
        X[:, 0] += 3 * (2 * y - 1)
    model = CSTC(depth=2, lam=0.01).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.95
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_routing_beats_one_linear_classifier():
    """Exclusive or: no linear classifier does better than chance; a tree of them does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    X[:, 0] += 0.5
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    flat, deep = (CSTC(depth=d, lam=1e-4, slope=10).fit(X, y).score(X, y) for d in (0, 3))
    assert deep > flat + 0.1


def test_same_rows_give_the_same_tree():
    X, y = made()
    one, two = (CSTC(depth=2, lam=0.01).fit(X, y) for _ in range(2))
    assert one.objective_ == two.objective_
    assert all(np.array_equal(a, b) for a, b in zip(one.nodes_, two.nodes_, strict=True))


def test_constant_and_missing_values_are_taken():
    X, y = made()
    X[:, 5] = 1
    X[::7, 1] = np.nan
    model = CSTC(depth=1, lam=0.01).fit(X, y)
    assert not model.acquired_features(X)[:, 5].any()
    assert model.score(X, y) > 0.8


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="two or more"):
        CSTC().fit(np.eye(3), [1, 1, 1])
