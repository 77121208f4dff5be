# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding of what combines elements to fewer: reductions, products and convolutions have neutral elements in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlir_shard import host
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir import stablehlo
from mlir_shard.rules.reduction import Combiner, combiners_of_elements, neutral_element
from mlir_shard.rules.stablehlo.windows import is_one_window
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import FactorType
from mlir_shard.transforms.spmdize.padding_rules import (
    PaddedFactors,
    UnevenOp,
    padding_of,
    passes_through,
    passes_through_or_is_reduced,
)

_bindings = host.module("_mlir_libs._stablehlo")
_ZERO_IS_NEUTRAL = (Combiner.SUM, Combiner.OR, Combiner.XOR)


@padding_of("stablehlo.dot", "stablehlo.dot_general")
def contraction(uneven: UnevenOp) -> None:
    """Both operands have zeros where they are contracted: anything else times zero may be no zero."""
    factors = PaddedFactors(uneven, passes_through_or_is_reduced)
    uneven.set_operands(factors.operand_shapes())
    for index, operand in enumerate(uneven.op.operands):
        uneven.op.operands[index] = uneven.values.masked_by_zeros(operand, factors.dims_without_result(index))
    uneven.set_results(factors.result_shapes())


@padding_of("stablehlo.reduce")
def reduction(uneven: UnevenOp) -> None:
    """Along reduced dimensions the inputs have what is neutral for the body; if that is unknown, the initial values."""
    factors = PaddedFactors(uneven, passes_through_or_is_reduced)
    uneven.set_operands(factors.operand_shapes())
    values, op = uneven.values, uneven.op
    for index, combiner in enumerate(combiners_of_elements(op)):
        operand, dims = op.operands[index], factors.dims_without_result(index)
        if combiner in _ZERO_IS_NEUTRAL:
            op.operands[index] = values.masked_by_zeros(operand, dims)
        else:
            initial = op.operands[len(op.results) + index]
            op.operands[index] = values.masked(operand, partial(_neutral, combiner, initial), dims)
    uneven.set_results(factors.result_shapes())


def _neutral(combiner: Combiner | None, initial: Any) -> Any:
    """What is neutral for a combiner; by StableHLO's definition an initial value is for any."""
    found = None if combiner is None else neutral_element(combiner, initial.type.element_type)
    return initial if found is None else found


@padding_of("stablehlo.convolution")
def convolution(uneven: UnevenOp) -> None:
    """Features that are summed over have zeros, and so has the input behind its spatial dimensions.

    That makes more windows, behind the others, unless the windows are sharded: then the input has to be whole. One
    window as large as the input grows with it, and has zeros as well.
    """
    op, values = uneven.op, uneven.values
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    single = [position for position in range(len(numbers.input_spatial_dimensions)) if _is_single(uneven, position)]
    spatial_factors = _spatial_factors(uneven.rule, numbers, single)
    factors = PaddedFactors(
        uneven, lambda rule, factor: factor not in spatial_factors and _passes_convolution(rule, factor)
    )
    inputs, kernel = map(list, factors.operand_shapes())
    (result,) = map(list, factors.result_shapes())
    shards = values.shards(sharding_of(op.results[0]), len(result))
    spatial = zip(numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    zeros = factors.dims_without_result(0)
    for position, (dim, result_dim) in enumerate(spatial):
        if position in single:
            continue
        size = op.operands[0].type.shape[dim]
        if shards[result_dim] == 1 and size != uneven.operand_shapes[0][dim]:
            inputs[dim] = size
            kernel_size = kernel[numbers.kernel_spatial_dimensions[position]]
            result[result_dim] = _windows(op, position, size, kernel_size)
            zeros.append(dim)
    uneven.set_operands([tuple(inputs), tuple(kernel)])
    for index, dims in enumerate((zeros, factors.dims_without_result(1))):
        op.operands[index] = values.masked_by_zeros(op.operands[index], dims)
    _set_groups(op, numbers, inputs, kernel, result)
    uneven.set_results([tuple(result)])


def _is_single(uneven: UnevenOp, position: int) -> bool:
    """Whether there is one window along a spatial dimension, whose elements go with those of the input one by one."""
    numbers = _bindings.ConvDimensionNumbers(uneven.op.attributes["dimension_numbers"])
    dims = (numbers.input_spatial_dimensions[position], numbers.kernel_spatial_dimensions[position])
    shapes = (*uneven.operand_shapes, *uneven.result_shapes)
    if uneven.rule is None or not is_one_window(uneven.op, position, shapes):
        return False
    pairs = zip(uneven.rule.operand_mappings, dims, strict=True)
    factors = {mapping.dim_mappings[dim].factor_indices for mapping, dim in pairs}
    return len(factors) == 1


def _spatial_factors(rule: OpShardingRule | None, numbers: Any, left_out: Sequence[int]) -> set[int]:
    if rule is None:
        return set()
    dims = (numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions)
    return {
        factor
        for mapping, of_mapping in zip(rule.operand_mappings, dims, strict=True)
        for position, dim in enumerate(of_mapping)
        if position not in left_out
        for factor in mapping.dim_mappings[dim].factor_indices
    }


def _passes_convolution(rule: OpShardingRule, factor: int) -> bool:
    """Whether there may be more features or batches: features that are summed have to be of both operands."""
    is_of_both = all(mapping.contains_factor(factor) for mapping in rule.operand_mappings)
    return passes_through(rule, factor) or (is_of_both and rule.factor_type(factor) is FactorType.REDUCTION)


def _windows(op: Any, number: int, size: int, kernel_size: int) -> int:
    """How many windows there are along a spatial dimension."""

    def given(name: str, default: int, index: int) -> int:
        return int(op.attributes[name][index]) if name in op.attributes else default

    def dilated(extent: int, name: str) -> int:
        return (extent - 1) * given(name, 1, number) + 1 if extent else 0

    padding = 0
    if "padding" in op.attributes:
        entries = list(op.attributes["padding"])
        padding = entries[2 * number] + entries[2 * number + 1]
    left = dilated(size, "lhs_dilation") + padding - dilated(kernel_size, "rhs_dilation")
    return left // given("window_strides", 1, number) + 1 if left >= 0 else 0


def _set_groups(op: Any, numbers: Any, inputs: Sequence[int], kernel: Sequence[int], result: Sequence[int]) -> None:
    """Groups of one feature, or of one element of the batch, are as many as those are."""
    if op.attributes["feature_group_count"].value > 1:
        count = inputs[numbers.input_feature_dimension] // kernel[numbers.kernel_input_feature_dimension]
        op.attributes["feature_group_count"] = stablehlo.integer(count)
    if op.attributes["batch_group_count"].value > 1:
        count = inputs[numbers.input_batch_dimension] // result[numbers.output_batch_dimension]
        op.attributes["batch_group_count"] = stablehlo.integer(count)
