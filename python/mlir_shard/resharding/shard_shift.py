# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that go to neighbours along the axes of a dimension, or to the device opposite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axes import total_size
from mlir_shard.sharding.layout import device_array


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


def shift_pairs(axes: Sequence[AxisRef], mesh: Mesh, offset: int) -> tuple[tuple[int, int], ...]:
    """The devices (source, target) where shard i of a dimension sharded along `axes` goes to shard i + `offset`.

    What would leave the dimension is not sent. In the order of the sources in the mesh.
    """
    devices = device_array(mesh)
    positions = np.arange(len(devices))
    index = np.full_like(positions, 0)
    for axis in axes:
        digit = Digit.of(axis, mesh)
        index = index * digit.size + positions // digit.stride % digit.size
    index += offset
    is_sent = (index >= 0) & (index < total_size(axes, mesh))
    positions, index = positions[is_sent], index[is_sent]
    targets = positions
    for axis in reversed(axes):
        digit = Digit.of(axis, mesh)
        targets = targets + (index % digit.size - positions // digit.stride % digit.size) * digit.stride
        index = index // digit.size
    return tuple(zip(devices[positions].tolist(), devices[targets].tolist(), strict=True))


def with_reversed_axes(mesh: Mesh, axes: Sequence[AxisRef]) -> Mesh:
    """The mesh with its devices in the opposite order along `axes`."""
    devices = device_array(mesh)
    mirrored = positions = np.arange(len(devices))
    for axis in axes:
        digit = Digit.of(axis, mesh)
        mirrored = mirrored + (digit.size - 1 - 2 * (positions // digit.stride % digit.size)) * digit.stride
    ids = tuple(devices[mirrored].tolist())
    return replace(mesh, device_ids=() if ids == tuple(range(len(ids))) else ids)
