# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grids: the axes of a mesh, cut so that no sharding cuts them further; placements and moves refer to grid axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from math import prod

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, sort_and_merge, split_mesh_axes
from mlir_shard.sharding.hashed_once import HashedOnce
from mlir_shard.sharding.verify.tensor import check_axis_ref


@cache
def prime_factors(number: int) -> tuple[int, ...]:
    """Returns the prime factors of a number, at least 1, in ascending order."""
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return (*factors, number) if number > 1 else tuple(factors)


@dataclass(frozen=True, slots=True)
class Grid(HashedOnce):
    """A mesh whose axes are cut where shardings use sub-axes: grid axis i is the axis `atoms[i]` of `mesh`.

    `sizes` are those of the grid axes.
    """

    mesh: Mesh
    atoms: Axes
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _axes_of: dict[AxisRef, GridAxes] = field(init=False, repr=False, compare=False, default_factory=dict)
    _refs: dict[GridAxes, Axes] = field(init=False, repr=False, compare=False, default_factory=dict)
    _counts: dict[GridAxes, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    _placements: dict[TensorSharding, Placement] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._hashed((self.mesh, self.atoms))

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(atom.size(self.mesh) for atom in self.atoms))

    @staticmethod
    def of(mesh: Mesh, axes: Iterable[AxisRef], name: str = "") -> Grid:
        """Returns the coarsest grid on which every one of `axes` is one grid axis or several.

        `name` is the name of the mesh in errors. Raises ValueError if an axis is not of the mesh, or if two sub-axes
        cut an axis at sizes that do not divide each other: then only a direct exchange leads from one to the other.
        """
        return _coarsest(mesh, tuple(axes), name)

    def finest(self) -> Grid:
        """Returns the grid of the same mesh whose axes have prime sizes; the small factors of an axis are major."""
        return _finest(self.mesh, self.atoms)

    @property
    def as_mesh(self) -> Mesh:
        """The mesh of the same devices that has the grid axes as full axes, each named by its number."""
        if self.mesh.is_maximal:
            return self.mesh
        return Mesh(((str(index), size) for index, size in enumerate(self.sizes)), self.mesh.device_ids)

    def num_devices(self, axes: GridAxes) -> int:
        """Returns the number of devices along grid axes."""
        found = self._counts.get(axes)
        if found is None:
            sizes = self.sizes
            found = self._counts[axes] = prod([sizes[axis] for axis in axes])
        return found

    def axes(self, refs: Iterable[AxisRef]) -> GridAxes:
        """Returns the grid axes of axes and sub-axes, in their order. Raises ValueError if one is not on the grid."""
        result: list[int] = []
        for ref in refs:
            found = self._axes_of.get(ref)
            if found is None:
                found = tuple(index for index, atom in enumerate(self.atoms) if ref.contains(atom))
                if not found or self.num_devices(found) != ref.size(self.mesh):
                    raise ValueError(
                        f"{ref} does not consist of axes of the grid {list(self.sizes)} of mesh {self.mesh}"
                    )
                self._axes_of[ref] = found
            result += found
        return tuple(result)

    def placement(self, sharding: TensorSharding) -> Placement:
        """Returns the placement of a tensor with this sharding. Raises ValueError if its axes are not of the grid."""
        found = self._placements.get(sharding)
        if found is None:
            dims = tuple(self.axes(dim.axes) for dim in sharding.dim_shardings)
            unreduced = tuple(sorted(self.axes(sharding.unreduced_axes)))
            found = self._placements[sharding] = Placement(dims, unreduced, sharding.reduction_op)
        return found

    def sharding(self, placement: Placement, mesh_or_ref: str | Mesh) -> TensorSharding:
        """Returns the closed sharding of a placement."""
        closed = TensorSharding.closed_with(map(self.refs, placement.dims), mesh_or_ref)
        unreduced = sort_and_merge((self.atoms[axis] for axis in placement.unreduced), self.mesh)
        return TensorSharding(mesh_or_ref, closed.dim_shardings, (), unreduced, placement.reduction)

    def refs(self, axes: GridAxes) -> Axes:
        """Returns the axes and sub-axes of the mesh that grid axes make up, in their order."""
        found = self._refs.get(axes)
        if found is None:
            found = self._refs[axes] = add_axes_or_merge((), (self.atoms[axis] for axis in axes), self.mesh)
        return found


@lru_cache(maxsize=4096)
def _coarsest(mesh: Mesh, axes: Axes, name: str) -> Grid:
    for axis in axes:
        if violation := check_axis_ref(axis, mesh):
            raise ValueError(f"mesh {name or mesh}: {violation}")
    for full in mesh.axes:
        refs = [ref for ref in axes if ref.name == full.name]
        cuts = {1, full.size}.union(*({ref.pre_size, ref.next_pre_size(mesh)} for ref in refs))
        for smaller, larger in pairwise(sorted(cuts)):
            if larger % smaller:
                raise ValueError(
                    f'sub-axes split axis "{full.name}" of mesh {name or mesh} at {smaller} and at {larger}, but no '
                    "grid has axes for both"
                )
    return Grid(mesh, split_mesh_axes(axes, mesh))


@lru_cache(maxsize=4096)
def _finest(mesh: Mesh, atoms: Axes) -> Grid:
    result: list[AxisRef] = []
    for atom in atoms:
        factors = prime_factors(atom.size(mesh))
        pre_size = atom.pre_size
        for factor in factors:
            result.append(AxisRef.sub(atom.name, pre_size, factor))
            pre_size *= factor
        if len(factors) <= 1:
            result[len(result) - len(factors) :] = [atom]
    return Grid(mesh, tuple(result))
