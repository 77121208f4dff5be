# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gather and scatter: slices of a tensor at given indices, with or without batching dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from differential.program import Shape, Value
from differential.scope import Scope, array, combiner


@dataclass(frozen=True, slots=True)
class _Slices:
    """The positions of slices: attributes in the terms of gather, and the shape of all slices."""

    input: Value
    indices: Value
    sizes: Shape
    slices: Shape
    offsets: list[int]
    collapsed: list[int]
    input_batching: list[int]
    indices_batching: list[int]
    indexed: list[int]
    vector: int


def _slices(scope: Scope) -> _Slices | None:
    value = scope.pick(lambda one: 0 < len(one.shape) < 5)
    if value is None:
        return None
    rank = len(value.shape)
    batching = [dim for dim in range(rank) if scope.chance(0.2)]
    collapsed = [dim for dim in range(rank) if dim not in batching and scope.chance(0.4)]
    sizes = []
    for dim, size in enumerate(value.shape):
        partial = scope.random.randint(1, size) if scope.chance(0.3) else size
        sizes.append(1 if dim in (*batching, *collapsed) else partial)
    indexed = [dim for dim in range(rank) if dim not in batching and (dim in collapsed or scope.chance(0.5))]
    batches = [(value.shape[dim], dim) for dim in batching]
    batches += [(scope.random.choice([1, 2, 4, 8]), -1) for _ in range(scope.random.randint(0, 2))]
    scope.random.shuffle(batches)
    indices_shape = [size for size, _ in batches]
    vector = len(indices_shape)
    if len(indexed) != 1 or scope.chance(0.7):
        vector = scope.random.choice([vector, vector, 0])
        indices_shape.insert(vector, len(indexed))
    positions = [dim + (dim >= vector and vector < len(indices_shape)) for dim in range(len(batches))]
    indices_batching = [positions[[dim for _, dim in batches].index(dim)] for dim in batching]
    kept = [size for dim, size in enumerate(sizes) if dim not in (*batching, *collapsed)]
    total = len(batches) + len(kept)
    if total > 5 or not indexed:
        return None
    offsets = sorted(scope.random.sample(range(total), len(kept)))
    rest, taken = iter([size for size, _ in batches]), iter(kept)
    slices = tuple(next(taken) if dim in offsets else next(rest) for dim in range(total))
    indices = scope.pick(lambda one: one.shape == tuple(indices_shape), "i32")
    if indices is None:
        indices = scope.converted(scope.of_type(tuple(indices_shape)), "i32")
    return _Slices(
        value, indices, tuple(sizes), slices, offsets, collapsed, batching, indices_batching, indexed, vector
    )


def gather(scope: Scope) -> None:
    if (at := _slices(scope)) is None:
        return
    numbers = (
        f"offset_dims = {at.offsets}, collapsed_slice_dims = {at.collapsed}, "
        f"operand_batching_dims = {at.input_batching}, start_indices_batching_dims = {at.indices_batching}, "
        f"start_index_map = {at.indexed}, index_vector_dim = {at.vector}"
    )
    properties = (
        f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {array(at.sizes)}, indices_are_sorted = false"
    )
    scope.op("gather", [at.input, at.indices], [(at.slices, "f32")], properties)


def scatter(scope: Scope) -> None:
    """Scatters into one tensor, or into two of equal type at the same indices."""
    if (at := _slices(scope)) is None:
        return
    numbers = (
        f"update_window_dims = {at.offsets}, inserted_window_dims = {at.collapsed}, "
        f"input_batching_dims = {at.input_batching}, scatter_indices_batching_dims = {at.indices_batching}, "
        f"scatter_dims_to_operand_dims = {at.indexed}, index_vector_dim = {at.vector}"
    )
    properties = (
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = false, unique_indices = false"
    )
    count = scope.random.choice([1, 1, 1, 2])
    region = combiner(
        scope, scope.random.choice(["add", "multiply", "maximum", "minimum", "subtract"]), ["f32"] * count
    )
    inputs = [at.input, *(scope.alike(at.input) for _ in range(count - 1))]
    updates = [scope.of_type(at.slices) for _ in inputs]
    results = [(at.input.shape, "f32")] * count
    scope.op("scatter", [*inputs, at.indices, *updates], results, properties, [region])


def counting_gather(scope: Scope) -> None:
    """Appends a gather as take_along_axis is lowered: its indices count along an implicit batching dimension."""
    value = scope.pick(lambda one: len(one.shape) == 2)
    if value is None:
        return
    rows = value.shape[0]
    count = scope.random.choice([1, 2, 4])
    shape = (rows, count, 1)
    (row,) = scope.op("iota", [], [(shape, "i32")], f"iota_dimension = {scope.random.choice([0, 0, 0, 1])} : i64")
    column = scope.converted(scope.of_type(shape), "i32")
    (both,) = scope.op("concatenate", [row, column], [((rows, count, 2), "i32")], "dimension = 2 : i64")
    numbers = "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2"
    properties = (
        f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {array((1, 1))}, indices_are_sorted = false"
    )
    scope.op("gather", [value, both], [((rows, count), "f32")], properties)
