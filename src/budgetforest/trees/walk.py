"""Compiled walks of single rows to their leaves: few rows, or trees with nominal nodes.

``inference.batch_walk`` stands apart: it packs numeric trees first, which only many rows are worth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from budgetforest.runtime.arrays import LEAF, Floats, Ids, Keys, Matrix
from budgetforest.runtime.jit import inner, kernel
from budgetforest.trees.tree import Tree, next_node

child_of = inner(next_node)
"""Compiled for 64-bit nodes: who starts from a 32-bit one widens it, or numba compiles all twice."""


@kernel
def visit_leaves(tree: Tree, roots: Ids, votes: Any, X: Matrix, total: Floats, met: Keys) -> None:
    """Add to each row's scores what its leaves give, (d, k) ``votes``, tree after tree.

    The features it meets on its way become bits of ``met`` (n, words), if that has room for them.
    """
    for i in range(len(X)):
        for t in range(len(roots) - 1):
            node = int(np.int64(roots[t]))
            while tree.feature[node] != LEAF:
                feature = tree.feature[node]
                # no words where nobody asks what rows pay
                if met.shape[1] > 0:
                    met[i, feature >> 6] |= np.uint64(1) << np.uint64(feature & 63)
                node = child_of(tree, node, X[i, feature])
            for c in range(votes.shape[1]):
                total[i, c] += votes[node, c]
