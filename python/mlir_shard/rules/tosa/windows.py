# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA's ops over windows: convolutions, pools, and resizing; on shards with all elements of their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.index_arithmetic import constant, multiply
from mlir_shard.rules.builder import RuleBuilder, shape_of, without_ones
from mlir_shard.rules.partition import Blocks, count_once, partition_rule, set_result_types
from mlir_shard.rules.reduction import Combiner, neutral_number, reduces_with
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.uneven_shards import Bounds, inside_bounds
from mlir_shard.rules.windows import Window, moving_windows
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule(
    "tosa.avg_pool2d", "tosa.avg_pool2d_adaptive", "tosa.max_pool2d", "tosa.max_pool2d_adaptive", "tosa.resize"
)
def pool(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a pool: batches and channels are pass-through; height and width have a factor for windows."""
    size = shape_of(op.operands[0].type)
    moving = _moving_dims(op, range(1, 3))
    builder = RuleBuilder.for_op(op, 1)
    for dim, result_size in enumerate(shape_of(op.results[0].type)):
        if dim in (0, 3):
            builder.add_factor([dim], [dim], size[dim])
        else:
            _add_windows(builder, [dim], dim, result_size, dim in moving, options)
    return builder.build()


@sharding_rule("tosa.conv2d", "tosa.conv3d", "tosa.transpose_conv2d")
def convolution(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of (n, h, w, c) with weights (o, kh, kw, c): `c` is a reduction; the bias is counted once."""
    image, weights, bias = (shape_of(operand.type) for operand in list(op.operands)[:3])
    last = len(image) - 1
    builder = RuleBuilder.for_op(op, 3)
    builder.add_factor([0, None, None], [0], image[0])
    _add_spatial(builder, op, weights, range(1, last), range(1, last), options)
    builder.add_factor([None, 0, 0 if bias[0] == weights[0] else None], [last], weights[0])
    return builder.add_factor([last, last, None], [None], image[last], FactorType.REDUCTION).build()


reduces_with(Combiner.SUM, "tosa.conv2d", "tosa.conv2d_block_scaled", "tosa.conv3d", "tosa.transpose_conv2d")


@sharding_rule("tosa.conv2d_block_scaled")
def convolution_block_scaled(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of `tosa.conv2d`; channels are made of blocks, one per scale, that are not sharded."""
    image, scales, weights, _, bias = (shape_of(operand.type) for operand in list(op.operands)[:5])
    result = shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op, 5)
    builder.add_factor([0, 0, None, None, None], [0], image[0])
    for dim in (1, 2):
        whole = weights[dim] == 1 and result[dim] == image[dim]
        _add_windows(builder, [dim, dim, None, None, None], dim, result[dim], not whole, options)
        window = [None, None, dim, dim, None]
        builder.add_factor(window, [None], weights[dim], FactorType.NEED_REPLICATION)
    of_bias = 0 if bias[0] == weights[0] else None
    builder.add_factor([None, None, 0, 0, of_bias], [3], weights[0])
    builder.add_factor([3, 3, 3, 3, None], [None], scales[3], FactorType.REDUCTION)
    block = [3, None, 3, None, None]
    return without_ones(
        builder.add_factor(block, [None], image[3] // max(scales[3], 1), FactorType.NEED_REPLICATION).build()
    )


@sharding_rule("tosa.depthwise_conv2d")
def depthwise(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of (n, h, w, c) with weights (kh, kw, c, m): result channels are made of `c` and `m`."""
    image, weights, bias = (shape_of(operand.type) for operand in list(op.operands)[:3])
    of_bias = 0 if bias[0] == weights[2] * weights[3] else None
    builder = RuleBuilder.for_op(op, 3)
    builder.add_factor([0, None, None], [0], image[0])
    _add_spatial(builder, op, weights, (1, 2), (0, 1), options)
    builder.add_factor([3, 2, of_bias], [3], weights[2])
    return without_ones(builder.add_factor([None, 3, of_bias], [3], weights[3]).build())


def _add_spatial(
    builder: RuleBuilder,
    op: Any,
    weights: Sequence[int],
    spatial: Sequence[int],
    in_weights: Sequence[int],
    options: RuleOptions,
) -> None:
    """Adds for each spatial dimension a factor of the windows and one of the elements in a window."""
    result = shape_of(op.results[0].type)
    moving = _moving_dims(op, spatial)
    for dim, weights_dim in zip(spatial, in_weights, strict=True):
        is_moving = dim in moving or weights[weights_dim] != 1
        _add_windows(builder, [dim, None, None], dim, result[dim], is_moving, options)
        builder.add_factor([None, weights_dim, None], [None], weights[weights_dim], FactorType.NEED_REPLICATION)


def _add_windows(
    builder: RuleBuilder, dims: list[int | None], dim: int, size: int, moving: bool, options: RuleOptions
) -> None:
    type_ = FactorType.PERMUTATION if moving else FactorType.PASS_THROUGH
    builder.add_factor(dims, [dim], size, type_, blocked=moving and options.conservative)


def _moving_dims(op: Any, spatial: Sequence[int]) -> set[int]:
    """Returns the spatial dimensions along which a result element may depend on elements at other positions.

    Returns all of them if the windows are not attributes but operands.
    """
    attributes = op.attributes
    if "kernel" not in attributes and "stride" not in attributes:
        return set(spatial)
    pads = elements(attributes["pad" if "pad" in attributes else "out_pad"])
    strides = elements(attributes["stride"])
    kernels = elements(attributes["kernel"]) if "kernel" in attributes else [1] * len(spatial)
    return {
        dim
        for number, dim in enumerate(spatial)
        if (kernels[number], strides[number], *pads[2 * number : 2 * number + 2]) != (1, 1, 0, 0)
    }


_arith = dialect("arith")
_tensor = dialect("tensor")
_ZERO_POINT = 3


@partition_rule(
    "tosa.conv2d", "tosa.conv2d_block_scaled", "tosa.conv3d", "tosa.transpose_conv2d", allows_uneven=True, pure=True
)
def partition_convolution(op: Any, blocks: Blocks) -> None:
    """Makes a convolution local; if channels are sharded, the bias is added on one device of each group."""
    windows(op, blocks)
    if blocks.reduction_axes:
        bias = 4 if op.name == "tosa.conv2d_block_scaled" else 2
        count_once(op, {bias: 0}, blocks.reduction_axes, blocks)


@partition_rule("tosa.avg_pool2d", "tosa.depthwise_conv2d", "tosa.max_pool2d", allows_uneven=True, pure=True)
def windows(op: Any, blocks: Blocks) -> None:
    """Makes an op local: along dimensions with elements of neighbours, the operand has elements in place of padding."""
    set_result_types(op, blocks)
    moving = moving_windows(op, blocks)
    if not moving:
        return
    padding = elements(op.attributes["pad"])
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
    """Returns the size of the tensor along a dimension that windows fill to the end, as TOSA requires."""
    assert blocks.rule is not None
    around = sum(padding[2 * window.dim - 2 : 2 * window.dim])
    return window.stride * (blocks.rule.factor_sizes[window.factor] - 1) + window.extent - around


def _elements(op: Any, window: Window, size: int, blocks: Blocks) -> Bounds:
    """Returns the bounds of the tensor within the elements that a device has for its windows."""
    step = window.stride * shape_of(op.results[0].type)[window.dim]
    moved = multiply(blocks.device_index(blocks.factor_axes[window.factor]), constant(step))
    return Bounds.behind(window.dim, -window.offset, size, moved)


def _filling(op: Any) -> Any:
    if op.name != "tosa.max_pool2d":
        return _tensor.ExtractOp(op.operands[_ZERO_POINT], [constant(0)]).result
    element = op.operands[0].type.element_type
    number = neutral_number(Combiner.MAX, element)
    assert number is not None
    return _arith.ConstantOp(element, stablehlo.element(element, number)).result
