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
    """An axis or sub-axis of a mesh that is not part of the grid."""

    mesh: Mesh
    axis: AxisRef


class GridError(ValueError):
    """Shardings that fit no grid, or a value that cannot be sharded."""


def _families(mesh: Mesh, used: Iterable[Axes]) -> tuple[Grid, ...]:
    """Returns the coarsest grids of a mesh such that each list of axes is on one of them."""
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

    `others` are meshes of as many devices, by their references in shardings, whose axes are also made of grid axes, and
    meshes of one device, on which a tensor is replicated. The devices of the meshes in `reordered` are treated as if
    they were in order. `shape` has the sizes of the grid axes; `strides` has the number of devices, and then the
    distance between neighbours along each axis; `sizes` also has the sizes of the separate axes.

    If meshes have different devices, the grid has all of these devices, and a tensor on a mesh has local tensors on the
    other devices too, whose elements no result depends on. The axes of a mesh that is not part of the grid, such as one
    of 6 of 8 devices, are the last ones, `separate`: they are not in `shape`, and the only collective along them is the
    exchange. `families` are the grids of each such mesh, several if sub-axes cut an axis at sizes that do not divide
    each other: each sharding is on one of them.
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
        """Returns the coarsest grid in which each of `axes` is one or several grid axes.

        Raises GridError if none exists, as two sub-axes cut an axis at sizes that do not divide each other.
        """
        if mesh.device_ids:
            raise GridError(f"the devices of mesh @{name} are permuted, but a grid requires devices in ascending order")
        try:
            return DeviceGrid(name, mesh, Grid.of(mesh, axes, f"@{name}").atoms)
        except ValueError as error:
            raise GridError(str(error)) from error

    @staticmethod
    def of_separate_meshes(used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh]) -> DeviceGrid:
        """Returns a grid of which no mesh is part: each mesh has its own axes, and its own order of devices."""
        meshes = list(dict.fromkeys(mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal))
        devices = count_devices(meshes)
        return DeviceGrid._with_separate("", used, refs, [1, devices] if devices > 1 else [1], meshes)

    @staticmethod
    def for_meshes(name: str, used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh]) -> DeviceGrid:
        """Returns the coarsest grid for axes of one or several meshes; `refs` has the meshes by their references.

        The axes of a mesh whose devices are permuted become grid axes in another order if its devices have strides and
        a grid results; otherwise the mesh is treated as if its devices were in order. Raises GridError if no grid
        has all axes.
        """
        found = list(dict.fromkeys(mesh for mesh in refs.values() if mesh.axes and not mesh.is_maximal))
        if have_different_devices(found):
            return DeviceGrid._for_different_devices(name, used, refs, found)
        with_axes = {mesh for mesh, axes in used if axes}
        if with_axes:
            # Meshes without used axes have only replicated tensors.
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
            raise GridError(f"no device grid has axes for all of the meshes {' and '.join(map(str, meshes))}")
        sizes = [larger // smaller for smaller, larger in pairwise(cuts)][::-1]
        common = Mesh((str(index), size) for index, size in enumerate(sizes))
        return replace(DeviceGrid.for_shardings(name, common, ()), others=taken, reordered=reordered)

    @staticmethod
    def _for_different_devices(
        name: str, used: Sequence[tuple[Mesh, Axes]], refs: Mapping[str | Mesh, Mesh], meshes: Sequence[Mesh]
    ) -> DeviceGrid:
        """Returns the coarsest grid of the devices of all meshes; larger meshes have priority in being parts of it."""
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
        """Returns the grid with these cuts of the devices, and the axes of other meshes as separate axes."""
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
        """The names of the grid axes in the mesh; none if the grid is one of several meshes with different axes."""
        if any(other.axes for other in self.others.values()):
            return ()
        return tuple(str(atom).replace('"', "") for atom in self.atoms)

    def axes(self, refs: Iterable[AxisRef]) -> GridAxes:
        """Returns the grid axes of a list of axes and sub-axes, in its order."""
        try:
            return self._grid.axes(refs)
        except ValueError as error:
            raise GridError(str(error)) from error

    def axes_of(self, ref: str | Mesh, refs: Axes) -> GridAxes:
        """Returns the grid axes of a list of axes of the mesh with this reference."""
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
        """Returns the separate axes of a list of axes of a mesh, on the first of its grids that has them."""
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
        """Returns the separate mesh whose axes the placements use, or None."""
        return self.separate_mesh_of(axis for placement in placements for axis in placement.used)

    def separate_mesh_of(self, axes: Iterable[int]) -> Mesh | None:
        """Returns the separate mesh that some of the axes belong to, or None."""
        return next((one.mesh for one in self._separate(axes)), None)

    def separate_axes(self, axes: Iterable[int]) -> Axes:
        """Returns the axes that are not part of the grid, as axes of their mesh."""
        return tuple(one.axis for one in self._separate(axes))

    def check_in_grid(self, axes: Iterable[int]) -> None:
        """Raises GridError if axes are of a mesh that is not part of the grid, as no collective is along them."""
        if mesh := self.separate_mesh_of(axes):
            raise GridError(
                f"it requires communication along axes of mesh {mesh}, which is not part of the grid of all "
                f"{prod(self.shape)} devices of the program: gather the tensor first, or use a mesh that divides "
                "the devices evenly"
            )

    def _separate(self, axes: Iterable[int]) -> Iterator[SeparateAxis]:
        return (self.separate[axis - len(self.shape)] for axis in axes if axis >= len(self.shape))

    def layout_on(self, mesh: Mesh, placement: Placement, shape: Sequence[int]) -> TensorLayout:
        """Returns the layout of a tensor of `shape` on a separate mesh, or on the grid if placed along grid axes."""
        first = len(self.shape)
        if placement.used and self.separate_mesh(placement) is None:
            return self.layout(placement, shape)

        def axes(of: Iterable[int]) -> Axes:
            return add_axes_or_merge((), (self.separate[axis - first].axis for axis in of), mesh)

        sharding = TensorSharding.closed_with(map(axes, placement.dims), mesh)
        return TensorLayout(sharding, mesh, tuple(shape))

    def placement(self, sharding: TensorSharding | None, rank: int) -> Placement:
        """Returns the placement of a tensor with this sharding; without a sharding it is replicated."""
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
        """Returns the layout of a tensor of `shape` on the mesh that has the grid axes as its axes."""
        mesh = self._real_mesh
        return TensorLayout(Grid.of(mesh, ()).sharding(placement, "grid"), mesh, tuple(shape))

    @property
    def real_mesh(self) -> Mesh:
        """The mesh without separate axes."""
        return Mesh(self.mesh.axes[: len(self.mesh.axes) - len(self.separate)])

    @property
    def _real_mesh(self) -> Mesh:
        """The mesh that has the grid axes as its axes, without separate axes."""
        return Mesh((str(index), size) for index, size in enumerate(self.shape))

    def blocks(self, axes: Sequence[int]) -> int:
        """Returns the number of devices along grid axes."""
        return prod(self.sizes[axis] for axis in axes)

    def num_shards(self, placement: Placement) -> tuple[int, ...]:
        """Returns the number of shards of each dimension of a tensor."""
        return tuple(map(self.blocks, placement.dims))

    def local_shape(self, shape: Sequence[int], placement: Placement) -> tuple[int, ...]:
        """Returns the shape of a full shard; the last shards of a dimension may be partly or entirely padding."""
        return tuple(block_size(size, self.blocks(axes)) for size, axes in zip(shape, placement.dims, strict=True))

    def is_even(self, size: int, axes: Sequence[int]) -> bool:
        """Returns whether a dimension has even shards along grid axes."""
        return size % self.blocks(axes) == 0

    def processes(self) -> npt.NDArray[np.int64]:
        """Returns the numbers of all devices in order; raises TooManyDevicesError if they are too many to list."""
        return np.arange(self._real_mesh.listed_size, dtype=np.int64)

    def positions(self, axes: Sequence[int], processes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the positions of processes along axes, which are major to minor."""
        positions = np.zeros_like(processes)
        for axis in axes:
            if axis < len(self.shape):
                own = processes // self.strides[axis + 1] % self.shape[axis]
            else:
                own = self._separate_positions(axis)[processes]
            positions = positions * self.sizes[axis] + own
        return positions

    def mirrored(self, axes: Sequence[int]) -> list[int]:
        """Returns, for each process, the one at the mirrored position along grid axes: the last for the first."""
        self.check_in_grid(axes)
        processes = found = self.processes()
        for axis in axes:
            position = processes // self.strides[axis + 1] % self.shape[axis]
            found = found + (self.shape[axis] - 1 - 2 * position) * self.strides[axis + 1]
        return found.tolist()

    def _separate_positions(self, axis: int) -> npt.NDArray[np.int64]:
        """Returns the position of each process along a separate axis, 0 for processes that are not in its mesh."""
        one = self.separate[axis - len(self.shape)]
        held = Holdings.of(one.mesh, [[one.axis]]).blocks
        found = np.zeros(prod(self.shape), np.int64)
        found[list(one.mesh.devices)] = [position for (position,) in held]
        return found

    def blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
        """Returns the tensor with local type `block_type` and this placement, in the form that partition rules get."""
        found = self._blocked_tensors.get((block_type, placement))
        if found is None:
            found = self._blocked_tensors[block_type, placement] = self._blocked(block_type, placement)
        return found

    def _blocked(self, block_type: Any, placement: Placement) -> BlockedTensor:
        counts = self.num_shards(placement)
        type_ = block_type
        if any(count > 1 for count in counts):
            sizes = [size * count for size, count in zip(block_type.shape, counts, strict=True)]
            type_ = shard.resized(block_type, sizes)

        def block_numbers(dim: int) -> list[int]:
            return self.positions(placement.dims[dim], self.processes()).tolist()

        return BlockedTensor(type_, placement.dims, counts, block_numbers)

    def local_type(self, type_: Any, placement: Placement) -> Any:
        """Returns the local type of a value of `type_` with this placement; raises GridError if it cannot have it."""
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
                    f"{element} cannot be padded: no padding constant is known for this type"
                )
        return shard.resized(type_, self.local_shape(type_.shape, placement))
