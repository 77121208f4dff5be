# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO ops over windows on blocks with all that their windows reach: what is no element there is made padding."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import dialect, ir
from mlir_shard.rules.inside_bounds import Bounds, inside_bounds
from mlir_shard.rules.moving_windows import Window, windows_of
from mlir_shard.rules.partition import Blocks
from mlir_shard.rules.window_attributes import (
    CONVOLUTION,
    REDUCE_WINDOW,
    DimWindows,
    set_padding,
    windows_along_dims,
)

_arith, _tensor = dialect("arith"), dialect("tensor")


def pad_within_blocks(op: Any, blocks: Blocks) -> Collection[int]:
    """Along dimensions of which devices around gave elements, what lies beyond the tensor becomes what pads it.

    No other padding is left there than before the first element and behind the last of those a device has. Returns the
    dimensions, of operands. The results have their local types.
    """
    if blocks.rule is None or not blocks.factor_axes:
        return ()
    along = {one.dim: one for one in windows_along_dims(op)}
    moving = [window for window in windows_of(op, blocks.rule) if blocks.factor_axes[window.factor]]
    for number in sorted({window.operand for window in moving}):
        padded = [one for one in moving if one.operand == number and along[one.dim].is_padded]
        if padded:
            with ir.InsertionPoint(op), op.location:
                bounds = [_elements(op, window, along[window.dim], blocks) for window in padded]
                op.operands[number] = inside_bounds(op.operands[number], bounds, _filling(op, number))
    if moving:
        set_padding(op, {along[one.dim].position: _padding(op, along[one.dim]) for one in moving})
    return {window.dim for window in moving}


def _padding(op: Any, windows: DimWindows) -> tuple[int, int]:
    elements, results = op.operands[0].type.shape[windows.dim], op.results[0].type.shape[windows.result_dim]
    return windows.padding_around(elements, results)


def _elements(op: Any, window: Window, windows: DimWindows, blocks: Blocks) -> Bounds:
    """Which elements of what a device has for its windows are of the tensor."""
    step = window.stride * op.results[0].type.shape[windows.result_dim] // window.dilation
    moved = _arith.MulIOp(blocks.device_index(blocks.factor_axes[window.factor]), _index(step)).result
    start = -(-window.offset // window.dilation)
    ends = (_index(-start), _index(blocks.operand_size(window.operand, window.dim) - start))
    return Bounds(window.dim, *(_arith.SubIOp(one, moved).result for one in ends))


def _filling(op: Any, number: int) -> Any:
    if op.name == CONVOLUTION:
        scalar = stablehlo.splat(stablehlo.tensor(op.operands[0].type.element_type), 0)
    else:
        scalar = op.operands[number + (len(op.results) if op.name == REDUCE_WINDOW else 1)]
    return _tensor.ExtractOp(scalar, []).result


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
