# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partition rule of StableHLO's scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.initial_values import count_once
from mlir_shard.rules.local_indices import BlockIndices, has_first_blocks
from mlir_shard.rules.local_results import continue_with
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, partition_rule, set_result_types
from mlir_shard.rules.reduction import combiners_of, neutral_number

_bindings = host.module("_mlir_libs._stablehlo")


@dataclass(frozen=True, slots=True)
class _Dimensions:
    """The dimensions of a scatter's input, by what it does along them.

    `written` go with whole dimensions of the updates. Along `selected` one element is written, along `first_only` it
    is the first, as no index is for them. `batching` pairs dimensions with those of the indices; `scattered` pairs
    the dimensions of updates that are none of the `window` with those of the indices.
    """

    written: tuple[tuple[int, int], ...]
    selected: tuple[int, ...]
    partly_written: tuple[int, ...]
    first_only: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    scattered: tuple[tuple[int, int], ...]
    window: tuple[int, ...]

    @staticmethod
    def of(numbers: Any, input_shape: Sequence[int], updates_shape: Sequence[int], index_rank: int) -> _Dimensions:
        inserted, batching = list(numbers.inserted_window_dims), list(numbers.input_batching_dims)
        window = list(numbers.update_window_dims)
        mapped = list(numbers.scattered_dims_to_operand_dims)
        rest = [dim for dim in range(len(input_shape)) if dim not in (*inserted, *batching)]
        selected = [dim for dim in inserted if dim in mapped]
        first_only = [dim for dim in inserted if dim not in mapped]
        written, partly = [], []
        for dim, update_dim in zip(rest, window, strict=True):
            if updates_shape[update_dim] == input_shape[dim]:
                written.append((dim, update_dim))
            elif updates_shape[update_dim] == 1:
                (selected if dim in mapped else first_only).append(dim)
            else:
                partly.append(dim)
        of_indices = [dim for dim in range(index_rank) if dim != numbers.index_vector_dim]
        of_updates = [dim for dim in range(len(updates_shape)) if dim not in window]
        return _Dimensions(
            tuple(written),
            tuple(selected),
            tuple(partly),
            tuple(first_only),
            tuple(zip(batching, numbers.scatter_indices_batching_dims, strict=True)),
            tuple(zip(of_updates, of_indices, strict=True)),
            tuple(window),
        )


@partition_rule("stablehlo.scatter", checks_blocks=True)
def scatter(op: Any, blocks: Blocks) -> bool:
    """Each device writes what falls in its block, or everything where it has all.

    Where the updates are sharded and the input is not, each device writes its own: all but the first begin with what
    changes nothing, so that what is there is combined once with all that is written.
    """
    blocks.check_known()
    if all(tensor.is_whole for tensor in blocks.operands):
        return False
    set_result_types(op, blocks)
    count = len(op.results)
    numbers = _bindings.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    tensor, indices, updates = (blocks.operands[number] for number in (0, count, count + 1))
    rank = len(indices.counts)
    dims = _Dimensions.of(numbers, tensor.type.shape, updates.type.shape, rank)
    _check_blocks(blocks, count, dims)
    reduced = _reduced_axes(tensor, updates, dims)
    if reduced:
        _begin_once(op, blocks, reduced)
    selected = [dim for dim in dims.selected if tensor.counts[dim] > 1]
    if selected:
        with ir.InsertionPoint(op), op.location:
            mapped = list(numbers.scattered_dims_to_operand_dims)
            own = BlockIndices(op.operands[count], numbers.index_vector_dim, mapped, selected, tensor, blocks)
            op.operands[count] = own.local(own.indices, with_mask=False)[0]
    first_only = [dim for dim in dims.first_only if tensor.counts[dim] > 1]
    if first_only:
        _write_in_first_blocks(op, blocks, tensor, first_only, count)
    return True


def _check_blocks(blocks: Blocks, count: int, dims: _Dimensions) -> None:
    """Raises PartitionError where blocks of inputs, indices and updates do not go together."""
    inputs, indices, updates = blocks.operands[:count], blocks.operands[count], blocks.operands[count + 1 :]
    first, first_update = inputs[0], updates[0]
    for name, tensors in (("inputs and results", (*inputs, *blocks.results)), ("updates", updates)):
        for tensor in tensors:
            for dim in range(len(tensor.counts)):
                if not tensors[0].has_same_blocks(dim, tensor, dim):
                    raise PartitionError(f"its {name} are sharded differently along dimension {dim}")
    for dim in dims.partly_written:
        if first.counts[dim] > 1:
            raise PartitionError(f"its updates reach over blocks of dimension {dim}")
    for dim, update_dim in dims.written:
        if not first.has_same_blocks(dim, first_update, update_dim):
            raise PartitionError(f"dimension {dim} is sharded differently in its input and its updates")
    written = [update_dim for _, update_dim in dims.written]
    for update_dim in dims.window:
        if update_dim not in written and first_update.counts[update_dim] > 1:
            raise PartitionError(f"dimension {update_dim} of its updates is sharded, and is a part of one of its input")
    paired = [index_dim for _, index_dim in dims.scattered]
    if any(one > 1 for dim, one in enumerate(indices.counts) if dim not in paired):
        raise PartitionError("its index vectors are sharded")
    for update_dim, index_dim in dims.scattered:
        if not first_update.has_same_blocks(update_dim, indices, index_dim):
            raise PartitionError(f"dimension {update_dim} is sharded differently in its updates and its indices")
    for dim, index_dim in dims.batching:
        if not first.has_same_blocks(dim, indices, index_dim):
            raise PartitionError(f"batching dimension {dim} is sharded differently in its input and its indices")


def _reduced_axes(tensor: BlockedTensor, updates: BlockedTensor, dims: _Dimensions) -> list[int]:
    """The axes along which devices have updates of their own for the same block of the input."""
    batches = {index_dim for _, index_dim in dims.batching}
    found = [axis for dim, index_dim in dims.scattered if index_dim not in batches for axis in updates.axes[dim]]
    of_input = {axis for axes in tensor.axes for axis in axes}
    if any(axis in of_input for axis in found):
        raise PartitionError("its updates are sharded along the axes that another dimension of its input is")
    return found


def _begin_once(op: Any, blocks: Blocks, axes: list[int]) -> None:
    neutral = {}
    for number, combiner in enumerate(combiners_of(op)):
        found = None if combiner is None else neutral_number(combiner, op.operands[number].type.element_type)
        if found is None:
            raise PartitionError("its updates are sharded, and there is nothing that changes no element in them")
        neutral[number] = found
    count_once(op, neutral, axes, blocks)


def _write_in_first_blocks(op: Any, blocks: Blocks, tensor: BlockedTensor, dims: list[int], count: int) -> None:
    with ir.InsertionPoint(op), op.location:
        is_first = has_first_blocks(tensor, dims, blocks)
    for number in range(count):
        result, value = op.results[number], op.operands[number]
        continue_with(op, number, partial(stablehlo.select_all, is_first, result, value))
