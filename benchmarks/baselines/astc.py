"""ASTC: an approximately submodular tree of classifiers, grown from the root down.

Kusner, Chen, Zhou, Xu, Weinberger and Chen, "Feature-Cost Sensitive Learning with Submodular Trees of
Classifiers", AAAI 2014. A node is a least-squares classifier. The share of the labels' variance that a
set of features explains (R^2) is approximately submodular (Das and Kempe 2011), so a node buys features
greedily by gain in R^2 per price until its budget is used. What was bought above is free. The node's
score sends half of its rows to each child, which learns from them in the same way.

Where this departs from the publication or makes a choice of its own:

* Classes: a node regresses on all one-hot labels at once, R^2 is summed over them, and rows are split by
  the leading principal direction of the fitted scores. With two classes that is the one score there is.
* Budget: it holds for a whole path. Level l of d may have spent ``budget * l / d`` by then, so what a
  node leaves its children may use; a node that can buy nothing is passed over for the next level.
* Every inherited feature enters a child's regression before it buys (its price is zero). Of features
  that cost nothing the one with the most gain comes first.
* A small ridge, relative to the node's rows, and R^2 counts its penalty; ``ridge=0`` is the plain method.
* Orthogonalisation works on the Gram matrix (a partial Cholesky factor): the same sets as Gram-Schmidt
  on the rows, one pass over them per node. Features without anything new to say are not bought.
* ``min_gain`` (off unless set) stops buying before the budget does; ``min_rows`` stops splitting.
* Groups are charged as in ``budgetforest``: a feature of an opened group costs its discount. The greedy
  rule looks one feature ahead, so it does not see that opening a group makes the others cheap.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from budgetforest.data.costs import Costs, read_costs
from budgetforest.runtime.arrays import Anything, Flags, Floats, Ids

DEPENDENT = 1e-9
"""A standardised feature with less variance than this beside the chosen ones says nothing new."""
SLACK = 1 + 1e-9
"""Sums of prices are compared with a budget up to rounding."""


class Moments(NamedTuple):
    """What least squares needs to know of a node's rows, k classes and m features."""

    gram: Floats
    """(m, m) covariances of the features, the ridge on the diagonal."""
    cross: Floats
    """(m, k) covariances of features and one-hot labels."""
    variance: float
    """Variance of the labels, summed over the classes: 0 when all rows are of one class."""
    centre: Floats
    """(m) mean of the features."""
    prior: Floats
    """(k) share of each class."""


class Path(NamedTuple):
    """What a row has bought on its way down."""

    features: tuple[int, ...] = ()
    """In the order they were bought."""
    cost: float = 0.0
    """What they cost together."""


class Choice(NamedTuple):
    """Outcome of the greedy selection in a node."""

    path: Path
    """What is bought after the node."""
    used: Ids
    """Linearly independent features of the path, in the order they entered the regression."""
    r2: Floats
    """R^2 after each of ``used``."""


class Node(NamedTuple):
    """A linear classifier and where it sends its rows."""

    path: Path
    used: Ids
    weights: Floats
    """(used, k) for standardised features."""
    bias: Floats
    """(k)"""
    direction: Floats = np.empty(0)
    """(k) by which the scores are split; empty for a leaf."""
    theta: float = np.nan
    """Rows above it go right."""
    children: tuple[Node, ...] = ()
    """Left and right, or none."""


class Sweep:
    """Forward regression: what every feature has left once the chosen ones are projected out."""

    def __init__(self, moments: Moments) -> None:
        self.gram, self.left, self.cross = moments.gram, moments.gram.diagonal().copy(), moments.cross.copy()
        self.basis = np.empty((0, len(self.left)))  # rows of the Cholesky factor

    def gains(self) -> Floats:
        """(m) variance of the labels that each feature would explain beyond the chosen ones."""
        explained = (self.cross**2).sum(axis=1) / np.maximum(self.left, DEPENDENT)
        return np.where(self.left > DEPENDENT, explained, 0.0)

    def add(self, j: int) -> None:
        """Project feature ``j`` out of the others and of the labels."""
        norm = np.sqrt(self.left[j])
        row = (self.gram[j] - self.basis[:, j] @ self.basis) / norm
        self.cross -= np.outer(row, self.cross[j] / norm)
        self.left -= row**2
        self.left[j] = 0.0
        self.basis = np.vstack([self.basis, row])


