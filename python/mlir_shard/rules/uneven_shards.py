# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Uneven shards: how ops treat elements beyond the end of a tensor, and tensors with these elements replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.index_arithmetic import constant
from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.linalg_loops import is_structured
from mlir_shard.rules.reduction import Combiner, combiners_of_elements, neutral_number, reduction_op

# Ops that trap or read beyond a tensor if a number is out of range.
_FAILING = frozenset(
    (
        *op_names("arith", "ceildivsi ceildivui divsi divui floordivsi remsi remui"),
        *op_names("math", "ipowi"),
        *op_names("tensor", "extract extract_slice gather"),
        *op_names("tosa", "gather intdiv row_gather scatter table"),
    )
)
_CONTRACTIONS = ("stablehlo.dot", "stablehlo.dot_general")
_REDUCTIONS = ("linalg.reduce", "stablehlo.reduce", "tosa.reduce_max", "tosa.reduce_min", "tosa.reduce_sum")
_PRODUCTS = ("arith.mulf", "arith.muli")
_SUMS = ("arith.addf", "arith.addi")
_CONVERSIONS = ("arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.truncf", "linalg.yield")


class Mask(Enum):
    """The way to keep elements that are not part of a tensor out of a reduction.

    ZEROS: both operands are zero there, as only products are added up. NEUTRAL: operands are the neutral element there.
    BODY: the body of a loop nest yields its accumulator unchanged there.
    """

    ZEROS = "zeros"
    NEUTRAL = "neutral"
    BODY = "body"


def mask_of(op: Any) -> Mask | None:
    """Returns how reductions of an op are masked; None if they cannot be."""
    op = op.operation
    if op.name == "linalg.generic":
        return Mask.BODY
    if op.name in _REDUCTIONS:
        return Mask.NEUTRAL if all(masking_number(op, value.type) is not None for value in op.operands) else None
    is_product = op.name in _CONTRACTIONS or (is_structured(op) and _adds_products(op))
    return Mask.ZEROS if is_product else None


def masking_number(op: Any, type_: Any) -> float | None:
    """Returns the number for operand elements that a reduction must ignore; None if the type has no such number."""
    if op.operation.name not in _REDUCTIONS:
        # Its operands are multiplied before they are added up.
        return neutral_number(Combiner.SUM, type_.element_type)
    combiner = combiners_of_elements(op)[0]
    if combiner is None or reduction_op(op) is not combiner.reduction_op:
        return None
    return neutral_number(combiner, type_.element_type)


def may_fail(op: Any) -> bool:
    """Returns whether an op, or one in its regions, fails on some numbers."""
    op = op.operation
    # A slice at known offsets reads only elements of the tensor.
    if op.name in _FAILING and (op.name != "tensor.extract_slice" or len(op.operands) > 1):
        return True
    return any(may_fail(inner) for region in op.regions for block in region.blocks for inner in block.operations)


def _adds_products(op: Any) -> bool:
    """Returns whether the body of a loop nest only multiplies two numbers, maybe converted, and adds products."""
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    counted = [sum(name in of for name in names) for of in (_PRODUCTS, _SUMS, _CONVERSIONS)]
    return counted[:2] == [1, 1] and sum(counted) == len(names)


_arith = dialect("arith")
_linalg = dialect("linalg")
_tensor = dialect("tensor")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The elements from `begin`, or the first if that is None, up to `end` along a dimension.

    Both are values of type `index`, or in StableHLO scalars of i64.
    """

    dim: int
    begin: Any
    end: Any

    @staticmethod
    def behind(dim: int, first: int, size: int, start: Any) -> Bounds:
        """Returns the bounds of `size` elements from `first` on, relative to `start`, an `index` value."""
        return Bounds(dim, *(_arith.SubIOp(constant(one), start).result for one in (first, first + size)))


def is_before(loop: int, end: Any) -> Any:
    """Returns whether the iteration of a loop is before an `index` value; built in the body of the loop's op."""
    return _arith.CmpIOp(_arith.CmpIPredicate.slt, _linalg.IndexOp(loop).result, end).result


def inside_bounds(value: Any, bounds: Sequence[Bounds], filling: Any) -> Any:
    """Returns the tensor with a scalar in place of elements out of bounds, built at the current insertion point."""
    type_ = value.type
    element, rank = type_.element_type, type_.rank
    empty = _tensor.EmptyOp(list(type_.shape), element, encoding=type_.encoding).result
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    maps, loops = ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * rank)
    op = _linalg.GenericOp([type_], [value], [empty], maps, loops)
    location = ir.Location.current
    block = op.operation.regions[0].blocks.append(element, element, arg_locs=[location] * 2)
    with ir.InsertionPoint(block):
        chosen = block.arguments[0]
        for one in bounds:
            chosen = _arith.SelectOp(is_before(one.dim, one.end), chosen, filling).result
            if one.begin is not None:
                chosen = _arith.SelectOp(is_before(one.dim, one.begin), filling, chosen).result
        _linalg.YieldOp([chosen])
    return op.operation.results[0]


def select_inside(value: Any, bounds: Sequence[Bounds], filling: Any) -> Any:
    """Returns the tensor with a scalar in place of elements out of bounds, in StableHLO."""
    shape = value.type.shape
    positions = stablehlo.tensor(stablehlo.i64(), *shape)
    filling = stablehlo.broadcast(filling, shape)
    for one in bounds:
        at = stablehlo.build("iota", positions, iota_dimension=stablehlo.integer(one.dim))
        value = stablehlo.select(stablehlo.compare("LT", at, stablehlo.broadcast(one.end, shape)), value, filling)
        if one.begin is not None:
            value = stablehlo.select(stablehlo.compare("GE", at, stablehlo.broadcast(one.begin, shape)), value, filling)
    return value
