# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What moves make all devices together, and the busiest one, receive, in elements.

Collectives are of local tensors with their padding, which are all of one shape. A direct exchange is of what devices
lack.

Dimensions that share no axes, not even by way of others, are independent of each other: the mean of a product over all
devices is the product of the means, and what is the most of a difference of products is found among the factors that no
other factors are better than in both.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod

import numpy as np

from mlir_shard.resharding.cost.block_arrays import (
    BlockArrays,
    DimChange,
    DimDigits,
    Dims,
    PerDevice,
    dim_changes,
    even_blocks,
)
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.layout import block_size

# Two numbers of a device, of the first of which the most is wanted, and of the second the least.
_Front = tuple[tuple[int, int], ...]
_Changes = tuple[DimChange, ...]
MOST_DEVICES = 4096
"""The devices up to which messages are counted for each of them where blocks are not even."""


class Traffic:
    """A tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.arrays = BlockArrays(sizes, shape)
        self.count = self.arrays.count
        self.num_devices = prod(sizes)
        self.num_elements = prod(shape)
        self._even = even_blocks(sizes)
        self._boxes: dict[Dims, int] = {}
        self._is_always_even = all(size % self.num_devices == 0 for size in shape)
        self._masks: dict[GridAxes, int] = {(): 0}
        self._overlaps: dict[_Changes, tuple[int, int, _Front]] = {}
        self._messages: dict[_Changes, tuple[_Front, _Front]] = {}

    def held_by_all(self, dims: Dims) -> int:
        """The elements that all devices hold together, each as often as it is held."""
        return self.num_elements * (self.num_devices // prod(map(self.count, dims)))

    def largest_box(self, dims: Dims) -> int:
        """The elements of a local tensor with its padding; the first device has no padding."""
        found = self._boxes.get(dims)
        if found is None:
            found = self._boxes[dims] = prod(map(block_size, self.shape, map(self.count, dims)))
        return found

    def is_even(self, dims: Dims) -> bool:
        """Whether all blocks of each dimension are full."""
        count = self.count
        return all(map(lambda size, axes: not size % count(axes), self.shape, dims))

    @property
    def is_always_in_digits(self) -> bool:
        """Whether what boxes have in common is known without looking at devices, for all placements."""
        return self._even.are_all_alike and self._is_always_even

    def _in_digits(self, before: Dims, after: Dims) -> list[DimDigits] | None:
        """The changes of dimensions, if what boxes have in common is known without looking at devices."""
        if self._is_always_even or (self.is_even(before) and self.is_even(after)):
            return self._even.changes(before, after)
        return None

    def lacking(self, before: Dims, after: Dims) -> tuple[int, int]:
        """What all devices together, and the one that lacks most, have to receive."""
        if before == after:
            return 0, 0
        if (in_digits := self._in_digits(before, after)) is not None:
            return self._even.lacking(in_digits, self.num_elements)
        common, devices = 1, 1
        best: _Front = ((1, 1),)
        for changes in self._independent(before, after):
            found = self._overlaps.get(changes)
            if found is None:
                found = self._overlaps[changes] = self._overlap_in(changes)
            common, devices = common * found[0], devices * found[1]
            best = _products(best, found[2])
        return self.held_by_all(after) - common * self.num_devices // devices, _most_difference(best)

    def gathered(self, before: Dims, count: int) -> int:
        """What each device receives in an all-gather among `count` devices."""
        return self.largest_box(before) * (count - 1)

    def scattered(self, after: Dims, count: int) -> int:
        """What each device receives in a reduce-scatter among `count` devices: a shard from each other one."""
        return self.largest_box(after) * (count - 1)

    def reduced(self, dims: Dims, count: int) -> int:
        """What each device receives in an all-reduce among `count` devices: it reduces a part, and gets the others."""
        box = self.largest_box(dims)
        own = -(-box // count)
        return own * (count - 2) + box

    def dealt(self, before: Dims, after: Dims, count: int) -> int:
        """What each device receives in an all-to-all among `count` devices."""
        parts, counts = 1, self.count
        for size, old, new in zip(self.shape, before, after, strict=True):
            parts *= -(-size // max(counts(old), counts(new)))
        return parts * (count - 1)

    def permuted(self, before: Dims, after: Dims) -> tuple[int, int]:
        """What all devices together, and the one that receives most, receive in a permutation of devices."""
        moved, most = traffic_on(self.arrays.sizes, tuple(map(self.count, before))).lacking(before, after)
        box = self.largest_box(before)
        return moved * box, most * box

    def exchange_rounds(self, before: Dims, after: Dims) -> int:
        """The rounds of a direct exchange: the most messages that a device sends or receives.

        Of more devices than `MOST_DEVICES` it may be less, where blocks are not even.
        """
        if self.num_elements and (in_digits := self._in_digits(before, after)) is not None:
            return self._even.exchange_rounds(before, in_digits)
        if self.num_devices > MOST_DEVICES:
            return self._most_rounds(before, after)
        sent: _Front = ((self.arrays.replicas(before, after), 1),)
        received: _Front = ((1, 1),)
        for changes in self._independent(before, after):
            found = self._messages.get(changes)
            if found is None:
                found = self._messages[changes] = self._messages_in(changes)
            sent, received = _products(sent, found[0]), _products(received, found[1])
        return max(map(_most_difference, (sent, received)))

    def can_exchange(self, before: Dims, after: Dims, most_messages: int) -> bool:
        """Whether the devices times the rounds of a direct exchange are at most `most_messages`."""
        most = most_messages // self.num_devices
        # To count rounds takes longer than to count the senders of a device.
        return 0 < most >= self.most_senders(before, after) - 1 and self.exchange_rounds(before, after) <= most

    def most_senders(self, before: Dims, after: Dims) -> int:
        """The most shards that a device's target box has something of; `exchange_rounds` is one less at least."""
        senders = 1
        for size, old, new in zip(self.shape, before, after, strict=True):
            if old != new:
                senders *= most_sources(size, self.count(old), self.count(new))
        return senders

    def _most_rounds(self, before: Dims, after: Dims) -> int:
        """What `exchange_rounds` is not more than, by the most boxes that a box has something of."""
        used = {axis for axes in before for axis in axes}
        askers = self.arrays.replicas(before, after)
        for size, old, new in zip(self.shape, before, after, strict=True):
            asked = self.count(tuple(axis for axis in new if axis in used))
            askers *= min(asked, most_sources(size, self.count(new), self.count(old)))
        return max(askers, self.most_senders(before, after))

    def _independent(self, before: Dims, after: Dims) -> list[_Changes]:
        """The changes of all dimensions, those together that share axes."""
        parts: list[tuple[int, _Changes]] = []
        for change in dim_changes(before, after):
            mask = self._mask(change[1]) | self._mask(change[2])
            together: _Changes = (change,)
            if mask:
                apart = []
                for part in parts:
                    if part[0] & mask:
                        mask |= part[0]
                        together = part[1] + together
                    else:
                        apart.append(part)
                parts = apart
            parts.append((mask, together))
        return [changes for _, changes in parts]

    def _overlap_in(self, changes: _Changes) -> tuple[int, int, _Front]:
        """What devices have in common with their boxes, of how many, and their boxes with the least of it."""
        common = self.arrays.overlap_in(changes)
        boxes = self.arrays.overlap_in((dim, new, new) for dim, _, new in changes)
        return int(common.sum()), common.size, _front(boxes, common)

    def _messages_in(self, changes: _Changes) -> tuple[_Front, _Front]:
        """How many devices ask one, and how many it asks, and whether one of these is the device itself."""
        own = np.minimum(self.arrays.overlap_in(changes), 1)
        return _front(self.arrays.askers_in(changes), own), _front(self.arrays.senders_in(changes), own)

    def _mask(self, axes: GridAxes) -> int:
        found = self._masks.get(axes)
        if found is None:
            found = self._masks[axes] = sum(1 << axis for axis in axes)
        return found


