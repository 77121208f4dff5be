# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives: a mesh axis in an index becomes a digit of the tensor, or the other way round.

Groups of devices, and pairs of a sender and a receiver, are read as mesh axes once for each distinct attribute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.reading import Reading, numbers_of, reads, reduction_kind
from mlir_shard.check.ops.tensors import FAR, Tensors, Value
from mlir_shard.deferred import numpy as np

_KINDS = {
    "sum": "add",
    "max": "maximum",
    "min": "minimum",
    "product": "multiply",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}


# Of shard.


def _device_number(reading: Reading) -> Entry:
    """Returns the number of the device, with the last mesh axis as the minor one."""
    mesh = reading.tensors.mesh
    return 0, mesh.along(range(len(mesh.axes)), 1)


def _axes(op: Any, name: str = "grid_axes") -> list[int]:
    return numbers_of(op, name)


@reads("shard.all_gather")
def _shard_gather(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.gathered(values[0], op.attributes["gather_axis"].value, _axes(op))]


@reads("shard.all_slice")
def _shard_slice(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.scattered(values[0], op.attributes["slice_axis"].value, _axes(op), "all_slice")]


@reads("shard.all_reduce")
def _shard_reduce(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.reduced(_kind(op), values[0], (), _axes(op))]


@reads("shard.reduce_scatter")
def _shard_scatter(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    value = reading.tensors.reduced(_kind(op), values[0], (), _axes(op))
    return [reading.tensors.scattered(value, op.attributes["scatter_dim"].value, _axes(op), "reduce_scatter")]


@reads("shard.all_to_all")
def _shard_exchange(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    split, concat = (op.attributes[f"{name}_axis"].value for name in ("split", "concat"))
    return [reading.tensors.exchanged(values[0], split, concat, _axes(op))]


def _kind(op: Any) -> str:
    if "reduction" not in op.attributes:
        return "add"
    found = re.search(r"partial (\w+)", str(op.attributes["reduction"]))
    if found is None or found[1] not in _KINDS:
        raise NotCertified("an unknown reduction", "all_reduce")
    return _KINDS[found[1]]


@reads("shard.process_multi_index")
def _shard_index(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    axes = _axes(op, "axes") or range(len(reading.tensors.mesh.axes))
    return [reading.tensors.index("index", (0, ((1, -1 - axis),)), ()) for axis in axes]


@reads("shard.process_linear_index")
def _shard_linear(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.tensors.index("index", _device_number(reading), ())]


@reads("shard.send")
def send(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Records the value that is sent, the destinations and the sending devices."""
    reading.sent.append((values[0], _others(reading, op, "destination", values[1:]), reading.active))
    return [values[0]]


@reads("shard.recv")
def _receive(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns the values that devices received; values on other devices are unknown."""
    if not reading.sent:
        raise NotCertified("a receive without a send before it", "send and recv")
    value, targets, sends = reading.sent.pop(0)
    sources, receives = _others(reading, op, "source", values[1:]), reading.active
    own = np.arange(len(sources))
    if (targets[sources] != own)[receives].any() or not sends[sources][receives].all():
        raise NotCertified("the sender sends to another device or does not send", "send and recv")
    if (sources[targets] != own)[sends].any() or not receives[targets][sends].all():
        raise NotCertified("a value is sent but not received", "send and recv")
    return [reading.tensors.received(value, np.where(receives, sources, -1))]


def _others(reading: Reading, op: Any, name: str, values: Sequence[Value]) -> Any:
    """Returns the number of the other device, for each device."""
    mesh, left = reading.tensors.mesh.axes, list(values)
    positions = list(reading.tensors.mesh.places())
    for axis, number in zip(_axes(op), numbers_of(op, name), strict=True):
        positions[axis] = np.full(prod(mesh), number)
        if number < 0:
            value = left.pop(0)
            entry = reading.tensors.entry(value)
            if entry is None:
                raise NotCertified("an unknown position of a device", "send and recv")
            positions[axis] = reading.tensors.mesh.by_device(entry)
        if (positions[axis] < 0).any() or (positions[axis] >= mesh[axis]).any():
            raise NotCertified("a position beyond the mesh", "send and recv")
    return np.ravel_multi_index(positions, mesh)


@reads("shard.shift")
def _shift(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns the value of the device `offset` before along an axis, which is unknown at the border."""
    axis, offset = op.attributes["shift_axis"].value, op.attributes["offset"].value
    mesh = reading.tensors.mesh.axes
    return [reading.tensors.received(values[0], _neighbours(mesh, [axis], -offset, rotates="rotate" in op.attributes))]


@reads("shard.update_halo")
def _update_halo(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    """Returns the operand with halos filled by neighbours along the axes of a dimension; at the ends they are kept."""
    tensors, value = reading.tensors, values[0]
    sizes = numbers_of(op, "static_halo_sizes")
    split = [
        [int(axis) for axis in re.findall(r"\d+", dim)]
        for dim in re.findall(r"\[([\d, ]*)\]", str(op.attributes["split_axes"]))
    ]
    if sum(map(bool, split)) != 1 or len(sizes) != 2 or min(sizes) < 0:
        raise NotCertified("halos of several dimensions", "update_halo")
    dim = next(at for at, axes in enumerate(split) if axes)
    return [with_halos(tensors, value, dim, split[dim], sizes, reading.element)]


def with_halos(
    tensors: Tensors, value: Value, dim: int, axes: Sequence[int], sizes: Sequence[int], element: str
) -> Any:
    """Returns a value, as tiles, with ends along a dimension filled by neighbours, or kept without a neighbour."""
    below, above = sizes
    size = value.shape[dim] - below - above
    if max(sizes) > size:
        raise NotCertified("a halo that reaches beyond the neighbours", "update_halo")
    middle = tensors.part_of(value, dim, below, size)
    found = tensors.zero(element, value.shape)
    for place, count in ((0, below), (below + size, above), (below, size)):
        if count:
            part = middle if place == below and count == size else tensors.part_of(value, dim, place, count)
            found = tensors.tiled(found, part, [(place if one == dim else 0, ()) for one in range(value.rank)])
    for offset, count, start, place in ((-1, below, size - below, 0), (1, above, 0, below + size)):
        if count:
            senders = _neighbours(tensors.mesh.axes, axes, offset)
            sent = tensors.received(tensors.sliced(middle, dim, (start, ()), count), senders)
            places = np.zeros((value.rank, len(senders)), np.int64)
            places[dim] = np.where(senders >= 0, place, -FAR)
            found = tensors.assembled(found, sent, places)
    return found


def _neighbours(mesh: Sequence[int], axes: Sequence[int], offset: int, *, rotates: bool = False) -> Any:
    """Returns the device `offset` further along axes, -1 beyond the ends; counts on from the other end if `rotates`."""
    places = np.indices(mesh).reshape(len(mesh), -1)
    sizes = [mesh[axis] for axis in axes]
    position = np.ravel_multi_index([places[axis] for axis in axes], sizes) + offset
    position = position % prod(sizes) if rotates else position
    inside = (position >= 0) & (position < prod(sizes))
    moved = np.unravel_index(np.where(inside, position, 0), sizes)
    for axis, at in zip(axes, moved, strict=True):
        places[axis] = at
    return np.where(inside, np.ravel_multi_index(list(places), mesh), -1)


# Of StableHLO.


def _checked(reading: Reading, op: Any, *, global_ids: bool = True) -> None:
    """Raises NotCertified unless an op names devices by their numbers among all partitions of one replica."""
    handle = str(op.attributes["channel_handle"]) if "channel_handle" in op.attributes else ""
    found = re.search(r"handle = (-?\d+)", handle)
    if found is None or int(found[1]) <= 0:
        raise NotCertified("a collective between replicas", "groups of devices")
    if global_ids and "use_global_device_ids" not in op.attributes:
        raise NotCertified("a collective between replicas and partitions", "groups of devices")


def _groups(reading: Reading, op: Any, *, ordered: bool) -> list[int]:
    attribute = op.attributes["replica_groups"]
    known = reading.groups.get((attribute, ordered))
    if known is None:
        known = reading.groups[attribute, ordered] = _axes_of_groups(reading, np.array(attribute), ordered)
    return known


def _axes_of_groups(reading: Reading, groups: Any, ordered: bool) -> list[int]:
    """Returns the mesh axes, major to minor, that the groups of devices span."""
    mesh = reading.tensors.mesh.axes
    groups = reading.position_of[groups]
    if not ordered:
        groups = np.sort(groups, axis=1)
    numbers = np.arange(prod(mesh)).reshape(mesh)
    first, axes, left = groups[0], list[int](), groups.shape[1]
    step = 1
    while left > 1:
        distance = int(first[step] - first[0])
        axis = next((one for one, size in enumerate(mesh) if size > 1 and prod(mesh[one + 1 :]) == distance), None)
        if axis is None or left % mesh[axis] or axis in axes:
            raise NotCertified("groups of devices are not along mesh axes", "groups of devices")
        axes.insert(0, axis)
        left //= mesh[axis]
        step *= mesh[axis]
    others = [one for one in range(len(mesh)) if one not in axes]
    expected = numbers.transpose([*others, *axes]).reshape(-1, groups.shape[1])
    if expected.shape != groups.shape or not np.array_equal(
        expected[np.argsort(expected[:, 0])], groups[np.argsort(groups[:, 0])]
    ):
        raise NotCertified("groups of devices are not along mesh axes", "groups of devices")
    return axes


@reads("stablehlo.partition_id")
def _partition_id(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    reading.check_order()
    return [reading.tensors.index("ui32", _device_number(reading), ())]


@reads("stablehlo.all_gather")
def _gather(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _checked(reading, op)
    axes = _groups(reading, op, ordered=True)
    return [reading.tensors.gathered(value, op.attributes["all_gather_dim"].value, axes) for value in values]


@reads("stablehlo.all_reduce")
def _all_reduce(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _checked(reading, op)
    axes = _groups(reading, op, ordered=False)
    return [reading.tensors.reduced(_body_kind(op), value, (), axes) for value in values]


@reads("stablehlo.reduce_scatter")
def _reduce_scatter(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _checked(reading, op)
    axes, dim = _groups(reading, op, ordered=True), op.attributes["scatter_dimension"].value
    return [
        reading.tensors.scattered(
            reading.tensors.reduced(_body_kind(op), values[0], (), axes), dim, axes, "reduce_scatter"
        )
    ]


def _body_kind(op: Any) -> str:
    kind = reduction_kind(op)
    if kind is None:
        raise NotCertified("a reduction by an unknown body", "all_reduce")
    return kind


@reads("stablehlo.all_to_all")
def _all_to_all(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _checked(reading, op, global_ids=False)
    axes = _groups(reading, op, ordered=True)
    split, concat = (op.attributes[f"{name}_dimension"].value for name in ("split", "concat"))
    return [reading.tensors.exchanged(value, split, concat, axes) for value in values]


@reads("stablehlo.collective_permute")
def _permute(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    _checked(reading, op, global_ids=False)
    attribute = op.attributes["source_target_pairs"]
    known = reading.groups.get(attribute)
    if known is None:
        pairs = reading.position_of[np.array(attribute)]
        known = np.full(prod(reading.tensors.mesh.axes), -1)
        known[pairs[:, 1]] = pairs[:, 0]
        if len(set(pairs[:, 1].tolist())) != len(pairs):
            raise NotCertified("a device receives twice", "collective_permute")
        reading.groups[attribute] = known
    return [reading.tensors.permuted(values[0], known, reading.element)]
