# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What moves make devices receive and send, in elements, in closed form per dimension.

A block index is made of a device's places along grid axes, so what a dimension contributes is an array with one
dimension for each grid axis, of size 1 along axes that the index does not depend on. The product of the arrays of all
dimensions, broadcast, is what each device holds or has in common with its target box. No messages are built.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.layout import block_size

Dims = tuple[GridAxes, ...]
# By the places of a device along the grid axes, of size 1 along those that do not matter.
PerDevice = npt.NDArray[np.int64]


class Traffic:
    """A tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.sizes, self.shape = sizes, shape
        self.num_devices = prod(sizes)
        self.num_elements = prod(shape)
        self._one = np.ones((1,) * len(sizes), np.int64)
        self._counts: dict[GridAxes, int] = {}
        self._boxes: dict[Dims, int] = {}
        self._indices: dict[GridAxes, PerDevice] = {}
        self._overlaps: dict[tuple[int, GridAxes, GridAxes], PerDevice] = {}
        self._parts: dict[tuple[int | GridAxes, ...], tuple[int, int, int]] = {}
        self._masks: dict[GridAxes, int] = {(): 0}
        self._is_always_even = all(size % self.num_devices == 0 for size in shape)

    def count(self, axes: GridAxes) -> int:
        """The number of devices along axes, which is that of the blocks of a dimension with them."""
        found = self._counts.get(axes)
        if found is None:
            found = self._counts[axes] = prod(self.sizes[axis] for axis in axes)
        return found

    def held_by_all(self, dims: Dims) -> int:
        """The elements that all devices hold together, each as often as it is held."""
        return self.num_elements * (self.num_devices // prod(map(self.count, dims)))

    def largest_box(self, dims: Dims) -> int:
        """The elements of a local tensor with its padding; the first device has no padding."""
        found = self._boxes.get(dims)
        if found is None:
            blocks = map(self.count, dims)
            found = self._boxes[dims] = prod(map(block_size, self.shape, blocks))
        return found

    def is_even(self, dims: Dims) -> bool:
        """Whether all blocks of each dimension are full."""
        return all(size % self.count(axes) == 0 for size, axes in zip(self.shape, dims, strict=True))

    def box(self, dims: Dims) -> PerDevice:
        """What each device holds."""
        return self.overlap(dims, dims)

    def overlap(self, before: Dims, after: Dims) -> PerDevice:
        """What each device has in common with the box it is to hold."""
        result = self._one
        for dim, (old, new) in enumerate(zip(before, after, strict=True)):
            result = result * self._dim_overlap(dim, old, new)
        return result

    def lacking(self, before: Dims, after: Dims) -> tuple[int, int]:
        """What all devices together, and the one that lacks most, have to receive."""
        if before == after:
            return 0, 0
        if self._is_always_even:
            total, least = self._overlap_in_parts(before, after)
            return self.held_by_all(after) - total, self.largest_box(after) - least
        common = self.overlap(before, after)
        total = self.held_by_all(after) - self.total(common)
        return total, int((self.box(after) - common).max())

    def total(self, values: PerDevice) -> int:
        """The sum over all devices."""
        return int(values.sum()) * (self.num_devices // values.size)

    def sent_directly(self, before: Dims, after: Dims) -> PerDevice:
        """What each device sends in a direct exchange, which asks the nearest replica."""
        return self._wanted(before, after, _as_it_is) - self.overlap(before, after)

    def exchange_rounds(self, before: Dims, after: Dims) -> int:
        """The rounds of a direct exchange: the most messages that a device sends or receives."""
        is_common = np.minimum(self.overlap(before, after), 1)
        sent = self._wanted(before, after, _is_any) - is_common
        senders = self._one
        for size, old, new in zip(self.shape, before, after, strict=True):
            senders = senders * _num_sources(size, self.count(old), self.count(new), self._index(new))
        return max(int(sent.max()), int((senders - is_common).max()))

    def least_rounds(self, before: Dims, after: Dims) -> int:
        """What `exchange_rounds` is not less than: the most senders that one device has, but for itself."""
        senders = 1
        for size, old, new in zip(self.shape, before, after, strict=True):
            senders *= most_sources(size, self.count(old), self.count(new))
        return senders - 1

    def per_device(self, values: PerDevice) -> tuple[int, ...]:
        """The values in the order of the mesh."""
        return tuple(np.broadcast_to(values, self.sizes).reshape(-1).tolist())

    def _wanted(self, before: Dims, after: Dims, measure: Callable[[PerDevice], PerDevice]) -> PerDevice:
        """What of a device's box it and those who ask it want.

        They are where it is along all axes that `before` does not use. The axes of `after` are different ones for each
        dimension, so this is a product of sums, times the replicas of what is wanted among those who ask.
        """
        used = {axis for axes in before for axis in axes}
        result = self._one * self.count(tuple(used - {axis for axes in after for axis in axes}))
        for size, old, new in zip(self.shape, before, after, strict=True):
            summed = tuple(axis for axis in new if axis in used)
            weights = self._weights(new)
            offsets = np.zeros(1, np.int64)
            for axis in summed:
                offsets = np.add.outer(offsets, np.arange(self.sizes[axis]) * weights[axis]).reshape(-1)
            place = sum((self._places(axis) * weights[axis] for axis in new if axis not in used), self._one * 0)
            grids = size, self.count(old), self._index(old)[..., None], self.count(new), place[..., None] + offsets
            result = result * measure(_overlap(*grids)).sum(axis=-1)
        return result

    def _overlap_in_parts(self, before: Dims, after: Dims) -> tuple[int, int]:
        """The sum of what all devices have in common with their boxes, and the least that one has.

        Dimensions that share no axes, not even by way of others, are independent: the mean over all devices is the
        product of their means, and the least that of their least.
        """
        parts: list[tuple[int, tuple[int | GridAxes, ...]]] = []
        for dim, (old, new) in enumerate(zip(before, after, strict=True)):
            if not old and not new:
                parts.append((0, (dim, old, new)))
                continue
            mask = self._mask(old) | self._mask(new)
            key: tuple[int | GridAxes, ...] = (dim, old, new)
            apart = []
            for other in parts:
                if other[0] & mask:
                    mask |= other[0]
                    key = other[1] + key
                else:
                    apart.append(other)
            parts = [*apart, (mask, key)]
        total, least, count = 1, 1, 1
        for _, key in parts:
            of_part = self._parts.get(key)
            if of_part is None:
                of_part = self._parts[key] = self._part(key)
            total, least, count = total * of_part[0], least * of_part[1], count * of_part[2]
        return total * self.num_devices // count, least

    def _part(self, key: tuple[int | GridAxes, ...]) -> tuple[int, int, int]:
        """The sum and the least of what devices have in common in some dimensions, and how many devices that is of."""
        common = self._one
        for dim, old, new in zip(key[::3], key[1::3], key[2::3], strict=True):
            assert isinstance(dim, int) and isinstance(old, tuple) and isinstance(new, tuple)
            common = common * self._dim_overlap(dim, old, new)
        return int(common.sum()), int(common.min()), common.size

    def _mask(self, axes: GridAxes) -> int:
        found = self._masks.get(axes)
        if found is None:
            found = self._masks[axes] = sum(1 << axis for axis in axes)
        return found

    def _dim_overlap(self, dim: int, old: GridAxes, new: GridAxes) -> PerDevice:
        found = self._overlaps.get((dim, old, new))
        if found is None:
            grids = self.count(old), self._index(old), self.count(new), self._index(new)
            found = self._overlaps[dim, old, new] = _overlap(self.shape[dim], *grids)
        return found

    def _index(self, axes: GridAxes) -> PerDevice:
        found = self._indices.get(axes)
        if found is None:
            found = self._one * 0
            for axis, weight in self._weights(axes).items():
                found = found + self._places(axis) * weight
            self._indices[axes] = found
        return found

    def _weights(self, axes: GridAxes) -> dict[int, int]:
        return {axis: self.count(axes[number + 1 :]) for number, axis in enumerate(axes)}

    def _places(self, axis: int) -> PerDevice:
        shape = [1] * len(self.sizes)
        shape[axis] = self.sizes[axis]
        return np.arange(self.sizes[axis], dtype=np.int64).reshape(shape)


@lru_cache(maxsize=1024)
def traffic_on(sizes: tuple[int, ...], shape: tuple[int, ...]) -> Traffic:
    """The traffic of tensors of a shape on a grid, with what has been asked of it."""
    return Traffic(sizes, shape)


def _overlap(size: int, old_count: int, old: PerDevice, new_count: int, new: PerDevice) -> PerDevice:
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin = np.maximum(old * old_step, new * new_step)
    end = np.minimum(np.minimum((old + 1) * old_step, (new + 1) * new_step), size)
    return np.maximum(end - begin, 0)


@cache
def most_sources(size: int, old_count: int, new_count: int) -> int:
    """How many source blocks the target block has something of that has something of the most."""
    return int(_num_sources(size, old_count, new_count, np.arange(new_count)).max())


def _num_sources(size: int, old_count: int, new_count: int, new: PerDevice) -> PerDevice:
    """How many source blocks a target block has something of."""
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin, end = np.minimum(new * new_step, size), np.minimum((new + 1) * new_step, size)
    if not old_step:
        return begin * 0
    return np.where(begin < end, (end - 1) // old_step - begin // old_step + 1, 0)


def _as_it_is(common: PerDevice) -> PerDevice:
    return common


def _is_any(common: PerDevice) -> PerDevice:
    return np.minimum(common, 1)
