# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of ops over windows: convolutions, windowed reductions and their gradient.

A dimension of which windows are taken can be sharded along the windows, and neighbours exchange what overlaps.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
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


@sharding_rule("stablehlo.reduce_window")
def reduce_window(op: Any, options: RuleOptions) -> OpShardingRule:
    """A factor for each result dimension, as long as there are windows along it."""
    whole = _without_window(op)
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of(op.results[0].type),
            lambda dim: FactorType.PASS_THROUGH if dim in whole else FactorType.PERMUTATION,
            blocked=lambda dim: options.conservative and dim not in whole,
        )
        .build()
    )


@sharding_rule("stablehlo.select_and_scatter")
def select_and_scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Along windows the source has to be whole, operand and result exchange what overlaps."""
    whole = _without_window(op)
    source = shape_of(op.operands[1].type)
    blocked = options.conservative
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim in whole:
            builder.add_common_factor(dim, size)
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
        _add_spatial(builder, op, numbers)
    if feature_groups > 1:
        builder.add_factor([lhs_feature, kernel_out], [result_feature], feature_groups)
    builder.add_factor([lhs_feature, kernel_in], [None], kernel[kernel_in], FactorType.REDUCTION)
    in_group = result[result_feature] // (batch_groups * feature_groups)
    if in_group > 1:
        builder.add_factor([None, kernel_out], [result_feature], in_group)
    return builder.build()


def _add_spatial(builder: RuleBuilder, op: Any, numbers: Any) -> None:
    """Adds for each spatial dimension a factor of the windows and one of the elements in a window.

    The larger one is the major one: it is the one that a sharding of the dimension usually goes to. The other has
    what is left of the dimension.
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
        for size, operand_dims, result_dims, type_ in sorted([windows, in_window], key=lambda one: -one[0]):
            size = min(left, size)
            if size > 1:
                builder.add_factor(operand_dims, result_dims, size, type_)
                left //= size
