# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements that each device holds, lacks and receives, as arrays over the places of devices in a grid."""

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
    """The arrays of a tensor of `shape` on a grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.sizes, self.shape = sizes, shape
        # Axes of one device have no dimension: NumPy has no arrays of more than 64, nor broadcasts more than 32.
        self._axes = [axis for axis, size in enumerate(sizes) if size > 1]
        self._counts: dict[GridAxes, int] = {}
        self._indices: dict[GridAxes, PerDevice] = {}
        self._overlaps: dict[DimChange, PerDevice] = {}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of counts of elements."""
        return integers_up_to(prod(max(size, 1) for size in self.shape) * prod(self.sizes))

    @cached_property
    def one(self) -> PerDevice:
        """The number 1, the same for all devices."""
        return np.ones((1,) * len(self._axes), self.dtype)

    def count(self, axes: GridAxes) -> int:
        """Returns the number of devices along axes, which is the number of shards of a dimension with these axes."""
        found = self._counts.get(axes)
        if found is None:
            found = self._counts[axes] = prod([self.sizes[axis] for axis in axes])
        return found

    def box(self, dims: Dims) -> PerDevice:
        """Returns the elements that each device holds."""
        return self.overlap(dims, dims)

    def overlap(self, before: Dims, after: Dims) -> PerDevice:
        """Returns the elements that each device's shards before and after have in common."""
        return self.overlap_in(dim_changes(before, after))

    def overlap_in(self, changes: Iterable[DimChange]) -> PerDevice:
        """Returns the elements that each device's shards before and after have in common, in some of the dimensions."""
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
        """Returns the elements that each device sends in a direct exchange, which takes them from nearest replicas."""
        result = self.one * self.replicas(before, after)
        changes = dim_changes(before, after)
        for change, (place, offsets) in zip(changes, self._askers(changes), strict=True):
            dim, old, new = change
            grids = self.count(old), self._index(old)[..., None], self.count(new), place[..., None] + offsets
            result = result * _overlap(self.shape[dim], *grids).sum(axis=-1)
        return result - self.overlap(before, after)

    def replicas(self, before: Dims, after: Dims) -> int:
        """Returns how many devices with the same target shard receive from the same device in a direct exchange."""
        used, wanted = ({axis for axes in dims for axis in axes} for dims in (before, after))
        return self.count(tuple(used - wanted))

    def per_device(self, values: PerDevice) -> tuple[int, ...]:
        """Returns the values in the order of the mesh."""
        return tuple(np.broadcast_to(values, [self.sizes[axis] for axis in self._axes]).reshape(-1).tolist())

    def total(self, values: PerDevice) -> int:
        """Returns the sum over all devices."""
        return int(values.sum()) * (prod(self.sizes) // values.size)

    def _askers(self, changes: Sequence[DimChange]) -> Iterator[tuple[PerDevice, PerDevice]]:
        """Yields, for each dimension, the target shards of the devices that may receive from a device, each once.

        They are an index and the numbers to add to it. A receiver has the place of the sender along all axes that are
        not used before. Each dimension has its own axes after, so the overlaps of all receivers with a box are a
        product of sums.
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
    """Returns the type of arrays of numbers up to `largest`: NumPy's integers, or Python's if these are too small."""
    return np.dtype(np.int64 if largest < 2**61 else object)


def dim_changes(before: Dims, after: Dims) -> tuple[DimChange, ...]:
    """Returns the axes of each dimension before and after."""
    return tuple((dim, *axes) for dim, axes in enumerate(zip(before, after, strict=True)))


def _overlap(size: int, old_count: int, old: PerDevice, new_count: int, new: PerDevice) -> PerDevice:
    old_step, new_step = block_size(size, old_count), block_size(size, new_count)
    begin = np.maximum(old * old_step, new * new_step)
    end = np.minimum(np.minimum((old + 1) * old_step, (new + 1) * new_step), size)
    return np.maximum(end - begin, 0)
