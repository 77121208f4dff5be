# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO's ops over windows: convolutions, windowed reductions and their gradient.

An op is computed on shards with all elements that their windows reach; elements outside the tensor become padding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.partition import (
    BlockedTensor,
    Blocks,
    PartitionError,
    partition_rule,
    set_result_types,
    shards_along,
)
from mlir_shard.rules.registry import RuleOptions, has_static_shapes, sharding_rule
from mlir_shard.rules.uneven_shards import Bounds, select_inside
from mlir_shard.rules.windows import (
    CONVOLUTION,
    REDUCE_WINDOW,
    DimWindows,
    Window,
    moving_windows,
    set_padding,
    windows_along_dims,
    windows_of_reduction,
)
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


def _without_window(op: Any) -> set[int]:
    """Returns the dimensions along which every window is one element, and every element has one window."""
    windows = windows_of_reduction(op)
    return {one.dim for one in windows if (one.extent, one.stride, one.low, one.high) == (1, 1, 0, 0)}


def _dims_of_whole_windows(op: Any) -> tuple[int, ...]:
    """Returns the dimensions of a `select_and_scatter` that windows fill side by side, from first to last element.

    Dimensions along which a shard boundary of a tensor cuts a window are left out.
    """
    if not has_static_shapes(op):
        return ()
    along = zip(windows_of_reduction(op), op.operands[0].type.shape, op.operands[1].type.shape, strict=True)
    tensors = (*list(op.operands)[:2], op.results[0])
    return tuple(
        one.dim
        for one, elements, windows in along
        if one.tile(elements, windows) and all(windows % shards_along(value, one.dim, op) == 0 for value in tensors)
    )


