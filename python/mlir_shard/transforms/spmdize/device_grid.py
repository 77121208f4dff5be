# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of devices that a module's mesh becomes, and where tensors lie on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.rules.partition import BlockedTensor
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axis_lists import Axes, split_mesh_axes
from mlir_shard.sharding.layout import block_size


class GridError(ValueError):
    """Shardings that fit no grid, or a value that cannot be in blocks."""


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """A mesh whose axes are cut where a sharding uses a part of one: grid axis i is the axis `atoms[i]` of `mesh`.

    `others` are meshes of as many devices, by how shardings refer to them, whose axes are made of grid axes too, and
    meshes of one device or of permuted ones: a tensor there is whole on every device.
    """

    name: str
    mesh: Mesh
    atoms: Axes
    others: Mapping[str | Mesh, Mesh] = field(default_factory=dict, compare=False)

    @staticmethod
    def for_shardings(name: str, mesh: Mesh, axes: Iterable[AxisRef]) -> DeviceGrid:
        """The coarsest grid that has every one of `axes` as one or several of its own.

        Raises GridError where there is none, as two sub-axes cut an axis at sizes that do not divide each other.
        """
        if mesh.device_ids:
            raise GridError(f"the devices of mesh @{name} are permuted, and a grid numbers its devices in order")
        axes = tuple(axes)
        for axis in mesh.axes:
            cuts = {1, axis.size}
            for ref in axes:
                if ref.name == axis.name:
                    cuts |= {ref.pre_size, ref.next_pre_size(mesh)}
            for smaller, larger in pairwise(sorted(cuts)):
                if larger % smaller:
                    raise GridError(
                        f'sub-axes cut axis "{axis.name}" of mesh @{name} at {smaller} and at {larger}, '
                        "and no grid has axes for both"
                    )
        return DeviceGrid(name, mesh, split_mesh_axes(axes, mesh))

    @staticmethod
    def for_meshes(
        name: str, used: Sequence[tuple[Mesh, Iterable[AxisRef]]], refs: Mapping[str | Mesh, Mesh]
    ) -> DeviceGrid:
        """The coarsest grid for axes of one mesh or of several, which are in `refs` by how shardings refer to them.

        A grid numbers its devices in order: on a mesh that permutes them tensors are whole. GridError where there is no
        grid, as meshes have other numbers of devices, or all of them permute theirs.
        """
        found = [mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal]
        meshes = list(dict.fromkeys(mesh for mesh in found if is_in_order(mesh)))
        if len({mesh.total_size for mesh in found}) > 1:
            listed = " and ".join(map(str, found))
            raise GridError(f"meshes have different numbers of devices, and one program runs on all: {listed}")
        if len(meshes) <= 1:
            every_axis = (axis for mesh, axes in used for axis in axes if is_in_order(mesh))
            first = meshes[0] if meshes else next(iter(found), Mesh())
            grid = DeviceGrid.for_shardings(name, first, every_axis)
            return replace(grid, others={ref: mesh for ref, mesh in refs.items() if not _has_blocks(mesh)})
        cuts = {one for mesh in meshes for one in _strides(mesh)}
        for mesh, axes in used:
            if not is_in_order(mesh):
                continue
            cuts |= {cut for axis in axes for cut in _range(axis, mesh)}
        ascending = sorted(cuts)
        if any(larger % smaller for smaller, larger in pairwise(ascending)):
            raise GridError(f"meshes {' and '.join(map(str, meshes))} cut the devices so that no grid has axes for all")
        sizes = [larger // smaller for smaller, larger in pairwise(ascending)][::-1]
        common = Mesh.of((str(index), size) for index, size in enumerate(sizes))
        grid = DeviceGrid.for_shardings(name, common, ())
        return replace(grid, others=dict(refs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the grid axes."""
        return tuple(atom.size(self.mesh) for atom in self.atoms)

    def axes(self, refs: Iterable[AxisRef]) -> GridAxes:
        """The grid axes of a list of axes and sub-axes, in its order."""
        result: list[int] = []
        for ref in refs:
            found = [index for index, atom in enumerate(self.atoms) if ref.contains(atom)]
            if prod(self.shape[index] for index in found) != ref.size(self.mesh):
                raise GridError(f"{ref} is no axis of the grid {self.shape} of mesh @{self.name}")
            result += found
        return tuple(result)

    def axes_of(self, ref: str | Mesh, refs: Iterable[AxisRef]) -> GridAxes:
        """The grid axes of a list of axes of the mesh that shardings refer to so."""
        other = self.others.get(ref)
        if other is None:
            return self.axes(refs)
        result: list[int] = []
        strides = _strides(self.mesh)
        for axis in refs:
            least, most = _range(axis, other)
            found = [index for index in range(len(self.atoms)) if least <= strides[index + 1] < most]
            result += found
        return tuple(result)

    def placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        """Where a tensor of this sharding lies; without one it is whole on every device."""
        ref = None if sharding is None else sharding.mesh_or_ref
        other = None if ref is None else self.others.get(ref)
        if sharding is None or ref is None or (other is not None and not _has_blocks(other)):
            return Placement(((),) * rank)
        dims = tuple(self.axes_of(ref, dim.axes) for dim in sharding.dim_shardings)
        return Placement(dims, self.axes_of(ref, sharding.unreduced_axes), sharding.reduction_op)

    def blocks(self, axes: Sequence[int]) -> int:
        """The number of devices along grid axes."""
        return prod(self.shape[axis] for axis in axes)

    def local_shape(self, shape: Sequence[int], placement: Placement) -> tuple[int, ...]:
        """The shape of a full block; the last blocks of a dimension may be short or empty, the rest is padding."""
        return tuple(block_size(size, self.blocks(axes)) for size, axes in zip(shape, placement.dims, strict=True))

    def is_even(self, size: int, axes: Sequence[int]) -> bool:
        """Whether a dimension is in full blocks along grid axes."""
        return size % self.blocks(axes) == 0

    def position(self, axes: Sequence[int], process: int) -> int:
        """The position along axes, major to minor, of a process."""
        coordinates = []
        for size in reversed(self.shape):
            process, coordinate = divmod(process, size)
            coordinates.append(coordinate)
        position = 0
        for axis in axes:
            position = position * self.shape[axis] + coordinates[len(self.shape) - 1 - axis]
        return position

    def blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
        """A value that has blocks of this type and lies so, as partition rules are told of it."""
        counts = tuple(map(self.blocks, placement.dims))
        type_ = block_type
        if any(count > 1 for count in counts):
            sizes = [size * count for size, count in zip(block_type.shape, counts, strict=True)]
            type_ = shard.resized(block_type, sizes)

        def block_numbers(dim: int) -> list[int]:
            return [self.position(placement.dims[dim], process) for process in range(prod(self.shape))]

        return BlockedTensor(type_, placement.dims, counts, block_numbers)

    def local_type(self, type_: Any, placement: Placement) -> Any:
        """The type of a value of `type_` that lies so. Raises GridError where it cannot lie so."""
        if not any(placement.dims):
            return type_
        if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
            raise GridError(f"only ranked tensors of static shape can be sharded, not {type_}")
        return shard.resized(type_, self.local_shape(type_.shape, placement))


def is_in_order(mesh: Mesh) -> bool:
    """Whether the devices of a mesh are numbered as they come."""
    return mesh.devices == tuple(range(mesh.total_size))


def _has_blocks(mesh: Mesh) -> bool:
    """Whether a grid can have the blocks of tensors on a mesh."""
    return not mesh.is_maximal and is_in_order(mesh)


def _strides(mesh: Mesh) -> list[int]:
    """How far apart the places of neighbours along each axis are, the number of devices before, 1 behind."""
    strides = [1]
    for axis in reversed(mesh.axes):
        strides.append(strides[-1] * axis.size)
    return strides[::-1]


def _range(axis: AxisRef, mesh: Mesh) -> tuple[int, int]:
    """How far apart the places of neighbours along an axis are, and how far the first of the next are."""
    index = mesh.axis_names.index(axis.name)
    last = _strides(mesh)[index + 1]
    size = axis.size(mesh)
    stride = last * (mesh.axes[index].size // (axis.pre_size * size))
    return stride, stride * size
