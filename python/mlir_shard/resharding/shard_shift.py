# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that go to neighbours along the axes of a dimension, or to the device opposite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axis_lists import total_size


@dataclass(frozen=True, slots=True)
class Digit:
    """The coordinate of a device along an axis or sub-axis: position in the mesh // `stride` % `size`."""

    stride: int
    size: int

    @staticmethod
    def of(axis: AxisRef, mesh: Mesh) -> Digit:
        """The digit of an axis of the mesh."""
        minor = prod(one.size for one in mesh.axes[mesh.axis_index(axis.name) + 1 :])
        size = axis.size(mesh)
        return Digit(minor * (mesh.axis_size(axis.name) // (axis.pre_size * size)), size)

    def at(self, position: int) -> int:
        """The coordinate of the device at a position in the mesh."""
        return position // self.stride % self.size


def shard_index(axes: Sequence[AxisRef], mesh: Mesh, position: int) -> int:
    """The number of the shard, along a dimension sharded along `axes`, of the device at a position in the mesh."""
    index = 0
    for axis in axes:
        digit = Digit.of(axis, mesh)
        index = index * digit.size + digit.at(position)
    return index


def shift_pairs(axes: Sequence[AxisRef], mesh: Mesh, offset: int) -> tuple[tuple[int, int], ...]:
    """The devices (source, target) where shard i of a dimension sharded along `axes` goes to shard i + `offset`.

    What would leave the dimension is not sent. In the order of the sources in the mesh.
    """
    digits = [Digit.of(axis, mesh) for axis in axes]
    devices = mesh.devices
    pairs = []
    for position, device in enumerate(devices):
        index = shard_index(axes, mesh, position) + offset
        if not 0 <= index < total_size(axes, mesh):
            continue
        target = position
        for digit in reversed(digits):
            target += (index % digit.size - digit.at(position)) * digit.stride
            index //= digit.size
        pairs.append((device, devices[target]))
    return tuple(pairs)


def with_reversed_axes(mesh: Mesh, axes: Sequence[AxisRef]) -> Mesh:
    """The mesh with its devices in the opposite order along `axes`."""
    digits = [Digit.of(axis, mesh) for axis in axes]
    devices = mesh.devices
    mirrored = (
        position + sum((digit.size - 1 - 2 * digit.at(position)) * digit.stride for digit in digits)
        for position in range(len(devices))
    )
    ids = tuple(devices[position] for position in mirrored)
    return replace(mesh, device_ids=() if ids == tuple(range(len(ids))) else ids)
