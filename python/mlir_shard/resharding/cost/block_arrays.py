# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each device holds, lacks and receives, in elements, as arrays over the places of devices in a grid.

Where all shards are even, overlaps of boxes follow from numbers of one mixed radix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mlir_shard.resharding.grid import prime_factors
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.layout import block_size

Dims = tuple[GridAxes, ...]
# By the places of a device along the grid axes, of size 1 along those that do not matter.
PerDevice = npt.NDArray[Any]
# A dimension, and its axes before and after.
DimChange = tuple[int, GridAxes, GridAxes]


class BlockArrays:
    """A tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.sizes, self.shape = sizes, shape
        self.dtype = integers_up_to(prod(max(size, 1) for size in shape) * prod(sizes))
        # Axes of one device have no dimension: NumPy has no arrays of more than 64, nor broadcasts more than 32.
        self._axes = [axis for axis, size in enumerate(sizes) if size > 1]
        self.one = np.ones((1,) * len(self._axes), self.dtype)
        self._counts: dict[GridAxes, int] = {}
        self._indices: dict[GridAxes, PerDevice] = {}
        self._overlaps: dict[DimChange, PerDevice] = {}

    def count(self, axes: GridAxes) -> int:
        """The number of devices along axes, which is that of the blocks of a dimension with them."""
        found = self._counts.get(axes)
        if found is None:
            found = self._counts[axes] = prod([self.sizes[axis] for axis in axes])
        return found

    def box(self, dims: Dims) -> PerDevice:
        """What each device holds."""
        return self.overlap(dims, dims)

    def overlap(self, before: Dims, after: Dims) -> PerDevice:
        """What each device has in common with the box it is to hold."""
        return self.overlap_in(dim_changes(before, after))

    def overlap_in(self, changes: Iterable[DimChange]) -> PerDevice:
        """What each device has in common with the box it is to hold, of some of the dimensions."""
        result = self.one
        for change in changes:
            found = self._overlaps.get(change)
            if found is None:
                dim, old, new = change
                grids = self.count(old), self._index(old), self.count(new), self._index(new)
                found = self._overlaps[change] = _overlap(self.shape[dim], *grids)
            result = result * found
        return result

    def sent_directly(self, before: Dims, after: Dims) -> PerDevice:
        """What each device sends in a direct exchange, which asks the nearest replica."""
        result = self.one * self.replicas(before, after)
        changes = dim_changes(before, after)
        for change, (place, offsets) in zip(changes, self._askers(changes), strict=True):
            dim, old, new = change
            grids = self.count(old), self._index(old)[..., None], self.count(new), place[..., None] + offsets
            result = result * _overlap(self.shape[dim], *grids).sum(axis=-1)
        return result - self.overlap(before, after)

    def replicas(self, before: Dims, after: Dims) -> int:
        """How many devices that want the same ask the same device in a direct exchange."""
        used, wanted = ({axis for axes in dims for axis in axes} for dims in (before, after))
        return self.count(tuple(used - wanted))

    def askers_in(self, changes: Sequence[DimChange]) -> PerDevice:
        """How many boxes each device has something of, among devices that ask it, of some of the dimensions.

        They have to be all dimensions that share axes with one of them, directly or not.
        """
        result = self.one
        for (dim, old, new), (place, offsets) in zip(changes, self._askers(changes), strict=True):
            size, new_step = self.shape[dim], max(1, block_size(self.shape[dim], self.count(new)))
            old_step, index = block_size(size, self.count(old)), self._index(old)
            begin, end = np.minimum(index * old_step, size), np.minimum((index + 1) * old_step, size)
            first, last = begin // new_step - place, -(-end // new_step) - place
            offsets.sort()
            found = np.searchsorted(offsets, last) - np.searchsorted(offsets, first)
            result = result * np.where(begin < end, found, 0)
        return result

    def senders_in(self, changes: Iterable[DimChange]) -> PerDevice:
        """How many source blocks each device's target box has something of, of some of the dimensions."""
        result = self.one
        for dim, old, new in changes:
            result = result * _num_sources(self.shape[dim], self.count(old), self.count(new), self._index(new))
        return result

    def per_device(self, values: PerDevice) -> tuple[int, ...]:
        """The values in the order of the mesh."""
        return tuple(np.broadcast_to(values, [self.sizes[axis] for axis in self._axes]).reshape(-1).tolist())

    def total(self, values: PerDevice) -> int:
        """The sum over all devices."""
        return int(values.sum()) * (prod(self.sizes) // values.size)

    def _askers(self, changes: Sequence[DimChange]) -> Iterator[tuple[PerDevice, PerDevice]]:
        """The target boxes of a device and of those who ask it, each once, as one number and what is added to it.

        Those who ask are where it is along all axes that are not used before. The axes used after are different ones
        for each dimension, so that what all of them have in common with a box is a product of sums.
        """
        used = {axis for _, old, _ in changes for axis in old}
        for _, _, new in changes:
            weights = self._weights(new)
            offsets = np.zeros(1, self.dtype)
            for axis in new:
                if axis in used:
                    offsets = np.add.outer(offsets, np.arange(self.sizes[axis]) * weights[axis]).reshape(-1)
            yield sum((self._places(axis) * weights[axis] for axis in new if axis not in used), self.one * 0), offsets

    def _index(self, axes: GridAxes) -> PerDevice:
        found = self._indices.get(axes)
        if found is None:
            found = self.one * 0
            for axis, weight in self._weights(axes).items():
                found = found + self._places(axis) * weight
            self._indices[axes] = found
        return found

    def _weights(self, axes: GridAxes) -> dict[int, int]:
        return {axis: self.count(axes[number + 1 :]) for number, axis in enumerate(axes)}

    def _places(self, axis: int) -> PerDevice:
        shape = [self.sizes[axis] if one == axis else 1 for one in self._axes]
        return np.arange(self.sizes[axis]).astype(self.dtype).reshape(shape)


def integers_up_to(largest: int) -> np.dtype[Any]:
    """What is to be an array of numbers up to this: NumPy's integers, or where they are too small, Python's."""
    return np.dtype(np.int64 if largest < 2**61 else object)


def dim_changes(before: Dims, after: Dims) -> tuple[DimChange, ...]:
    """The axes of each dimension before and after."""
    return tuple((dim, *axes) for dim, axes in enumerate(zip(before, after, strict=True)))


def _num_sources(size: int, old_count: int, new_count: int, new: PerDevice) -> PerDevice:
    """How many source blocks a target block has something of."""
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin, end = np.minimum(new * new_step, size), np.minimum((new + 1) * new_step, size)
    if not old_step:
        return begin * 0
    return np.where(begin < end, (end - 1) // old_step - begin // old_step + 1, 0)


def _overlap(size: int, old_count: int, old: PerDevice, new_count: int, new: PerDevice) -> PerDevice:
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin = np.maximum(old * old_step, new * new_step)
    end = np.minimum(np.minimum((old + 1) * old_step, (new + 1) * new_step), size)
    return np.maximum(end - begin, 0)


_Digits = tuple[int, ...]


class DimDigits(NamedTuple):
    """Of a dimension: which digit has to equal which other, those both have, and the blocks by those of each.

    `is_alike` is False where digits that both have are of another radix.
    """

    equal: dict[int, int]
    shared: _Digits
    more_before: int
    more_after: int
    after: int
    is_alike: bool


class EvenBlocks:
    """A grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        several = {size for size in sizes if size > 1}
        factors = [(size,) * (size > 1) if len(several) == 1 else prime_factors(size) for size in sizes]
        self._radices = [radix for of_axis in factors for radix in of_axis]
        self.num_devices = prod(sizes)
        starts = [sum(map(len, factors[:axis])) for axis in range(len(sizes))]
        self._digits = [tuple(range(start, start + len(of))) for start, of in zip(starts, factors, strict=True)]
        self._changes: dict[tuple[GridAxes, GridAxes], DimDigits] = {}

    @property
    def are_all_alike(self) -> bool:
        """Whether indices are alike whatever the axes."""
        return len(set(self._radices)) <= 1

    def changes(self, before: Dims, after: Dims) -> list[DimDigits] | None:
        """Returns how each dimension changes; None if the structure of the indices differs in one of them."""
        result = []
        for key in zip(before, after, strict=True):
            change = self._changes.get(key)
            if change is None:
                change = self._changes[key] = self._change(*key)
            if not change.is_alike:
                return None
            result.append(change)
        return result

    def lacking(self, changes: Iterable[DimDigits], num_elements: int) -> tuple[int, int]:
        """What all devices together, and the one that lacks most, have to receive."""
        equal: dict[int, int] = {}
        new = finer = 1
        for change in changes:
            equal.update(change.equal)
            new *= change.after
            finer *= change.more_before
        box = num_elements // new
        common = box // finer
        if not equal:
            return self.num_devices * (box - common), box - common
        return self.num_devices * box - self.num_devices * common // self._equal_ones(equal), box

    def exchange_rounds(self, before: Dims, changes: Iterable[DimDigits]) -> int:
        """The rounds of a direct exchange: the most messages that a device sends or receives.

        A device is asked by those that are where it is along all axes that are not used before. Of their digits after
        those used before have to be what it holds, and the others are free.
        """
        used = {digit for axes in before for axis in axes for digit in self._digits[axis]}
        senders = free = 1
        differs = differs_in_used = False
        for change in changes:
            senders *= change.more_before
            free *= change.more_before * self._count(digit for digit in change.shared if digit not in used)
            differs |= bool(change.equal)
            differs_in_used |= not used.isdisjoint(change.equal.values())
        return max(senders - (not differs), free - (not differs_in_used))

    def _change(self, old: GridAxes, new: GridAxes) -> DimDigits:
        before, after = (tuple(digit for axis in axes for digit in self._digits[axis]) for axes in (old, new))
        pairs = list(zip(before, after, strict=False))
        equal = {digit: other for digit, other in pairs if digit != other}
        shared = tuple(other for _, other in pairs)
        more_before, more_after = (self._count(digits[len(pairs) :]) for digits in (before, after))
        is_alike = all(self._radices[digit] == self._radices[other] for digit, other in pairs)
        return DimDigits(equal, shared, more_before, more_after, self._count(after), is_alike)

    def _count(self, digits: Iterable[int]) -> int:
        return prod([self._radices[digit] for digit in digits])

    def _equal_ones(self, equal: dict[int, int]) -> int:
        """Of how many devices one meets the equations; those that close a cycle say nothing. `equal` is taken apart."""
        count = 1
        while equal:
            first, digit = equal.popitem()
            count *= self._radices[first]
            while digit in equal:
                count *= self._radices[digit]
                digit = equal.pop(digit)
            if digit == first:
                count //= self._radices[first]
        return count


@lru_cache(maxsize=256)
def even_blocks(sizes: tuple[int, ...]) -> EvenBlocks:
    """Returns the grid of these sizes, with what has been asked of it."""
    return EvenBlocks(sizes)
