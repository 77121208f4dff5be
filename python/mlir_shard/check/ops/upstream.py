# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of upstream's arith, math and tensor dialects."""

from __future__ import annotations

from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.places import inserted
from mlir_shard.check.ops.reading import Reading, numbers_of, reads
from mlir_shard.check.ops.tensors import Value

_DYNAMIC = -(2**63)
_ARITH = (
    "addf addi andi divf divsi divui extf extsi extui fptosi fptoui index_cast index_castui maximumf maxnumf maxsi "
    "maxui minimumf minnumf minsi minui mulf muli negf ori remf remsi remui shli shrsi shrui sitofp subf subi truncf "
    "trunci uitofp xori bitcast ceildivsi ceildivui floordivsi"
)
_MATH = (
    "absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 floor fma "
    "fpowi ipowi log log10 log1p log2 powf round roundeven rsqrt sin sinh sqrt tan tanh trunc"
)
_PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE", "LT", "LE", "GT", "GE")
_OF_FLOATS = {
    1: "EQ",
    2: "GT",
    3: "GE",
    4: "LT",
    5: "LE",
    6: "NE",
    8: "EQ",
    9: "GT",
    10: "GE",
    11: "LT",
    12: "LE",
    13: "NE",
}


@reads(*(f"arith.{name}" for name in _ARITH.split()), *(f"math.{name}" for name in _MATH.split()))
def _pointwise(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    element = reading.type_of(op.results[0].type)[1]
    name = op.name.partition(".")[2]
    return [reading.tensors.computed((op.name, element, *reading.key(op)), name, values, element)]


@reads("arith.cmpi")
def _compare(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    predicate = op.attributes["predicate"].value
    name = ("compare", _PREDICATES[predicate], "UNSIGNED" if predicate > 5 else "SIGNED")
    return [reading.tensors.compared(name, *values)]


@reads("arith.cmpf")
def _compare_floats(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    predicate = op.attributes["predicate"].value
    return [reading.tensors.pointwise(("compare", _OF_FLOATS.get(predicate, "other"), op.name, predicate), values)]


@reads("arith.select")
def _select(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    if values[0].rank != values[1].rank:
        values = [reading.tensors.broadcast(values[0], values[1].shape, ()), *values[1:]]
    return [reading.tensors.selected(*values)]


@reads("arith.constant")
def _constant(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.constant(op.attributes["value"], op.results[0].type)]


@reads("tensor.expand_shape", "tensor.collapse_shape")
def _reshape(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reshaped(values[0], reading.type_of(op.results[0].type)[0])]


@reads("tensor.extract")
def _extract(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value = values[0]
    starts = _entries(reading, values[1:])
    for dim, start in enumerate(starts):
        value = reading.tensors.sliced(value, dim, start, 1, 1, "extract")
    return [reading.tensors.reshaped(reading.tensors.looked_up(value), ())]


def _entries(reading: Reading, values: list[Value]) -> list[Entry]:
    entries = [reading.tensors.entry(value) for value in values]
    if None in entries:
        raise NotCertified("a start that is not affine", "slice by device")
    return [entry for entry in entries if entry is not None]


def offsets(reading: Reading, op: Any, values: list[Value]) -> tuple[list[Entry], list[int], list[int]]:
    """Returns the offsets, sizes and strides of a slice. Raises NotCertified unless sizes and strides are static."""
    starts, left = list[Entry](), list(values)
    for number in numbers_of(op, "static_offsets"):
        starts += [(number, ())] if number != _DYNAMIC else _entries(reading, [left.pop(0)])
    sizes, strides = numbers_of(op, "static_sizes"), numbers_of(op, "static_strides")
    if left or _DYNAMIC in (*sizes, *strides):
        raise NotCertified("a slice of dynamic size", "slice")
    return starts, sizes, strides


@reads("tensor.extract_slice")
def _extract_slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value = values[0]
    starts, sizes, strides = offsets(reading, op, values[1:])
    if set(strides) == {1} and not any(terms for _, terms in starts):
        value = reading.tensors.box(value, [start for start, _ in starts], sizes) or value
        starts = starts if value is values[0] else [(0, ())] * len(sizes)
    for dim, (start, size, stride) in enumerate(zip(starts, sizes, strides, strict=True)):
        value = reading.tensors.sliced(value, dim, start, size, stride)
    value = reading.tensors.looked_up(value)
    return [reading.tensors.reshaped(value, reading.type_of(op.results[0].type)[0])]


@reads("tensor.insert_slice")
def _insert_slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    piece, into = values[:2]
    starts, sizes, strides = offsets(reading, op, values[2:])
    piece = reading.tensors.reshaped(piece, sizes)
    if any(stride != 1 for stride in strides):
        raise NotCertified("a slice is inserted with strides", "insert_slice")
    return [inserted(reading, into, piece, starts)]


@reads("tensor.pad")
def _pad(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    low, high = numbers_of(op, "static_low"), numbers_of(op, "static_high")
    block = op.regions[0].blocks[0]
    terminator = list(block.operations)[-1].operation.operands[0]
    if terminator not in reading.environment or _DYNAMIC in (*low, *high):
        raise NotCertified("a padding value that depends on the position", "pad")
    return [reading.tensors.padded(values[0], reading.environment[terminator], low, high)]


@reads("tensor.concat")
def _concatenate(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.joined(values, op.attributes["dim"].value)]


@reads("tensor.empty")
def _empty(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.constant("empty", "empty", reading.type_of(op.results[0].type)[0])]


@reads("tensor.cast")
def _cast(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [values[0]]


@reads("tensor.splat")
def _splat(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.broadcast(values[0], reading.type_of(op.results[0].type)[0], ())]
