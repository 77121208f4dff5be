# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which blocks all devices of a mesh hold, and which device to ask for one.

A device has a position in the mesh, in row-major order of its axes. A place along an axis or sub-axis is a digit of
the position, so a block index is made of digits, and to change the block is to add to the position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir_shard.sharding import AxisRef, Mesh

# The weight of a digit, and how many values it has.
_Digit = tuple[int, int]
Blocks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Holdings:
    """By position: the block that a device holds in each dimension, and the number of its partial value."""

    blocks: tuple[Blocks, ...]
    partials: tuple[int, ...]
    _block_offsets: tuple[tuple[int, ...], ...]
    _partial_offsets: tuple[int, ...]

    @staticmethod
    def of(mesh: Mesh, axes_per_dim: Iterable[Sequence[AxisRef]], partial_axes: Sequence[AxisRef] = ()) -> Holdings:
        """What devices hold of a tensor sharded along these axes; partial values are told apart along `partial_axes`.

        The axes have to be valid in the mesh.
        """
        dims = [_digits(axes, mesh) for axes in axes_per_dim]
        partial = _digits(partial_axes, mesh)
        per_dim = [_indices(digits, mesh.listed_size) for digits in dims]
        return Holdings(
            tuple(zip(*per_dim, strict=True)) if per_dim else ((),) * mesh.total_size,
            _indices(partial, mesh.total_size),
            tuple(map(_offsets, dims)),
            _offsets(partial),
        )

    @property
    def num_partials(self) -> int:
        """The number of partial values that are told apart."""
        return len(self._partial_offsets)

    def nearest(self, position: int, blocks: Sequence[int], partial: int) -> int:
        """The position of the device nearest to the one at `position` that holds this; `position` where that does.

        Of the replicas it is the one at the same place along every axis, and part of an axis, of which what it holds
        does not depend, so that all devices ask different replicas alike.
        """
        found = position + self._partial_offsets[partial] - self._partial_offsets[self.partials[position]]
        for offsets, wanted, own in zip(self._block_offsets, blocks, self.blocks[position], strict=True):
            found += offsets[wanted] - offsets[own]
        return found


def _digits(axes: Iterable[AxisRef], mesh: Mesh) -> tuple[_Digit, ...]:
    strides = {}
    stride = 1
    for axis in reversed(mesh.axes):
        strides[axis.name] = stride
        stride *= axis.size
    return tuple(
        (strides[axis.name] * (mesh.axis_size(axis.name) // axis.next_pre_size(mesh)), axis.size(mesh)) for axis in axes
    )


def _indices(digits: Sequence[_Digit], count: int) -> tuple[int, ...]:
    """The number that the digits make of each position, the first the major one."""
    result = [0] * count
    for weight, size in digits:
        result = [index * size + position // weight % size for position, index in enumerate(result)]
    return tuple(result)


def _offsets(digits: Sequence[_Digit]) -> tuple[int, ...]:
    """For each number that the digits can make, what they add to a position."""
    offsets = [0]
    for weight, size in digits:
        offsets = [offset + weight * digit for offset in offsets for digit in range(size)]
    return tuple(offsets)
