# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of StableHLO at computed positions: gathers, scatters and slices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.reading import Reading, numbers_of, reads, reduction_kind
from mlir_shard.check.ops.structured import looked_up_at
from mlir_shard.check.ops.tensors import Value


@reads("stablehlo.dynamic_slice")
def _dynamic_slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value, starts = values[0], values[1:]
    sizes = reading.type_of(op.results[0].type)[0]
    moving = [dim for dim, size in enumerate(sizes) if size != value.shape[dim]]
    if all(reading.tensors.entry(starts[dim]) is not None for dim in moving):
        for dim in moving:
            start = clamped(reading, starts[dim], value.shape[dim] - sizes[dim])
            value = reading.tensors.sliced(value, dim, start, sizes[dim], 1, "slice by device")
        return [reading.tensors.looked_up(value)]
    labels = [f"d{dim}" for dim in range(len(sizes))]
    results = [f"o{dim}" if dim in moving else label for dim, label in enumerate(labels)]
    element = reading.type_of(op.operands[1].type)[1]
    found = {dim: (starts[dim], (), sizes[dim]) for dim in moving}
    return [looked_up_at(reading.tensors, value, labels, found, results, element)]


def clamped(reading: Reading, start: Value, last: int) -> Entry:
    """Returns the start of a slice on each device, clamped into bounds."""
    if not last:
        return 0, ()
    entry = reading.tensors.entry(start)
    if entry is None:
        raise NotCertified("an unknown start", "slice by device")
    if not entry[1]:
        return max(0, min(entry[0], last)), ()
    entries = reading.tensors.mesh.by_device(entry)
    return (
        entry
        if entries.min() >= 0 and entries.max() <= last
        else reading.tensors.entry_of_devices(entries.clip(0, last))
    )


