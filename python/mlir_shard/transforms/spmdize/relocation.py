# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shards that a mesh has on other devices than the grid does, where they enter and leave a function.

A grid numbers its devices in order. A mesh whose devices are permuted otherwise than by the order of axes is taken for
one in order, as the value of a tensor does not depend on which device holds which shard. Its own order matters where a
caller holds the shards: there devices are permuted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid


@dataclass(frozen=True, slots=True)
class Relocation:
    """A permutation of devices: each gets the local tensor of process `source[process]`."""

    source: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The process that gets the local tensor of each."""
        found = [0] * len(self.source)
        for receiver, sender in enumerate(self.source):
            found[sender] = receiver
        return tuple(found)


def arriving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the mesh has shards to where the grid has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(_positions(mesh), range(mesh.total_size), placement, grid)


def leaving(mesh: Mesh, placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """From where the grid has shards to where the mesh has them; None where that is the same."""
    if mesh not in grid.reordered:
        return None
    return _between(range(mesh.total_size), _positions(mesh), placement, grid)


def _positions(mesh: Mesh) -> list[int]:
    """The position in the mesh of each device."""
    found = [0] * mesh.total_size
    for position, device in enumerate(mesh.devices):
        found[device] = position
    return found


def _between(held: Sequence[int], wanted: Sequence[int], placement: Placement, grid: DeviceGrid) -> Relocation | None:
    """The permutation in which a device that holds what it needs keeps it."""

    def shards(positions: Sequence[int]) -> list[tuple[int, ...]]:
        return [tuple(grid.position(axes, position) for axes in placement.dims) for position in positions]

    has, needs = shards(held), shards(wanted)
    if has == needs:
        return None
    spare: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for process, shard in enumerate(has):
        if needs[process] != shard:
            spare[shard].append(process)
    senders = [process if has[process] == shard else spare[shard].pop(0) for process, shard in enumerate(needs)]
    return Relocation(tuple(senders))
