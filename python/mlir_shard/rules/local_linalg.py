# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partition rule of linalg's structured ops: the same loop nest over the blocks, with what is global put right."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.linalg import is_structured, loops_of
from mlir_shard.rules.partition import Blocks, is_zero, partition_rule, set_result_types
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import ReductionOp

_arith = dialect("arith")


@partition_rule(when=is_structured, allows_uneven=True)
def structured(op: Any, blocks: Blocks) -> None:
    """The same op on blocks.

    Where it sums along a sharded loop, all but the first device of a group begin with zero, so that the initial
    value is counted once. `linalg.index` of a sharded loop gets the offset of the block.
    """
    set_result_types(op, blocks)
    if blocks.reduction_axes and reduction_op(op) is ReductionOp.SUM:
        _count_initial_values_once(op, blocks)
    _offset_indices(op, blocks)


def _count_initial_values_once(op: Any, blocks: Blocks) -> None:
    inputs = len(op.operands) - len(op.results)
    for number in range(inputs, len(op.operands)):
        initial = op.operands[number]
        if is_zero(initial):
            continue
        with ir.InsertionPoint(op), op.location:
            index = blocks.device_index(blocks.reduction_axes)
            first = _arith.CmpIOp(_arith.CmpIPredicate.eq, index, _constant(index.type, 0)).result
            op.operands[number] = _arith.SelectOp(first, initial, _zeros(initial.type)).result


def _constant(type_: Any, value: int) -> Any:
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _zeros(type_: Any) -> Any:
    element = type_.element_type
    zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result


def _offset_indices(op: Any, blocks: Blocks) -> None:
    """Adds to each `linalg.index` of a sharded loop where this device's block begins along it."""
    for inner in list(op.regions[0].blocks[0].operations):
        inner = inner.operation
        if inner.name != "linalg.index":
            continue
        axes, size = _axes_and_size(op, inner.attributes["dim"].value, blocks)
        if not axes:
            continue
        with ir.InsertionPoint(op), op.location:
            index = blocks.device_index(axes)
            offset = _arith.MulIOp(index, _constant(index.type, size)).result
        with ir.InsertionPoint.after(inner), inner.location:
            shifted = _arith.AddIOp(inner.results[0], offset)
        inner.results[0].replace_all_uses_except(shifted.result, [shifted.operation])


def _axes_and_size(op: Any, loop: int, blocks: Blocks) -> tuple[tuple[int, ...], int]:
    """The grid axes a loop is sharded along, and how often it goes round on one device."""
    if blocks.rule is not None:
        for operand, mapping, dims in zip(op.operands, blocks.rule.operand_mappings, loops_of(op).dims, strict=True):
            if loop in dims:
                dim = dims.index(loop)
                factor = mapping.dim_mappings[dim].factor_indices[0]
                return blocks.factor_axes[factor], operand.type.shape[dim]
    return (), 0
