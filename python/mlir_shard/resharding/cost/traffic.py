# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements that all devices together, and the busiest one, receive in moves.

Collectives have local tensors of one shape as operands, padding included; a direct exchange moves missing elements
only. Counts that depend on the places of devices are computed natively, see `lib/resharding/grid_traffic.h`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from mlir_shard._native import GridTraffic
from mlir_shard.resharding.cost.block_arrays import BlockArrays, Dims
from mlir_shard.sharding.layout import block_size

MOST_DEVICES = 4096
"""The most devices for each of which messages are counted if shards are uneven."""


class Traffic:
    """The traffic of a tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.arrays = BlockArrays(sizes, shape)
        self.count = self.arrays.count
        self.num_devices = prod(sizes)
        self._boxes: dict[Dims, int] = {}
        native = GridTraffic(sizes, shape)
        # Elements that all devices together, and the one that lacks most, have to receive.
        self.lacking = native.lacking
        # Elements that all devices together, and each that takes part, receive in a permutation of devices.
        self.permuted = native.permuted
        # The rounds of a direct exchange; an upper bound for uneven shards on more than `MOST_DEVICES` devices.
        self.exchange_rounds = native.exchange_rounds
        # The most shards that a target shard has elements of; `exchange_rounds` is at least one less.
        self.most_senders = native.most_senders
        # Whether the overlaps of shards are known without counting devices, for all placements.
        self.is_always_in_digits: bool = native.is_always_in_digits

    def largest_box(self, dims: Dims) -> int:
        """Returns the elements of a local tensor with its padding; the first device has no padding."""
        found = self._boxes.get(dims)
        if found is None:
            found = self._boxes[dims] = prod(map(block_size, self.shape, map(self.count, dims)))
        return found

    def gathered(self, before: Dims, count: int) -> int:
        """Returns the elements that each device receives in an all-gather among `count` devices."""
        return self.largest_box(before) * (count - 1)

    def scattered(self, after: Dims, count: int) -> int:
        """Returns the elements that each device receives in a reduce-scatter among `count` devices.

        It receives a shard from each other device.
        """
        return self.largest_box(after) * (count - 1)

    def reduced(self, dims: Dims, count: int) -> int:
        """Returns the elements that each device receives in an all-reduce among `count` devices.

        It reduces a part, and receives the other parts.
        """
        box = self.largest_box(dims)
        own = -(-box // count)
        return own * (count - 2) + box

    def dealt(self, before: Dims, after: Dims, count: int) -> int:
        """Returns the elements that each device receives in an all-to-all among `count` devices."""
        parts, counts = 1, self.count
        for size, old, new in zip(self.shape, before, after, strict=True):
            parts *= -(-size // max(counts(old), counts(new)))
        return parts * (count - 1)

    def can_exchange(self, before: Dims, after: Dims, most_messages: int) -> bool:
        """Returns whether the devices times the rounds of a direct exchange are at most `most_messages`."""
        most = most_messages // self.num_devices
        # Counting rounds takes longer than counting the senders of a device.
        return 0 < most >= self.most_senders(before, after) - 1 and self.exchange_rounds(before, after) <= most


@lru_cache(maxsize=1024)
def traffic_on(sizes: tuple[int, ...], shape: tuple[int, ...]) -> Traffic:
    """Returns the traffic of tensors of a shape on a grid, which caches its counts."""
    return Traffic(sizes, shape)
