# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of ops over windows: convolutions, windowed reductions and their gradient.

A dimension of which windows are taken can be sharded along the windows, and neighbours exchange what overlaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, has_static_shapes, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


def _without_window(op: Any) -> set[int]:
    """The dimensions along which every window is one element, and every element has one window."""
    attributes = op.attributes
    rank = len(shape_of(op.results[0].type))

    def given(name: str, default: int, width: int = 1) -> list[int]:
        return list(attributes[name]) if name in attributes else [default] * (rank * width)

    sizes, strides = given("window_dimensions", 1), given("window_strides", 1)
    padding = given("padding", 0, 2)
    return {dim for dim in range(rank) if (sizes[dim], strides[dim], *padding[2 * dim : 2 * dim + 2]) == (1, 1, 0, 0)}


def _dims_of_whole_windows(op: Any) -> tuple[int, ...]:
    """The dimensions of a `select_and_scatter` that windows fill from the first element to the last, side by side.

    Only those of which no tensor is in blocks that would cut a window.
    """
    if not has_static_shapes(op):
        return ()
    rank = op.results[0].type.rank
    padding = list(op.attributes["padding"]) if "padding" in op.attributes else [0] * (2 * rank)
    sizes, strides = (
        list(op.attributes[name]) if name in op.attributes else [1] * rank
        for name in ("window_dimensions", "window_strides")
    )
    shapes = zip(op.operands[0].type.shape, op.operands[1].type.shape, strict=True)
    return tuple(
        dim
        for dim, (elements, windows) in enumerate(shapes)
        if sizes[dim] <= strides[dim]
        and windows * strides[dim] == elements
        and not any(padding[2 * dim : 2 * dim + 2])
        and all(windows % blocks == 0 for blocks in _blocks_along(op, dim))
    )


def _blocks_along(op: Any, dim: int) -> Iterator[int]:
    """In how many blocks its tensors are along a dimension."""
    for value in (*list(op.operands)[:2], op.results[0]):
        sharding = sharding_of(value)
        mesh = None if sharding is None else sdy.mesh_of(sharding, op)
        if sharding is not None and mesh is not None:
            yield sharding.dim_shardings[dim].sharded_size(mesh)


@sharding_rule("stablehlo.reduce_window")
def reduce_window(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension, as long as there are windows along it; to compute it, elements."""
    whole = _without_window(op)
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of((op.operands if options.computing else op.results)[0].type),
            lambda dim: FactorType.PASS_THROUGH if dim in whole else FactorType.PERMUTATION,
            blocked=lambda dim: options.conservative and dim not in whole,
        )
        .build()
    )


@sharding_rule("stablehlo.select_and_scatter", context_key=_dims_of_whole_windows)
def select_and_scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Along windows the source has to be whole, operand and result exchange what overlaps.

    To compute it, not where each element is in one window at most.
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
            # Blocks of windows are blocks of elements.
            builder.add_common_factor(dim, source[dim])
            continue
        builder.add_factor([None, dim, None], [None], source[dim], FactorType.NEED_REPLICATION, blocked=blocked)
        builder.add_factor([dim, None, None], [dim], size, FactorType.PERMUTATION, blocked=blocked)
    return builder.build()


@sharding_rule("stablehlo.convolution")
def convolution(op: Any, options: RuleOptions) -> OpShardingRule:
    """Groups and what is in a group are factors of their own, of batches and of features.

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

    The larger one is the major one: it is the one that a sharding of the dimension usually goes to. The other has
    what is left of the dimension. To compute the op, where there are several windows, the dimension is one factor, and
    that of the kernel another.
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
