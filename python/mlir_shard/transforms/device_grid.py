# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of devices that a module's mesh becomes, the placements of tensors on it, and the strides of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import numpy as np
from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import Holdings, TensorLayout
from mlir_shard.rules.partition import BlockedTensor
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge
from mlir_shard.sharding.layout import block_size
from mlir_shard.transforms.device_sets import count_devices, have_different_devices, separate_meshes
from mlir_shard.transforms.device_strides import has_strides, in_order, stride_ranges

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class SeparateAxis:
    """An axis, or part of one, of a mesh whose devices no axes of the grid tell apart."""

    mesh: Mesh
    axis: AxisRef


class GridError(ValueError):
    """Shardings that fit no grid, or a value that cannot be sharded."""


def _families(mesh: Mesh, used: Iterable[Axes]) -> tuple[Grid, ...]:
    """The coarsest grids of a mesh so that each of the lists of axes is on one of them."""
    families: list[set[AxisRef]] = [set()]
    for axes in used:
        for family in families:
            if all(one.can_coexist(other) for one in axes for other in family):
                family.update(axes)
                break
        else:
            families.append(set(axes))
    try:
        return tuple(Grid.of(mesh, family) for family in families)
    except ValueError as error:
        raise GridError(str(error)) from error


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """A mesh whose axes are cut where a sharding uses a part of one: grid axis i is the axis `atoms[i]` of `mesh`.

    `others` are meshes of as many devices, by how shardings refer to them, whose axes are made of grid axes too, and
    meshes of one device: a tensor there is replicated. Of the meshes in `reordered` the devices are taken as
    if they were in order. `shape` has the sizes of the grid axes, `strides` how far apart neighbours along each are,
    after the number of devices; `sizes` has those of the separate axes too.

    Meshes may be of different devices: the grid is then of all of them, and a tensor on a mesh has local tensors on the
    others too, with the elements of which nothing is done that matters. Where a mesh is not part of the grid, as 6 of 8
    devices are none, its axes are the last ones, `separate`: they have no place in `shape`, and no collective is along
    them but the exchange. `families` are the grids of each such mesh, several where sub-axes cut an axis at sizes that
    do not divide each other: each sharding is on one of them.
    """

    name: str
    mesh: Mesh
    atoms: Axes
    others: Mapping[str | Mesh, Mesh] = field(default_factory=dict, compare=False)
    reordered: frozenset[Mesh] = field(default=frozenset(), compare=False)
    separate: tuple[SeparateAxis, ...] = ()
    families: Mapping[Mesh, tuple[Grid, ...]] = field(default_factory=dict, compare=False)
    sizes: tuple[int, ...] = field(init=False, compare=False)
    shape: tuple[int, ...] = field(init=False, compare=False)
    strides: tuple[int, ...] = field(init=False, compare=False)
    _grid: Grid = field(init=False, compare=False, repr=False)
    _known_axes: dict[tuple[str | Mesh, Axes], GridAxes] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _placements: dict[tuple[TensorSharding | None, int], Placement] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _local_types: dict[tuple[Any, Placement], Any] = field(init=False, compare=False, repr=False, default_factory=dict)
    _blocked_tensors: dict[tuple[Any, Placement], BlockedTensor] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        sizes = tuple(atom.size(self.mesh) for atom in self.atoms)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "_grid", Grid(self.mesh, self.atoms))
        object.__setattr__(self, "shape", sizes[: len(sizes) - len(self.separate)])
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
    def of_separate_meshes(used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh]) -> DeviceGrid:
        """The grid of which no mesh is part: each has its own axes, and its devices in its own order."""
        meshes = list(dict.fromkeys(mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal))
        devices = count_devices(meshes)
        return DeviceGrid._with_separate("", used, refs, [1, devices] if devices > 1 else [1], meshes)

    @staticmethod
    def for_meshes(name: str, used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh]) -> DeviceGrid:
        """The coarsest grid for axes of one mesh or of several, which are in `refs` by how shardings refer to them.

        The axes of a mesh whose devices are permuted are those of the grid in another order where its devices have
        strides and that gives a grid; else it is taken as if its devices were in order. GridError where there is no
        grid.
        """
        found = list(dict.fromkeys(mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal))
        if have_different_devices(found):
            return DeviceGrid._for_different_devices(name, used, refs, found)
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
        common = Mesh((str(index), size) for index, size in enumerate(sizes))
        return replace(DeviceGrid.for_shardings(name, common, ()), others=taken, reordered=reordered)

    @staticmethod
    def _for_different_devices(
        name: str, used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh], meshes: Sequence[Mesh]
    ) -> DeviceGrid:
        """The coarsest grid of the devices of all meshes, of which those that come first in size are parts."""
        along = {mesh: [AxisRef(axis) for axis in mesh.axis_names] for mesh in meshes}
        for mesh, axes in used:
            along.setdefault(mesh, []).extend(axes)
        return DeviceGrid._with_separate(name, used, refs, *separate_meshes(meshes, along))

    @staticmethod
    def _with_separate(
        name: str,
        used: Sequence[tuple[Mesh, Axes]],
        refs: Mapping[str | Mesh, Mesh],
        cuts: Sequence[int],
        others: Sequence[Mesh],
    ) -> DeviceGrid:
        """The grid of devices that is cut there, with the axes of other meshes as separate ones."""
        families = {mesh: _families(mesh, [axes for of, axes in used if of == mesh]) for mesh in others}
        axes_of_all = (SeparateAxis(mesh, atom) for mesh in others for grid in families[mesh] for atom in grid.atoms)
        separate = tuple(dict.fromkeys(axes_of_all))
        sizes = [larger // smaller for smaller, larger in pairwise(cuts)][::-1]
        sizes += [one.axis.size(one.mesh) for one in separate]
        common = Mesh((str(index), size) for index, size in enumerate(sizes))
        grid = DeviceGrid.for_shardings(name, common, ())
        return replace(grid, others=dict(refs), separate=separate, families=families)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The grid axes as the mesh calls them; none where it is one for meshes that differ in their axes."""
        if any(other.axes for other in self.others.values()):
            return ()
        return tuple(str(atom).replace('"', "") for atom in self.atoms)

    def axes(self, refs: Iterable[AxisRef]) -> GridAxes:
        """The grid axes of a list of axes and sub-axes, in its order."""
        try:
            return self._grid.axes(refs)
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
        if other in self.families:
            return self._separate_axes_of(other, tuple(ref for ref in refs if ref.size(other) > 1))
        ranges = [one for axis in refs for one in stride_ranges(axis, other)]
        every_axis = range(len(self.shape))
        return tuple(axis for one in ranges for axis in every_axis if one.stride <= self.strides[axis + 1] < one.end)

    def _separate_axes_of(self, mesh: Mesh, refs: Axes) -> GridAxes:
        """The separate axes of a list of axes of a mesh, on the first of its grids that has them."""
        errors = []
        for grid in self.families[mesh]:
            try:
                found = [grid.atoms[axis] for axis in grid.axes(refs)]
            except ValueError as error:
                errors.append(error)
            else:
                return tuple(len(self.shape) + self.separate.index(SeparateAxis(mesh, atom)) for atom in found)
        raise GridError(str(errors[0])) from errors[0]

    def separate_mesh(self, *placements: Placement) -> Mesh | None:
        """The mesh that is not part of the grid, where placements are along axes of one."""
        return self.separate_mesh_of(axis for placement in placements for axis in placement.used)

    def separate_mesh_of(self, axes: Iterable[int]) -> Mesh | None:
        """The mesh that is not part of the grid, where some of the axes are of one."""
        return next((one.mesh for one in self._separate(axes)), None)

    def separate_axes(self, axes: Iterable[int]) -> Axes:
        """Those axes that are no part of the grid, as axes of their mesh."""
        return tuple(one.axis for one in self._separate(axes))

    def check_in_grid(self, axes: Iterable[int]) -> None:
        """Raises GridError where axes are of a mesh that is not part of the grid, as no collective is along them."""
        if mesh := self.separate_mesh_of(axes):
            raise GridError(
                f"it would communicate along axes of mesh {mesh}, which is not part of the grid of all "
                f"{prod(self.shape)} devices of the program: gather the tensor before, or let the mesh divide them"
            )

    def _separate(self, axes: Iterable[int]) -> Iterator[SeparateAxis]:
        return (self.separate[axis - len(self.shape)] for axis in axes if axis >= len(self.shape))

    def layout_on(self, mesh: Mesh, placement: Placement, shape: Sequence[int]) -> TensorLayout:
        """The placement of a tensor of `shape` on a mesh that is not part of the grid; on the grid if it is there."""
        first = len(self.shape)
        if placement.used and self.separate_mesh(placement) is None:
            return self.layout(placement, shape)

        def axes(of: Iterable[int]) -> Axes:
            return add_axes_or_merge((), (self.separate[axis - first].axis for axis in of), mesh)

        sharding = TensorSharding.closed_with(map(axes, placement.dims), mesh)
        return TensorLayout(sharding, mesh, tuple(shape))

    def placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        """The placement of a tensor of this sharding; without one it is replicated."""
        found = self._placements.get((sharding, rank))
        if found is None:
            found = self._placements[sharding, rank] = self._placement(sharding, rank)
        return found

    def _placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        ref = None if sharding is None else sharding.mesh_or_ref
        other = None if ref is None else self.others.get(ref)
        if sharding is None or ref is None or (other is not None and other.is_maximal):
            return Placement(((),) * rank)
        dims = tuple(self.axes_of(ref, dim.axes) for dim in sharding.dim_shardings)
        return Placement(dims, self.axes_of(ref, sharding.unreduced_axes), sharding.reduction_op)

    def layout(self, placement: Placement, shape: Sequence[int]) -> TensorLayout:
        """The placement of a tensor of `shape`, on the mesh that has the grid axes as its axes."""
        mesh = self._real_mesh
        return TensorLayout(Grid.of(mesh, ()).sharding(placement, "grid"), mesh, tuple(shape))

    @property
    def real_mesh(self) -> Mesh:
        """The mesh without separate axes."""
        return Mesh(self.mesh.axes[: len(self.mesh.axes) - len(self.separate)])

    @property
    def _real_mesh(self) -> Mesh:
        """The grid axes as the axes of a mesh, without separate ones."""
        return Mesh((str(index), size) for index, size in enumerate(self.shape))

    def blocks(self, axes: Sequence[int]) -> int:
        """The number of devices along grid axes."""
        return prod(self.sizes[axis] for axis in axes)

    def local_shape(self, shape: Sequence[int], placement: Placement) -> tuple[int, ...]:
        """The shape of a full block; the last blocks of a dimension may be short or empty, the rest is padding."""
        return tuple(block_size(size, self.blocks(axes)) for size, axes in zip(shape, placement.dims, strict=True))

    def is_even(self, size: int, axes: Sequence[int]) -> bool:
        """Whether a dimension is in full blocks along grid axes."""
        return size % self.blocks(axes) == 0

    def processes(self) -> npt.NDArray[np.int64]:
        """The numbers of all devices in order; TooManyDevicesError where they are too many to list."""
        return np.arange(self._real_mesh.listed_size, dtype=np.int64)

    def positions(self, axes: Sequence[int], processes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions along axes, major to minor, of processes."""
        positions = np.zeros_like(processes)
        for axis in axes:
            if axis < len(self.shape):
                own = processes // self.strides[axis + 1] % self.shape[axis]
            else:
                own = self._separate_positions(axis)[processes]
            positions = positions * self.sizes[axis] + own
        return positions

    def mirrored(self, axes: Sequence[int]) -> list[int]:
        """The process opposite to each along grid axes: the last to the first."""
        self.check_in_grid(axes)
        processes = found = self.processes()
        for axis in axes:
            position = processes // self.strides[axis + 1] % self.shape[axis]
            found = found + (self.shape[axis] - 1 - 2 * position) * self.strides[axis + 1]
        return found.tolist()

    def _separate_positions(self, axis: int) -> npt.NDArray[np.int64]:
        """The position of each process along an axis that is not the grid's; 0 for those that are not in its mesh."""
        one = self.separate[axis - len(self.shape)]
        held = Holdings.of(one.mesh, [[one.axis]]).blocks
        found = np.zeros(prod(self.shape), np.int64)
        found[list(one.mesh.devices)] = [position for (position,) in held]
        return found

    def blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
        """A value that has blocks of this type and lies so, as partition rules are told of it."""
        found = self._blocked_tensors.get((block_type, placement))
        if found is None:
            found = self._blocked_tensors[block_type, placement] = self._blocked(block_type, placement)
        return found

    def _blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
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
        found = self._local_types.get((type_, placement))
        if found is None:
            found = self._local_types[type_, placement] = self._local_type(type_, placement)
        return found

    def _local_type(self, type_: Any, placement: Placement) -> Any:
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
