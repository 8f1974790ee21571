"""The same for 64 rows at a time: which of their values are low enough, as the bits of one word.

LLVM finds neither in a loop of ours, so both are written in its own language; they are compiled for any
processor, with as many comparisons as its vectors need.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 64
"""Rows whose bits fill a word."""

OCTET = 8
"""Doubles that are added at a time."""


def _values_at_most(typing: Any, values: Any, begin: Any, bound: Any) -> Any:
    """Compare ``LANES`` values with the bits of a number of their type; NaN is not at most anything."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, begin, bound = arguments
        element = context.get_data_type(signature.args[0].dtype)
        vector = ir.VectorType(element, LANES)
        first = builder.gep(context.make_array(signature.args[0])(context, builder, values).data, [begin])
        lanes = builder.load(
            builder.bitcast(first, vector.as_pointer()), align=signature.args[0].dtype.bitwidth // 8
        )
        narrow = builder.trunc(bound, ir.IntType(32)) if element == ir.FloatType() else bound
        one = builder.insert_element(
            ir.Constant(vector, ir.Undefined), builder.bitcast(narrow, element), ir.IntType(32)(0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        same = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)
        return builder.bitcast(builder.fcmp_ordered("<=", lanes, same), ir.IntType(LANES))

    return types.uint64(values, types.uint64, types.uint64), code


def _first_of(typing: Any, rows: Any) -> Any:
    """The place of the lowest bit of a word that has some."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), code


def _add_octet(typing: Any, sums: Any, at: Any, terms: Any, begin: Any) -> Any:
    """Add ``OCTET`` neighbouring doubles to others."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, at, terms, begin = arguments
        vector = ir.VectorType(ir.DoubleType(), OCTET)

        def address(kind: Any, array: Any, place: Any) -> Any:
            first = builder.gep(context.make_array(kind)(context, builder, array).data, [place])
            return builder.bitcast(first, vector.as_pointer())

        there = address(signature.args[0], sums, at)
        total = builder.fadd(
            builder.load(there, align=8), builder.load(address(signature.args[2], terms, begin), align=8)
        )
        builder.store(total, there, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.uint64, terms, types.uint64), code


def _plain_values_at_most(values: Any, begin: Any, bound: Any) -> Any:
    limit = np.array([bound], np.uint64).view(values.dtype)[0]
    return np.packbits(values[int(begin) : int(begin) + LANES] <= limit, bitorder="little").view(np.uint64)[0]


def _plain_first_of(rows: Any) -> Any:
    return np.uint64(int(rows & -rows).bit_length() - 1)


def _plain_add_octet(sums: Any, at: Any, terms: Any, begin: Any) -> None:
    sums[int(at) : int(at) + OCTET] += terms[int(begin) : int(begin) + OCTET]


if numba.config.DISABLE_JIT:
    values_at_most, first_of, add_octet = _plain_values_at_most, _plain_first_of, _plain_add_octet
else:
    values_at_most, first_of, add_octet = map(intrinsic, (_values_at_most, _first_of, _add_octet))
