# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that enter or leave a function on other devices than the grid has them."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.layout import device_array
from mlir_shard.transforms.device_grid import DeviceGrid

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relocation:
    """A permutation of devices: each gets the local tensor of process `source[process]`."""

    source: tuple[int, ...]


def arriving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the mesh has shards to where the grid has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(_relocated_positions(mesh), grid.processes(), placement, grid)


def leaving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the grid has shards to where the mesh has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(grid.processes(), _relocated_positions(mesh), placement, grid)


def _relocated_positions(mesh: Mesh) -> _Numbers:
    """The position in the mesh of each device."""
    return np.argsort(device_array(mesh))


def _between(held: _Numbers, wanted: _Numbers, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """The permutation in which a device that holds what it needs keeps it."""
    axes = tuple(axis for of_dim in placement.dims for axis in of_dim)
    has, needs = (grid.positions(axes, positions).tolist() for positions in (held, wanted))
    if has == needs:
        return None
    spare: defaultdict[int, deque[int]] = defaultdict(deque)
    for process, number in enumerate(has):
        if needs[process] != number:
            spare[number].append(process)
    senders = [process if has[process] == number else spare[number].popleft() for process, number in enumerate(needs)]
    return Relocation(tuple(senders))
