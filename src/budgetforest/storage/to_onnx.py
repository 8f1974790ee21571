"""The forest as an ONNX graph: the labels and probabilities that it gives when every feature is at hand.

    X (rows, features)  ->  TreeEnsemble: the leaf of each row in each tree
                        ->  Gather: what the leaf adds to each class
                        ->  CumSum: added in the order of the trees, so that sums round as ours do
                        ->  ArgMax: label;  Div: probabilities

The trees only find leaves: thresholds and values stay doubles, and no runtime can add votes in another order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from budgetforest import __version__
from budgetforest.runtime.arrays import LEAF
from budgetforest.runtime.errors import MissingExtra
from budgetforest.storage.fields import storable, storable_categories
from budgetforest.trees.forest import Context, Forest, Voting, join, leaf_votes
from budgetforest.trees.tree import BY_CATEGORY, MISSING_LEFT, empty_tree

if TYPE_CHECKING:
    from onnx import ModelProto

ML, OPSET, ML_OPSET, IR = "ai.onnx.ml", 18, 5, 10
"""The oldest versions that have what is used, so that many runtimes can read the graph."""
AT_MOST, EQUAL = 0, 4
"""Modes of a node of ``TreeEnsemble``."""


def forest_to_onnx(forest: Forest) -> ModelProto:
    """A forest as an ONNX model; see ``to_onnx``."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise MissingExtra('ONNX needs the package onnx: pip install "budgetforest[onnx]"') from None
    forest = forest if forest.n_trees else _prior_alone(forest)
    tables = {
        "votes": leaf_votes(forest.nodes.counts, forest.voting).astype(np.float64),
        "classes": _labels(forest),
        "axis": np.array(1),
        "axes": np.array([1]),
        "end": np.array(-1),
    }
    node = helper.make_node
    steps = [
        node("TreeEnsemble", ["X"], ["leaf"], domain=ML, **_attributes(forest, numpy_helper.from_array)),
        node("Cast", ["leaf"], ["place"], to=onnx.TensorProto.INT64),
        node("Gather", ["votes", "place"], ["added"], axis=0),
        node("CumSum", ["added", "axis"], ["sums"]),
        node("Gather", ["sums", "end"], ["total"], axis=1),
        node("ArgMax", ["total"], ["best"], axis=1, keepdims=0),
        node("Gather", ["classes", "best"], ["label"], axis=0),
    ]
    if forest.voting == Voting.SCORES:
        steps.append(node("Softmax", ["total"], ["probabilities"], axis=1))
    else:
        steps.append(node("ReduceSum", ["total", "axes"], ["whole"], keepdims=1))
        steps.append(node("Div", ["total", "whole"], ["probabilities"]))
    value = helper.make_tensor_value_info
    double, of_label = (helper.np_dtype_to_tensor_dtype(tables[name].dtype) for name in ("votes", "classes"))
    made = helper.make_model(
        helper.make_graph(
            steps,
            "budgetforest",
            [value("X", double, ["rows", len(forest.schema.names)])],
            [
                value("label", of_label, ["rows"]),
                value("probabilities", double, ["rows", len(forest.classes)]),
            ],
            [numpy_helper.from_array(table, name) for name, table in tables.items()],
        ),
        producer_name="budgetforest",
        producer_version=__version__,
        ir_version=IR,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
    )
    helper.set_model_props(made, {"features": _features(forest)})
    return made


def _prior_alone(forest: Forest) -> Forest:
    """A forest without trees as one of a single leaf, since a graph needs one."""
    leaf = empty_tree(1, len(forest.prior))._replace(counts=forest.prior[None, :].astype(np.int32))
    return join(
        [leaf],
        Context(forest.prior, forest.costs, forest.schema, forest.classes, Voting.COUNTS, forest.unit),
    )


def _labels(forest: Forest) -> Any:
    labels = np.array(storable(forest.classes, "the classes"))
    return labels.astype(object) if labels.dtype.kind == "U" else labels


def _features(forest: Forest) -> str:
    features = zip(forest.schema.names, storable_categories(forest.schema), strict=True)
    return json.dumps([{"name": name, "categories": kinds} for name, kinds in features])


class _Test(NamedTuple):
    """A node of ``TreeEnsemble``."""

    feature: int
    split: float
    mode: int
    missing: bool
    """Whether a missing value answers yes."""
    yes: int
    no: int
    """Nodes of the forest; ``~number`` is a test."""


def _attributes(forest: Forest, tensor: Any) -> dict[str, Any]:
    """What ``TreeEnsemble`` needs: tests numbered by themselves, leaves numbered as nodes of the forest."""
    nodes, roots = forest.nodes, forest.roots
    tests: list[_Test] = []
    first: dict[int, int] = {}
    leaf = nodes.feature == LEAF
    for node in np.flatnonzero(~leaf).tolist():
        first[node] = len(tests)
        tests += _tests(forest, node, len(tests))
    for root in roots[:-1][leaf[roots[:-1]]].tolist():  # a tree needs a test
        first[root] = len(tests)
        tests.append(_Test(0, 0.0, AT_MOST, False, root, root))

    def number(node: int) -> int:
        return ~node if node < 0 else (node if leaf[node] else first[node])

    feature, split, mode, missing, yes, no = zip(*tests, strict=True)
    return {
        "n_targets": forest.n_trees,
        "tree_roots": [first[root] for root in roots[:-1].tolist()],
        "nodes_featureids": feature,
        "nodes_splits": tensor(np.array(split), "splits"),
        "nodes_modes": tensor(np.array(mode, np.uint8), "modes"),
        "nodes_missing_value_tracks_true": [int(way) for way in missing],
        "nodes_truenodeids": [number(node) for node in yes],
        "nodes_trueleafs": [int(node >= 0 and leaf[node]) for node in yes],
        "nodes_falsenodeids": [number(node) for node in no],
        "nodes_falseleafs": [int(node >= 0 and leaf[node]) for node in no],
        "leaf_targetids": np.repeat(np.arange(forest.n_trees), np.diff(roots)).tolist(),
        "leaf_weights": tensor(np.arange(len(leaf), dtype=np.float64), "leaves"),
    }


def _tests(forest: Forest, node: int, number: int) -> Iterator[_Test]:
    """A node as tests; a nominal one asks for one category after the other, from test ``number`` on."""
    nodes = forest.nodes
    feature, left, right = (int(part[node]) for part in (nodes.feature, nodes.left, nodes.right))
    if nodes.route[node] != BY_CATEGORY:
        yield _Test(
            feature,
            float(nodes.threshold[node]),
            AT_MOST,
            bool(nodes.route[node] & MISSING_LEFT),
            left,
            right,
        )
        return
    *children, other = (c if c >= 0 else ~c for c in nodes.branches[left : left + right + 1].tolist())
    asked = [(code, child) for code, child in enumerate(children) if child != other] or [(0, other)]
    for at, (code, child) in enumerate(asked, 1):
        no = other if at == len(asked) else ~(number + at)
        yield _Test(feature, float(code), EQUAL, False, child, no)
