"""Many rows through all trees: those that go the same way walk as one bundle.

A bundle is a word with a bit for each of its rows. One comparison of 64 values (``simd``) parts it, whatever
the number of its rows, so a step costs little where rows are alike; and they are put beside their like first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from budgetforest.runtime.arrays import LEAF, Flags, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.runtime.simd import LANES, OCTET, add_octet, bring, put_where, values_at_most
from budgetforest.trees.tree import MISSING_LEFT, Tree

IN_TURNS = 8
"""Trees that are walked side by side, so that the processor need not wait for one of them."""

VOTES_REMEMBERED = 1024
"""Different votes that are remembered at a time."""

LOWEST = np.float32(-np.inf)
ZERO, ONE, TWO, LANE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(LANES)
CHILDREN, LEFT_LEAF, RIGHT_LEAF, COLUMN = np.uint64(32), np.uint64(31), np.uint64(30), np.uint64(2**30 - 1)


class Signposts(NamedTuple):
    """Numeric trees packed for many rows, 16 bytes a node; siblings stand side by side, right ones first."""

    nodes: Keys
    """(2 d) the bits of each node's threshold, of the rows' own type; then, from the top, the place of its
    children, a bit each for whether the left and the right one are leaves, and its column. Leaves: zeros."""
    node: Ids
    """(d) which node stands at each place; roots stand where they were."""


def signposts(tree: Tree, roots: Ids, n_features: int, gaps: bool, dtype: Any) -> Signposts:
    """Pack trees, none of them nominal, for rows of a type, with ``gaps`` or without.

    Missing values pass nowhere. Where they go left, the node asks for a second column, ``n_features`` later,
    in which they are lower than any number.
    """
    nodes = np.zeros(2 * len(tree.feature), np.uint64)
    posts = Signposts(nodes, np.empty_like(tree.feature))
    second = n_features if gaps else 0
    pack_nodes(tree, roots, second, posts, nodes.view(dtype), np.empty_like(tree.feature))
    return posts


@kernel
def pack_nodes(tree: Tree, roots: Ids, second: int, posts: Signposts, bounds: Matrix, place: Ids) -> None:
    """Fill ``posts``, node after node, parents first; ``place`` (d) is room for where each one stands.

    ``bounds`` is the memory of ``posts.nodes`` as numbers of the rows' type.
    """
    # bits of a node: | threshold 64 | children 32 | left is a leaf 1 | right is a leaf 1 | column 30 |
    # wide: how many numbers of the rows' type these 16 bytes hold
    wide = len(bounds) // len(place)
    for t in range(len(roots) - 1):
        root = int(np.int64(roots[t]))
        place[root] = root
        free = root + 1
        # parents come first, so every node has its place when its turn comes
        for node in range(root, int(np.int64(roots[t + 1]))):
            at = int(np.int64(place[node]))
            posts.node[at] = node
            if tree.feature[node] != LEAF:
                threshold = tree.threshold[node]
                # rounded to the type, it may lie above numbers that must go right
                bounds[wide * at] = threshold
                if bounds[wide * at] > threshold:  # the next lower number parts numbers of the type alike
                    bounds[wide * at] = np.nextafter(bounds[wide * at], LOWEST)
                column = tree.feature[node] + second * ((tree.route[node] & MISSING_LEFT) != 0)
                left, right = tree.left[node], tree.right[node]
                ends = np.uint64(tree.feature[left] == LEAF) << LEFT_LEAF
                ends |= np.uint64(tree.feature[right] == LEAF) << RIGHT_LEAF
                posts.nodes[2 * at + 1] = (np.uint64(free) << CHILDREN) | ends | np.uint64(column)
                # right, then left: the place of the children, plus 1 for rows that pass
                place[right] = free
                place[left] = free + 1
                free += 2


class Votes(NamedTuple):
    """What leaves add to the scores: of majority votes few are different, and stay near the processor."""

    kind: Ids
    """(d) which vote a leaf gives."""
    listed: Floats
    """(kinds, width) all different votes, some of them more than once; filled up with zeros."""


def votes_of(tree: Tree, votes: Any) -> Votes:
    """List the votes of leaves."""
    width = -(-votes.shape[1] // OCTET) * OCTET
    kind, found = np.zeros(len(votes), np.int32), np.zeros(len(votes), np.int32)
    size = list_votes(tree.feature, votes, np.full(VOTES_REMEMBERED, -1, np.int32), kind, found)
    listed = np.zeros((size, width))
    listed[:, : votes.shape[1]] = votes[found[:size]]
    return Votes(kind, listed)


@kernel
def list_votes(feature: Ids, votes: Any, last: Ids, kind: Ids, found: Ids) -> int:
    """``found`` gets a leaf for every vote, ``kind`` the number of that leaf; how many there are.

    ``last`` remembers for each of some hashes the number of the last such vote.
    """
    size = 0
    for i in range(len(votes)):
        if feature[i] != LEAF:
            continue
        mixed = 0.0
        for c in range(votes.shape[1]):
            mixed += (2 * c + 1) * votes[i, c]
        # two votes of one slot push each other out: a vote is listed twice then, which changes no sum
        slot = int(abs(mixed * 64)) % len(last)
        number = int(np.int64(last[slot]))
        same = number >= 0
        for c in range(votes.shape[1]):
            same = same and votes[found[number], c] == votes[i, c]
        if not same:
            number = size
            last[slot] = size
            found[size] = i
            size += 1
        kind[i] = number
    return size


class Workspace(NamedTuple):
    """Memory for the walk of ``LANES`` rows."""

    columns: Matrix
    """(128 m) their values, column after column, second columns behind."""
    laid: Flags
    """(2 m) which columns are filled."""
    met: Keys
    """(2 m) which rows have met a node of each column."""
    bundles: Keys
    """Two words for each bundle, where it is and a bit for each of its rows: in the first third those on
    their way, in the second those a step on, in the last those that have arrived."""
    passes: Keys
    """Which rows pass, for each bundle on its way."""
    lanes: Ids
    """(LANES IN_TURNS) what every row gets in some trees, tree after tree: where its vote begins."""
    sums: Floats
    """(LANES, width) the scores of every row."""


def workspace_for(n_features: int, dtype: Any, width: int) -> Workspace:
    """Room for one thread; columns begin where a line of the cache does."""
    columns = np.empty(2 * LANES * n_features + LANES, dtype)
    begin = -columns.ctypes.data % 64 // dtype.itemsize
    most = 2 * (LANES * IN_TURNS + 1)
    return Workspace(
        columns[begin:],
        np.zeros(2 * n_features, bool),
        np.zeros(2 * n_features, np.uint64),
        np.empty(3 * most, np.uint64),
        np.empty(most, np.uint64),
        np.empty(IN_TURNS * LANES, np.int32),
        np.zeros((LANES, width)),
    )


def visit_alike(posts: Signposts, roots: Ids, votes: Votes, X: Matrix, total: Floats, met: Keys) -> None:
    """The same as ``walk.visit_leaves`` for many rows; many trees meet them by their leaf in the first."""
    work = workspace_for(X.shape[1], X.dtype, votes.listed.shape[1])
    order = np.arange(len(X), dtype=np.int32)
    # rows of the same leaf in the first tree often go alike in the others: fewer, fuller bundles
    if len(roots) - 1 > IN_TURNS:
        end = np.empty(len(X), np.int32)
        first_ends(posts.nodes, roots[:1], X, order, work, end)
        beyond = max(0, int(roots[1]).bit_length() - 16)  # 16 bits are sorted fastest
        order = np.argsort((end >> beyond).astype(np.uint16), kind="stable").astype(np.int32)
    visit_bundles(posts, roots, votes, X, order, work, total, met)


@kernel
def first_ends(nodes: Keys, roots: Ids, X: Matrix, order: Ids, work: Workspace, end: Ids) -> None:
    """Where each row ends in the first tree."""
    for start in range(0, len(order), LANES):
        rows = order[start : start + LANES]
        forget_rows(work)
        ended = walk_trees(nodes, roots, X.reshape(-1), X.shape[1], rows, work)
        # the last third of the bundles: those that have arrived; all their rows end at the same leaf
        for b in range(np.uint64(2 * len(work.passes)), np.uint64(ended), TWO):
            put_where(work.lanes, ZERO, work.bundles[b + ONE], work.bundles[b])
        for i in range(len(rows)):
            end[rows[i]] = work.lanes[i]


@kernel
def visit_bundles(
    posts: Signposts,
    roots: Ids,
    votes: Votes,
    X: Matrix,
    order: Ids,
    work: Workspace,
    total: Floats,
    met: Keys,
) -> None:
    """Rows in this order, ``LANES`` at a time; votes are added in the order of the trees."""
    n_trees = len(roots) - 1
    for start in range(0, len(order), LANES):
        rows = order[start : start + LANES]
        forget_rows(work)
        # sums of 64 rows side by side while all trees add to them
        for i in range(len(rows)):
            row = np.uint64(rows[i])
            for c in range(total.shape[1]):
                work.sums[i, c] = total[row, c]
        # eight trees at a time: at most 64 bundles each, for those of a tree have no row in common
        for t in range(0, n_trees, IN_TURNS):
            some = roots[t : min(t + IN_TURNS, n_trees)]
            ended = walk_trees(posts.nodes, some, X.reshape(-1), X.shape[1], rows, work)
            note_votes(posts.node, some, votes, work, ended)
            add_votes(len(some), len(rows), votes.listed, work)
        for i in range(len(rows)):
            row = np.uint64(rows[i])
            for c in range(total.shape[1]):
                total[row, c] = work.sums[i, c]
        for word in range(met.shape[1]):
            note_features(word, rows, work, met)


@inner
def forget_rows(work: Workspace) -> None:
    """Other rows come."""
    for column in range(len(work.laid)):
        work.laid[column] = False
        work.met[column] = ZERO


@inner
def walk_trees(nodes: Keys, roots: Ids, cells: Matrix, m: int, rows: Ids, work: Workspace) -> int:
    """All bundles go on from the roots, step by step, until the last has arrived; where their list ends.

    No branch depends on a value. Comparing and parting take turns: a processor waits to read a bundle until
    it knows where all bundles before were written to.
    """
    # bundles: | on their way | a step on | arrived |, each a list of | place | rows as bits |
    bundles, passes = work.bundles, work.passes
    here, there, ended = ZERO, np.uint64(len(passes)), np.uint64(2 * len(passes))
    size = ZERO
    # all rows start as one bundle at every root
    for root in roots:
        leaf = nodes[2 * np.uint64(root) + ONE] == ZERO
        at = ended if leaf else size
        # as many low bits as there are rows
        bundles[at], bundles[at + ONE] = np.uint64(root), ~ZERO >> np.uint64(LANES - len(rows))
        ended += TWO * np.uint64(leaf)
        size += TWO * np.uint64(not leaf)
    while size > ZERO:
        for b in range(ZERO, size, TWO):
            place = bundles[here + b] * TWO
            column = nodes[place + ONE] & COLUMN
            # columns are laid out when first asked for: 64 values side by side
            if not work.laid[column]:
                work.laid[column] = True
                lay_out(cells, m, rows, column, work.columns)
            # who asks for a feature has met it, whatever the answer
            work.met[column] |= bundles[here + b + ONE]
            passes[b] = values_at_most(work.columns, column * LANE, nodes[place])
        end = there
        for b in range(ZERO, size, TWO):
            word = nodes[bundles[here + b] * TWO + ONE]
            bring(nodes, (word >> CHILDREN) * TWO)
            for side in range(ZERO, TWO):
                # side 0, right: rows that do not pass (0 - 1 has all bits set); side 1, left: those that do
                members = bundles[here + b + ONE] & (passes[b] ^ (side - ONE))
                leaf = (word >> (RIGHT_LEAF + side)) & ONE
                at = ended if leaf else end
                bundles[at] = (word >> CHILDREN) + side
                bundles[at + ONE] = members
                # an empty bundle is overwritten by the next
                some = np.uint64(members != ZERO) * TWO
                ended += some * leaf
                end += some * (ONE - leaf)
        size = end - there
        here, there = there, here
    return int(ended)


@inner
def note_votes(node: Ids, roots: Ids, votes: Votes, work: Workspace, ended: int) -> None:
    """Which vote each row gets in each tree."""
    width = votes.listed.shape[1]
    for b in range(np.uint64(2 * len(work.passes)), np.uint64(ended), TWO):
        place, members = work.bundles[b], work.bundles[b + ONE]
        # places ascend from tree to tree
        tree = ZERO
        for t in range(1, len(roots)):
            tree += np.uint64(place >= np.uint64(roots[t]))
        # a whole bundle at once: one masked write of 64 places
        put_where(work.lanes, tree * LANE, members, votes.kind[np.uint64(node[place])] * width)


@inner
def add_votes(n_trees: int, n_rows: int, listed: Floats, work: Workspace) -> None:
    """Tree after tree; rows in turn, so that no sum waits for the one before."""
    width = np.uint64(listed.shape[1])
    terms, sums = listed.reshape(-1), work.sums.reshape(-1)
    for t in range(n_trees):
        for i in range(n_rows):
            vote = np.uint64(work.lanes[t * LANES + i])
            for c in range(ZERO, width, np.uint64(OCTET)):
                add_octet(sums, np.uint64(i) * width + c, terms, vote + c)


@inner
def note_features(word: int, rows: Ids, work: Workspace, met: Keys) -> None:
    """Turn the rows that met each of 64 features into the features that each row met."""
    # between walks ``passes`` is free; a feature may have been met in both of its columns
    block, m = work.passes, len(work.met) // 2
    for bit in range(64):
        j = 64 * word + bit
        block[bit] = work.met[j] | work.met[m + j] if j < m else ZERO
    transpose(block)
    for i in range(len(rows)):
        met[rows[i], word] |= block[i]


@inner
def transpose(block: Keys) -> None:
    """Bit j of word i becomes bit i of word j: blocks of 32 bits change places, then those of 16 within."""
    size, low = 32, np.uint64(2**32 - 1)
    while size > 0:
        # low: size ones, size zeros, ...; upper parts of one word change places with lower parts of the other
        shift = np.uint64(size)
        for first in range(64):
            if first & size == 0:
                other = first + size
                swapped = ((block[first] >> shift) ^ block[other]) & low
                block[first] ^= swapped << shift
                block[other] ^= swapped
        size >>= 1
        low ^= low << np.uint64(size)


@inner
def lay_out(cells: Matrix, m: int, rows: Ids, column: int, columns: Matrix) -> None:
    """Fill one column; in second ones missing values are lower than any number."""
    begin, width = column * LANE, np.uint64(m)
    feature = column - width if column >= width else column
    for i in range(len(rows)):
        columns[begin + np.uint64(i)] = cells[np.uint64(rows[i]) * width + feature]
    if column != feature:
        for i in range(len(rows)):
            # NaN passes no threshold, -inf every one
            if np.isnan(columns[begin + np.uint64(i)]):
                columns[begin + np.uint64(i)] = -np.inf