@lru_cache(maxsize=1024)
def traffic_on(sizes: tuple[int, ...], shape: tuple[int, ...]) -> Traffic:
    """The traffic of tensors of a shape on a grid, with what has been asked of it."""
    return Traffic(sizes, shape)


@cache
def most_sources(size: int, old_count: int, new_count: int) -> int:
    """How many source blocks the target block has something of that has something of the most."""
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begins = range(0, size, new_step) if size else ()
    return max(((min(begin + new_step, size) - 1) // old_step - begin // old_step + 1 for begin in begins), default=0)


def _front(wanted: PerDevice, spared: PerDevice) -> _Front:
    """Of both numbers of each device those pairs of which no other has more of the first and less of the second."""
    wanted, spared = np.broadcast_arrays(wanted, spared)
    most = wanted.max()
    least = spared[wanted == most].min()
    found = [(int(most), int(least))]
    if least > 0:
        for one in np.unique(wanted)[-2::-1]:
            least = spared[wanted == one].min()
            if least < found[-1][1]:
                found.append((int(one), int(least)))
    return tuple(found)


def _products(one: _Front, other: _Front) -> _Front:
    if len(one) == len(other) == 1:
        return ((one[0][0] * other[0][0], one[0][1] * other[0][1]),)
    return tuple({(first * second, less * least) for first, less in one for second, least in other})


def _most_difference(front: _Front) -> int:
    return max(most - least for most, least in front)
