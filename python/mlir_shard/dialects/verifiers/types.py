# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an operation's operand and result types must be."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.verifiers.violation import Violation
from mlir_shard.host import ir
from mlir_shard.sharding.verify.tensor import NoShape, Shape


def check_one_operand(op: Any) -> None:
    """There is one operand."""
    if len(op.operands) != 1:
        raise Violation(f"takes one operand, got {len(op.operands)}")


def check_same_type(op: Any) -> None:
    """One operand and one result, of one type."""
    check_one_operand(op)
    if len(op.results) != 1:
        raise Violation(f"gives one result, got {len(op.results)}")
    operand, result = op.operands[0].type, op.results[0].type
    if operand != result:
        raise Violation(f"must have a result of its operand's type {operand}, got {result}")


def check_shaped(op: Any) -> None:
    """Every operand and result has a shaped type."""
    for value in (*op.operands, *op.results):
        if not isinstance(value.type, ir.ShapedType):
            raise Violation(f"works on shaped types (tensors, vectors, memrefs), got {value.type}")


def check_ranked_tensors(op: Any) -> None:
    """Every operand and result is a ranked tensor."""
    for value in (*op.operands, *op.results):
        if not isinstance(value.type, ir.RankedTensorType):
            raise Violation(f"works on ranked tensors, got {value.type}")


def check_static_result(op: Any) -> None:
    """The result has a static shape."""
    for result in op.results:
        if not has_static_shape(result.type):
            raise Violation(f"must have a result of static shape, got {result.type}")


def shape_of(type_: Any) -> Shape:
    """The shape of a value's type as its sharding sees it; a tuple of one element is that element."""
    if not isinstance(type_, ir.TupleType):
        return plain_shape(type_)
    if type_.num_types != 1:
        raise Violation(f"a sharding of a tuple needs one of size 1, got {type_}")
    return plain_shape(type_.get_type(0))


def plain_shape(type_: Any) -> Shape:
    """The sizes of a ranked shaped type, None where dynamic, or why there are none."""
    if not isinstance(type_, ir.ShapedType):
        return NoShape.NOT_SHAPED
    if not type_.has_rank:
        return NoShape.UNRANKED
    return tuple(None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank))


def has_static_shape(type_: Any) -> bool:
    """Whether the type has a rank and no dynamic dimension."""
    return isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape
