# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of devices that a module's mesh becomes, the placements of tensors on it, and the strides of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules.partition import BlockedTensor
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.layout import block_size


@dataclass(frozen=True, slots=True)
class Run:
    """A part of an axis along which neighbours are `stride` apart: the first of `size` and the first of the next part
    are `unit * size` apart along the axis, where neighbours in the run are `unit` apart.
    """

    unit: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class StrideRange:
    """The devices of a run, or of a part of one: `stride` apart, and the first that are no more of it `end` apart."""

    stride: int
    end: int


def in_order(mesh: Mesh) -> Mesh:
    """The mesh of the same axes, with its devices numbered as they come."""
    return Mesh(mesh.axes) if mesh.device_ids else mesh


def has_strides(mesh: Mesh) -> bool:
    """Whether the number of a device is a sum of what its coordinate along each axis stands for, and grows with each:
    the axes of a grid that is in order are then those of the mesh, or parts of them, in another order.
    """
    return _runs(mesh) is not None


@lru_cache(maxsize=256)
def _runs(mesh: Mesh) -> tuple[tuple[Run, ...], ...] | None:
    """The runs of each axis, major to minor; None where the mesh has none."""
    if not mesh.device_ids:
        strides = accumulate((axis.size for axis in reversed(mesh.axes)), mul, initial=1)
        sizes_and_strides = zip(reversed(mesh.axes), strides, strict=False)
        in_order = [(Run(1, axis.size, stride),) if axis.size > 1 else () for axis, stride in sizes_and_strides]
        return tuple(reversed(in_order))
    devices = mesh.devices
    if devices[0]:
        return None
    minor = len(devices)
    found = []
    ids = [0]
    for axis in mesh.axes:
        minor //= axis.size
        offsets = [devices[position * minor] for position in range(axis.size)]
        found.append(_runs_of(offsets))
        ids = [first + offset for first in ids for offset in offsets]
    # A stride that is not positive would have the devices of a grid axis in the opposite order.
    is_rising = all(run.stride > 0 for runs in found for run in runs)
    return tuple(found) if is_rising and tuple(ids) == devices else None


