# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a StableHLO program knows which device runs it, and what of a table is meant for that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.resharding.shard_shift import Digit
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axis_lists import Axes, total_size
from mlir_shard.sharding.layout import device_array


@lru_cache(maxsize=1024)
def positions_along(axes: Axes, mesh: Mesh) -> tuple[int, ...]:
    """The position along axes, major to minor, of each device, by the number of the device."""
    return tuple(_positions(axes, mesh).tolist())


@lru_cache(maxsize=1024)
def _positions(axes: Axes, mesh: Mesh) -> npt.NDArray[np.int64]:
    places = np.arange(mesh.listed_size, dtype=np.int64)
    positions = np.zeros_like(places)
    for axis in axes:
        digit = Digit.of(axis, mesh)
        positions = positions * digit.size + places // digit.stride % digit.size
    found = np.zeros_like(places)
    found[device_array(mesh)] = positions
    return found


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """Entries of tables for the device that runs a program, built at the current insertion point and location.

    Devices are told apart by the number of their replica, or else of their partition.
    """

    by_replica: bool

    def device(self) -> Any:
        """The number of this device, a scalar of i64."""
        own = stablehlo.tensor(ir.IntegerType.get_unsigned(32))
        return stablehlo.convert(stablehlo.build(f"{self._kind}_id", own), stablehlo.i64())

    @property
    def _kind(self) -> str:
        return "replica" if self.by_replica else "partition"

    def entry(self, axes: Sequence[AxisRef], mesh: Mesh, value: Callable[[int], int], type_: Any = None) -> Any:
        """What `value` is of this device's position along axes, a tensor of one element of i64 or another type."""
        device = self.device()
        by_position = np.array([value(position) for position in range(total_size(axes, mesh))], np.int64)
        table = stablehlo.numbers(by_position[_positions(tuple(axes), mesh)], type_)
        return stablehlo.dynamic_slice(table, [device], [1])

    def block(self, value: Any, axes_per_dim: Sequence[Sequence[AxisRef]], mesh: Mesh, shape: Sequence[int]) -> Any:
        """The block of this shape, along the axes of each dimension, of a value that this device has whole."""
        return stablehlo.dynamic_slice(value, self.starts(axes_per_dim, mesh, shape), shape)

    def starts(self, axes_per_dim: Sequence[Sequence[AxisRef]], mesh: Mesh, shape: Sequence[int]) -> list[Any]:
        """Where this device's block of this shape begins in each dimension, scalars of i64."""
        starts = []
        for axes, size in zip(axes_per_dim, shape, strict=True):
            if axes:
                entry = self.entry(axes, mesh, size.__mul__)
                starts.append(stablehlo.reshape(entry, ()))
            else:
                starts.append(stablehlo.splat(stablehlo.tensor(stablehlo.i64()), 0))
        return starts
