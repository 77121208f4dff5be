# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shards of a tensor: the box of the global tensor that each device holds.

A dimension of size n in k shards has shards of ceil(n / k) elements, so the last ones may be short or empty. Shapes,
starts and sizes are in elements; devices are given by id, and their coordinates are their places along the mesh axes.
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
    """A rectangular part of a tensor: its start and its size, per dimension."""

    start: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def stop(self) -> tuple[int, ...]:
        """The end of the box, one past the last index, per dimension."""
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
        """The index of this box in the global tensor."""
        return tuple(slice(start, stop) for start, stop in zip(self.start, self.stop, strict=True))

    @property
    def local_slices(self) -> tuple[slice, ...]:
        """The index of the elements other than padding in the local tensor, which has the size of a full shard."""
        return tuple(slice(0, size) for size in self.size)

    def contains(self, index: Sequence[int]) -> bool:
        """Returns whether the element at this global index is in the box."""
        return all(start <= i < stop for i, start, stop in zip(index, self.start, self.stop, strict=True))

    def intersection(self, other: Box) -> Box:
        """Returns the intersection of two boxes, with size 0 in the dimensions in which they do not overlap."""
        start = tuple(map(max, self.start, other.start))
        size = tuple(max(0, stop - begin) for begin, stop in zip(start, map(min, self.stop, other.stop), strict=True))
        return Box(start, size)


def device_coordinates(mesh: Mesh, device: int) -> tuple[int, ...]:
    """Returns the place of a device along each mesh axis, major to minor. Raises ValueError for an unknown device."""
    # Without ids the devices are numbered by their places, so no list of them is needed.
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
    """Returns the device at a place of the mesh, the inverse of `device_coordinates`."""
    position = 0
    for axis, coordinate in zip(mesh.axes, coordinates, strict=True):
        position = position * axis.size + coordinate
    return mesh.devices[position]


def axis_coordinate(axis: AxisRef, mesh: Mesh, coordinates: Sequence[int]) -> int:
    """Returns the place along an axis or sub-axis of the device at `coordinates`."""
    along_full = coordinates[mesh.axis_index(axis.name)]
    # The digits of the full coordinate to the right of a sub-axis form numbers below its post-size.
    post_size = mesh.axis_size(axis.name) // axis.next_pre_size(mesh)
    return along_full // post_size % axis.size(mesh)


def block_index(axes: Iterable[AxisRef], mesh: Mesh, coordinates: Sequence[int]) -> int:
    """Returns the index of the shard, of a dimension sharded along `axes`, of the device at `coordinates`."""
    index = 0
    for axis in axes:
        index = index * axis.size(mesh) + axis_coordinate(axis, mesh, coordinates)
    return index


def block_size(size: int, blocks: int) -> int:
    """Returns the size of a full shard of a dimension of `size` elements in `blocks` shards."""
    return -(-size // blocks)


def even_shape(
    shape: Sequence[int], sharding: TensorSharding, mesh: Mesh, dims: Iterable[int] | None = None
) -> list[int]:
    """Returns the shape rounded up to multiples of the numbers of shards, in all dimensions or only in `dims`."""
    even = list(shape)
    for dim in range(len(even)) if dims is None else dims:
        shards = sharding.dim_shardings[dim].sharded_size(mesh)
        even[dim] = block_size(even[dim], shards) * shards
    return even


def block_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int], blocks: Sequence[int]) -> Box:
    """Returns the box of the shard with the index `blocks`, per dimension."""
    start, sizes = [], []
    for size, dim, block in zip(shape, sharding.dim_shardings, blocks, strict=True):
        step = block_size(size, dim.sharded_size(mesh))
        begin = min(block * step, size)
        start.append(begin)
        sizes.append(min(step, size - begin))
    return Box(tuple(start), tuple(sizes))


def device_blocks(sharding: TensorSharding, mesh: Mesh, device: int) -> tuple[int, ...]:
    """Returns the index of the shard that the device holds, per dimension."""
    coordinates = device_coordinates(mesh, device)
    return tuple(block_index(dim.axes, mesh, coordinates) for dim in sharding.dim_shardings)


def device_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int], device: int) -> Box:
    """Returns the box of the global tensor of the given shape that the device holds.

    On a maximal mesh the tensor is on the only device. Raises ValueError if the mesh has no such device, or the
    ranks of the sharding and the shape differ.
    """
    blocks = device_blocks(sharding, mesh, device)
    if mesh.is_maximal:
        return Box((0,) * len(shape), tuple(shape))
    if len(shape) != sharding.rank:
        raise ValueError(f"a sharding of rank {sharding.rank} does not fit a tensor of rank {len(shape)}")
    return block_box(sharding, mesh, shape, blocks)


def unreduced_index(sharding: TensorSharding, mesh: Mesh, device: int) -> int:
    """Returns the index of the partial value that the device holds, 0 without unreduced axes.

    To make a tensor unreduced without computing anything, the devices of index 0 take the value, the others the
    neutral element of the reduction.
    """
    return block_index(sharding.unreduced_axes, mesh, device_coordinates(mesh, device))


def devices_by_box(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> dict[Box, tuple[int, ...]]:
    """Returns the devices that hold each box, in the order of the mesh, including empty boxes."""
    holders: defaultdict[Box, list[int]] = defaultdict(list)
    for device in mesh.devices:
        holders[device_box(sharding, mesh, shape, device)].append(device)
    return {box: tuple(devices) for box, devices in holders.items()}


def device_groups(axes: Sequence[AxisRef], mesh: Mesh) -> tuple[tuple[int, ...], ...]:
    """Returns the groups of devices that differ only along `axes`, which are the groups of a collective along them.

    Groups are in the order of the mesh. Devices in a group are in the order of `axes`, the first of which is the major.
    """
    return tuple(map(tuple, device_group_array(axes, mesh).tolist()))


def device_array(mesh: Mesh) -> npt.NDArray[np.int64]:
    """Returns the devices of a mesh as an array, made without a list of them if they have no explicit ids."""
    return np.array(mesh.device_ids, np.int64) if mesh.device_ids else np.arange(mesh.listed_size, dtype=np.int64)


def device_group_array(axes: Sequence[AxisRef], mesh: Mesh) -> npt.NDArray[np.int64]:
    """Returns the result of `device_groups` as an array with a row for each group."""
    # NumPy supports at most 64 dimensions, and axes of size one make no difference.
    parts = [part for part in split_mesh_axes(axes, mesh) if part.size(mesh) > 1]
    rest = [number for number, part in enumerate(parts) if not any(axis.overlaps(part) for axis in axes)]
    members = [number for axis in axes for number, part in enumerate(parts) if axis.contains(part)]
    devices = device_array(mesh).reshape([part.size(mesh) for part in parts])
    return devices.transpose(rest + members).reshape(-1, prod(devices.shape[number] for number in members))
