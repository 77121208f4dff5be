# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of StableHLO's gather and scatter, whose indices become indices into this device's shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.rules.partition import (
    BlockedTensor,
    Blocks,
    PartitionError,
    continue_with,
    count_once,
    partition_rule,
    set_result_types,
)
from mlir_shard.rules.reduction import combiners_of, neutral_number
from mlir_shard.rules.stablehlo.layout import block_start


@dataclass(frozen=True, slots=True)
class BlockIndices:
    """The indices of a gather or a scatter, at the current insertion point.

    They index `tensor`: component i of an index vector, whose components are along `vector_dim` of `indices`, indexes
    `dims[i]` of the tensor. Dimensions in `cut` are sharded, and one element is indexed along them.
    """

    indices: Any
    vector_dim: int
    dims: Sequence[int]
    cut: Sequence[int]
    tensor: BlockedTensor
    blocks: Blocks

    @property
    def element_type(self) -> Any:
        """The type of the indices."""
        return self.indices.type.element_type

    def inside(self) -> Any:
        """Returns the indices, clamped to the tensor."""
        type_, last = (
            self.indices.type,
            [self._representable(self.blocks.operand_size(0, dim) - 1) for dim in self.dims],
        )
        if len(last) < 2:
            limits = stablehlo.splat(type_, last[0])
        else:
            vector = stablehlo.numbers(last, self.element_type)
            limits = stablehlo.broadcast(vector, type_.shape, [self.vector_dim])
        return stablehlo.build("clamp", type_, stablehlo.splat(type_, 0), self.indices, limits)

    def local(self, indices: Any, *, with_mask: bool) -> tuple[Any, Any]:
        """Returns the indices relative to the start of the shard, and a mask of the components that are in it.

        The mask is None without `with_mask`.
        """
        first: list[Any] = []
        last: list[Any] = []
        scalar = stablehlo.tensor(self.element_type)
        for dim in self.dims:
            if dim not in self.cut:
                first.append(stablehlo.splat(scalar, 0))
                if with_mask:
                    last.append(stablehlo.splat(scalar, self._representable(self.tensor.type.shape[dim] - 1)))
                continue
            start = stablehlo.convert(block_start(self.tensor, dim, self.blocks), self.element_type)
            first.append(start)
            if with_mask:
                size = stablehlo.splat(scalar, self.tensor.block_shape[dim] - 1)
                last.append(stablehlo.build("add", scalar, start, size))
        low = self._spread(first)
        high = self._spread(last) if with_mask else None
        moved = stablehlo.build("subtract", indices.type, indices, low)
        if not with_mask:
            return moved, None
        above, below = stablehlo.compare("GE", indices, low), stablehlo.compare("LE", indices, high)
        return moved, stablehlo.build("and", above.type, above, below)

    def _representable(self, value: int) -> int:
        """Returns the smaller of the value and the largest number of the type of the indices: no index is beyond it."""
        element = self.element_type
        return min(value, 2 ** (element.width - (0 if element.is_unsigned else 1)) - 1)

    def _spread(self, scalars: Sequence[Any]) -> Any:
        """Returns a tensor of the shape of the indices, from a scalar for each component."""
        shape = self.indices.type.shape
        if self.vector_dim >= len(shape) or shape[self.vector_dim] == 1:
            return stablehlo.broadcast(scalars[0], shape)
        vector = stablehlo.concatenate([stablehlo.reshape(one, [1]) for one in scalars], 0)
        return stablehlo.broadcast(vector, shape, [self.vector_dim])


def has_first_blocks(tensor: BlockedTensor, dims: Sequence[int], blocks: Blocks) -> Any:
    """Returns a scalar mask of whether this device has the first shard along each of some dimensions."""
    mask = None
    for dim in dims:
        start = block_start(tensor, dim, blocks)
        is_first = stablehlo.compare("EQ", start, stablehlo.splat(start.type, 0))
        mask = is_first if mask is None else stablehlo.build("and", is_first.type, mask, is_first)
    return mask


