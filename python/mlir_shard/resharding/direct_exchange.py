# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The direct exchange: devices send each other the tiles of their target boxes, in rounds without contention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import product
from typing import NamedTuple

from mlir_shard.resharding.cost.lower_bound import segments_by_target
from mlir_shard.resharding.exchange_rounds import in_rounds
from mlir_shard.resharding.tensor_layout import Blocks, TensorLayout, reduced_axes
from mlir_shard.sharding.axes import Axes, total_size
from mlir_shard.sharding.layout import Box, block_size


@dataclass(frozen=True, slots=True)
class Tile:
    """A box of the global tensor, and its start in the local tensors of its sender and its receiver."""

    box: Box
    source_start: tuple[int, ...]
    target_start: tuple[int, ...]

    @property
    def source_box(self) -> Box:
        """The part of the sender's local tensor that is sent."""
        return Box(self.source_start, self.box.size)

    @property
    def target_box(self) -> Box:
        """The part of the receiver's local tensor that is written."""
        return Box(self.target_start, self.box.size)


@dataclass(frozen=True, slots=True)
class Message:
    """The tiles that one device sends another in a round; a message of a device to itself is a copy in no round."""

    sender: int
    receiver: int
    tiles: tuple[Tile, ...]

    @property
    def is_copy(self) -> bool:
        """Whether the sender is the receiver."""
        return self.sender == self.receiver

    @property
    def num_elements(self) -> int:
        """The number of elements sent."""
        return sum(tile.box.num_elements for tile in self.tiles)