def moments_of(Z: Floats, Y: Floats, ridge: float) -> Moments:
    """One pass over a node's standardised rows ``Z`` (n, m) and one-hot labels ``Y`` (n, k)."""
    centre, prior = Z.mean(axis=0), Y.mean(axis=0)
    Z, Y = Z - centre, Y - prior
    gram = Z.T @ Z / len(Z)
    gram[np.diag_indices_from(gram)] += ridge
    return Moments(gram, Z.T @ Y / len(Z), float((Y**2).mean(axis=0).sum()), centre, prior)


def prices_after(path: Path, costs: Costs) -> Floats:
    """(m) what each feature costs a row that came along ``path``; infinite if it has it already."""
    bought = list(path.features)
    price = np.where(np.isin(costs.group, costs.group[bought]), costs.discount, costs.cost)
    price[bought] = np.inf
    return price


def select(moments: Moments, costs: Costs, path: Path, budget: float, min_gain: float = 0.0) -> Choice:
    """Add features by gain per price to those of ``path`` until it would cost more than ``budget``."""
    sweep, used, explained = Sweep(moments), [], []

    def enter(j: int, gain: float) -> None:
        sweep.add(j)
        used.append(j)
        explained.append(gain)

    for j in path.features:
        if sweep.left[j] > DEPENDENT:
            enter(j, sweep.gains()[j])
    floor = max(min_gain, 1e-12) * moments.variance
    while True:
        gain, price = sweep.gains(), prices_after(path, costs)
        open_ = (gain > floor) & (path.cost + price <= budget * SLACK)
        if not open_.any():
            break
        j = best_buy(gain, price, open_)
        enter(j, gain[j])
        path = Path((*path.features, j), path.cost + price[j])
    return Choice(path, np.array(used, np.int32), np.cumsum(explained) / (moments.variance or 1.0))


def best_buy(gain: Floats, price: Floats, open_: Flags) -> int:
    """The free feature with the most gain, else the most gain per price; ties to the first column."""
    free = open_ & (price == 0)
    if free.any():
        return int(np.argmax(np.where(free, gain, -1.0)))
    return int(np.argmax(np.divide(gain, price, out=np.full(len(gain), -1.0), where=open_)))


def fit_node(moments: Moments, choice: Choice) -> Node:
    """Least squares on the chosen features, as a leaf."""
    used = choice.used
    weights = np.linalg.lstsq(moments.gram[np.ix_(used, used)], moments.cross[used], rcond=None)[0]
    return Node(choice.path, used, weights, moments.prior - moments.centre[used] @ weights)


def scores_of(node: Node, Z: Floats) -> Floats:
    """(n, k) what the node gives each class."""
    return Z[:, node.used] @ node.weights + node.bias


def goes_right(node: Node, Z: Floats) -> Flags:
    """(n) whether the node sends a row to its right child."""
    return scores_of(node, Z) @ node.direction > node.theta


def with_split(node: Node, Z: Floats) -> Node:
    """The node with the direction in which the scores of its rows vary most, and half of them above theta."""
    scores = scores_of(node, Z)
    direction = np.linalg.eigh(np.cov(scores.T))[1][:, -1]
    largest = np.argmax(np.abs(direction) > np.abs(direction).max() - 1e-9)
    direction = direction * np.sign(direction[largest])  # eigh leaves the sign open
    return node._replace(direction=direction, theta=halving_threshold(scores @ direction))


def halving_threshold(score: Floats) -> float:
    """Between two scores, as near to half of the rows on each side as ties allow; NaN if all are equal."""
    values, counts = np.unique(score.round(9), return_counts=True)
    if len(values) < 2:
        return np.nan
    cut = int(np.argmin(np.abs(np.cumsum(counts)[:-1] - len(score) / 2)))
    return float(values[cut] + values[cut + 1]) / 2