@partition_rule("stablehlo.gather", allows_uneven=True, pure=True)
def gather(op: Any, blocks: Blocks) -> None:
    """Makes a gather local: the same gather from a shard.

    Along a sharded dimension of which indices select one element, each device takes the elements in its shard, and
    zeros for the rest, so that the sum over devices is the result.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    if blocks.operands[0].is_whole:
        return
    tensor = blocks.operands[0]
    numbers = SliceNumbers.of(op)
    sizes = elements(op.attributes["slice_sizes"])
    selected = []
    for dim, count in enumerate(tensor.counts):
        if count == 1 or dim in numbers.batching:
            continue
        if sizes[dim] == 1:
            selected.append(dim)
        elif sizes[dim] == blocks.operand_size(0, dim):
            sizes[dim] = tensor.block_shape[dim]
        else:
            raise PartitionError(f"its slices cross shard boundaries of dimension {dim}")
    op.attributes["slice_sizes"] = stablehlo.sizes(sizes)
    if selected:
        _select_own(op, blocks, selected, numbers)


def _select_own(op: Any, blocks: Blocks, selected: list[int], numbers: SliceNumbers) -> None:
    tensor, index_map = blocks.operands[0], numbers.index_map
    indexed = [dim for dim in selected if dim in index_map]
    others = [dim for dim in selected if dim not in index_map]
    mask = None
    with ir.InsertionPoint(op), op.location:
        if indexed:
            indices = BlockIndices(op.operands[1], numbers.index_vector_dim, index_map, indexed, tensor, blocks)
            op.operands[1], mask = indices.local(indices.inside(), with_mask=True)
        if others:
            is_first = has_first_blocks(tensor, others, blocks)
            if mask is not None:
                is_first = stablehlo.broadcast(is_first, mask.type.shape)
                is_first = stablehlo.build("and", mask.type, mask, is_first)
            mask = is_first
    result = op.results[0]

    def own() -> Any:
        return stablehlo.select(_over_result(mask, result.type, numbers), result, stablehlo.splat(result.type, 0))

    continue_with(op, 0, own)


def _over_result(mask: Any, type_: Any, numbers: SliceNumbers) -> Any:
    """Returns the mask of index components as a mask of result elements: true if all components are."""
    if not mask.type.rank:
        return stablehlo.broadcast(mask, type_.shape)
    vector_dim = numbers.index_vector_dim
    if vector_dim < mask.type.rank:
        shape = [size for dim, size in enumerate(mask.type.shape) if dim != vector_dim]
        yes = stablehlo.splat(stablehlo.tensor(stablehlo.boolean()), 1)
        reduced = stablehlo.with_shape(mask.type, shape)
        mask = stablehlo.combining("reduce", reduced, [mask, yes], "and", dimensions=stablehlo.sizes([vector_dim]))
    batch = [dim for dim in range(type_.rank) if dim not in numbers.window_dims]
    return stablehlo.broadcast(mask, type_.shape, batch)


@dataclass(frozen=True, slots=True)
class _Dimensions:
    """The dimensions of a scatter's input, by the way that it writes along them.

    `written` pairs dimensions with those of the updates that have the same size. Along `selected` one element is
    written at an index; along `first_only` it is the first one, as no component of an index is for them; along
    `partly_written` it is a part. `batching` pairs dimensions with those of the indices; `scattered` pairs the
    dimensions of updates outside the `window` with those of the indices.
    """

    written: tuple[tuple[int, int], ...]
    selected: tuple[int, ...]
    partly_written: tuple[int, ...]
    first_only: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    scattered: tuple[tuple[int, int], ...]
    window: tuple[int, ...]

    @staticmethod
    def of(
        numbers: SliceNumbers, input_shape: Sequence[int], updates_shape: Sequence[int], index_rank: int
    ) -> _Dimensions:
        window, mapped = numbers.window_dims, numbers.index_map
        selected = [dim for dim in numbers.collapsed if dim in mapped]
        first_only = [dim for dim in numbers.collapsed if dim not in mapped]
        written, partly = [], []
        for dim, update_dim in zip(numbers.sliced(len(input_shape)), window, strict=True):
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
            tuple(zip(numbers.batching, numbers.index_batching, strict=True)),
            tuple(zip(of_updates, of_indices, strict=True)),
            window,
        )


@partition_rule("stablehlo.scatter", checks_blocks=True, allows_uneven=True, pure=True)
def scatter(op: Any, blocks: Blocks) -> bool:
    """Makes a scatter local: each device writes the updates that fall in its shard, or all if it has the entire input.

    If the updates are sharded and the input is not, each device writes its own updates. All but the first begin with
    neutral elements, so that the input is combined once with all updates.
    """
    blocks.check_known()
    if all(tensor.is_whole for tensor in blocks.operands):
        return False
    set_result_types(op, blocks)
    count = len(op.results)
    numbers = SliceNumbers.of(op)
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
            map_ = numbers.index_map
            own = BlockIndices(op.operands[count], numbers.index_vector_dim, map_, selected, tensor, blocks)
            op.operands[count] = own.local(own.indices, with_mask=False)[0]
    first_only = [dim for dim in dims.first_only if tensor.counts[dim] > 1]
    if first_only:
        _write_in_first_blocks(op, blocks, tensor, first_only, count)
    return True


def _check_blocks(blocks: Blocks, count: int, dims: _Dimensions) -> None:
    """Raises PartitionError if shards of inputs, indices and updates do not correspond."""
    inputs, indices, updates = blocks.operands[:count], blocks.operands[count], blocks.operands[count + 1 :]
    first, first_update = inputs[0], updates[0]
    for name, tensors in (("inputs and results", (*inputs, *blocks.results)), ("updates", updates)):
        for tensor in tensors:
            for dim in range(len(tensor.counts)):
                if not tensors[0].has_same_blocks(dim, tensor, dim):
                    raise PartitionError(f"its {name} are sharded differently along dimension {dim}")
    for dim in dims.partly_written:
        if first.counts[dim] > 1:
            raise PartitionError(f"its updates cross shard boundaries of dimension {dim}")
    for dim, update_dim in dims.written:
        if not first.has_same_blocks(dim, first_update, update_dim):
            raise PartitionError(f"dimension {dim} is sharded differently in its input and its updates")
    written = [update_dim for _, update_dim in dims.written]
    for update_dim in dims.window:
        if update_dim not in written and first_update.counts[update_dim] > 1:
            raise PartitionError(
                f"dimension {update_dim} of its updates is sharded, but covers only a part of its input's dimension"
            )
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
    """Returns the axes along which devices have different updates for the same shard of the input."""
    batches = {index_dim for _, index_dim in dims.batching}
    found = [axis for dim, index_dim in dims.scattered if index_dim not in batches for axis in updates.axes[dim]]
    of_input = {axis for axes in tensor.axes for axis in axes}
    if any(axis in of_input for axis in found):
        raise PartitionError("its updates are sharded along axes of another dimension of its input")
    return found


def _begin_once(op: Any, blocks: Blocks, axes: list[int]) -> None:
    neutral = {}
    for number, combiner in enumerate(combiners_of(op)):
        found = None if combiner is None else neutral_number(combiner, op.operands[number].type.element_type)
        if found is None:
            raise PartitionError("its updates are sharded, but its combiner has no known neutral element")
        neutral[number] = found
    count_once(op, neutral, axes, blocks)


def _write_in_first_blocks(op: Any, blocks: Blocks, tensor: BlockedTensor, dims: list[int], count: int) -> None:
    with ir.InsertionPoint(op), op.location:
        is_first = has_first_blocks(tensor, dims, blocks)
    for number in range(count):
        result, value = op.results[number], op.operands[number]
        continue_with(op, number, partial(stablehlo.select_all, is_first, result, value))
