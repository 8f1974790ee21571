"""Are trees from a file sound? Every index inside, every node reached once, every number in its range.

What passes can be walked, joined and charged by code that never checks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from budgetforest.data.table import Schema
from budgetforest.runtime.arrays import LEAF, MOST_WEIGHT, Flags, Ids
from budgetforest.storage.fields import refuse_unless
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, MISSING_RIGHT, UNSEEN, Tree

DEEPEST = 4096
"""Levels of a tree: arrays are filled level by level, so that deeper ones would take long."""


class Sizes(NamedTuple):
    """How trees lie end to end."""

    nodes: Ids
    """(t) nodes of each tree."""
    branches: Ids
    """(t) entries of each tree in ``branches``."""


def check_trees(nodes: Tree, sizes: Sizes, schema: Schema, *, proven: bool, boosted: Flags) -> None:
    """Refuse trees that are not sound; numbers of nodes and branches are those within a tree.

    ``boosted`` trees have scores in place of class counts.
    """
    d = len(nodes.feature)
    _check_lengths(nodes, sizes)
    if d == 0:
        return
    feature, route = nodes.feature, nodes.route
    refuse_unless(feature.min() >= LEAF and feature.max() < len(schema.names), "a node asks for no feature")
    inner, nominal = feature != LEAF, route == BY_CATEGORY
    known = np.isin(route, (MISSING_RIGHT, MISSING_LEFT, BY_CATEGORY, UNSEEN, UNSEEN + MISSING_LEFT))
    refuse_unless(known.all(), "a node sends missing values nowhere")
    agree = (nominal == np.append(schema.nominal, False)[feature]).all()
    refuse_unless(agree, "a node splits a nominal feature by number, or a numeric one by category")
    refuse_unless((nodes.threshold[inner & ~nominal] > -np.inf).all(), "a threshold is NaN or -inf")
    counts = nodes.counts[~np.repeat(boosted, sizes.nodes)] if boosted.any() else nodes.counts
    refuse_unless(counts.min(initial=0) >= 0, "a class count is negative")
    rows = np.einsum("dk->d", counts, dtype=np.int64)
    refuse_unless(rows.all(), "a node has no training rows")
    refuse_unless(rows.max(initial=0) < 2**31, "a node has more training rows than can be counted")
    refuse_unless(not np.isnan(nodes.impurity).any(), "an impurity is NaN")
    within = (nodes.weight >= 0) & (nodes.weight <= MOST_WEIGHT)
    refuse_unless(within.all(), "a node weighs less than nothing, or more than can be counted")
    if proven:
        refuse_unless((nodes.impurity >= inner * 1e-300).all(), "a node that splits has no impurity")
    _check_family(nodes, sizes, schema, inner & ~nominal, nominal)


def _check_lengths(nodes: Tree, sizes: Sizes) -> None:
    d, t = len(nodes.feature), len(sizes.nodes)
    for name in ("threshold", "left", "right", "route", "counts", "impurity", "weight"):
        refuse_unless(len(getattr(nodes, name)) == d, f"{name!r} has not one entry per node")
    refuse_unless(len(sizes.branches) == len(nodes.floor) == t, "arrays of trees differ in length")
    refuse_unless((sizes.nodes > 0).all() and _total(sizes.nodes) == d, "trees do not add up to the nodes")
    refuse_unless(
        (sizes.branches >= 0).all() and _total(sizes.branches) == len(nodes.branches),
        "trees do not add up to the branches",
    )


def _total(sizes: Ids) -> int:
    return int(sizes.sum(dtype=np.int64))


def _check_family(nodes: Tree, sizes: Sizes, schema: Schema, numeric: Flags, nominal: Flags) -> None:
    """Children come after their parent, within its tree, and every node but a root has one parent."""
    first = np.cumsum(sizes.nodes, dtype=np.int32) - sizes.nodes
    root = np.repeat(first, sizes.nodes)
    last = root + np.repeat(sizes.nodes, sizes.nodes)
    at = np.flatnonzero(numeric).astype(np.int32)
    # a sum too large for 32 bits turns negative and is no child
    left, right = nodes.left[at] + root[at], nodes.right[at] + root[at]
    refuse_unless((left == at + 1).all(), "a left child does not follow its parent")
    above = _branch_owners(nodes, sizes, schema, np.flatnonzero(nominal).astype(np.int32))
    own = nodes.branches >= 0
    branch = np.where(own, nodes.branches, ~nodes.branches) + root[above]
    family = [(left, at), (right, at), (branch[own], above[own])]
    has_parent = np.zeros(len(numeric), bool)
    has_parent[first] = True
    for children, parents in family:
        inside = (children > parents) & (children < last[parents])
        refuse_unless(inside.all(), "a child lies outside its tree")
        has_parent[children] = True
    # as many children as nodes that need a parent: none has two
    as_many = len(first) + sum(len(children) for children, _ in family) == len(numeric)
    refuse_unless(as_many and has_parent.all(), "a node has no parent, or several")
    if len(branch) or sizes.nodes.max() > 2 * DEEPEST:  # else two children each make no tree too deep
        up = root.copy()
        for children, parents in family:
            up[children] = parents
        inside = (branch > above) & (branch < last[above])
        refuse_unless(inside.all() and (up[branch] == above).all(), "a branch leads to another node's child")
        _check_depth(up, root)


def _branch_owners(nodes: Tree, sizes: Sizes, schema: Schema, nominal: Ids) -> Ids:
    """The node of every entry of ``branches``: they lie in the order of nodes, one more than categories."""
    categories = np.array([len(c or ()) for c in schema.categories], np.int64)
    size = categories[nodes.feature[nominal]] + 1
    refuse_unless((nodes.right[nominal] + 1 == size).all(), "a nominal node has not its feature's categories")
    first = np.cumsum(sizes.branches, dtype=np.int64) - sizes.branches
    tree = np.searchsorted(np.cumsum(sizes.nodes, dtype=np.int64), nominal, side="right")
    start = np.cumsum(size) - size
    in_order = size.sum() == len(nodes.branches) and (nodes.left[nominal] + first[tree] == start).all()
    refuse_unless(in_order, "branches do not lie in the order of nodes")
    return np.repeat(nominal, size)


def _check_depth(up: Ids, root: Ids) -> None:
    """From every node to its root in few steps; each round doubles how far a step goes."""
    for _ in range(DEEPEST.bit_length()):
        if (up == root).all():
            return
        up = up[up]
    refuse_unless(False, f"a tree has more than {DEEPEST} levels")