@reads("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value, update, starts = values[0], values[1], values[2:]
    moving = [dim for dim, size in enumerate(value.shape) if size != update.shape[dim]]
    if not moving:
        return [update]
    room = [size - part for size, part in zip(value.shape, update.shape, strict=True)]
    if all(reading.tensors.entry(starts[dim]) is not None for dim in moving):
        return [
            inserted(
                reading, value, update, [clamped(reading, one, most) for one, most in zip(starts, room, strict=True)]
            )
        ]
    labels = [f"d{dim}" for dim in range(value.rank)]
    updated = [f"u{dim}" if dim in moving else label for dim, label in enumerate(labels)]
    operands: list[tuple[Value, Sequence[str]]] = [(value, labels), (update, updated)]
    places = list[tuple[Entry, Sequence[tuple[int, str]]]]()
    for dim in moving:
        operands.append(
            (reading.tensors.clamped(starts[dim], 0, room[dim], reading.type_of(op.operands[2].type)[1]), ())
        )
        places.append(((0, ()), ((1, labels[dim]), (-1, updated[dim]))))
    return [reading.tensors.opaque(("update",), operands, labels, (), places=places)]


def inserted(reading: Reading, into: Value, piece: Value, starts: Sequence[Entry]) -> Value:
    """Returns a tensor with a piece at a place of each device; at a uniform place the two are concatenated."""
    tensors = reading.tensors
    piece = tensors.whole(piece)
    if any(terms for _, terms in starts) or tensors.is_tiles(into, piece):
        return tensors.tiled(into, piece, starts)
    sizes = piece.shape
    for dim, (start, _) in enumerate(starts):
        # The surroundings along this dimension, at the positions of the piece along the later ones.
        around, whole = into, into.shape[dim]
        for other in range(dim + 1, len(sizes)):
            around = tensors.sliced(around, other, starts[other], sizes[other])
        parts = [piece]
        if start:
            parts.insert(0, tensors.sliced(around, dim, (0, ()), start))
        if start + sizes[dim] < whole:
            parts.append(tensors.sliced(around, dim, (start + sizes[dim], ()), whole - start - sizes[dim]))
        piece = tensors.joined(parts, dim)
    return piece


def dims_in(text: str, name: str) -> list[int]:
    found = re.search(rf"{name} = \[([\d, ]*)\]", text)
    return [int(one) for one in re.findall(r"\d+", found[1])] if found else []


def _dim(text: str, name: str) -> int:
    found = re.search(rf"{name} = (\d+)", text)
    return int(found[1]) if found else 0


def _component(reading: Reading, indices: Value, vector: int, at: int) -> Value:
    """Returns one number of each vector of indices."""
    if vector == indices.rank:
        return indices
    part = reading.tensors.sliced(indices, vector, (at, ()), 1)
    return reading.tensors.reshaped(part, [*part.shape[:vector], *part.shape[vector + 1 :]])


def _labels(
    operand: Value, indices: Value, batching: Sequence[int], of_indices: Sequence[int]
) -> tuple[list[str], list[str]]:
    """Returns the labels of the dimensions of indices and of the operand, which share those of batch dimensions."""
    of_start = [f"s{dim}" for dim in range(indices.rank)]
    labels = [f"d{dim}" for dim in range(operand.rank)]
    for dim, other in zip(batching, of_indices, strict=True):
        labels[dim] = of_start[other]
    return of_start, labels


@reads("stablehlo.gather")
def _gather(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    text, (operand, indices) = str(op.attributes["dimension_numbers"]), values
    shape, sizes = reading.type_of(op.results[0].type)[0], numbers_of(op, "slice_sizes")
    offsets, collapsed = dims_in(text, "offset_dims"), dims_in(text, "collapsed_slice_dims")
    batching, of_indices = dims_in(text, "operand_batching_dims"), dims_in(text, "start_indices_batching_dims")
    vector = _dim(text, "index_vector_dim")
    of_start, labels = _labels(operand, indices, batching, of_indices)
    core, made, inner = [label for dim, label in enumerate(of_start) if dim == vector], dict[str, int](), list[str]()
    for dim, size in enumerate(sizes):
        if dim in batching:
            continue
        if size != operand.shape[dim] or dim in collapsed:
            core.append(labels[dim])
            if dim not in collapsed:
                made[f"o{dim}"] = size
                inner.append(f"o{dim}")
        else:
            inner.append(labels[dim])
    outer = [label for dim, label in enumerate(of_start) if dim != vector]
    of_index, targets = list(outer), dims_in(text, "start_index_map")
    results = [inner[offsets.index(dim)] if dim in offsets else outer.pop(0) for dim in range(len(shape))]
    starts = {
        dim: (_component(reading, indices, vector, at), of_index, sizes[dim])
        for at, dim in enumerate(targets)
        if labels[dim] in core
    }
    if starts and {labels[dim] for dim in starts} == set(core) - {f"s{vector}"}:
        element = reading.type_of(op.operands[1].type)[1]
        return [looked_up_at(reading.tensors, operand, labels, starts, results, element)]
    name = ("gather", op.attributes["dimension_numbers"], tuple(made.items()))
    return [reading.tensors.opaque(name, [(operand, labels), (indices, of_start)], results, core, made)]


@reads("stablehlo.scatter")
def _scatter(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    text, count = str(op.attributes["scatter_dimension_numbers"]), len(values) // 2
    operand, indices, update = values[0], values[count], values[count + 1]
    windows, inserted = dims_in(text, "update_window_dims"), dims_in(text, "inserted_window_dims")
    batching, of_indices = dims_in(text, "input_batching_dims"), dims_in(text, "scatter_indices_batching_dims")
    vector = _dim(text, "index_vector_dim")
    of_start, labels = _labels(operand, indices, batching, of_indices)
    outer = [label for dim, label in enumerate(of_start) if dim != vector]
    inner = [dim for dim in range(operand.rank) if dim not in inserted and dim not in batching]
    of_update = [""] * update.rank
    core, made, results = (
        [label for dim, label in enumerate(of_start) if dim not in of_indices],
        dict[str, int](),
        list(labels),
    )
    for dim, target in zip(windows, inner, strict=True):
        if update.shape[dim] == operand.shape[target]:
            of_update[dim] = labels[target]
        else:
            of_update[dim] = f"u{dim}"
            core.append(f"u{dim}")
    for dim, label in enumerate(of_update):
        if not label:
            of_update[dim] = outer.pop(0)
    for dim, label in enumerate(labels):
        if label not in of_update and dim not in batching:
            core.append(label)
            made[f"o{dim}"] = operand.shape[dim]
            results[dim] = f"o{dim}"
    targets = dims_in(text, "scatter_dims_to_operand_dims")
    single = {label for dim, label in enumerate(of_start) if dim not in of_indices} | {labels[dim] for dim in targets}
    if targets and set(core) == single and set(targets) <= set(inserted):
        return _placed(reading, op, values, labels, of_start, of_update, vector, targets)
    name = ("scatter", op.attributes["scatter_dimension_numbers"], reading.region_key(op))
    operands = [
        (value, labels if at < count else of_start if at == count else of_update) for at, value in enumerate(values)
    ]
    return [reading.tensors.opaque((*name, at), operands, results, core, made) for at in range(count)]


def _placed(
    reading: Reading,
    op: Any,
    values: list[Value],
    labels: Sequence[str],
    of_start: Sequence[str],
    of_update: Sequence[str],
    vector: int,
    targets: Sequence[int],
) -> list[Value]:
    """Returns a scatter of elements: each position is combined with the updates whose index equals the position."""
    tensors, count = reading.tensors, len(values) // 2
    of_index = [label for dim, label in enumerate(of_start) if dim != vector]
    places, starts = list[tuple[Entry, Sequence[tuple[int, str]]]](), list[tuple[Value, Sequence[str]]]()
    for at, dim in enumerate(targets):
        start, shift = tensors.without_shift(_component(reading, values[count], vector, at))
        starts.append((start, of_index))
        places.append((shift, ((1, labels[dim]),)))
    if count == 1 and reduction_kind(op) == "add":
        operands: list[tuple[Value, Sequence[str]]] = [(values[2], of_update), *starts]
        others = {label: size for label, size in zip(labels, values[0].shape, strict=True) if label not in of_update}
        placed = tensors.opaque(("lookup",), operands, labels, (), None, "add", places=places, others=others)
        return [tensors.pointwise(("stablehlo.add", reading.type_of(op.results[0].type)[1]), [values[0], placed])]
    operands = [(value, labels) for value in values[:count]] + [(value, of_update) for value in values[count + 1 :]]
    name = ("scatter", reading.region_key(op))
    return [tensors.opaque((*name, at), [*operands, *starts], labels, (), places=places) for at in range(count)]
