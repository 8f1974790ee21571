"""The same done to many numbers at a time: 64 rows are the bits of one word.

LLVM does not find these in loops of ours, so they are written in its own language; it compiles them for any
little-endian processor, with as many instructions as its vectors need. Arrays have one dimension and no gaps.
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


def _address(context: Any, builder: Any, kind: Any, array: Any, begin: Any, vector: Any) -> Any:
    """Where neighbouring numbers of an array begin, to be read as a vector."""
    first = builder.gep(context.make_array(kind)(context, builder, array).data, [begin])
    return builder.bitcast(first, vector.as_pointer())


def _repeated(builder: Any, value: Any, vector: Any) -> Any:
    """A vector of one value."""
    # insert into the first place, shuffle it to all: LLVM's idiom for a broadcast
    nothing = ir.Constant(vector, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(builder.insert_element(nothing, value, ir.IntType(32)(0)), nothing, zeros)


def _values_at_most(typing: Any, values: Any, begin: Any, bound: Any) -> Any:
    """Compare ``LANES`` values with the bits of a number of their type; NaN is not at most anything."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, begin, bound = arguments
        element = context.get_data_type(signature.args[0].dtype)
        vector, size = ir.VectorType(element, LANES), signature.args[0].dtype.bitwidth
        # aligned as one number, not as a vector: ``begin`` may be any place
        lanes = builder.load(
            _address(context, builder, signature.args[0], values, begin, vector), align=size // 8
        )
        # the low half of the word holds a float32
        limit = builder.bitcast(builder.trunc(bound, ir.IntType(32)) if size == 32 else bound, element)
        passes = builder.fcmp_ordered("<=", lanes, _repeated(builder, limit, vector))
        # place i of the vector becomes bit i, on little-endian processors
        return builder.bitcast(passes, ir.IntType(LANES))

    return types.uint64(values, types.uint64, types.uint64), code


def _put_where(typing: Any, lanes: Any, begin: Any, rows: Any, value: Any) -> Any:
    """Write a 32-bit number to those of ``LANES`` places whose bit is set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, begin, rows, value = arguments
        vector = ir.VectorType(ir.IntType(32), LANES)
        there = _address(context, builder, signature.args[0], lanes, begin, vector)
        chosen = builder.bitcast(rows, ir.VectorType(ir.IntType(1), LANES))
        # all LANES places are read and written back: no other thread may write among them
        mixed = builder.select(chosen, _repeated(builder, value, vector), builder.load(there, align=4))
        builder.store(mixed, there, align=4)
        return context.get_dummy_value()

    return types.void(lanes, types.uint64, types.uint64, types.int32), code


def _add_octet(typing: Any, sums: Any, at: Any, terms: Any, begin: Any) -> Any:
    """Add ``OCTET`` neighbouring doubles to others."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, at, terms, begin = arguments
        vector = ir.VectorType(ir.DoubleType(), OCTET)
        there = _address(context, builder, signature.args[0], sums, at, vector)
        added = builder.load(_address(context, builder, signature.args[2], terms, begin, vector), align=8)
        builder.store(builder.fadd(builder.load(there, align=8), added), there, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.uint64, terms, types.uint64), code


