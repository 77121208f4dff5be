# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A direct exchange as rounds in which every tile has one shape, for programs whose tensors have static shapes.

All messages of one shape are in as few rounds as the busiest device sends or receives of them; in a round a device
sends at most one tile and receives at most one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mlir_shard.resharding.direct_exchange import Message, direct_exchange
from mlir_shard.resharding.rounds import in_rounds
from mlir_shard.resharding.tensor_layout import TensorLayout

Start = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TileRound:
    """Tiles of `shape` that devices send, each to another one or, in a local copy, to itself.

    senders: for each device the one whose tile it gets, and receivers the one that gets its own; None where there is
    none. source_starts: where the tile that a device sends begins in its local tensor before the exchange;
    target_starts: where the tile that it gets begins in the one after it.
    """

    shape: tuple[int, ...]
    senders: tuple[int | None, ...]
    receivers: tuple[int | None, ...]
    source_starts: tuple[Start | None, ...]
    target_starts: tuple[Start | None, ...]

    @property
    def is_copy(self) -> bool:
        """Whether no device gets a tile from another one."""
        return all(sender in (None, device) for device, sender in enumerate(self.senders))


def tile_rounds(source: TensorLayout, target: TensorLayout) -> tuple[TileRound, ...]:
    """The rounds between two layouts on the devices 0, 1, ..., local copies first; nothing is reduced.

    Raises:
        ValueError: there is no exchange, see `reduced_axes`, or partial values would have to be reduced.
    """
    exchange = direct_exchange(source, target)
    if exchange.reducing is not None:
        raise ValueError("an exchange in rounds of tiles reduces nothing")
    devices = source.mesh.total_size
    rounds = [_round(of_shape, devices) for of_shape in _by_shape(exchange.moving.copies).values()]
    for of_shape in _by_shape(exchange.moving.messages).values():
        by_pair = {(message.sender, message.receiver): message for message in of_shape}
        rounds += [_round([by_pair[pair] for pair in pairs], devices) for pairs in in_rounds(sorted(by_pair))]
    return tuple(rounds)


def _by_shape(messages: Iterable[Message]) -> dict[tuple[int, ...], list[Message]]:
    """Between two devices is one tile: what the shard of the sender and that of the receiver have in common."""
    found: defaultdict[tuple[int, ...], list[Message]] = defaultdict(list)
    for message in messages:
        (tile,) = message.tiles
        if tile.box.num_elements:
            found[tile.box.size].append(message)
    return dict(sorted(found.items(), reverse=True))


def _round(messages: Iterable[Message], devices: int) -> TileRound:
    senders: list[int | None] = [None] * devices
    receivers: list[int | None] = [None] * devices
    source_starts: list[Start | None] = [None] * devices
    target_starts: list[Start | None] = [None] * devices
    shape: tuple[int, ...] = ()
    for message in messages:
        (tile,) = message.tiles
        shape = tile.box.size
        senders[message.receiver], receivers[message.sender] = message.sender, message.receiver
        source_starts[message.sender], target_starts[message.receiver] = tile.source_start, tile.target_start
    return TileRound(shape, tuple(senders), tuple(receivers), tuple(source_starts), tuple(target_starts))
