# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of TOSA's convolutions and pools: on blocks with all that their windows reach, padding among it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import dialect, ir
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.initial_values import count_once
from mlir_shard.rules.inside_bounds import Bounds, inside_bounds
from mlir_shard.rules.moving_windows import Window, windows_of
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types
from mlir_shard.rules.reduction import Combiner, neutral_number

_arith, _tensor = dialect("arith"), dialect("tensor")

_ZERO_POINT = 3


@partition_rule("tosa.conv2d", "tosa.conv2d_block_scaled", "tosa.conv3d", "tosa.transpose_conv2d", allows_uneven=True)
def convolution(op: Any, blocks: Blocks) -> None:
    """The same convolution of blocks; where channels are sharded, the bias is added on one device of each group."""
    windows(op, blocks)
    if blocks.reduction_axes:
        bias = 4 if op.name == "tosa.conv2d_block_scaled" else 2
        count_once(op, {bias: 0}, blocks.reduction_axes, blocks)


@partition_rule("tosa.avg_pool2d", "tosa.depthwise_conv2d", "tosa.max_pool2d", allows_uneven=True)
def windows(op: Any, blocks: Blocks) -> None:
    """Along dimensions of which neighbours gave elements there is no padding any more: it takes their place."""
    set_result_types(op, blocks)
    found = [] if blocks.rule is None else windows_of(op, blocks.rule)
    moving = [window for window in found if blocks.factor_axes[window.factor]]
    if not moving:
        return
    padding = list(op.attributes["pad"])
    padded = [window for window in moving if any(padding[2 * window.dim - 2 : 2 * window.dim])]
    sizes = [_size(window, padding, blocks) for window in padded]
    for window in padded:
        padding[2 * window.dim - 2 : 2 * window.dim] = 0, 0
    op.attributes["pad"] = ir.DenseI64ArrayAttr.get(padding)
    if padded:
        with ir.InsertionPoint(op), op.location:
            bounds = [_elements(op, *one, blocks) for one in zip(padded, sizes, strict=True)]
            op.operands[0] = inside_bounds(op.operands[0], bounds, _filling(op))


def _size(window: Window, padding: Sequence[int], blocks: Blocks) -> int:
    """The size of the tensor along a dimension that windows fill to the end, as TOSA asks."""
    assert blocks.rule is not None
    around = sum(padding[2 * window.dim - 2 : 2 * window.dim])
    return window.stride * (blocks.rule.factor_sizes[window.factor] - 1) + window.extent - around


def _elements(op: Any, window: Window, size: int, blocks: Blocks) -> Bounds:
    """Which elements of what a device has for its windows are of the tensor."""
    step = window.stride * shape_of(op.results[0].type)[window.dim]
    moved = _arith.MulIOp(blocks.device_index(blocks.factor_axes[window.factor]), _index(step)).result
    ends = (_index(-window.offset), _index(size - window.offset))
    return Bounds(window.dim, *(_arith.SubIOp(one, moved).result for one in ends))


def _filling(op: Any) -> Any:
    if op.name != "tosa.max_pool2d":
        return _tensor.ExtractOp(op.operands[_ZERO_POINT], [_index(0)]).result
    element = op.operands[0].type.element_type
    number = neutral_number(Combiner.MAX, element)
    assert number is not None
    return _arith.ConstantOp(element, stablehlo.element(element, number)).result


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
