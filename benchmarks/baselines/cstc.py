"""CSTC: the Cost-Sensitive Tree of Classifiers (Xu, Kusner, Weinberger and Chen, ICML 2013).

A balanced tree whose every node k is a linear classifier w_k with a threshold theta_k. A row goes right with
probability sigmoid(w_k.x - theta_k), so it reaches node k with probability p_k(x). All nodes are trained for

    sum_k [ mean_i p_k(x_i) (w_k.x_i + b_k - y_i)^2 + rho |w_k|_1 ]
    + lam * sum_leaves p_leaf sum_a cost_a sqrt(sum_{k on the path to the leaf} w_ka^2)

whose last term relaxes the expected price of a row: a feature is paid once along a path. As in the paper,
each sqrt(g) is bounded by (g / z + z) / 2 with an auxiliary z, and nodes are set greedily from the root down,
then visited in cycles: a leaf has a closed form, an inner node moves all below it and takes L-BFGS steps.
Norms are smoothed, sqrt(g + SMOOTH^2), so that z stays positive. In the end weights near zero are dropped,
rows are routed hard, and leaves are fitted again to the rows they get.

Where this departs from the paper:

- Inputs are the features themselves, standardised, as in the account of CSTC by Kusner et al. (AAAI 2014),
  not the outputs of boosted trees; there is no price for evaluating a tree.
- ``slope`` steepens the sigmoid. The paper has 1, with which scores near +-1 hardly part the rows.
- More than two classes: a node predicts one +-1 score per class (w_k has a column each, pooled in the norms)
  and routes by a learned mixture r_k of these scores. With two classes there is one score and r_k is 1.
- The last fit of a leaf may use every feature of its path, since all are paid, and is drawn to the trained
  weights with the force of ``pull`` rows, so that a leaf that few rows reach stays sane. No node is pruned.
- A price list's group discounts count in the bill (``acquisition_cost``), not in the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from budgetforest.data.costs import Costs, read_costs
from budgetforest.runtime.arrays import Flags, Floats

SMOOTH = 1e-4
"""Weights far below this cost nothing; inputs are standardised, labels +-1."""
DROP = 1e-3
"""A feature whose weights in a node are below this is not used there."""
BOUNDS = 3
"""Times the auxiliary variables are renewed at each visit of a node."""
STEPS = 15
"""L-BFGS steps between two renewals."""


class Problem(NamedTuple):
    """What is minimised."""

    X: Floats
    """(n, m) standardised rows."""
    Y: Floats
    """(n, k) targets of +-1, one column for two classes."""
    cost: Floats
    """(m) prices."""
    lam: float
    rho: float
    slope: float
    paths: Flags
    """(leaves, nodes) which nodes lead to which leaf, itself included."""


class Nodes(NamedTuple):
    """A tree in heap order, changed in place: the children of node k are 2k + 1 and 2k + 2."""

    W: Floats
    """(nodes, m, k) weights."""
    b: Floats
    """(nodes, k) intercepts, which are free."""
    r: Floats
    """(nodes, k) mixture of scores that routes."""
    theta: Floats
    """(nodes) thresholds."""


def paths_of(depth: int) -> Flags:
    """(leaves, nodes) which nodes of a full tree lead to which leaf."""
    paths = np.zeros((2**depth, 2 ** (depth + 1) - 1), bool)
    for leaf in range(2**depth):
        node = leaf + 2**depth
        while node:
            paths[leaf, node - 1] = True
            node //= 2
    return paths


def right_chance(nodes: Nodes, k: int, X: Floats, slope: float) -> Floats:
    """(n) probability of going right at node k."""
    return expit(slope * (X @ (nodes.W[k] @ nodes.r[k]) - nodes.theta[k]))


def reach(problem: Problem, nodes: Nodes, top: int = 0) -> Floats:
    """(nodes, n) probability that a row at ``top`` reaches each node; 0 outside the subtree."""
    p = np.zeros((len(nodes.theta), len(problem.X)))
    p[top] = 1
    for k in range(top, len(p) // 2):
        if p[k].any():
            right = right_chance(nodes, k, problem.X, problem.slope)
            p[2 * k + 1], p[2 * k + 2] = p[k] * (1 - right), p[k] * right
    return p


def losses(problem: Problem, nodes: Nodes) -> Floats:
    """(nodes, n) squared error of every node's prediction."""
    return np.stack(
        [((problem.X @ W + b - problem.Y) ** 2).sum(1) for W, b in zip(nodes.W, nodes.b, strict=True)]
    )


