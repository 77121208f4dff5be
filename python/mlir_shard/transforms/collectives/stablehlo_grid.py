# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives in StableHLO, on a device grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.deferred import numpy as np
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.device_permutation import axis_orders
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.rules.reduction import STABLEHLO_OPS, Combiner, neutral_number
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp
from mlir_shard.transforms.collectives import separate_reduction
from mlir_shard.transforms.collectives.separate_reduction import stablehlo_forms
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram, as_index
from mlir_shard.transforms.collectives.stablehlo_halo import with_borders
from mlir_shard.transforms.collectives.tile_exchange import TileForms, exchange
from mlir_shard.transforms.device_grid import DeviceGrid


class StablehloGridCollectives:
    """The `GridBuilder` of StableHLO: process p of the grid is device `device_ids[p]`, or by default device p."""

    def __init__(self, program: StablehloProgram, grid: DeviceGrid, device_ids: tuple[int, ...] = ()) -> None:
        self._grid = grid
        self._device_ids = device_ids
        self._devices = device_ids or range(grid.real_mesh.total_size)
        self._builder = program.on(Mesh(grid.real_mesh.axes, device_ids))

    def group_size(self, axes: Sequence[int]) -> int:
        """Returns the number of devices along axes."""
        return self._grid.blocks(axes)

    def all_gather(self, value: Any, axes: Mapping[int, Sequence[int]]) -> Any:
        """Gathers dimensions."""
        return self._builder.all_gather(value, self._per_dim(axes))

    def all_slice(self, value: Any, axes: Mapping[int, Sequence[int]]) -> Any:
        """Slices all dimensions at once."""
        return self._builder.all_slice(value, self._per_dim(axes))

    def all_to_all(self, value: Any, moves: Sequence[tuple[int, int, Sequence[int]]]) -> Any:
        """Moves axes between dimensions."""
        return self._builder.all_to_all(value, [(source, target, self._refs(axes)) for source, target, axes in moves])

    def all_reduce(self, value: Any, axes: Sequence[int], kind: ReductionOp | Combiner) -> Any:
        """Reduces over the devices along axes; bitwise by a gather, as XLA does not reduce integers bitwise."""
        if mesh := self._grid.separate_mesh_of(axes):
            forms = stablehlo_forms(STABLEHLO_OPS[Combiner(kind.value)])
            return separate_reduction.all_reduce(value, mesh, self._grid.separate_axes(axes), self, forms)
        refs, combiner = self._refs(sorted(axes)), Combiner(kind.value)
        neutral = neutral_number(combiner, value.type.element_type)
        if not combiner.is_bitwise or neutral is None:
            return self._builder.all_reduce(value, refs, kind)
        gathered = self._builder.all_gather(stablehlo.reshape(value, [1, *value.type.shape]), {0: refs})
        initial = stablehlo.scalar(neutral, value.type.element_type)
        return stablehlo.combining(
            "reduce", value.type, [gathered, initial], STABLEHLO_OPS[combiner], dimensions=stablehlo.sizes([0])
        )

    def reduce_scatter(self, value: Any, axes: Mapping[int, Sequence[int]], kind: ReductionOp) -> Any:
        """Reduces and scatters dimensions."""
        return self._builder.reduce_scatter(value, self._per_dim(axes), kind)

    def device_index(self, axes: Sequence[int]) -> Any:
        """Returns this device's position along axes, as an `index` value."""
        return as_index(self.table(axes, lambda at: at))

    def table(self, axes: Sequence[int], entry: Callable[[int], int], element_type: Any = None) -> Any:
        """Returns this device's entry of a table of all devices."""
        if any(axis >= len(self._grid.shape) for axis in axes):
            positions = self._grid.positions(axes, self._grid.processes()).tolist()
            entries = stablehlo.numbers(list(map(entry, positions)), element_type)
            every_axis = self._refs(range(len(self._grid.shape)))
            return stablehlo.dynamic_slice(entries, [self._builder.shard_number(every_axis)], [1])
        return self._builder.table(self._refs(axes), entry, element_type)

    def resized(self, value: Any, shape: Sequence[int]) -> Any:
        """Returns the local tensor cut, or padded with zeros, at the end of each dimension."""
        cut = [min(old, new) for old, new in zip(value.type.shape, shape, strict=True)]
        value = stablehlo.first(value, cut)
        if cut == list(shape):
            return value
        zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
        return stablehlo.pad_behind(value, zero, shape)

    def permute_shards(self, value: Any, before: Placement, after: Placement) -> Any:
        """Permutes by pairs of devices."""
        grid = self._grid
        sent, received = (grid.positions(axes, grid.processes()) for axes in axis_orders(before, after, grid.shape))
        return self.relocate(value, np.argsort(sent)[received].tolist())

    def relocate(self, value: Any, sources: Sequence[int]) -> Any:
        """Permutes by pairs of devices."""
        pairs = ((self._devices[source], self._devices[target]) for target, source in enumerate(sources))
        return self._builder.permute(value, sorted(pairs))

    def exchange_tiles(self, value: Any, source: TensorLayout, target: TensorLayout, shape: Sequence[int]) -> Any:
        """Permutes a tile in each round."""
        if self._device_ids:
            mesh = replace(source.mesh, device_ids=self._device_ids)
            source, target = replace(source, mesh=mesh), replace(target, mesh=mesh)
        forms = TileForms(
            lambda type_: stablehlo.splat(type_, 0),
            stablehlo.reshape,
            stablehlo.first,
            lambda value, starts, shape: stablehlo.dynamic_slice(value, _scalars(starts), shape),
            lambda tile, into, starts: stablehlo.build(
                "dynamic_update_slice", into.type, into, tile, *_scalars(starts)
            ),
            self._builder.entry_of_device,
            lambda tile, of_round: self._builder.permute(tile, of_round.pairs),
        )
        return exchange(value, source, target, shape, len(self._devices), forms)

    def exchange_halo(self, value: Any, dim: int, axes: GridAxes, halo: WindowHalo) -> Any:
        """Permutes borders; elements from further away have a permutation of their own."""
        return with_borders(value, dim, self._refs(axes), halo, self._builder)

    def broadcast_first(self, value: Any) -> Any:
        """Sums the value of the first process and zeros of the others."""
        return self._builder.broadcast_first(value)

    def _refs(self, axes: Sequence[int]) -> tuple[AxisRef, ...]:
        self._grid.check_in_grid(axes)
        return tuple(self._grid.atoms[axis] for axis in axes)

    def _per_dim(self, axes: Mapping[int, Sequence[int]]) -> dict[int, tuple[AxisRef, ...]]:
        return {dim: self._refs(along) for dim, along in axes.items()}


def _scalars(starts: Sequence[Any]) -> list[Any]:
    return [stablehlo.scalar(one) if isinstance(one, int) else one for one in starts]
