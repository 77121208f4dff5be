# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of upstream's shard dialect, on a device grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

from mlir_shard.ir import shard
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.rules.reduction import Combiner
from mlir_shard.sharding import ReductionOp
from mlir_shard.transforms.collectives import separate_reduction, shard_permutations
from mlir_shard.transforms.collectives.separate_reduction import upstream_forms
from mlir_shard.transforms.collectives.shard_halo import with_halo
from mlir_shard.transforms.collectives.tile_exchange import TileForms, exchange
from mlir_shard.transforms.device_grid import DeviceGrid


class ShardCollectives:
    """The `GridBuilder` of upstream's shard dialect, with tensors and index arithmetic of upstream."""

    def __init__(self, grid: DeviceGrid) -> None:
        self._grid = grid
        self._name = grid.name

    def group_size(self, axes: Sequence[int]) -> int:
        """Returns the number of devices along axes."""
        return self._grid.blocks(axes)

    def all_gather(self, value: Any, axes: Mapping[int, Sequence[int]]) -> Any:
        """Gathers dimensions one by one."""
        self._grid.check_in_grid(axis for along in axes.values() for axis in along)
        for dim, along in axes.items():
            # Upstream's lowering to MPI ignores the order of the axes if they are all axes of the grid.
            ascending = list(along) == sorted(along)
            groups: Sequence[Sequence[int]] = [along] if ascending else [(axis,) for axis in reversed(along)]
            for group in groups:
                value = shard.all_gather(self._name, value, group, dim, self._grid.blocks(group))
        return value

    def all_slice(self, value: Any, axes: Mapping[int, Sequence[int]]) -> Any:
        """Slices dimensions one by one."""
        self._grid.check_in_grid(axis for along in axes.values() for axis in along)
        for dim, along in axes.items():
            value = shard.all_slice(self._name, value, along, dim, self._grid.blocks(along))
        return value

    def all_to_all(self, value: Any, moves: Sequence[tuple[int, int, Sequence[int]]]) -> Any:
        """Moves axes between different dimensions by one all-to-all along the axes of all."""
        self._grid.check_in_grid(axis for _, _, along in moves for axis in along)
        counts = [self._grid.blocks(axes) for _, _, axes in moves]
        if len(moves) == 1:
            ((source, target, axes),) = moves
            return shard.all_to_all(self._name, value, axes, target, source, counts[0])
        together = [axis for _, _, axes in moves for axis in axes]
        # One dimension in front counts the parts for each device of the group, then those of each device.
        parts = shard.split_to_front(value, [target for _, target, _ in moves], counts)
        shape = list(parts.type.shape)
        parts = shard.reshape(parts, [prod(counts), *shape[len(counts) :]])
        parts = shard.all_to_all(self._name, parts, together, 0, 0, prod(counts))
        return shard.join_from_front(shard.reshape(parts, shape), [source for source, _, _ in moves])

    def all_reduce(self, value: Any, axes: Sequence[int], kind: ReductionOp | Combiner) -> Any:
        """Reduces over the devices along axes."""
        if mesh := self._grid.separate_mesh_of(axes):
            forms = upstream_forms(Combiner(kind.value))
            return separate_reduction.all_reduce(value, mesh, self._grid.separate_axes(axes), self, forms)
        return shard.all_reduce(self._name, value, sorted(axes), kind.value)

    def reduce_scatter(self, value: Any, axes: Mapping[int, Sequence[int]], kind: ReductionOp) -> Any:
        """Reduces and scatters dimensions one by one."""
        self._grid.check_in_grid(axis for along in axes.values() for axis in along)
        for dim, along in axes.items():
            value = shard.reduce_scatter(self._name, value, along, dim, self._grid.blocks(along), kind)
        return value

    def device_index(self, axes: Sequence[int]) -> Any:
        """Returns this device's position along axes, as an `index` value."""
        return shard_permutations.device_index(axes, self._grid)

    def table(self, axes: Sequence[int], entry: Callable[[int], int], element_type: Any = None) -> Any:
        """Returns this device's entry of a table of the positions along axes."""
        return shard_permutations.table_entry(axes, entry, element_type, self._grid)

    def resized(self, value: Any, shape: Sequence[int]) -> Any:
        """Returns the local tensor cut, or padded with zeros, at the end of each dimension."""
        return shard.cut_or_padded(value, shape)

    def permute_shards(self, value: Any, before: Placement, after: Placement) -> Any:
        """Permutes by arithmetic on the positions along the axes that change."""
        return shard_permutations.along_axes(value, before, after, self._grid)

    def relocate(self, value: Any, sources: Sequence[int]) -> Any:
        """Permutes by tables."""
        return shard_permutations.by_table(value, sources, self._grid)

    def exchange_tiles(self, value: Any, source: TensorLayout, target: TensorLayout, shape: Sequence[int]) -> Any:
        """Sends and receives tiles in rounds."""
        grid = self._grid
        number = cache(lambda: shard_permutations.own_number(grid))
        forms = TileForms(
            shard.zeros,
            shard.reshape,
            shard.cut_or_padded,
            shard.extract_slice,
            shard.insert_slice,
            lambda by_process: shard_permutations.table_index(by_process, grid, number()),
            lambda tile, one: shard_permutations.between_some(tile, one, number(), grid),
        )
        return exchange(value, source, target, shape, prod(grid.shape), forms)

    def exchange_halo(self, value: Any, dim: int, axes: GridAxes, halo: WindowHalo) -> Any:
        """Updates halos; neighbours forward elements from further away, which they received before."""
        self._grid.check_in_grid(axes)
        return with_halo(value, dim, axes, halo, self._grid)

    def broadcast_first(self, value: Any) -> Any:
        """Broadcasts from the first process."""
        axes = list(range(len(self._grid.shape)))
        return shard.broadcast(self._name, value, axes, [0] * len(axes)) if axes else value
