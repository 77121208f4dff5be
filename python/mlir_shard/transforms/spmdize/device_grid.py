# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of devices that a module's mesh becomes, and where tensors lie on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.rules.partition import BlockedTensor
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axis_lists import Axes, split_mesh_axes


class GridError(ValueError):
    """Shardings that fit no grid, or a tensor that a sharding does not divide evenly."""


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """A mesh whose axes are cut where a sharding uses a part of one: grid axis i is the axis `atoms[i]` of `mesh`."""

    name: str
    mesh: Mesh
    atoms: Axes

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

    def placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        """Where a tensor of this sharding lies; without one it is whole on every device."""
        if sharding is None:
            return Placement(((),) * rank)
        dims = tuple(self.axes(dim.axes) for dim in sharding.dim_shardings)
        return Placement(dims, self.axes(sharding.unreduced_axes), sharding.reduction_op)

    def blocks(self, axes: Sequence[int]) -> int:
        """The number of devices along grid axes."""
        return prod(self.shape[axis] for axis in axes)

    def local_shape(self, shape: Sequence[int], placement: Placement) -> tuple[int, ...]:
        """The shape of the block a device holds. Raises GridError where blocks would be uneven."""
        local = []
        for dim, (size, axes) in enumerate(zip(shape, placement.dims, strict=True)):
            blocks = self.blocks(axes)
            if size % blocks:
                raise GridError(
                    f"dimension {dim} of size {size} is sharded in {blocks} blocks, which are not of one size: "
                    "blocks of different sizes are not supported yet"
                )
            local.append(size // blocks)
        return tuple(local)

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