def _take_octet(typing: Any, sums: Any, at: Any, terms: Any, begin: Any) -> Any:
    """Take ``OCTET`` neighbouring doubles out of others."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, at, terms, begin = arguments
        vector = ir.VectorType(ir.DoubleType(), OCTET)
        there = _address(context, builder, signature.args[0], sums, at, vector)
        taken = builder.load(_address(context, builder, signature.args[2], terms, begin, vector), align=8)
        builder.store(builder.fsub(builder.load(there, align=8), taken), there, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.uint64, terms, types.uint64), code


def _add_part_or_most(
    typing: Any, to: Any, at: Any, terms: Any, begin: Any, part: Any, lane: Any, n_sums: Any
) -> Any:
    """Add a part of ``OCTET`` neighbouring doubles to others, or keep the larger ones.

    The first of them is lane number ``lane`` of a row, whose first ``n_sums`` lanes are sums.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, at, terms, begin, part, lane, n_sums = arguments
        vector, lanes = ir.VectorType(ir.DoubleType(), OCTET), ir.VectorType(ir.IntType(64), OCTET)
        there = _address(context, builder, signature.args[0], to, at, vector)
        held = builder.load(there, align=8)
        term = builder.load(_address(context, builder, signature.args[2], terms, begin, vector), align=8)
        total = builder.fadd(held, builder.fmul(term, _repeated(builder, part, vector)))
        most = builder.select(builder.fcmp_ordered(">", held, term), held, term)
        number = builder.add(ir.Constant(lanes, list(range(OCTET))), _repeated(builder, lane, lanes))
        is_sum = builder.icmp_unsigned("<", number, _repeated(builder, n_sums, lanes))
        builder.store(builder.select(is_sum, total, most), there, align=8)
        return context.get_dummy_value()

    where = types.uint64
    return types.void(to, where, terms, where, types.double, where, where), code


def _first_of(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit of a word that has some."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # the flag leaves the result of 0 undefined, which spares a check
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), code


def _bring(typing: Any, array: Any, at: Any) -> Any:
    """Tell the processor that a place of the memory will be read soon."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        array, at = arguments
        place = _address(context, builder, signature.args[0], array, at, ir.IntType(8))
        kinds = [place.type, number, number, number]
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [place.type], ir.FunctionType(ir.VoidType(), kinds)
        )
        builder.call(prefetch, [place, number(0), number(3), number(1)])  # to read, often, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), code


def _plain_values_at_most(values: Any, begin: Any, bound: Any) -> Any:
    limit = np.array([bound], np.uint64).view(values.dtype)[0]
    return np.packbits(values[int(begin) : int(begin) + LANES] <= limit, bitorder="little").view(np.uint64)[0]


def _plain_put_where(lanes: Any, begin: Any, rows: Any, value: Any) -> None:
    chosen = np.unpackbits(np.array([rows], np.uint64).view(np.uint8), bitorder="little").view(bool)
    lanes[int(begin) : int(begin) + LANES][chosen] = value


def _plain_add_octet(sums: Any, at: Any, terms: Any, begin: Any) -> None:
    sums[int(at) : int(at) + OCTET] += terms[int(begin) : int(begin) + OCTET]


def _plain_take_octet(sums: Any, at: Any, terms: Any, begin: Any) -> None:
    sums[int(at) : int(at) + OCTET] -= terms[int(begin) : int(begin) + OCTET]


def _plain_add_part_or_most(
    to: Any, at: Any, terms: Any, begin: Any, part: Any, lane: Any, n_sums: Any
) -> None:
    held, term = to[int(at) : int(at) + OCTET], terms.reshape(-1)[int(begin) : int(begin) + OCTET]
    is_sum = np.arange(int(lane), int(lane) + OCTET) < int(n_sums)
    held[:] = np.where(is_sum, held + part * term, np.maximum(held, term))


def _plain_bring(array: Any, at: Any) -> None:
    pass


def _plain_first_of(bits: Any) -> Any:
    return np.uint64((int(bits) & -int(bits)).bit_length() - 1)


# intrinsics have no Python version of their own, so each has a plain twin for runs without the compiler
if numba.config.DISABLE_JIT:
    values_at_most, put_where, first_of = _plain_values_at_most, _plain_put_where, _plain_first_of
    add_octet, take_octet, bring = _plain_add_octet, _plain_take_octet, _plain_bring
    add_part_or_most = _plain_add_part_or_most
else:
    values_at_most, put_where, first_of = map(intrinsic, (_values_at_most, _put_where, _first_of))
    add_octet, take_octet, bring = map(intrinsic, (_add_octet, _take_octet, _bring))
    add_part_or_most = intrinsic(_add_part_or_most)