@sharding_rule("stablehlo.reduce_window")
def reduce_window(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule with a factor for each dimension: of windows, or to compute the op, of elements of the operand."""
    shape = shape_of((op.operands if options.computing else op.results)[0].type)
    dims = set(range(len(shape))) - _without_window(op)
    blocked = dims if options.conservative else ()
    return RuleBuilder.for_op(op).add_pointwise(shape, dims, FactorType.PERMUTATION, blocked=blocked).build()


@sharding_rule("stablehlo.select_and_scatter", context_key=_dims_of_whole_windows)
def select_and_scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule by which, along windows, the source is replicated, and operand and result exchange the overlap.

    To compute the op, dimensions along which each element is in at most one window have one common factor instead.
    """
    whole = _without_window(op)
    source = shape_of(op.operands[1].type)
    blocked = options.conservative
    builder, separate = RuleBuilder.for_op(op), _dims_of_whole_windows(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim in whole:
            builder.add_common_factor(dim, size)
            continue
        if options.computing and dim in separate:
            # Shards of windows are shards of elements.
            builder.add_common_factor(dim, source[dim])
            continue
        builder.add_factor([None, dim, None], [None], source[dim], FactorType.NEED_REPLICATION, blocked=blocked)
        builder.add_factor([dim, None, None], [dim], size, FactorType.PERMUTATION, blocked=blocked)
    return builder.build()


@sharding_rule("stablehlo.convolution")
def convolution(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a convolution: groups have factors of their own, as do batches and features in a group.

    Spatial dimensions have factors unless rules are conservative.
    """
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    batch_groups = op.attributes["batch_group_count"].value
    feature_groups = op.attributes["feature_group_count"].value
    kernel, result = shape_of(op.operands[1].type), shape_of(op.results[0].type)
    lhs_batch, lhs_feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    kernel_in, kernel_out = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    result_batch, result_feature = numbers.output_batch_dimension, numbers.output_feature_dimension

    builder = RuleBuilder.for_op(op)
    if batch_groups > 1:
        builder.add_factor([lhs_batch, kernel_out], [result_feature], batch_groups)
    builder.add_factor([lhs_batch, None], [result_batch], result[result_batch])
    if not options.conservative:
        _add_spatial(builder, op, numbers, computing=options.computing)
    if feature_groups > 1:
        builder.add_factor([lhs_feature, kernel_out], [result_feature], feature_groups)
    builder.add_factor([lhs_feature, kernel_in], [None], kernel[kernel_in], FactorType.REDUCTION)
    in_group = result[result_feature] // (batch_groups * feature_groups)
    if in_group > 1:
        builder.add_factor([None, kernel_out], [result_feature], in_group)
    return builder.build()


def _add_spatial(builder: RuleBuilder, op: Any, numbers: Any, *, computing: bool) -> None:
    """Adds for each spatial dimension a factor of the windows and one of the elements in a window.

    The larger factor is the major one, as a sharding of the dimension usually shards this factor. The other has the
    rest of the dimension. To compute the op, if there are several windows, the dimension is one factor, and that of the
    kernel another.
    """
    lhs, kernel = (shape_of(operand.type) for operand in op.operands)
    result = shape_of(op.results[0].type)
    for lhs_dim, kernel_dim, result_dim in zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        strict=True,
    ):
        windows = (result[result_dim], [lhs_dim, None], [result_dim], FactorType.PERMUTATION)
        in_window = (kernel[kernel_dim], [lhs_dim, kernel_dim], [None], FactorType.REDUCTION)
        left = lhs[lhs_dim]
        if computing and result[result_dim] > 1:
            builder.add_factor([lhs_dim, None], [result_dim], left, FactorType.PERMUTATION)
            builder.add_factor([None, kernel_dim], [None], kernel[kernel_dim], FactorType.REDUCTION)
            continue
        for size, operand_dims, result_dims, type_ in sorted([windows, in_window], key=lambda one: -one[0]):
            size = min(left, size)
            if size > 1:
                builder.add_factor(operand_dims, result_dims, size, type_)
                left //= size


def pad_within_blocks(op: Any, blocks: Blocks) -> Collection[int]:
    """Replaces elements beyond the tensor by padding, along dimensions with elements from other devices.

    Padding remains there only before the first element and behind the last one of a device. Returns these dimensions,
    which are those of operands. The results have their local types already.
    """
    if blocks.rule is None or not blocks.factor_axes:
        return ()
    along = {one.dim: one for one in windows_along_dims(op)}
    moving = moving_windows(op, blocks)
    for number in sorted({window.operand for window in moving}):
        padded = [one for one in moving if one.operand == number and along[one.dim].is_padded]
        if padded:
            with ir.InsertionPoint(op), op.location:
                bounds = [_elements(op, window, along[window.dim], blocks) for window in padded]
                op.operands[number] = select_inside(op.operands[number], bounds, _filling(op, number))
    if moving:
        set_padding(op, {along[one.dim].position: _padding(op, along[one.dim]) for one in moving})
    return {window.dim for window in moving}


def _padding(op: Any, windows: DimWindows) -> tuple[int, int]:
    elements, results = op.operands[0].type.shape[windows.dim], op.results[0].type.shape[windows.result_dim]
    return windows.padding_around(elements, results)


def _elements(op: Any, window: Window, windows: DimWindows, blocks: Blocks) -> Bounds:
    """Returns the bounds of the tensor within the elements that a device has for its windows."""
    step = window.stride * op.results[0].type.shape[windows.result_dim] // window.dilation
    start, size = -(-window.offset // window.dilation), blocks.operand_size(window.operand, window.dim)

    def behind_start(place: int) -> Any:
        along = blocks.factor_axes[window.factor]
        return stablehlo.reshape(blocks.entry(along, lambda number: place - start - number * step, None), ())

    return Bounds(window.dim, behind_start(0), behind_start(size))


def _filling(op: Any, number: int) -> Any:
    if op.name == CONVOLUTION:
        return stablehlo.splat(stablehlo.tensor(op.operands[0].type.element_type), 0)
    return op.operands[number + (len(op.results) if op.name == REDUCE_WINDOW else 1)]


def _check_windows(
    op: Any, windowed: Sequence[BlockedTensor], reduced: Sequence[BlockedTensor], bordered: Collection[int] = ()
) -> None:
    """Raises PartitionError if a window takes elements of several shards, or if tensors are sharded differently.

    Dimensions that are `bordered` are not checked: there a device has all elements that its windows reach.
    """
    first, along = windowed[0], windows_of_reduction(op)
    for dim, count in enumerate(first.counts):
        if dim in bordered:
            continue
        for tensor in (*windowed[1:], *reduced):
            if not first.has_same_blocks(dim, tensor, dim):
                raise PartitionError(f"its tensors are sharded differently along dimension {dim}")
        if count == 1:
            continue
        if not along[dim].tile(first.block_shape[dim], reduced[0].block_shape[dim]):
            raise PartitionError(
                f"its windows along dimension {dim} cross the boundaries of shards of size {first.block_shape[dim]}"
            )


@partition_rule("stablehlo.reduce_window", checks_blocks=True, allows_uneven=True, pure=True)
def partition_reduce_window(op: Any, blocks: Blocks) -> None:
    """Makes a windowed reduction local: the same windows over shards, with elements that a caller brought of others."""
    set_result_types(op, blocks)
    bordered = pad_within_blocks(op, blocks)
    if blocks.operands:
        _check_windows(op, blocks.operands[: len(op.results)], blocks.results, bordered)


@partition_rule("stablehlo.select_and_scatter", checks_blocks=True, allows_uneven=True, pure=True)
def partition_select_and_scatter(op: Any, blocks: Blocks) -> None:
    """Makes the op local: the same windows over shards; the source has an element for each window."""
    set_result_types(op, blocks)
    if blocks.operands:
        operand, source = blocks.operands[:2]
        _check_windows(op, (operand, blocks.results[0]), (source,))


def _spatial_factors(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns the factors of elements in a window along which partial results are not sums over shards."""
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    shapes = [list(value.type.shape) for value in (*op.operands, *op.results)]
    return [
        factor
        for position, dim in enumerate(numbers.kernel_spatial_dimensions)
        if not is_one_window(op, position, shapes)
        for factor in rule.operand_mappings[1].dim_mappings[dim].factor_indices
    ]


def is_one_window(op: Any, position: int, shapes: Sequence[Sequence[int]]) -> bool:
    """Returns whether a convolution has, along a spatial dimension, one window without padding, as large as the image.

    A shard of the image then corresponds to the same shard of the kernel. `shapes` are those of image, kernel and
    result.
    """
    numbers, attributes = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"]), op.attributes
    dims = (
        numbers.input_spatial_dimensions[position],
        numbers.kernel_spatial_dimensions[position],
        numbers.output_spatial_dimensions[position],
    )
    image, kernel, windows = (shape[dim] for shape, dim in zip(shapes, dims, strict=True))
    padding = elements(attributes["padding"]) if "padding" in attributes else []
    dilations = [attributes[name][position] for name in ("lhs_dilation", "rhs_dilation") if name in attributes]
    is_reversed = "window_reversal" in attributes and attributes["window_reversal"][position]
    is_changed = is_reversed or any(padding[2 * position : 2 * position + 2]) or any(one != 1 for one in dilations)
    return windows == 1 and image == kernel and not is_changed


@partition_rule("stablehlo.convolution", unshardable=_spatial_factors, allows_uneven=True, pure=True)
def partition_convolution(op: Any, blocks: Blocks) -> None:
    """Makes a convolution local: the same convolution of shards, with a device's groups of batches and of features.

    Windows may reach elements that a caller brought from other shards.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    pad_within_blocks(op, blocks)
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    lhs, kernel = blocks.operands
    for name, blocks_of_groups in (
        ("feature_group_count", kernel.counts[numbers.kernel_output_feature_dimension]),
        ("batch_group_count", lhs.counts[numbers.input_batch_dimension]),
    ):
        groups = op.attributes[name].value
        local = -(-groups // min(groups, blocks_of_groups))
        op.attributes[name] = ir.IntegerAttr.get(op.attributes[name].type, local)