Round = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """Messages that do not depend on each other, in rounds, and the local copies."""

    copies: tuple[Message, ...]
    rounds: tuple[Round, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of all rounds."""
        return tuple(message for one in self.rounds for message in one)


@dataclass(frozen=True, slots=True)
class ExchangeMessages:
    """The messages that bring a tensor from the layout `source` to the layout `target`.

    `reducing` exists only if partial values are reduced: its tiles go from source tensors to target tensors, and tiles
    for one place are reduced. The tiles of `moving` go from source tensors to target tensors, or after a reduction from
    target tensors to target tensors.
    """

    source: TensorLayout
    target: TensorLayout
    moving: Phase
    reducing: Phase | None = None

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases in order."""
        return (self.moving,) if self.reducing is None else (self.reducing, self.moving)

    @property
    def num_rounds(self) -> int:
        """The number of rounds of all phases."""
        return sum(len(phase.rounds) for phase in self.phases)

    def bytes_received(self, element_size: int) -> tuple[int, ...]:
        """Returns the bytes that each device receives: the devices of the target, then those only in the source."""
        return self._per_device((message.receiver, message.num_elements * element_size) for message in self._messages)

    def bytes_sent(self, element_size: int) -> tuple[int, ...]:
        """Returns the bytes that each device sends: the devices of the target, then those only in the source."""
        return self._per_device((message.sender, message.num_elements * element_size) for message in self._messages)

    @property
    def _messages(self) -> tuple[Message, ...]:
        return tuple(message for phase in self.phases for message in phase.messages)

    def _per_device(self, amounts: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        total = dict.fromkeys(self.target.mesh.devices_with(self.source.mesh), 0)
        for device, amount in amounts:
            total[device] += amount
        return tuple(total.values())


def direct_exchange(source: TensorLayout, target: TensorLayout) -> ExchangeMessages:
    """Returns the exchange between two layouts of one tensor; all devices together receive the lower bound of bytes.

    The two may be on different devices, fewer or more: those that are only in the target receive their entire boxes.

    If nothing is reduced, each device alone also receives its lower bound. Raises ValueError as `reduced_axes` does.
    """
    axes = reduced_axes(source, target)
    if total_size(axes, source.mesh) > 1:
        return _with_reduction(source, target, axes)
    return ExchangeMessages(source, target, _moving(source, target).phase())


def _moving(source: TensorLayout, target: TensorLayout) -> _Messages:
    """Returns the messages of an exchange that reduces nothing."""
    moving = _Messages()
    if not source.mesh.has_same_devices(target.mesh):
        for sender, receiver, tile in between_devices(source, target):
            moving.add(sender, receiver, tile)
        return moving
    senders, tiles = source.mesh.devices, _Tiles(source, target)
    at_source = {device: position for position, device in enumerate(senders)}
    held = source.holdings()
    for device, wanted in zip(target.mesh.devices, target.holdings().blocks, strict=True):
        for blocks, tile in tiles.of(wanted):
            moving.add(senders[held.nearest(at_source[device], blocks, 0)], device, tile)
    return moving


def between_devices(source: TensorLayout, target: TensorLayout) -> Iterator[tuple[int, int, Tile]]:
    """Yields sender, receiver and tile, from one set of devices to another one.

    A device keeps the tile of its target box that it holds; any other tile is from the holder that has least to send so
    far.
    """
    tiles = _Tiles(source, target)
    held = dict(zip(source.mesh.devices, source.holdings().blocks, strict=True))
    # Each device holds one shard, so it is in one heap, by the amount that it sends and its number.
    holders: defaultdict[Blocks, list[tuple[int, int]]] = defaultdict(list)
    for device, blocks in held.items():
        holders[blocks].append((0, device))
    for of_block in holders.values():
        heapify(of_block)
    wanted = zip(target.mesh.devices, target.holdings().blocks, strict=True)
    found = [(device, blocks, tile) for device, own in wanted for blocks, tile in tiles.of(own)]
    # Large tiles first, so that devices send amounts as equal as possible.
    for receiver, blocks, tile in sorted(found, key=lambda one: -one[2].box.num_elements):
        if held.get(receiver) == blocks:
            yield receiver, receiver, tile
            continue
        amount, sender = holders[blocks][0]
        heapreplace(holders[blocks], (amount + tile.box.num_elements, sender))
        yield sender, receiver, tile


def _with_reduction(source: TensorLayout, target: TensorLayout, axes: Axes) -> ExchangeMessages:
    devices, tiles = source.mesh.devices, _Tiles(source, target)
    held, kept = source.holdings(axes), target.holdings(target.sharding.unreduced_axes)
    wanting: defaultdict[tuple[int, Blocks], list[int]] = defaultdict(list)
    for position, content in enumerate(zip(kept.partials, kept.blocks, strict=True)):
        wanting[content].append(position)
    reducing, moving = _Messages(), _Messages()
    for (_, wanted), positions in wanting.items():
        for blocks, tile in tiles.of(wanted):
            # A device that has a partial value of its own needs one less.
            owners = [position for position in positions if held.blocks[position] == blocks] or positions
            for owner, piece in zip(owners, _pieces(tile, len(owners)), strict=False):
                for partial in range(held.num_partials):
                    reducing.add(devices[held.nearest(owner, blocks, partial)], devices[owner], piece)
                in_place = Tile(piece.box, piece.target_start, piece.target_start)
                for position in positions:
                    if position != owner:
                        moving.add(devices[owner], devices[position], in_place)
    return ExchangeMessages(source, target, moving.phase(), reducing.phase())


class TileDim(NamedTuple):
    """A tile in one dimension: the index of its source shard, and its start and size."""

    block: int
    start: int
    size: int
    source_start: int
    target_start: int


class _Tiles:
    """The tiles of each target shard, with the source shards that they are in."""

    def __init__(self, source: TensorLayout, target: TensorLayout) -> None:
        grids = zip(source.shape, source.blocks, target.blocks, strict=True)
        self._dims = [tile_dims(*of_dim) for of_dim in grids]
        self._known: dict[Blocks, tuple[tuple[Blocks, Tile], ...]] = {}

    def of(self, wanted: Blocks) -> tuple[tuple[Blocks, Tile], ...]:
        found = self._known.get(wanted)
        if found is None:
            dims = (of_block[block] for of_block, block in zip(self._dims, wanted, strict=True))
            found = self._known[wanted] = tuple(map(_tile, product(*dims)))
        return found


def tile_dims(size: int, source_blocks: int, target_blocks: int) -> list[list[TileDim]]:
    """Returns, for each target shard of a dimension, the tiles that it takes from source shards."""
    steps = block_size(size, source_blocks), block_size(size, target_blocks)
    return [
        [
            TileDim(
                one.source_block,
                one.start,
                one.size,
                one.start - one.source_block * steps[0],
                one.start - one.target_block * steps[1],
            )
            for one in of_block
        ]
        for of_block in segments_by_target(size, source_blocks, target_blocks)
    ]


def _tile(dims: Sequence[TileDim]) -> tuple[Blocks, Tile]:
    if not dims:
        return (), Tile(Box((), ()), (), ())
    blocks, start, size, source_start, target_start = zip(*dims, strict=True)
    return blocks, Tile(Box(start, size), source_start, target_start)


def _pieces(tile: Tile, count: int) -> tuple[Tile, ...]:
    """Returns the tile in at most `count` pieces, cut along its largest dimension."""
    size = tile.box.size
    if not size:
        return (tile,)
    dim = size.index(max(size))
    step = block_size(size[dim], count)
    return tuple(_piece(tile, dim, offset, min(step, size[dim] - offset)) for offset in range(0, size[dim], step))


def _piece(tile: Tile, dim: int, offset: int, size: int) -> Tile:
    def moved(start: tuple[int, ...]) -> tuple[int, ...]:
        return (*start[:dim], start[dim] + offset, *start[dim + 1 :])

    box = Box(moved(tile.box.start), (*tile.box.size[:dim], size, *tile.box.size[dim + 1 :]))
    return Tile(box, moved(tile.source_start), moved(tile.target_start))


class _Messages:
    """The tiles that go from device to device, collected as they are found."""

    def __init__(self) -> None:
        self._tiles: defaultdict[tuple[int, int], list[Tile]] = defaultdict(list)

    def add(self, sender: int, receiver: int, tile: Tile) -> None:
        self._tiles[sender, receiver].append(tile)

    def all(self) -> list[Message]:
        return [Message(*pair, tuple(tiles)) for pair, tiles in self._tiles.items()]

    def phase(self) -> Phase:
        messages = {(message.sender, message.receiver): message for message in self.all()}
        copies = tuple(message for message in messages.values() if message.is_copy)
        # Large messages first, so that those of one round are of similar size.
        sent = sorted((pair for pair in messages if pair[0] != pair[1]), key=lambda one: -messages[one].num_elements)
        return Phase(copies, tuple(tuple(messages[pair] for pair in one) for one in in_rounds(sent)))
