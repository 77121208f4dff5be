# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which box of the global tensor a device holds.

A dimension of size n in k blocks has blocks of ceil(n / k) elements, so the last ones may be short or empty. Shapes,
starts and sizes are in elements; a device is named by its id, and its coordinates are its place along the mesh axes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from mlir_shard.deferred import numpy as np
from mlir_shard.sharding.axes import AxisRef, split_mesh_axes
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import TensorSharding

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangular part of a tensor: where it starts and its size, per dimension."""

    start: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def stop(self) -> tuple[int, ...]:
        """One past the last index, per dimension."""
        return tuple(start + size for start, size in zip(self.start, self.size, strict=True))

    @property
    def num_elements(self) -> int:
        """The number of elements, 1 for a scalar."""
        return prod(self.size)

    @property
    def is_empty(self) -> bool:
        """Whether a dimension has size 0."""
        return 0 in self.size

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index that takes this box out of the global tensor."""
        return tuple(slice(start, stop) for start, stop in zip(self.start, self.stop, strict=True))

    @property
    def local_slices(self) -> tuple[slice, ...]:
        """The index that takes what is not padding out of the local tensor, which has the size of a full block."""
        return tuple(slice(0, size) for size in self.size)

    def contains(self, index: Sequence[int]) -> bool:
        """Whether the element at this global index is in the box."""
        return all(start <= i < stop for i, start, stop in zip(index, self.start, self.stop, strict=True))

    def intersection(self, other: Box) -> Box:
        """What both boxes hold, with size 0 in the dimensions where that is nothing."""
        start = tuple(map(max, self.start, other.start))
        size = tuple(max(0, stop - begin) for begin, stop in zip(start, map(min, self.stop, other.stop), strict=True))
        return Box(start, size)


def device_coordinates(mesh: Mesh, device: int) -> tuple[int, ...]:
    """The place of a device along each mesh axis, major to minor; ValueError where the mesh has no such device."""
    # Without ids the devices are numbered by their places, which need no list of them.
    known = mesh.device_ids or range(mesh.total_size)
    if device not in known:
        raise ValueError(f"device {device} is not in the mesh {mesh}")
    position = known.index(device)
    coordinates: list[int] = []
    for axis in reversed(mesh.axes):
        position, coordinate = divmod(position, axis.size)
        coordinates.append(coordinate)
    return tuple(reversed(coordinates))


def device_at(mesh: Mesh, coordinates: Sequence[int]) -> int:
    """The device at a place of the mesh, the inverse of `device_coordinates`."""
    position = 0
    for axis, coordinate in zip(mesh.axes, coordinates, strict=True):
        position = position * axis.size + coordinate
    return mesh.devices[position]


def axis_coordinate(axis: AxisRef, mesh: Mesh, coordinates: Sequence[int]) -> int:
    """The place along an axis or sub-axis of the device at `coordinates`."""
    along_full = coordinates[mesh.axis_index(axis.name)]
    # The digits of the full coordinate to the right of a sub-axis make numbers below its post-size.
    post_size = mesh.axis_size(axis.name) // axis.next_pre_size(mesh)
    return along_full // post_size % axis.size(mesh)


def block_index(axes: Iterable[AxisRef], mesh: Mesh, coordinates: Sequence[int]) -> int:
    """Which block of a dimension sharded along `axes` belongs to the device at `coordinates`."""
    index = 0
    for axis in axes:
        index = index * axis.size(mesh) + axis_coordinate(axis, mesh, coordinates)
    return index


def block_size(size: int, blocks: int) -> int:
    """The elements of a full block where a dimension of `size` elements is divided in `blocks`."""
    return -(-size // blocks)


def even_shape(
    shape: Sequence[int], sharding: TensorSharding, mesh: Mesh, dims: Iterable[int] | None = None
) -> list[int]:
    """The least sizes of even shards that a tensor fits in; only `dims` change, by default all."""
    even = list(shape)
    for dim in range(len(even)) if dims is None else dims:
        shards = sharding.dim_shardings[dim].sharded_size(mesh)
        even[dim] = block_size(even[dim], shards) * shards
    return even


def block_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int], blocks: Sequence[int]) -> Box:
    """The box of the block with this index in each dimension."""
    start, sizes = [], []
    for size, dim, block in zip(shape, sharding.dim_shardings, blocks, strict=True):
        step = block_size(size, dim.sharded_size(mesh))
        begin = min(block * step, size)
        start.append(begin)
        sizes.append(min(step, size - begin))
    return Box(tuple(start), tuple(sizes))


def device_blocks(sharding: TensorSharding, mesh: Mesh, device: int) -> tuple[int, ...]:
    """The index of the block that the device holds, per dimension."""
    coordinates = device_coordinates(mesh, device)
    return tuple(block_index(dim.axes, mesh, coordinates) for dim in sharding.dim_shardings)


def device_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int], device: int) -> Box:
    """The box of the global tensor of this shape that the device holds.

    On a maximal mesh its one device holds everything. ValueError where the mesh has no such device or the sharding
    another rank than the shape.
    """
    blocks = device_blocks(sharding, mesh, device)
    if mesh.is_maximal:
        return Box((0,) * len(shape), tuple(shape))
    if len(shape) != sharding.rank:
        raise ValueError(f"a sharding of rank {sharding.rank} does not fit a tensor of rank {len(shape)}")
    return block_box(sharding, mesh, shape, blocks)


def unreduced_index(sharding: TensorSharding, mesh: Mesh, device: int) -> int:
    """Which of the partial values the device holds, 0 where there are none.

    To make a tensor unreduced without computing anything, the devices of index 0 take the value, the others the
    neutral element of the reduction.
    """
    return block_index(sharding.unreduced_axes, mesh, device_coordinates(mesh, device))


def devices_by_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> dict[Box, tuple[int, ...]]:
    """The devices that hold each box, in the order of the mesh; empty boxes are among them."""
    holders: defaultdict[Box, list[int]] = defaultdict(list)
    for device in mesh.devices:
        holders[device_box(sharding, mesh, shape, device)].append(device)
    return {box: tuple(devices) for box, devices in holders.items()}


def device_groups(axes: Sequence[AxisRef], mesh: Mesh) -> tuple[tuple[int, ...], ...]:
    """The groups of devices that differ only along `axes`, as a collective along them has them.

    Groups come in the order of the mesh, and in a group devices are in the order of `axes`, the first the major one.
    """
    return tuple(map(tuple, device_group_array(axes, mesh).tolist()))


def device_array(mesh: Mesh) -> npt.NDArray[np.int64]:
    """The devices of a mesh as an array, which counts them natively where they are in order."""
    return np.array(mesh.device_ids, np.int64) if mesh.device_ids else np.arange(mesh.listed_size, dtype=np.int64)


def device_group_array(axes: Sequence[AxisRef], mesh: Mesh) -> npt.NDArray[np.int64]:
    """The result of `device_groups` as an array with a row for each group."""
    # NumPy has arrays of at most 64 dimensions, and axes of one device make no difference.
    parts = [part for part in split_mesh_axes(axes, mesh) if part.size(mesh) > 1]
    rest = [number for number, part in enumerate(parts) if not any(axis.overlaps(part) for axis in axes)]
    members = [number for axis in axes for number, part in enumerate(parts) if axis.contains(part)]
    devices = device_array(mesh).reshape([part.size(mesh) for part in parts])
    return devices.transpose(rest + members).reshape(-1, prod(devices.shape[number] for number in members))
