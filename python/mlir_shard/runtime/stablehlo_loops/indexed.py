# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers with batch dimensions, and scatters, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import stablehlo
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.stablehlo_loops import loops

_bindings = host.module("_mlir_libs._stablehlo")


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The dimension numbers of gather and scatter, where `windowed` is the tensor of slices.

    Attributes:
        window_dims: the dimensions of that tensor that are those of a slice
        collapsed: the operand's dimensions that slices do not have
        batching: the operand's dimensions that go along with `index_batching` of the indices
        index_map: the operand's dimension that each entry of an index vector is for
    """

    window_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    index_map: tuple[int, ...]
    index_vector_dim: int

    def parts(self, position: Sequence[Any], rank: int, indices: Any) -> tuple[list[Any], list[Any]]:
        """Of a position in the tensor of slices: where in the operand its slice begins, and where it is in that."""
        batch = [one for dim, one in enumerate(position) if dim not in self.window_dims]
        start, within = [index.constant(0)] * rank, [index.constant(0)] * rank
        for entry, dim in enumerate(self.index_map):
            start[dim] = self._entry(batch, entry, indices)
        for dim, of_indices in zip(self.batching, self.index_batching, strict=True):
            start[dim] = batch[of_indices - (of_indices > self.index_vector_dim)]
        for dim, of_windowed in zip(self._sliced(rank), self.window_dims, strict=True):
            within[dim] = position[of_windowed]
        return start, within

    def slice_sizes(self, rank: int, windowed_shape: Sequence[int]) -> list[int]:
        """The sizes of a slice along the dimensions of the operand."""
        sizes = [1] * rank
        for dim, of_windowed in zip(self._sliced(rank), self.window_dims, strict=True):
            sizes[dim] = windowed_shape[of_windowed]
        return sizes

    def _sliced(self, rank: int) -> list[int]:
        return [dim for dim in range(rank) if dim not in (*self.collapsed, *self.batching)]

    def _entry(self, batch: Sequence[Any], entry: int, indices: Any) -> Any:
        at = list(batch)
        if self.index_vector_dim < len(indices.type.shape):
            at.insert(self.index_vector_dim, index.constant(entry))
        return index.of_integer(loops.unboxed(loops.read(indices, at)))


def has_batch_dimensions(op: Any) -> bool:
    """Whether the host cannot lower this gather."""
    return bool(_gather_numbers(op).batching)


def gather(op: Any) -> list[Any]:
    """Each element of the result is read where its index, moved into the operand, says."""
    numbers, (operand, indices) = _gather_numbers(op), op.operands
    sizes, shape = list(op.attributes["slice_sizes"]), list(operand.type.shape)
    indices = stablehlo.convert(indices, stablehlo.i64())

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        starts, within = numbers.parts(position, len(shape), indices)
        place = [
            index.add(index.clamped(start, whole - size), offset)
            for start, offset, whole, size in zip(starts, within, shape, sizes, strict=True)
        ]
        return [loops.write(loops.read(operand, place), carried[0], position)]

    result = op.results[0].type
    return loops.nest(list(result.shape), [loops.empty(result)], element)


def scatter(op: Any) -> list[Any]:
    """Each element of the updates is combined with that which its index says.

    A slice that does not lie within the input is left out, all of it, as by XLA; StableHLO's specification leaves out
    only the elements that have no place. Partition rules rely on it: a block of such a slice may lie within its block.
    """
    read = _bindings.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    numbers = _Numbers(
        tuple(read.update_window_dims),
        tuple(read.inserted_window_dims),
        tuple(read.input_batching_dims),
        tuple(read.scatter_indices_batching_dims),
        tuple(read.scattered_dims_to_operand_dims),
        read.index_vector_dim,
    )
    count = len(op.results)
    inputs, updates = list(op.operands)[:count], list(op.operands)[count + 1 :]
    shape = list(inputs[0].type.shape)
    if 0 in shape or 0 in updates[0].type.shape:
        return inputs
    sizes = numbers.slice_sizes(len(shape), updates[0].type.shape)
    indices = stablehlo.convert(op.operands[count], stablehlo.i64())

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        starts, within = numbers.parts(position, len(shape), indices)
        is_there = loops.truth(True)
        for start, size, whole in zip(starts, sizes, shape, strict=True):
            is_there = loops.both(is_there, index.within(start, whole - size + 1))
        place = [
            index.add(index.clamped(start, whole - size), offset)
            for start, offset, whole, size in zip(starts, within, shape, sizes, strict=True)
        ]
        old = [loops.read(one, place) for one in carried]
        new = loops.inlined(op.regions[0], [*old, *(loops.read(one, position) for one in updates)])
        chosen = [
            loops.boxed(index.choose(is_there, loops.unboxed(after), loops.unboxed(before)))
            for before, after in zip(old, new, strict=True)
        ]
        return [loops.write(one, into, place) for one, into in zip(chosen, carried, strict=True)]

    return loops.nest(list(updates[0].type.shape), inputs, element)


def _gather_numbers(op: Any) -> _Numbers:
    read = _bindings.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    return _Numbers(
        tuple(read.offset_dims),
        tuple(read.collapsed_slice_dims),
        tuple(read.operand_batching_dims),
        tuple(read.start_indices_batching_dims),
        tuple(read.start_index_map),
        read.index_vector_dim,
    )
