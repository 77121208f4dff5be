# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each device holds, lacks and receives, in elements, as arrays over the places of devices in a grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from mlir_shard.deferred import numpy as np
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.layout import block_size

if TYPE_CHECKING:
    import numpy.typing as npt

Dims = tuple[GridAxes, ...]
# By the places of a device along the grid axes, of size 1 along those that do not matter.
PerDevice: TypeAlias = "npt.NDArray[Any]"
# A dimension, and its axes before and after.
DimChange = tuple[int, GridAxes, GridAxes]


class BlockArrays:
    """A tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.sizes, self.shape = sizes, shape
        # Axes of one device have no dimension: NumPy has no arrays of more than 64, nor broadcasts more than 32.
        self._axes = [axis for axis, size in enumerate(sizes) if size > 1]
        self._counts: dict[GridAxes, int] = {}
        self._indices: dict[GridAxes, PerDevice] = {}
        self._overlaps: dict[DimChange, PerDevice] = {}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of numbers of elements."""
        return integers_up_to(prod(max(size, 1) for size in self.shape) * prod(self.sizes))

    @cached_property
    def one(self) -> PerDevice:
        """The number 1, the same for all devices."""
        return np.ones((1,) * len(self._axes), self.dtype)

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
        """The elements that each device sends in a direct exchange, which takes them from the nearest replica."""
        result = self.one * self.replicas(before, after)
        changes = dim_changes(before, after)
        for change, (place, offsets) in zip(changes, self._askers(changes), strict=True):
            dim, old, new = change
            grids = self.count(old), self._index(old)[..., None], self.count(new), place[..., None] + offsets
            result = result * _overlap(self.shape[dim], *grids).sum(axis=-1)
        return result - self.overlap(before, after)

    def replicas(self, before: Dims, after: Dims) -> int:
        """How many devices with the same target shard receive from the same device in a direct exchange."""
        used, wanted = ({axis for axes in dims for axis in axes} for dims in (before, after))
        return self.count(tuple(used - wanted))

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


def _overlap(size: int, old_count: int, old: PerDevice, new_count: int, new: PerDevice) -> PerDevice:
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin = np.maximum(old * old_step, new * new_step)
    end = np.minimum(np.minimum((old + 1) * old_step, (new + 1) * new_step), size)
    return np.maximum(end - begin, 0)
