# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From which devices what a device holds after a step has come to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.resharding.tiles import segments_by_target
from mlir_shard.sharding.layout import Box

MOST_TILES = 256
"""Of how many tiles a device's box may be for them to be told apart."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A box of the tensor and the devices that it is from, more than one where their values are reduced."""

    box: Box
    senders: tuple[int, ...]


def origins(source: TensorLayout, target: TensorLayout, receivers: Collection[int]) -> dict[int, tuple[Origin, ...]]:
    """For each receiver the tiles of its box, each from the nearest device that held it before: itself, if it did.

    Nothing of a device whose box is of more than `MOST_TILES` tiles. ValueError where there is no way from one layout
    to the other.
    """
    held = source.holdings(reduced_axes(source, target))
    positions = {device: position for position, device in enumerate(source.mesh.devices)}
    dims = [segments_by_target(*grids) for grids in zip(source.shape, source.blocks, target.blocks, strict=True)]

    def tiles(device: int, wanted: tuple[int, ...]) -> Iterator[Origin]:
        for tile in product(*(dim[block] for dim, block in zip(dims, wanted, strict=True))):
            blocks = tuple(segment.source_block for segment in tile)
            senders = (held.nearest(positions[device], blocks, partial) for partial in range(held.num_partials))
            box = Box(tuple(segment.start for segment in tile), tuple(segment.size for segment in tile))
            yield Origin(box, tuple(source.mesh.devices[sender] for sender in senders))

    return {
        device: tuple(tiles(device, wanted))
        for device, wanted in zip(target.mesh.devices, target.holdings().blocks, strict=True)
        if device in receivers and prod(len(dim[block]) for dim, block in zip(dims, wanted, strict=True)) <= MOST_TILES
    }