def _runs_of(offsets: list[int]) -> tuple[Run, ...]:
    """The longest runs that begin with the minor-most; where there are none, a run of no stride."""
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
    """Where the devices along an axis or sub-axis of a mesh with strides are, major to minor.

    ValueError where the axis ends within a run that it does not divide.
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
            raise ValueError(f"{axis} of mesh {mesh} cuts devices that are numbered by a stride of {run.stride}")
        found.append(StrideRange(run.stride * (low // run.unit), run.stride * (high // run.unit)))
    return tuple(found)


class GridError(ValueError):
    """Shardings that fit no grid, or a value that cannot be in blocks."""


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """A mesh whose axes are cut where a sharding uses a part of one: grid axis i is the axis `atoms[i]` of `mesh`.

    `others` are meshes of as many devices, by how shardings refer to them, whose axes are made of grid axes too, and
    meshes of one device: a tensor there is whole on every device. Of the meshes in `reordered` the devices are taken as
    if they were in order. `shape` has the sizes of the grid axes, `strides` how far apart neighbours along each are,
    after the number of devices.
    """

    name: str
    mesh: Mesh
    atoms: Axes
    others: Mapping[str | Mesh, Mesh] = field(default_factory=dict, compare=False)
    reordered: frozenset[Mesh] = field(default=frozenset(), compare=False)
    shape: tuple[int, ...] = field(init=False, compare=False)
    strides: tuple[int, ...] = field(init=False, compare=False)
    _known_axes: dict[tuple[str | Mesh, Axes], GridAxes] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(atom.size(self.mesh) for atom in self.atoms))
        object.__setattr__(self, "strides", tuple(accumulate(reversed(self.shape), mul, initial=1))[::-1])

    @staticmethod
    def for_shardings(name: str, mesh: Mesh, axes: Iterable[AxisRef]) -> DeviceGrid:
        """The coarsest grid that has every one of `axes` as one or several of its own.

        Raises GridError where there is none, as two sub-axes cut an axis at sizes that do not divide each other.
        """
        if mesh.device_ids:
            raise GridError(f"the devices of mesh @{name} are permuted, and a grid numbers its devices in order")
        try:
            return DeviceGrid(name, mesh, Grid.of(mesh, axes, f"@{name}").atoms)
        except ValueError as error:
            raise GridError(str(error)) from error

    @staticmethod
    def for_meshes(name: str, used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh]) -> DeviceGrid:
        """The coarsest grid for axes of one mesh or of several, which are in `refs` by how shardings refer to them.

        The axes of a mesh whose devices are permuted are those of the grid in another order where its devices have
        strides and that gives a grid; else it is taken as if its devices were in order. GridError where there is no
        grid, as meshes have other numbers of devices.
        """
        found = list(dict.fromkeys(mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal))
        if len({mesh.total_size for mesh in found}) > 1:
            listed = " and ".join(map(str, found))
            raise GridError(f"meshes have different numbers of devices, and one program runs on all: {listed}")
        with_axes = {mesh for mesh, axes in used if axes}
        if with_axes:
            # On the others there is nothing but what every device has.
            refs = {ref: mesh for ref, mesh in refs.items() if mesh in with_axes or not mesh.axes}
            found = [mesh for mesh in found if mesh in with_axes]
        permuted = frozenset(mesh for mesh in found if mesh.device_ids)
        try:
            reordered = frozenset(mesh for mesh in permuted if not has_strides(mesh))
            return DeviceGrid._for_meshes(name, used, refs, reordered)
        except GridError:
            if reordered == permuted:
                raise
        return DeviceGrid._for_meshes(name, used, refs, permuted)

    @staticmethod
    def _for_meshes(
        name: str,
        used: Sequence[tuple[Mesh, Axes]],
        refs: Mapping[str | Mesh, Mesh],
        reordered: frozenset[Mesh],
    ) -> DeviceGrid:
        taken = {ref: in_order(mesh) if mesh in reordered else mesh for ref, mesh in refs.items()}
        meshes = list(dict.fromkeys(mesh for mesh in taken.values() if mesh.axes and not mesh.is_maximal))
        if not meshes or (len(meshes) == 1 and not meshes[0].device_ids):
            every_axis = (axis for _, axes in used for axis in axes)
            grid = DeviceGrid.for_shardings(name, meshes[0] if meshes else Mesh(), every_axis)
            others = {ref: mesh for ref, mesh in refs.items() if mesh.is_maximal}
            return replace(grid, others=others, reordered=reordered)
        along = [(in_order(mesh) if mesh in reordered else mesh, axes) for mesh, axes in used]
        along += [(mesh, tuple(map(AxisRef, mesh.axis_names))) for mesh in meshes]
        try:
            ranges = [one for mesh, axes in along for axis in axes for one in stride_ranges(axis, mesh)]
        except ValueError as error:
            raise GridError(str(error)) from error
        cuts = sorted({1, meshes[0].total_size, *(cut for one in ranges for cut in (one.stride, one.end))})
        if any(larger % smaller for smaller, larger in pairwise(cuts)):
            raise GridError(f"meshes {' and '.join(map(str, meshes))} cut the devices so that no grid has axes for all")
        sizes = [larger // smaller for smaller, larger in pairwise(cuts)][::-1]
        common = Mesh.of((str(index), size) for index, size in enumerate(sizes))
        return replace(DeviceGrid.for_shardings(name, common, ()), others=taken, reordered=reordered)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The grid axes as the mesh calls them; none where it is one for meshes that differ in their axes."""
        if any(other.axes for other in self.others.values()):
            return ()
        return tuple(str(atom).replace('"', "") for atom in self.atoms)

    def axes(self, refs: Iterable[AxisRef]) -> GridAxes:
        """The grid axes of a list of axes and sub-axes, in its order."""
        try:
            return Grid(self.mesh, self.atoms).axes(refs)
        except ValueError as error:
            raise GridError(str(error)) from error

    def axes_of(self, ref: str | Mesh, refs: Axes) -> GridAxes:
        """The grid axes of a list of axes of the mesh that shardings refer to so."""
        known = self._known_axes.get((ref, refs))
        if known is None:
            known = self._known_axes[ref, refs] = self._axes_of(ref, refs)
        return known

    def _axes_of(self, ref: str | Mesh, refs: Axes) -> GridAxes:
        other = self.others.get(ref)
        if other is None:
            return self.axes(refs)
        ranges = [one for axis in refs for one in stride_ranges(axis, other)]
        every_axis = range(len(self.atoms))
        return tuple(axis for one in ranges for axis in every_axis if one.stride <= self.strides[axis + 1] < one.end)

    def placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        """Where a tensor of this sharding lies; without one it is whole on every device."""
        ref = None if sharding is None else sharding.mesh_or_ref
        other = None if ref is None else self.others.get(ref)
        if sharding is None or ref is None or (other is not None and other.is_maximal):
            return Placement(((),) * rank)
        dims = tuple(self.axes_of(ref, dim.axes) for dim in sharding.dim_shardings)
        return Placement(dims, self.axes_of(ref, sharding.unreduced_axes), sharding.reduction_op)

    def layout(self, placement: Placement, shape: Sequence[int]) -> TensorLayout:
        """The placement of a tensor of `shape`, on the mesh that has the grid axes as its axes."""
        mesh = Mesh.of((str(index), size) for index, size in enumerate(self.shape))
        return TensorLayout(Grid.of(mesh, ()).sharding(placement, "grid"), mesh, tuple(shape))

    def blocks(self, axes: Sequence[int]) -> int:
        """The number of devices along grid axes."""
        return prod(self.shape[axis] for axis in axes)

    def local_shape(self, shape: Sequence[int], placement: Placement) -> tuple[int, ...]:
        """The shape of a full block; the last blocks of a dimension may be short or empty, the rest is padding."""
        return tuple(block_size(size, self.blocks(axes)) for size, axes in zip(shape, placement.dims, strict=True))

    def is_even(self, size: int, axes: Sequence[int]) -> bool:
        """Whether a dimension is in full blocks along grid axes."""
        return size % self.blocks(axes) == 0

    def processes(self) -> npt.NDArray[np.int64]:
        """The numbers of all devices in order; TooManyDevicesError where they are too many to list."""
        return np.arange(self.mesh.listed_size, dtype=np.int64)

    def positions(self, axes: Sequence[int], processes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions along axes, major to minor, of processes."""
        positions = np.zeros_like(processes)
        for axis in axes:
            positions = positions * self.shape[axis] + processes // self.strides[axis + 1] % self.shape[axis]
        return positions

    def mirrored(self, axes: Sequence[int]) -> list[int]:
        """The process opposite to each along grid axes: the last to the first."""
        processes = found = self.processes()
        for axis in axes:
            position = processes // self.strides[axis + 1] % self.shape[axis]
            found = found + (self.shape[axis] - 1 - 2 * position) * self.strides[axis + 1]
        return found.tolist()

    def blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
        """A value that has blocks of this type and lies so, as partition rules are told of it."""
        counts = tuple(map(self.blocks, placement.dims))
        type_ = block_type
        if any(count > 1 for count in counts):
            sizes = [size * count for size, count in zip(block_type.shape, counts, strict=True)]
            type_ = shard.resized(block_type, sizes)

        def block_numbers(dim: int) -> list[int]:
            return self.positions(placement.dims[dim], self.processes()).tolist()

        return BlockedTensor(type_, placement.dims, counts, block_numbers)

    def local_type(self, type_: Any, placement: Placement) -> Any:
        """The type of a value of `type_` that lies so. Raises GridError where it cannot lie so."""
        if not any(placement.dims):
            return type_
        if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
            raise GridError(f"only ranked tensors of static shape can be sharded, not {type_}")
        element = type_.element_type
        for dim, (size, axes) in enumerate(zip(type_.shape, placement.dims, strict=True)):
            if not self.is_even(size, axes) and not stablehlo.has_numbers(element):
                raise GridError(
                    f"dimension {dim} of {type_} would be in {self.blocks(axes)} uneven shards, and tensors of "
                    f"{element} cannot be padded: no constant of it is known"
                )
        return shard.resized(type_, self.local_shape(type_.shape, placement))