class ASTC(ClassifierMixin, BaseEstimator):
    """A tree of ``depth`` levels of least-squares classifiers; no row pays more than ``budget``.

    Parameters
    ----------
    budget : what a path may cost; sweep it for the cost-error curve.
    depth : levels of classifiers, 1 for a single one.
    costs, groups : as ``BudgetForestClassifier`` takes them; None for 1 each.
    ridge : added to the variances (of standardised features, 1 at the root).
    min_gain : gain in R^2 below which a feature is not bought.
    min_rows : a child with fewer training rows is not made.
    """

    def __init__(
        self,
        budget: float = 10.0,
        depth: int = 3,
        costs: Anything = None,
        groups: Anything = None,
        ridge: float = 1e-3,
        min_gain: float = 0.0,
        min_rows: int = 20,
    ) -> None:
        self.budget = budget
        self.depth = depth
        self.costs = costs
        self.groups = groups
        self.ridge = ridge
        self.min_gain = min_gain
        self.min_rows = min_rows

    def fit(self, X: Anything, y: Anything) -> Self:
        """Grow the tree; ``X`` is numeric without missing values."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        self.costs_ = read_costs(self.costs, self.groups, [str(name) for name in names])
        varies = np.ptp(X, axis=0) > 0
        self.mean_, self.scale_ = X.mean(axis=0), np.where(varies, X.std(axis=0), 1.0)
        self.root_ = self._grow((X - self.mean_) / self.scale_, np.eye(len(self.classes_))[label], Path(), 1)
        return self

    def _grow(self, Z: Floats, Y: Floats, path: Path, level: int) -> Node:
        """The node of ``level`` (1 is the root) for these rows, and all below it."""
        moments = moments_of(Z, Y, self.ridge)
        choice = self._buy(moments, path, level)
        while not len(choice.used) and level < self.depth:
            level += 1
            choice = self._buy(moments, path, level)
        leaf = fit_node(moments, choice)
        if level >= self.depth or not moments.variance:
            return leaf
        node = with_split(leaf, Z)
        right = goes_right(node, Z)
        if min(right.sum(), (~right).sum()) < max(self.min_rows, 1):
            return leaf
        below = (self._grow(Z[side], Y[side], choice.path, level + 1) for side in (~right, right))
        return node._replace(children=tuple(below))

    def _buy(self, moments: Moments, path: Path, level: int) -> Choice:
        """Buy what a path may have cost by ``level``."""
        return select(moments, self.costs_, path, self.budget * (level / self.depth), self.min_gain)

    def _leaves(self, X: Anything) -> tuple[Floats, list[tuple[Node, Ids]]]:
        """Standardised rows, and which of them end in which leaf."""
        check_is_fitted(self)
        Z = (validate_data(self, X, dtype=np.float64, reset=False) - self.mean_) / self.scale_
        leaves, waiting = [], [(self.root_, np.arange(len(Z), dtype=np.int32))]
        while waiting:
            node, rows = waiting.pop()
            if not node.children:
                leaves.append((node, rows))
                continue
            right = goes_right(node, Z[rows])
            waiting += zip(node.children, (rows[~right], rows[right]), strict=True)
        return Z, leaves

    def class_scores(self, X: Anything) -> Floats:
        """(n, k) least-squares scores of the leaf, which sum to 1 and may be negative."""
        Z, leaves = self._leaves(X)
        scores = np.empty((len(Z), len(self.classes_)))
        for leaf, rows in leaves:
            scores[rows] = scores_of(leaf, Z[rows])
        return scores

    def predict(self, X: Anything) -> Anything:
        """The class with the highest score in the row's leaf."""
        best = self.class_scores(X).argmax(axis=1)
        return self.classes_[best]

    def acquired_features(self, X: Anything) -> Flags:
        """(n, m) which features each row's path buys."""
        Z, leaves = self._leaves(X)
        acquired = np.zeros(Z.shape, bool)
        for leaf, rows in leaves:
            acquired[rows[:, None], list(leaf.path.features)] = True
        return acquired

    def acquisition_cost(self, X: Anything) -> Floats:
        """(n) what each row pays, every feature on its path once."""
        Z, leaves = self._leaves(X)
        cost = np.empty(len(Z))
        for leaf, rows in leaves:
            cost[rows] = leaf.path.cost
        return cost
