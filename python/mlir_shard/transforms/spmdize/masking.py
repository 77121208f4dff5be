# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps what is beyond the end of a tensor, in blocks that are not full, out of what an op reduces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.linalg import loops_of
from mlir_shard.rules.uneven_blocks import Mask, masking_number
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.emission import device_index
from mlir_shard.transforms.spmdize.op_plan import OpPlan, UnevenEdge

_arith, _linalg, _tensor = dialect("arith"), dialect("linalg"), dialect("tensor")


def mask(planned: OpPlan, grid: DeviceGrid) -> None:
    """Masks the operands or the body of an op that is local but for that."""
    op, edges = planned.op, planned.uneven_edges
    if planned.mask is Mask.BODY:
        _mask_body(op, edges, grid)
        return
    for edge in edges:
        value = op.operands[edge.operand]
        number = masking_number(op, value.type)
        assert number is not None
        with ir.InsertionPoint(op), op.location:
            valid = _valid(edge, value.type.shape[edge.dim], grid)
            op.operands[edge.operand] = _masked(value, edge.dim, valid, number)


def _valid(edge: UnevenEdge, block: int, grid: DeviceGrid) -> Any:
    """How many elements of this device's block are of the tensor; negative for blocks beyond its end."""
    start = _arith.MulIOp(device_index(edge.axes, grid), _index(block)).result
    return _arith.SubIOp(_index(edge.size), start).result


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _is_inside(loop: int, valid: Any) -> Any:
    position = _linalg.IndexOp(loop).result
    return _arith.CmpIOp(_arith.CmpIPredicate.slt, position, valid).result


def _masked(value: Any, dim: int, valid: Any, number: float) -> Any:
    """The value with a number for each element from `valid` on along a dimension."""
    type_ = value.type
    element, rank = type_.element_type, type_.rank
    attribute = ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
    filling = _arith.ConstantOp(element, attribute.get(element, number)).result
    empty = _tensor.EmptyOp(list(type_.shape), element, encoding=type_.encoding).result
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    maps, loops = ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * rank)
    op = _linalg.GenericOp([type_], [value], [empty], maps, loops)
    location = ir.Location.current
    block = op.operation.regions[0].blocks.append(element, element, arg_locs=[location] * 2)
    with ir.InsertionPoint(block):
        chosen = _arith.SelectOp(_is_inside(dim, valid), block.arguments[0], filling).result
        _linalg.YieldOp([chosen])
    return op.operation.results[0]


def _mask_body(op: Any, edges: Sequence[UnevenEdge], grid: DeviceGrid) -> None:
    block = op.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operation
    accumulated = list(block.arguments)[len(op.operands) - len(op.results) :]
    with ir.InsertionPoint(op), op.location:
        valid = [_valid(edge, _loop_size(op, edge.dim), grid) for edge in edges]
    with ir.InsertionPoint(last), last.location:
        inside = None
        for edge, one in zip(edges, valid, strict=True):
            condition = _is_inside(edge.dim, one)
            inside = condition if inside is None else _arith.AndIOp(inside, condition).result
        for number, before in enumerate(accumulated):
            last.operands[number] = _arith.SelectOp(inside, last.operands[number], before).result


def _loop_size(op: Any, loop: int) -> int:
    """How often a loop goes round on one device, by an operand that follows it."""
    dims = loops_of(op).dims
    found = (value.type.shape[of.index(loop)] for value, of in zip(op.operands, dims, strict=True) if loop in of)
    return next(found)
