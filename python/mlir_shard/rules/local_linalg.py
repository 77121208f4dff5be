# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partition rule of linalg's structured ops: the same loop nest over the blocks, with what is global put right."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.initial_values import count_once, neutral_initial_values
from mlir_shard.rules.linalg import is_structured, loops_of
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types

_arith = dialect("arith")


@partition_rule(when=is_structured, allows_uneven=True)
def structured(op: Any, blocks: Blocks) -> None:
    """The same op on blocks.

    Where it adds up along a sharded loop, all but the first device of a group begin with zero, so that the initial
    value is counted once; likewise with other reductions that would count it again. `linalg.index` of a sharded loop
    gets the offset of the block.
    """
    set_result_types(op, blocks)
    axes = blocks.reduction_axes
    if axes:
        count_once(op, neutral_initial_values(op, len(op.operands) - len(op.results)), axes, blocks)
    _offset_indices(op, blocks)


def _constant(type_: Any, value: int) -> Any:
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


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
