# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of StableHLO ops over windows, which stay on a device where windows do not reach over its block."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.rules.local_borders import pad_within_blocks
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule, set_result_types
from mlir_shard.sharding import OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows along one dimension: how many elements one spans, how far apart they begin, and what is around."""

    span: int
    stride: int
    padding: tuple[int, int]
    base_dilation: int

    @staticmethod
    def of(op: Any, dim: int) -> _Windows:
        attributes = op.attributes

        def given(name: str) -> int:
            return attributes[name][dim] if name in attributes else 1

        padding = list(attributes["padding"]) if "padding" in attributes else []
        around = (padding[2 * dim], padding[2 * dim + 1]) if padding else (0, 0)
        span = (given("window_dimensions") - 1) * given("window_dilations") + 1
        return _Windows(span, given("window_strides"), around, given("base_dilations"))

    def stay_in_blocks(self, elements: int, windows: int) -> bool:
        """Whether the windows of a block are those in its elements, `elements` and `windows` being those of a block."""
        is_plain = self.padding == (0, 0) and self.base_dilation == 1
        return is_plain and self.span <= self.stride and windows * self.stride == elements


def _check_windows(
    op: Any, windowed: Sequence[BlockedTensor], reduced: Sequence[BlockedTensor], bordered: Collection[int] = ()
) -> None:
    """Raises PartitionError where a window takes elements of several blocks, or tensors are in different blocks.

    Not along dimensions that are `bordered`: there a device has all that its windows reach.
    """
    first = windowed[0]
    for dim, count in enumerate(first.counts):
        if dim in bordered:
            continue
        for tensor in (*windowed[1:], *reduced):
            if not first.has_same_blocks(dim, tensor, dim):
                raise PartitionError(f"its tensors are sharded differently along dimension {dim}")
        if count == 1:
            continue
        windows = _Windows.of(op, dim)
        if not windows.stay_in_blocks(first.block_shape[dim], reduced[0].block_shape[dim]):
            raise PartitionError(f"its windows along dimension {dim} reach over blocks of {first.block_shape[dim]}")


@partition_rule("stablehlo.reduce_window", checks_blocks=True, allows_uneven=True)
def reduce_window(op: Any, blocks: Blocks) -> None:
    """The same windows over blocks, with what of others they reach where a caller has brought that."""
    set_result_types(op, blocks)
    bordered = pad_within_blocks(op, blocks)
    if blocks.operands:
        _check_windows(op, blocks.operands[: len(op.results)], blocks.results, bordered)


@partition_rule("stablehlo.select_and_scatter", checks_blocks=True)
def select_and_scatter(op: Any, blocks: Blocks) -> None:
    """The same windows over blocks; the source has an element for each window."""
    set_result_types(op, blocks)
    if blocks.operands:
        operand, source = blocks.operands[:2]
        _check_windows(op, (operand, blocks.results[0]), (source,))


def _spatial_factors(op: Any, rule: OpShardingRule) -> list[int]:
    """The factors of elements in a window along which partial results are no sums over blocks."""
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    shapes = [list(value.type.shape) for value in (*op.operands, *op.results)]
    return [
        factor
        for position, dim in enumerate(numbers.kernel_spatial_dimensions)
        if not is_one_window(op, position, shapes)
        for factor in rule.operand_mappings[1].dim_mappings[dim].factor_indices
    ]


def is_one_window(op: Any, position: int, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether a convolution has, along a spatial dimension, one window without padding, as large as the image.

    A block of the one then goes with the same block of the other. `shapes` are those of image, kernel and result.
    """
    numbers, attributes = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"]), op.attributes
    dims = (
        numbers.input_spatial_dimensions[position],
        numbers.kernel_spatial_dimensions[position],
        numbers.output_spatial_dimensions[position],
    )
    image, kernel, windows = (shape[dim] for shape, dim in zip(shapes, dims, strict=True))
    padding = list(attributes["padding"]) if "padding" in attributes else []
    dilations = [attributes[name][position] for name in ("lhs_dilation", "rhs_dilation") if name in attributes]
    is_reversed = "window_reversal" in attributes and attributes["window_reversal"][position]
    is_changed = is_reversed or any(padding[2 * position : 2 * position + 2]) or any(one != 1 for one in dilations)
    return windows == 1 and image == kernel and not is_changed


@partition_rule("stablehlo.convolution", unshardable=_spatial_factors, allows_uneven=True)
def convolution(op: Any, blocks: Blocks) -> None:
    """The same convolution of blocks, with the groups that a device has of batches and of features.

    Windows may reach what a caller has brought of other blocks.
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
