# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor on a grid of devices: the layouts of its placements, and its placements after moves."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.resharding.cost.lower_bound import blocks_nest
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import CollectivePermute, DirectExchange, GridAxes, Move, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.sharding.axes import Axes


@dataclass(frozen=True, slots=True)
class GridTensor:
    """A tensor of `shape`, with elements of `element_size` bytes."""

    grid: Grid
    shape: tuple[int, ...]
    element_size: int

    def layout(self, placement: Placement) -> TensorLayout:
        """Returns the layout of a placement on the grid as a mesh. Raises ValueError if the placement does not fit."""
        return TensorLayout(self._sharding(placement), self.grid.as_mesh, self.shape)

    def after(self, move: Move, before: Placement) -> Placement:
        """Returns the placement after a move.

        Raises ValueError if the move is not possible: its axes are not where it needs them, or, for a collective,
        uneven shards are cut at other places before and after, so that groups do not hold the elements that their
        devices need.
        """
        after = move.apply(before)
        if isinstance(move, CollectivePermute):
            if self._blocks(before) != self._blocks(after):
                raise ValueError(
                    f"no permutation of devices converts {before} to {after}: the numbers of shards differ"
                )
        elif not isinstance(move, DirectExchange):
            for dim, (size, old, new) in enumerate(zip(self.shape, before.dims, after.dims, strict=True)):
                if old == new:
                    continue
                blocks, new_blocks = self.grid.num_devices(old), self.grid.num_devices(new)
                if not blocks_nest(size, blocks, new_blocks):
                    raise ValueError(
                        f"dimension {dim} of {size} elements has {blocks} shards before and {new_blocks} after, "
                        "whose boundaries do not align: only a direct exchange can convert one to the other"
                    )
        return after

    def local_bytes(self, placement: Placement) -> int:
        """Returns the bytes of a local tensor, with its padding."""
        elements = self.element_size
        for size in self.layout(placement).local_shape:
            elements *= size
        return elements

    def _blocks(self, placement: Placement) -> tuple[int, ...]:
        return tuple(map(self.grid.num_devices, placement.dims))

    def _sharding(self, placement: Placement) -> TensorSharding:
        closed = TensorSharding.closed_with(map(as_mesh_axes, placement.dims), "grid")
        unreduced = as_mesh_axes(tuple(sorted(placement.unreduced)))
        return TensorSharding("grid", closed.dim_shardings, (), unreduced, placement.reduction)


def as_mesh_axes(axes: GridAxes) -> Axes:
    """Returns grid axes as axes of `Grid.as_mesh`."""
    return tuple(AxisRef(str(axis)) for axis in axes)
