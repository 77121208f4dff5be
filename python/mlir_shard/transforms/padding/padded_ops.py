# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding rules of ops that reduce, contract, cut and join tensors.

Tensors that are reduced are padded with neutral elements; attributes that give sizes are changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.rules.reduction import Combiner, combiners_of_elements, neutral_element
from mlir_shard.rules.stablehlo.windows import is_one_window
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import FactorType
from mlir_shard.transforms.padding.padding_rules import (
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
    """Sets the padding of contracted dimensions to zeros in both operands: other numbers times zero may not be zero."""
    factors = PaddedFactors(uneven, passes_through_or_is_reduced)
    uneven.set_operands(factors.operand_shapes())
    for index, operand in enumerate(uneven.op.operands):
        uneven.op.operands[index] = uneven.values.masked_by_zeros(operand, factors.dims_without_result(index))
    uneven.set_results(factors.result_shapes())


@padding_of("stablehlo.reduce")
def reduction(uneven: UnevenOp) -> None:
    """Sets the padding of reduced dimensions to the neutral element of the body, or else to the initial values."""
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
    """Returns the neutral element of a combiner, or else the initial value, which StableHLO defines as neutral."""
    found = None if combiner is None else neutral_element(combiner, initial.type.element_type)
    return initial if found is None else found


@padding_of("stablehlo.convolution")
def convolution(uneven: UnevenOp) -> None:
    """Sets the padding of features that are summed over, and of the input's spatial dimensions, to zeros.

    Padded spatial dimensions make more windows, behind the others. If the windows are sharded, the input is not padded.
    A single window as large as the input grows with it, and is padded with zeros too.
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
    """Returns whether a spatial dimension has one window, whose elements match those of the input one by one."""
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
    """Returns whether features or batches may be padded; features that are summed have to be of both operands."""
    is_of_both = all(mapping.contains_factor(factor) for mapping in rule.operand_mappings)
    return passes_through(rule, factor) or (is_of_both and rule.factor_type(factor) is FactorType.REDUCTION)


def _windows(op: Any, number: int, size: int, kernel_size: int) -> int:
    """Returns the number of windows along a spatial dimension."""

    def given(name: str, default: int, index: int) -> int:
        return int(op.attributes[name][index]) if name in op.attributes else default

    def dilated(extent: int, name: str) -> int:
        return (extent - 1) * given(name, 1, number) + 1 if extent else 0

    padding = 0
    if "padding" in op.attributes:
        entries = elements(op.attributes["padding"])
        padding = entries[2 * number] + entries[2 * number + 1]
    left = dilated(size, "lhs_dilation") + padding - dilated(kernel_size, "rhs_dilation")
    return left // given("window_strides", 1, number) + 1 if left >= 0 else 0


def _set_groups(op: Any, numbers: Any, inputs: Sequence[int], kernel: Sequence[int], result: Sequence[int]) -> None:
    """Sets the numbers of groups, of one feature or of one element of the batch, to the padded sizes."""
    if op.attributes["feature_group_count"].value > 1:
        count = inputs[numbers.input_feature_dimension] // kernel[numbers.kernel_input_feature_dimension]
        op.attributes["feature_group_count"] = stablehlo.integer(count)
    if op.attributes["batch_group_count"].value > 1:
        count = inputs[numbers.input_batch_dimension] // result[numbers.output_batch_dimension]
        op.attributes["batch_group_count"] = stablehlo.integer(count)


@padding_of("stablehlo.slice")
def static_slice(uneven: UnevenOp) -> None:
    """Pads a slice from the first element on if its padded operand has the size of the even result."""
    op = uneven.op
    (own,), (own_result,), (even,) = uneven.operand_shapes, uneven.result_shapes, uneven.even_result_shapes()
    operand, result = list(op.operands[0].type.shape), list(own_result)
    starts, limits, strides = (elements(op.attributes[name]) for name in _SLICE)
    for dim, size in enumerate(even):
        if size == own_result[dim]:
            continue
        if starts[dim] == 0 and strides[dim] == 1 and operand[dim] == size:
            result[dim] = limits[dim] = size
        else:
            operand[dim] = own[dim]
    uneven.set_operands([tuple(operand)])
    op.attributes["limit_indices"] = stablehlo.sizes(limits)
    uneven.set_results([tuple(result)])


_SLICE = ("start_indices", "limit_indices", "strides")


@padding_of("stablehlo.pad")
def pad(uneven: UnevenOp) -> None:
    """Keeps the padding in front, and adds as much behind as makes even shards.

    Where padding of the operand gets into the result, it is set to the value that the op pads with.
    """
    op = uneven.op
    (own, _), (own_result,), (even,) = uneven.operand_shapes, uneven.result_shapes, uneven.even_result_shapes()
    low, high, interior = (elements(op.attributes[name]) for name in _PAD)
    operand, scalar = op.operands
    shape, reached = operand.type.shape, []
    for dim, size in enumerate(even):
        between = interior[dim]
        needed = size - low[dim] - shape[dim] - max(0, shape[dim] - 1) * between
        if needed < high[dim] or low[dim] + own[dim] * (1 + between) < own_result[dim]:
            reached.append(dim)
        high[dim] = needed
    op.operands[0] = uneven.values.masked(operand, lambda: scalar, reached)
    op.attributes["edge_padding_high"] = stablehlo.sizes(high)
    uneven.set_results([even])


_PAD = ("edge_padding_low", "edge_padding_high", "interior_padding")


@padding_of("stablehlo.dynamic_slice")
def dynamic_slice(uneven: UnevenOp) -> None:
    """Extends slices of full dimensions to the padded dimensions; others begin where they would without padding."""
    op = uneven.op
    factors = PaddedFactors(uneven, passes_through_or_is_reduced)
    operands, shapes = factors.operand_shapes(), factors.result_shapes()
    uneven.set_operands(operands)
    own, own_slice = uneven.operand_shapes[0], uneven.result_shapes[0]
    for dim, size in enumerate(operands[0]):
        if size != own[dim] and shapes[0][dim] != size:
            op.operands[1 + dim] = _clamped(op.operands[1 + dim], own[dim] - own_slice[dim])
    uneven.op.attributes["slice_sizes"] = stablehlo.sizes(shapes[0])
    uneven.set_results(shapes)


@padding_of("stablehlo.dynamic_update_slice")
def dynamic_update_slice(uneven: UnevenOp) -> None:
    """Clamps the start of an update as without padding: an update that would exceed the operand begins earlier."""
    op = uneven.op
    factors = PaddedFactors(uneven, passes_through)
    shapes = factors.operand_shapes()
    uneven.set_operands(shapes)
    own, own_update = uneven.operand_shapes[:2]
    for dim, size in enumerate(shapes[0]):
        if size != own[dim] and shapes[1][dim] != size:
            op.operands[2 + dim] = _clamped(op.operands[2 + dim], own[dim] - own_update[dim])
    uneven.set_results(factors.result_shapes())


def _clamped(start: Any, bound: int) -> Any:
    """Returns a scalar clamped between zero and a bound, which the type of the scalar may not reach."""
    type_ = start.type
    least = stablehlo.splat(type_, 0)
    return stablehlo.build("clamp", type_, least, start, stablehlo.splat(type_, min(bound, _largest(type_))))


@padding_of("stablehlo.gather")
def gather(uneven: UnevenOp) -> None:
    """Clamps indices to the operand without padding, as the op itself does, before the operand is padded."""
    op = uneven.op
    numbers = _bindings.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    factors = PaddedFactors(uneven, passes_through_or_is_reduced)
    shapes = factors.operand_shapes()
    uneven.set_operands(shapes)
    own, sizes = uneven.operand_shapes[0], elements(op.attributes["slice_sizes"])
    selected = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    bounds = [own[dim] - sizes[dim] for dim in numbers.start_index_map]
    is_clamped = any(
        shapes[0][dim] != own[dim] and bound > 0 for dim, bound in zip(numbers.start_index_map, bounds, strict=True)
    )
    if is_clamped:
        op.operands[1] = _clamped_indices(op.operands[1], bounds, numbers.index_vector_dim, uneven)
    for dim, size in enumerate(shapes[0]):
        if dim not in selected and sizes[dim] == own[dim] and _is_in_slices(uneven, dim):
            sizes[dim] = size
    op.attributes["slice_sizes"] = stablehlo.sizes(sizes)
    uneven.set_results(factors.result_shapes())


def _is_in_slices(uneven: UnevenOp, dim: int) -> bool:
    rule = uneven.rule
    return rule is not None and passes_through(rule, rule.operand_mappings[0].dim_mappings[dim].factor_indices[0])


def _clamped_indices(indices: Any, bounds: Sequence[int], vector_dim: int, uneven: UnevenOp) -> Any:
    """Returns indices with each component clamped between zero and its bound."""
    type_ = indices.type.element_type
    largest = _largest(indices.type)
    limits = [[0] * len(bounds), [min(bound, largest) for bound in bounds]]
    sharding, shape = sharding_of(indices), list(indices.type.shape)
    ends = []
    for limit in limits:
        if vector_dim == len(shape):
            end = stablehlo.broadcast(stablehlo.splat(stablehlo.tensor(type_), limit[0]), shape)
        else:
            end = stablehlo.broadcast(stablehlo.numbers(limit, type_), shape, [vector_dim])
        ends.append(end)
    clamped = stablehlo.build("clamp", indices.type, ends[0], indices, ends[1])
    for made in (*ends, clamped):
        if sharding is not None:
            sdy.set_sharding(made, sharding)
    uneven.values.set_shape(clamped, shape, uneven.values.shape(indices))
    return clamped


@padding_of("stablehlo.scatter")
def scatter(uneven: UnevenOp) -> None:
    """Sets the padding of the indices to point out of the inputs, where nothing is updated; pads the inputs."""
    op = uneven.op
    count = len(op.results)
    numbers = _bindings.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    placed = _placed_windows(uneven, numbers)

    def may_pad(rule: OpShardingRule, factor: int) -> bool:
        return factor not in placed and passes_through_or_is_reduced(rule, factor)

    factors = PaddedFactors(uneven, may_pad)
    uneven.set_operands(factors.operand_shapes())
    dims = factors.dims_without_result(count)
    op.operands[count] = uneven.values.masked(op.operands[count], lambda: _nowhere(op.operands[count].type), dims)
    uneven.set_results(factors.result_shapes())


def _placed_windows(uneven: UnevenOp, numbers: Any) -> set[int]:
    """Returns the factors along which full updates go to indexed places: their padding would get into the inputs."""
    if uneven.rule is None:
        return set()
    mapping = uneven.rule.operand_mappings[0].dim_mappings
    left_out = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    dims = [dim for dim in numbers.scattered_dims_to_operand_dims if dim not in left_out]
    return {factor for dim in dims for factor in mapping[dim].factor_indices}


def _nowhere(type_: Any) -> Any:
    """Returns an index out of all tensors, so far out that it stays there if something is added or subtracted."""
    element = type_.element_type
    value = _largest(type_) if element.is_unsigned else -(2 ** (element.width - 2))
    return stablehlo.splat(stablehlo.tensor(element), value)


def _largest(type_: Any) -> int:
    element = type_.element_type
    # Constants are built from signed numbers.
    width = min(element.width, 63) if element.is_unsigned else element.width - 1
    return 2**width - 1
