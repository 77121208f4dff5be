# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes: the named, shaped sets of devices that shardings refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

MOST_DEVICES = 1 << 18
"""The most devices of a mesh that are listed individually, for replica groups, tables and permutations."""


class TooManyDevicesError(ValueError):
    """An error of a mesh whose devices have to be listed, but are more than `MOST_DEVICES`."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__(
            f"the mesh {mesh} has {mesh.total_size} devices, too many to partition for: at most {MOST_DEVICES}"
        )
        self.mesh = mesh


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A named axis of a mesh.

    Attributes:
        name: the name of the axis.
        size: the number of devices along the axis.
    """

    name: str
    size: int

    def __str__(self) -> str:
        return f'"{self.name}"={self.size}'


@dataclass(frozen=True, slots=True, init=False)
class Mesh:
    """Devices in a grid with named axes: `Mesh({"data": 4, "model": 2})` is 8 devices.

    A mesh without axes and device ids is the empty mesh, a placeholder for any other. A mesh without axes and with one
    id is a maximal mesh: a tensor on it is on that device only.

    Args:
        axes: names and sizes, from major to minor.
        device_ids: the devices in row-major order of the axes; by default 0, 1, 2 and so on. A mesh with just these
            ids is equal to one without ids.
    """

    axes: tuple[MeshAxis, ...]
    device_ids: tuple[int, ...]
    total_size: int = field(init=False, repr=False, compare=False)
    """The number of devices; 1 without axes."""
    _index_of: dict[str, int] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __init__(
        self, axes: Mapping[str, int] | Iterable[MeshAxis | tuple[str, int]] = (), device_ids: Iterable[int] = ()
    ) -> None:
        pairs = axes.items() if isinstance(axes, Mapping) else axes
        object.__setattr__(self, "axes", tuple(one if isinstance(one, MeshAxis) else MeshAxis(*one) for one in pairs))
        object.__setattr__(self, "total_size", prod(axis.size for axis in self.axes))
        ids = tuple(device_ids)
        if self.axes and len(ids) == self.total_size and ids == tuple(range(len(ids))):
            ids = ()
        object.__setattr__(self, "device_ids", ids)
        object.__setattr__(self, "_index_of", {axis.name: index for index, axis in reversed([*enumerate(self.axes)])})
        object.__setattr__(self, "_hash", hash((self.axes, ids)))

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def maximal(device_id: int) -> Mesh:
        """Returns the mesh of one device and no axes."""
        return Mesh((), (device_id,))

    @property
    def is_empty(self) -> bool:
        """Whether this is the placeholder: no axes and no device ids."""
        return not self.axes and not self.device_ids

    @property
    def is_maximal(self) -> bool:
        """Whether this mesh has no axes and one device."""
        return not self.axes and len(self.device_ids) == 1

    @property
    def maximal_device_id(self) -> int | None:
        """The device of a maximal mesh, None for any other mesh."""
        return self.device_ids[0] if self.is_maximal else None

    @property
    def devices(self) -> tuple[int, ...]:
        """All device ids, in row-major order of the axes. Raises TooManyDevicesError if there are too many to list."""
        return self.device_ids or tuple(range(self.listed_size))

    def has_same_devices(self, other: Mesh) -> bool:
        """Returns whether the meshes have the same devices, in any order."""
        if self.total_size != other.total_size:
            return False
        # Meshes without ids have the same devices if their sizes are equal, without a list of them.
        return not (self.device_ids or other.device_ids) or set(self.devices) == set(other.devices)

    def devices_with(self, other: Mesh) -> tuple[int, ...]:
        """Returns the devices of this mesh, in its order, followed by those that only the other mesh has."""
        devices = self.devices
        if self == other:
            return devices
        known = set(devices)
        return (*devices, *(device for device in other.devices if device not in known))

    @property
    def listed_size(self) -> int:
        """`total_size`, for callers that list the devices. Raises TooManyDevicesError if there are too many."""
        if self.total_size > MOST_DEVICES:
            raise TooManyDevicesError(self)
        return self.total_size

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major to minor."""
        return tuple(axis.name for axis in self.axes)

    def has_axis(self, name: str) -> bool:
        """Returns whether an axis has this name."""
        return name in self._index_of

    def axis_size(self, name: str) -> int:
        """Returns the size of the named axis. Raises ValueError if none exists."""
        return self.axes[self.axis_index(name)].size

    def axis_index(self, name: str) -> int:
        """Returns the position of the named axis, 0 for the major one. Raises ValueError if none exists."""
        index = self._index_of.get(name)
        if index is None:
            raise ValueError(f'axis "{name}" is not in the mesh {self}')
        return index

    def equals(self, other: Mesh, *, ignore_device_ids: bool = False) -> bool:
        """Returns whether the meshes are equal, or with `ignore_device_ids` equal except for the order of devices."""
        if ignore_device_ids:
            return self.axes == other.axes and self.is_maximal == other.is_maximal
        return self == other

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.axes))
        return f"<[{axes}]" + (f", device_ids={list(self.device_ids)}>" if self.device_ids else ">")
