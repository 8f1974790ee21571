"""The dtypes of the package, each with its reason. Shapes are written in the docstrings.

Letters used for shapes: n rows, m features, k classes, t trees, d nodes.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Values, costs, impurities. Thresholds are midpoints computed and compared in double."""

Matrix: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
"""The caller's table, (n, m). float32 stays float32; comparing it with a double is exact."""

Counts: TypeAlias = NDArray[np.int64]
"""Class counts. Integers, so that sums are exact in any order, on any number of threads."""

Ids: TypeAlias = NDArray[np.int32]
"""Rows, nodes, features, classes, groups: two thousand million of each are enough."""

Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
"""A column as bin numbers, (m, n). uint8, hence ``max_bins <= 256``; wider for exact search."""

Keys: TypeAlias = NDArray[np.uint64]
"""What a random draw is keyed by."""

Flags: TypeAlias = NDArray[np.bool_]
"""Yes or no, a byte each."""

Anything: TypeAlias = Any
"""A caller's array, list or dataframe before it was checked."""

MAX_CODES = 256
"""Codes of the binned splitter fit one byte."""
FEW_CLASSES = 20
"""So many classes are never too many, whatever they are."""

MOST_WEIGHT = 2**30
"""Of all training rows, in whole numbers: counts fit 32 bits."""

LINE_BYTES = 64
"""Of the cache, on nearly all processors."""

LEAF = -1
"""The feature of a node that does not split."""


def in_lines(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that begin where a line of the cache does, so that rows of whole lines share none."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE_BYTES, np.uint8)
    start = -room.ctypes.data % LINE_BYTES
    lines: NDArray[Any] = room[start : start + size].view(dtype).reshape(shape)
    return lines
