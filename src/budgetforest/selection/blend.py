"""Blends: the forest and the boosted trees of a pool as one sum of scores.

A blend scores a class by the sum over its members of

    w_i * (mean leaf frequency over the trees of a forest, or the score of boosted trees),

with weights w_i >= 0 of least log loss on the rows that judge. The sum is additive in the leaves, so a blend
is again trees that vote by ``Voting.SCORES``: exits, live acquisition and files need to know nothing of it.
Its log loss also makes its beliefs mean what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from budgetforest.data.rows import Rows
from budgetforest.inference.predict import scores
from budgetforest.runtime.arrays import Floats, Ids, Keys
from budgetforest.trees.forest import BELIEF, Context, Voting, join, leaf_votes
from budgetforest.trees.tree import Tree

WEIGHTS = 64
"""Weights are multiples of 1 / WEIGHTS, so that rounding in sums does not matter."""
PRIOR_ROWS = 2.0
"""Weights are drawn to 1 as if so many rows spoke for that."""


class Member(NamedTuple):
    """A forest or boosted trees, and how they vote."""

    trees: list[Tree]
    context: Context


class MemberScores(NamedTuple):
    """What members say of some rows when everything is known."""

    score: Floats
    """(n, members, k) centred: the classes of a member add up to 0."""
    label: Ids
    """(n)"""
    weight: Ids
    """(n)"""
    hashes: Keys
    """(n)"""


def scores_of(rows: Rows, members: Sequence[Member], pool: Executor | None = None) -> MemberScores:
    """What each member says of some rows."""
    said = [scores(join(*member), rows.X, pool) / scale_of(member) for member in members]
    return MemberScores(
        np.stack([each - each.mean(axis=1, keepdims=True) for each in said], axis=1),
        rows.label,
        rows.weight,
        rows.hashes,
    )


def scale_of(member: Member) -> int:
    """What the votes of its trees are divided by: forests take means, boosted trees sums."""
    return 1 if member.context.voting == Voting.SCORES else len(member.trees)


def weights_for(blocks: Sequence[MemberScores], unit: float) -> Floats:
    """The weight of each member, zero or more, by the log loss on the rows of all blocks.

    ``unit`` is how many rows a row of weight 1 stands for.
    """
    from scipy.optimize import minimize  # takes long to import, and a loaded model does without

    score, label, weight, hashes = (np.concatenate(column) for column in zip(*blocks, strict=True))
    # sums are taken in the order of what rows contain, however they are spread over blocks
    order = np.lexsort((label, hashes))
    score, label, share = score[order], label[order], weight[order] / weight.sum()
    truth = score[np.arange(len(label)), :, label]
    pull = PRIOR_ROWS / (float(weight.sum()) * unit)

    def loss(weights: Floats) -> tuple[float, Floats]:
        total = np.einsum("nmk,m->nk", score, weights)
        top = total.max(axis=1, keepdims=True)
        part = np.exp(total - top)
        whole = part.sum(axis=1, keepdims=True)
        own = share @ (np.log(whole[:, 0]) + top[:, 0] - truth @ weights)
        slope = share @ (np.einsum("nmk,nk->nm", score, part / whole) - truth)
        apart = weights - 1.0
        return float(own + pull * (apart @ apart) / 2), slope + pull * apart

    members = score.shape[1]
    # not L-BFGS: its threads of BLAS take most of the time of a small fit
    found = minimize(loss, np.ones(members), jac=True, method="TNC", bounds=[(0.0, None)] * members)
    weights: Floats = np.rint(found.x * WEIGHTS) / WEIGHTS
    # if none of them helps, they are added up as they are
    return weights if weights.any() else np.ones(members)


def mean_weights(found: Sequence[Sequence[float]]) -> Floats:
    """The mean of several weights of the same members.

    >>> mean_weights([(1.0, 0.25), (0.5, 0.0)]).tolist()
    [0.75, 0.125]
    """
    mean: Floats = np.rint(np.mean(found, axis=0) * WEIGHTS) / WEIGHTS
    return mean


def blended(members: Sequence[Member], weights: Iterable[float]) -> list[Tree]:
    """The trees of the blend, member after member; what has no weight is left out."""
    return [
        scaled(tree, float(weight) / scale_of(member), member.context.voting)
        for member, weight in zip(members, weights, strict=True)
        for tree in member.trees
        if weight > 0
    ]


def scaled(tree: Tree, weight: float, voting: Voting) -> Tree:
    """A tree whose nodes score by their class frequencies or scores, times a weight."""
    score = leaf_votes(tree.counts, voting)
    score = score - score.mean(axis=1, keepdims=True)
    # of boosted trees the impurity is a loss of all rows together, of others one per row
    impurity = tree.impurity if voting == Voting.SCORES else tree.impurity * tree.weight
    return tree._replace(
        counts=np.rint(score * (weight * BELIEF)).astype(np.int32), impurity=impurity * weight
    )
