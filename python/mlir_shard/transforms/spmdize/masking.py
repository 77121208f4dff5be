# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps what is beyond the end of a tensor, in blocks that are not full, out of what an op reduces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.rules.linalg_loops import loops_of
from mlir_shard.rules.uneven_shards import Bounds, Mask, inside_bounds, is_before, masking_number
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.device_position import device_index
from mlir_shard.transforms.spmdize.op_plan import OpPlan, UnevenEdge

_arith = dialect("arith")


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
            element = value.type.element_type
            filling = _arith.ConstantOp(element, stablehlo.element(element, number)).result
            op.operands[edge.operand] = inside_bounds(value, [Bounds(edge.dim, None, valid)], filling)


def _valid(edge: UnevenEdge, block: int, grid: DeviceGrid) -> Any:
    """How many elements of this device's block are of the tensor; negative for blocks beyond its end."""
    start = _arith.MulIOp(device_index(edge.axes, grid), _index(block)).result
    return _arith.SubIOp(_index(edge.size), start).result


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _mask_body(op: Any, edges: Sequence[UnevenEdge], grid: DeviceGrid) -> None:
    block = op.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operation
    accumulated = list(block.arguments)[len(op.operands) - len(op.results) :]
    with ir.InsertionPoint(op), op.location:
        valid = [_valid(edge, _loop_size(op, edge.dim), grid) for edge in edges]
    with ir.InsertionPoint(last), last.location:
        inside = None
        for edge, one in zip(edges, valid, strict=True):
            condition = is_before(edge.dim, one)
            inside = condition if inside is None else _arith.AndIOp(inside, condition).result
        for number, before in enumerate(accumulated):
            last.operands[number] = _arith.SelectOp(inside, last.operands[number], before).result


def _loop_size(op: Any, loop: int) -> int:
    """How often a loop goes round on one device, by an operand that follows it."""
    dims = loops_of(op).dims
    found = (value.type.shape[of.index(loop)] for value, of in zip(op.operands, dims, strict=True) if loop in of)
    return next(found)
