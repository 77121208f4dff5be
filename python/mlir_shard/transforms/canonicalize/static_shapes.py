# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns on ops that have dynamic shapes although the static ones are known.

StableHLO's own patterns take a shape from the type of a result if the shape is a constant; torch-mlir computes that of
`torch.arange` with floats, and concatenates slices after a cast to a dynamic size.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.patterns import Pattern
from mlir_shard.ir.values import defining_op

LABEL = "shard-static-shapes"
# The attributes that only ops with dynamic shapes have.
_EXPANSIONS = frozenset({"known_expanding_dimensions", "known_nonexpanding_dimensions"})


def _made_static(op: Any, rewriter: Any, name: str, operands: list[Any]) -> bool:
    if not op.results[0].type.has_static_shape:
        return False
    attributes = {key: op.attributes[key] for key in op.attributes if key not in _EXPANSIONS}
    types = [op.results[0].type]
    with ir.InsertionPoint(op):
        static = ir.Operation.create(name, types, operands, attributes, loc=op.location)
    rewriter.replace_op(op, static)
    return True


def iota(op: Any, rewriter: Any) -> bool:
    """Replaces a `dynamic_iota` of static shape by an `iota`."""
    return _made_static(op, rewriter, "stablehlo.iota", [])


def reshape(op: Any, rewriter: Any) -> bool:
    """Replaces a `dynamic_reshape` of a static operand to a static shape by a `reshape`."""
    return op.operands[0].type.has_static_shape and _made_static(op, rewriter, "stablehlo.reshape", [op.operands[0]])


def broadcast(op: Any, rewriter: Any) -> bool:
    """Replaces a `dynamic_broadcast_in_dim` of a static operand to a static shape by a `broadcast_in_dim`."""
    is_static = op.operands[0].type.has_static_shape
    return is_static and _made_static(op, rewriter, "stablehlo.broadcast_in_dim", [op.operands[0]])


def size(op: Any, rewriter: Any) -> bool:
    """Replaces a `get_dimension_size` of a static dimension by a constant."""
    type_, dim = op.operands[0].type, ir.IntegerAttr(op.attributes["dimension"]).value
    if type_.is_dynamic_dim(dim):
        return False
    number = ir.IntegerAttr.get(op.results[0].type.element_type, type_.get_dim_size(dim))
    value = ir.DenseElementsAttr.get_splat(op.results[0].type, number)
    with ir.InsertionPoint(op):
        constant = ir.Operation.create(
            "stablehlo.constant", [op.results[0].type], attributes={"value": value}, loc=op.location
        )
    rewriter.replace_op(op, constant)
    return True


def concat(op: Any, rewriter: Any) -> bool:
    """Replaces operands of a `tensor.concat` that are casts to dynamic sizes by the operands of the casts."""
    casts = [defining_op(operand, "tensor.cast") for operand in op.operands]
    operands = [
        operand if cast is None or not cast.operands[0].type.has_static_shape else cast.operands[0]
        for operand, cast in zip(op.operands, casts, strict=True)
    ]
    if operands == list(op.operands) or not _has_size_of(op, operands):
        return False
    attributes = {key: op.attributes[key] for key in op.attributes}
    with ir.InsertionPoint(op):
        static = ir.Operation.create(op.name, [op.results[0].type], operands, attributes, loc=op.location)
    rewriter.replace_op(op, static)
    return True


def _has_size_of(op: Any, operands: list[Any]) -> bool:
    """Returns whether the result of a `tensor.concat` has the size of all operands; True if a size is not known."""
    dim, result = ir.IntegerAttr(op.attributes["dim"]).value, op.results[0].type
    if result.is_dynamic_dim(dim) or any(operand.type.is_dynamic_dim(dim) for operand in operands):
        return True
    return bool(result.get_dim_size(dim) == sum(operand.type.get_dim_size(dim) for operand in operands))


PATTERNS = (
    Pattern("concat-of-casts", LABEL, "tensor.concat", concat),
    Pattern("dimension-size", LABEL, "stablehlo.get_dimension_size", size),
    Pattern("dynamic-iota", LABEL, "stablehlo.dynamic_iota", iota),
    Pattern("dynamic-reshape", LABEL, "stablehlo.dynamic_reshape", reshape),
    Pattern("dynamic-broadcast", LABEL, "stablehlo.dynamic_broadcast_in_dim", broadcast),
)
