# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The resharding problems: all pairs of shardings of one kind, of tensors of one rank, on one mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import product

from unit.resharding.every_layout import full_axes, halves, mesh_of, shardings

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import axes_difference

Shape = tuple[int, ...]
MESHES = tuple(mesh_of(*sizes) for sizes in [(2, 2), (2, 3), (2, 2, 2), (4, 2), (3, 5)])
RANKS = (1, 2, 3)


class Kind(Enum):
    """The kind of the shardings of a pair."""

    AXES = "axes"
    SUB_AXES = "sub-axes"
    UNREDUCED = "unreduced axes"
    UNREDUCED_SUB_AXES = "unreduced sub-axes"
    REORDERED = "devices in another order"

    @property
    def has_sub_axes(self) -> bool:
        """True if axes of size 4 are split in two."""
        return self in (Kind.SUB_AXES, Kind.UNREDUCED_SUB_AXES)

    @property
    def has_unreduced(self) -> bool:
        """True if sources are partial along some axes, and targets along all of these axes, some or none."""
        return self in (Kind.UNREDUCED, Kind.UNREDUCED_SUB_AXES)


@dataclass(frozen=True)
class Problems:
    """All pairs of shardings of a kind: ordered axes, and each placement of each subset of them."""

    mesh: Mesh
    rank: int
    kind: Kind

    @staticmethod
    def of_kinds(meshes: tuple[Mesh, ...], ranks: tuple[int, ...], kinds: tuple[Kind, ...]) -> list[Problems]:
        """Returns the problems of the kinds: those with sub-axes only if an axis can be split."""
        every = (Problems(*of) for of in product(meshes, ranks, kinds))
        return [one for one in every if not one.kind.has_sub_axes or halves(one.mesh) != full_axes(one.mesh)]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Sizes that all numbers of shards divide, that few divide, that are less than the mesh; for axes also zero."""
        devices = self.mesh.total_size
        every = [(devices, 2 * devices, devices), (devices + 3, 7, 2 * devices - 1), (2, 3, 1)]
        if self.kind is Kind.AXES:
            every += [(5, devices - 1, 9), (1, devices + 1, 4), (0, devices, 3)]
        return tuple(shape[: self.rank] for shape in every)

    @cached_property
    def pairs(self) -> tuple[tuple[TensorSharding, TensorSharding], ...]:
        """Sources and targets. For a kind with partial values, each source has some; others are of another kind."""
        parts = halves(self.mesh) if self.kind.has_sub_axes else full_axes(self.mesh)
        every = shardings(self.mesh, parts, self.rank, unreduced=self.kind.has_unreduced)
        if not self.kind.has_unreduced:
            return tuple(product(every, every))
        return tuple(
            (source, target)
            for source, target in product(every, repeat=2)
            if source.unreduced_axes and not axes_difference(target.unreduced_axes, source.unreduced_axes, self.mesh)
        )

    @property
    def target_mesh(self) -> Mesh:
        """The mesh of the targets."""
        if self.kind is not Kind.REORDERED:
            return self.mesh
        # The last device comes first, so that no device keeps its place.
        *first, last = self.mesh.devices
        return Mesh(self.mesh.axes, (last, *first))

    def layouts(self, shape: Shape) -> Iterator[tuple[TensorLayout, TensorLayout]]:
        """Yields the layouts of the pairs for a tensor of this shape."""
        sources, targets = (dict.fromkeys(ends) for ends in zip(*self.pairs, strict=True))
        before = {source: TensorLayout(source, self.mesh, shape) for source in sources}
        after = {target: TensorLayout(target, self.target_mesh, shape) for target in targets}
        return ((before[source], after[target]) for source, target in self.pairs)
