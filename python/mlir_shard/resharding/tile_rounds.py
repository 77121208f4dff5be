# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The direct exchange for programs with static shapes, in rounds of tiles of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import numpy as np
from mlir_shard.resharding.direct_exchange import between_devices, tile_dims
from mlir_shard.resharding.exchange_rounds import round_numbers
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import total_size

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

NO_DEVICE = -1


@dataclass(frozen=True, slots=True, eq=False)
class TileRound:
    """Tiles of one shape, each of which a device sends to another one or, in a local copy, to itself.

    shape: the shape of the tiles.
    senders: for each device, the device whose tile it receives, or NO_DEVICE.
    receivers: for each device, the device that receives its tile, or NO_DEVICE.
    source_starts: for each device, by dimension, the start of the tile that it sends in its local tensor before the
        exchange; 0 if it sends no tile.
    target_starts: for each device, by dimension, the start of the tile that it receives in its local tensor after the
        exchange; 0 if it receives no tile.
    """

    shape: tuple[int, ...]
    senders: Integers
    receivers: Integers
    source_starts: Integers
    target_starts: Integers

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The sender and the receiver of each tile, in the order of the receivers."""
        return [(sender, device) for device, sender in enumerate(self.senders.tolist()) if sender != NO_DEVICE]

    @property
    def is_copy(self) -> bool:
        """Whether no device receives a tile from another one."""
        return all(sender == receiver for sender, receiver in self.pairs)


@lru_cache(maxsize=64)
def tile_rounds(source: TensorLayout, target: TensorLayout, devices: int = 0) -> tuple[TileRound, ...]:
    """Returns the rounds between two layouts, local copies first; nothing is reduced.

    They are for devices 0, 1, ..., at least `devices` of them and all of the two meshes.

    Raises:
        ValueError: the layouts cannot be exchanged (see `reduced_axes`), or partial values would have to be reduced.
    """
    if total_size(reduced_axes(source, target), source.mesh) > 1:
        raise ValueError("an exchange in rounds of tiles cannot reduce")
    devices = max(devices, 1 + max(target.mesh.devices_with(source.mesh)))
    tiles = _SentTiles.between(source, target).by_shape()
    is_copy = [of_shape.where(of_shape.senders == of_shape.receivers) for of_shape in tiles]
    is_sent = [of_shape.where(of_shape.senders != of_shape.receivers) for of_shape in tiles]
    copies = [of_shape.round(devices) for of_shape in is_copy if len(of_shape)]
    return (*copies, *(one for of_shape in is_sent for one in of_shape.rounds(devices)))


def as_vector(layout: TensorLayout) -> TensorLayout:
    """Returns the layout of a vector of one element, for the layout of a scalar."""
    return TensorLayout(TensorSharding.fully_closed(1, layout.sharding.mesh_or_ref), layout.mesh, (1,))


@dataclass(frozen=True, slots=True)
class _SentTiles:
    """Tiles by number: their senders and receivers, their sizes, and their starts in local tensors.

    A device sends another one a single tile: the intersection of the sender's shard and the receiver's.
    """

    senders: Integers
    receivers: Integers
    sizes: Integers
    source_starts: Integers
    target_starts: Integers

    @staticmethod
    def between(source: TensorLayout, target: TensorLayout) -> _SentTiles:
        """Returns the tiles of an exchange that reduces nothing."""
        if source.mesh.has_same_devices(target.mesh):
            return _SentTiles._on_same_devices(source, target)
        found = list(between_devices(source, target))
        senders, receivers = (np.array([one[end] for one in found], np.int64) for end in (0, 1))
        by_tile = [(tile.box.size, tile.source_start, tile.target_start) for _, _, tile in found]
        columns = np.array(by_tile, np.int64).reshape(len(found), 3, source.rank)
        return _SentTiles(senders, receivers, *(columns[:, column] for column in range(3)))

    @staticmethod
    def _on_same_devices(source: TensorLayout, target: TensorLayout) -> _SentTiles:
        """Returns the tiles of `direct_exchange` between layouts on the same devices, of all devices at once."""
        own, wanted = (np.array(layout.holdings().blocks, np.int64) for layout in (source, target))
        at_source = {device: position for position, device in enumerate(source.mesh.devices)}
        positions = np.array([at_source[device] for device in target.mesh.devices], np.int64)
        grids = zip(source.shape, source.blocks, target.blocks, strict=True)
        dims = [tile_dims(*of_dim) for of_dim in grids]
        counts = [max(map(len, of_dim)) for of_dim in dims]
        # By device, and by the number of the tile in each dimension; tiles beyond the last one of a shard are empty.
        shape = (len(positions), *counts)
        senders = np.broadcast_to(positions.reshape(-1, *(1 for _ in counts)), shape).copy()
        columns = np.zeros((3, *shape, source.rank), np.int64)
        for dim, (of_dim, offsets) in enumerate(zip(dims, source.holdings().block_offsets, strict=True)):
            table = np.zeros((4, len(of_dim), counts[dim]), np.int64)
            for block, parts in enumerate(of_dim):
                for number, one in enumerate(parts):
                    table[:, block, number] = offsets[one.block], one.size, one.source_start, one.target_start
            along = [1] * len(shape)
            along[0], along[dim + 1] = shape[0], shape[dim + 1]
            offset, *rest = table[:, wanted[:, dim]]
            senders += (offset - np.array(offsets, np.int64)[own[positions, dim]][:, None]).reshape(along)
            for column, of_tile in zip(columns, rest, strict=True):
                column[..., dim] = of_tile.reshape(along)
        receivers = np.repeat(np.array(target.mesh.devices, np.int64), prod(counts))
        devices = np.array(source.mesh.devices, np.int64)
        flat = (column.reshape(senders.size, source.rank) for column in columns)
        return _SentTiles(devices[senders.reshape(-1)], receivers, *flat)

    def __len__(self) -> int:
        return len(self.senders)

    def where(self, chosen: Any) -> _SentTiles:
        """Returns the tiles that a mask or a list of numbers selects."""
        columns = self.senders, self.receivers, self.sizes, self.source_starts, self.target_starts
        return _SentTiles(*(column[chosen] for column in columns))

    def by_shape(self) -> list[_SentTiles]:
        """Returns the tiles that are not empty by their shape, large shapes first."""
        # The index of each size among those of its dimension is a digit of one number, as sorting rows takes longer.
        keys = np.zeros(len(self), np.int64)
        for of_dim in self.sizes.T:
            sizes = np.unique(of_dim)
            keys = keys * len(sizes) + np.searchsorted(sizes, of_dim)
        _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
        is_shape = [self.sizes[first].all() for first in firsts]
        return [self.where(numbers == number) for number in reversed(range(len(firsts))) if is_shape[number]]

    def rounds(self, devices: int) -> Iterator[TileRound]:
        """Yields the rounds of these tiles, which have one shape and are not copies."""
        ordered = self.where(np.lexsort((self.receivers, self.senders)))
        pairs = list(zip(ordered.senders.tolist(), ordered.receivers.tolist(), strict=True))
        numbers = np.array(round_numbers(pairs), np.int64)
        for number in range(numbers.max(initial=-1) + 1):
            yield ordered.where(numbers == number).round(devices)

    def round(self, devices: int) -> TileRound:
        """Returns the round of all of these tiles, which have one shape."""

        def by_device(places: Integers, values: Integers, otherwise: int) -> Integers:
            found = np.full((devices, *values.shape[1:]), otherwise, np.int64)
            found[places] = values
            return found

        return TileRound(
            tuple(self.sizes[0].tolist()),
            by_device(self.receivers, self.senders, NO_DEVICE),
            by_device(self.senders, self.receivers, NO_DEVICE),
            by_device(self.senders, self.source_starts, 0),
            by_device(self.receivers, self.target_starts, 0),
        )
