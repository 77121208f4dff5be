# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strides between the devices of a mesh along its axes, which map axes of several meshes to axes of one grid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul

from mlir_shard.sharding import AxisRef, Mesh


@dataclass(frozen=True, slots=True)
class Run:
    """A part of an axis with `size` devices, along which the numbers of neighbours differ by `stride`.

    Neighbours in the run are `unit` apart along the axis, the first devices of two successive parts `unit * size`.
    """

    unit: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class StrideRange:
    """The numbers of the devices of a run, or of a part of one: multiples of `stride` below `end`."""

    stride: int
    end: int


def in_order(mesh: Mesh) -> Mesh:
    """Returns the mesh of the same axes with its devices numbered in order."""
    return Mesh(mesh.axes) if mesh.device_ids else mesh


def has_strides(mesh: Mesh) -> bool:
    """Returns whether the number of a device is the sum of one term per axis, each rising with the coordinate on it.

    The axes of a grid in order are then those of the mesh, or parts of them, in another order.
    """
    return mesh.devices[0] == 0 and _runs(mesh) is not None if mesh.device_ids else True


@lru_cache(maxsize=256)
def _runs(mesh: Mesh) -> tuple[tuple[Run, ...], ...] | None:
    """Returns the runs of each axis, major to minor; None if the mesh has no strides."""
    if not mesh.device_ids:
        strides = accumulate((axis.size for axis in reversed(mesh.axes)), mul, initial=1)
        sizes_and_strides = zip(reversed(mesh.axes), strides, strict=False)
        in_order = [(Run(1, axis.size, stride),) if axis.size > 1 else () for axis, stride in sizes_and_strides]
        return tuple(reversed(in_order))
    devices = mesh.devices
    minor = len(devices)
    found = []
    ids = [devices[0]]
    for axis in mesh.axes:
        minor //= axis.size
        offsets = [devices[position * minor] - devices[0] for position in range(axis.size)]
        found.append(_runs_of(offsets))
        ids = [first + offset for first in ids for offset in offsets]
    # A negative stride would reverse the order of the devices along a grid axis; 0 marks offsets without runs.
    is_rising = all(run.stride > 0 for runs in found for run in runs)
    return tuple(found) if is_rising and tuple(ids) == devices else None


def cuts_by(mesh: Mesh, axes: Iterable[AxisRef], devices: int) -> list[int] | None:
    """Returns the cuts of the device numbers at axes; None if the axes fit no grid of this number of devices."""
    if _runs(mesh) is None:
        return None
    try:
        ranges = [one for axis in axes for one in stride_ranges(axis, mesh)]
    except ValueError:
        return None
    first = mesh.device_ids[0] if mesh.device_ids else 0
    # The first device must be at position 0 of every range, so that sums of coordinates have no carry.
    if any(devices % one.end or first % one.end // one.stride for one in ranges):
        return None
    return [cut for one in ranges for cut in (one.stride, one.end)]


def _runs_of(offsets: list[int]) -> tuple[Run, ...]:
    """Returns the longest runs, built from the minor-most device on; if none exist, one run of stride 0."""
    found: list[Run] = []
    unit = 1
    while len(offsets) > 1:
        stride = offsets[1]
        size = next((at for at, offset in enumerate(offsets) if offset != at * stride), len(offsets))
        while len(offsets) % size:
            size -= 1
        if size == 1:
            return (Run(unit, len(offsets), 0),)
        found.append(Run(unit, size, stride))
        offsets = offsets[::size]
        unit *= size
    return tuple(reversed(found))


def stride_ranges(axis: AxisRef, mesh: Mesh) -> tuple[StrideRange, ...]:
    """Returns the ranges of the devices along an axis or sub-axis of a mesh with strides, major to minor.

    Raises ValueError if the axis ends within a run that it does not divide.
    """
    runs = _runs(mesh)
    assert runs is not None, mesh
    index = mesh.axis_index(axis.name)
    size = axis.size(mesh)
    first = mesh.axes[index].size // (axis.pre_size * size)
    found = []
    for run in runs[index]:
        low, high = max(first, run.unit), min(first * size, run.unit * run.size)
        if low >= high:
            continue
        if low % run.unit or high % run.unit:
            raise ValueError(f"{axis} of mesh {mesh} splits devices that are numbered with stride {run.stride}")
        found.append(StrideRange(run.stride * (low // run.unit), run.stride * (high // run.unit)))
    return tuple(found)