def objective(problem: Problem, nodes: Nodes) -> float:
    """The training objective with smoothed norms."""
    p = reach(problem, nodes)
    squares = problem.paths @ (nodes.W**2).sum(2)
    prices = np.sqrt(squares + SMOOTH**2) @ problem.cost
    ones = np.sqrt(nodes.W**2 + SMOOTH**2).sum()
    chance = p[len(p) // 2 :].mean(1)
    fit = (p * losses(problem, nodes)).mean(1).sum()
    return float(fit + problem.rho * ones + problem.lam * chance @ prices)


def fit_alone(problem: Problem, nodes: Nodes, k: int, p: Floats, times: int) -> None:
    """Set the prediction of node k as if it were a leaf: least squares, renewed bounds, again."""
    ancestors = [(k + 1 >> up) - 1 for up in range(1, (k + 1).bit_length())]
    rest = (nodes.W[ancestors] ** 2).sum((0, 2))
    Z = np.column_stack([problem.X, np.ones(len(p))])
    gram, right = (Z.T * p) @ Z / len(p), (Z.T * p) @ problem.Y / len(p)
    diagonal = np.arange(Z.shape[1])
    for _ in range(times):
        W = nodes.W[k]
        price = problem.lam * p.mean() * problem.cost / np.sqrt(rest + (W**2).sum(1) + SMOOTH**2)
        ridge = (price[:, None] + problem.rho / np.sqrt(W**2 + SMOOTH**2)) / 2
        systems = np.repeat(gram[None], W.shape[1], axis=0)
        systems[:, diagonal, diagonal] += np.vstack([ridge, np.zeros(W.shape[1])]).T + 1e-12
        solved = np.linalg.solve(systems, right.T[..., None])[..., 0]
        nodes.W[k], nodes.b[k] = solved[:, :-1].T, solved[:, -1]


def start(problem: Problem, depth: int) -> Nodes:
    """Greedy start from the root down: fit a node to what reaches it, send half of that each way."""
    m, k = problem.X.shape[1], problem.Y.shape[1]
    d = 2 ** (depth + 1) - 1
    nodes = Nodes(np.zeros((d, m, k)), np.zeros((d, k)), np.ones((d, k)), np.zeros(d))
    for node in range(d):
        p = reach(problem, nodes)[node]
        nodes.W[node] = 1  # far from zero: the first bounds are loose
        fit_alone(problem, nodes, node, p, 10)
        scores = problem.X @ nodes.W[node]
        if k > 1:
            nodes.r[node] = np.linalg.eigh((scores.T * p) @ scores)[1][:, -1]
        nodes.theta[node] = weighted_median(scores @ nodes.r[node], p)
    return nodes


def weighted_median(values: Floats, weights: Floats) -> float:
    """The value with half of the weight on either side."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def fit_inner(problem: Problem, nodes: Nodes, k: int, p: Floats) -> None:
    """Improve prediction, route and threshold of an inner node, the others held."""
    m, n_scores = nodes.W[k].shape
    for _ in range(BOUNDS):
        value, scale = bounded(problem, nodes, k, p)
        now = np.concatenate([nodes.W[k].ravel(), nodes.b[k], nodes.r[k], nodes.theta[[k]]])
        found = minimize(value, now / scale, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        W, b, r, theta = np.split(found.x * scale, m * n_scores + n_scores * np.arange(3))
        nodes.W[k], nodes.b[k], nodes.r[k], nodes.theta[k] = W.reshape(m, -1), b, r, theta[0]


def bounded(
    problem: Problem, nodes: Nodes, k: int, p: Floats
) -> tuple[Callable[[Floats], tuple[float, Floats]], Floats]:
    """The objective in node k's variables with its norms bounded at their present values.

    Returns value and gradient as a function of (W, b, r, theta) / scale, and the scale, which evens out the
    curvature: bounds of weights near zero are steep. Terms that node k cannot change are left out.
    """
    X, Y, cost, lam, rho, slope, paths = problem
    n, m, n_scores = *X.shape, Y.shape[1]
    below, own = paths[:, k], (nodes.W[k] ** 2).sum(1)
    others = paths[below] & (np.arange(len(nodes.theta)) != k)
    rest = others @ (nodes.W**2).sum(2) + SMOOTH**2
    z, eta = np.sqrt(rest + own), np.sqrt(nodes.W[k] ** 2 + SMOOTH**2)
    error = losses(problem, nodes)
    sides = [reach(problem, nodes, child) for child in (2 * k + 1, 2 * k + 2)]
    ahead = [(q * error).sum(0) for q in sides]
    to_leaf = [q[len(q) // 2 :][below].T for q in sides]
    chance = p[len(p) // 2 :][below].mean(1)
    steep = 2 * p[k].mean() + rho / eta + (lam * cost * (chance @ (1 / z)))[:, None]
    scale = np.concatenate([1 / np.sqrt(steep).ravel(), np.ones(2 * n_scores + 1)])

    def value(u: Floats) -> tuple[float, Floats]:
        W, b, r, theta = np.split(u * scale, m * n_scores + n_scores * np.arange(3))
        W = W.reshape(m, n_scores)
        S = X @ W
        residual = S + b - Y
        right = expit(slope * (S @ r - theta))
        price = ((rest + (W**2).sum(1)) / z + z) @ cost / 2
        left_loss, right_loss = (a + lam * q @ price for a, q in zip(ahead, to_leaf, strict=True))
        fit = p[k] @ ((residual**2).sum(1) + (1 - right) * left_loss + right * right_loss) / n
        f = fit + rho * ((W**2 + SMOOTH**2) / eta + eta).sum() / 2
        by_score = 2 * p[k][:, None] * residual / n
        by_turn = p[k] * right * (1 - right) * slope * (right_loss - left_loss) / n
        chance = ((p[k] * (1 - right)) @ to_leaf[0] + (p[k] * right) @ to_leaf[1]) / n
        by_W = X.T @ (by_score + by_turn[:, None] * r)
        by_W += W * (rho / eta + (lam * cost * (chance @ (1 / z)))[:, None])
        by_r = S.T @ by_turn if n_scores > 1 else [0.0]  # with two classes the route is the prediction
        return f, scale * np.concatenate([by_W.ravel(), by_score.sum(0), by_r, [-by_turn.sum()]])

    return value, scale


def train(problem: Problem, depth: int, max_cycles: int, tol: float) -> tuple[Nodes, list[float]]:
    """Greedy start, then cycles over the nodes until a cycle gains less than ``tol`` of the objective."""
    nodes = start(problem, depth)
    history = [objective(problem, nodes)]
    for _ in range(max_cycles):
        for k in range(len(nodes.theta)):
            p = reach(problem, nodes)
            if k < len(p) // 2:
                fit_inner(problem, nodes, k, p)
            else:
                fit_alone(problem, nodes, k, p[k], BOUNDS)
        history.append(objective(problem, nodes))
        if history[-2] - history[-1] < tol * history[-2]:
            break
    return nodes, history


def hard_leaves(nodes: Nodes, X: Floats) -> Any:
    """(n) the leaf node that every row is sent to; a score on the threshold goes left."""
    at = np.zeros(len(X), np.intp)
    for _ in range(len(nodes.theta).bit_length() - 1):
        score = np.einsum("ij,ij->i", X, np.einsum("dmk,dk->dm", nodes.W, nodes.r)[at])
        at = 2 * at + 1 + (score > nodes.theta[at])
    return at


def refit(problem: Problem, nodes: Nodes, used: Flags, pull: float) -> None:
    """Drop what is not used, then fit each leaf to its rows by the features its path has paid."""
    nodes.W[~used] = 0
    leaves = hard_leaves(nodes, problem.X)
    first = len(used) // 2
    for leaf in range(first, len(used)):
        mine, paid = leaves == leaf, used[problem.paths[leaf - first]].any(0)
        Z = np.column_stack([problem.X[mine][:, paid], np.ones(mine.sum())])
        before = np.vstack([nodes.W[leaf][paid], nodes.b[leaf]])
        gap = Z.T @ (problem.Y[mine] - Z @ before)
        after = before + np.linalg.solve(Z.T @ Z + pull * np.eye(len(before)), gap)
        nodes.W[leaf][paid], nodes.b[leaf] = after[:-1], after[-1]


def bill(stages: Flags, costs: Costs) -> float:
    """Price of a path whose nodes (rows of ``stages``, root first) use these features, each paid once."""
    total, bought, opened = 0.0, set(), set()
    for feature in (int(a) for stage in stages for a in np.flatnonzero(stage)):
        if feature not in bought:
            group = costs.group[feature]
            total += float((costs.discount if group in opened else costs.cost)[feature])
            bought.add(feature)
            opened.add(group)
    return total


class CSTC(ClassifierMixin, BaseEstimator):
    """Cost-Sensitive Tree of Classifiers.

    Parameters
    ----------
    depth : levels of routing nodes; there are ``2**depth`` leaves.
    lam : price of cost in units of squared error; 0 ignores costs.
    rho : l1 penalty of every node.
    costs : whatever ``budgetforest`` takes for ``costs``; None for 1 each.
    slope : steepness of the routing sigmoid, 1 in the paper.
    pull : rows that the trained weights count for in the last fit of a leaf.
    max_cycles, tol : cycles end after so many, or when one gains less than ``tol`` of the objective.

    Attributes
    ----------
    nodes_, used_ (nodes, m), objective_ (start and after each cycle), costs_, classes_, mean_, scale_
    """

    def __init__(
        self,
        depth: int = 3,
        lam: float = 1.0,
        rho: float = 1e-4,
        costs: Any = None,
        *,
        slope: float = 1.0,
        pull: float = 1.0,
        max_cycles: int = 40,
        tol: float = 1e-4,
    ) -> None:
        self.depth = depth
        self.lam = lam
        self.rho = rho
        self.costs = costs
        self.slope = slope
        self.pull = pull
        self.max_cycles = max_cycles
        self.tol = tol

    def fit(self, X: Any, y: Any) -> CSTC:
        """Train the tree."""
        values, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(values.shape[1])])
        self.costs_ = read_costs(self.costs, None, names)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class; a classifier needs two or more")
        self.mean_, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        self.scale_ = np.where(deviation > 0, deviation, 1)
        Y = np.where(labels[:, None] == self.classes_, 1.0, -1.0)
        Y = Y[:, 1:] if len(self.classes_) == 2 else Y
        problem = Problem(
            self._standard(X), Y, self.costs_.cost, self.lam, self.rho, self.slope, paths_of(self.depth)
        )
        self.nodes_, self.objective_ = train(problem, self.depth, self.max_cycles, self.tol)
        self.used_ = np.sqrt((self.nodes_.W**2).sum(2)) > DROP
        refit(problem, self.nodes_, self.used_, self.pull)
        return self

    def decision_function(self, X: Any) -> Floats:
        """(n, k) score of every class, read at the row's leaf."""
        rows = self._standard(X)
        leaves = hard_leaves(self.nodes_, rows)
        scores = np.empty((len(rows), self.nodes_.b.shape[1]))
        for leaf in np.unique(leaves):
            mine = leaves == leaf
            scores[mine] = rows[mine] @ self.nodes_.W[leaf] + self.nodes_.b[leaf]
        return scores if scores.shape[1] > 1 else np.hstack([-scores, scores])

    def predict_proba(self, X: Any) -> Floats:
        """(n, k) a softmax of the scores: it ranks, it is not calibrated."""
        return softmax(self.decision_function(X), axis=1)

    def predict(self, X: Any) -> Any:
        """(n) the class of the highest score."""
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def acquired_features(self, X: Any) -> Flags:
        """(n, m) the features with a weight somewhere on the row's path."""
        paths = paths_of(self.depth)
        by_leaf = np.stack([self.used_[path].any(axis=0) for path in paths])
        return by_leaf[hard_leaves(self.nodes_, self._standard(X)) - len(paths) + 1]

    def acquisition_cost(self, X: Any) -> Floats:
        """(n) what each row pays."""
        paths = paths_of(self.depth)
        prices = np.array([bill(self.used_[path], self.costs_) for path in paths])
        return prices[hard_leaves(self.nodes_, self._standard(X)) - len(paths) + 1]

    def _standard(self, X: Any) -> Floats:
        """Rows in standard units; a missing value stands at its feature's mean."""
        check_is_fitted(self, "mean_")
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return np.nan_to_num((X - self.mean_) / self.scale_, nan=0.0)
