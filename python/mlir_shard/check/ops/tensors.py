# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The primitive ops that define the ops of all dialects, and ops that are composed of these.

They have two meanings: the kernel computes every element, and `lemmas` reasons about tensors of any size. A tensor is
local: each device has one of the same shape, and a mesh axis is a variable of an index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import NEUTRAL, ZEROS, NotCertified, width
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.kernel.terms import number
from mlir_shard.deferred import numpy as np

FAR = 2**40
"""The negative of this is a place of a tile outside of a tensor."""


class Value(Protocol):
    """A tensor. It equals another one only if both have the same elements on each device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The local shape."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""


@dataclass(frozen=True)
class Window:
    """The placement of windows along a dimension."""

    count: int
    size: int
    stride: int = 1
    dilation: int = 1
    low: int = 0
    high: int = 0
    base: int = 1


class Tensors(ABC):
    """A meaning of tensor ops; `mesh` has the devices."""

    mesh: Mesh
    place: Any = None
    is_exact = False
    """Whether one op without a meaning makes the check refuse the entire program."""

    # Tensors without operands.

    @abstractmethod
    def leaf(self, op: tuple[Any, ...], shape: Sequence[int]) -> Any:
        """Returns a global tensor that is known by its name alone, or a table of numbers."""

    @abstractmethod
    def constant(self, type_: str, number: str, shape: Sequence[int]) -> Any:
        """Returns a tensor of one number."""

    @abstractmethod
    def index(self, type_: str, entry: Entry, dims: Sequence[Sequence[int]]) -> Any:
        """Returns a tensor of integers that are affine in the position along `dims` and on the mesh."""

    # Ops that move elements.

    @abstractmethod
    def accessed(
        self, value: Any, entries: Sequence[Entry], sizes: Sequence[int], lemma: str = "access", *, bounded: bool = True
    ) -> Any:
        """Returns the tensor whose element at a position is that of the value at indices affine in the position.

        Args:
            entries: the index of each dimension of the value, affine in the dimensions of the result and mesh axes.
            sizes: the shape of the result.
            bounded: whether indices must be in bounds on all devices; else elements beyond the end are unknown.
        """

    @abstractmethod
    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        """Returns a reshape."""

    @abstractmethod
    def padded(self, value: Any, number: Any, low: Sequence[int], high: Sequence[int]) -> Any:
        """Returns a pad by a number; negative padding slices."""

    @abstractmethod
    def joined(self, values: Sequence[Any], dim: int) -> Any:
        """Returns a concatenation."""

    # Ops that compute.

    @abstractmethod
    def pointwise(self, op: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """Returns the result of an op on elements at the same position."""

    @abstractmethod
    def opaque(
        self,
        op: tuple[Any, ...],
        values: Sequence[tuple[Any, Sequence[str]]],
        results: Sequence[str],
        core: Collection[str],
        made: Mapping[str, int] | None = None,
        kind: str = "",
        *,
        places: Sequence[tuple[Entry, Sequence[tuple[int, str]]]] = (),
        others: Mapping[str, int] | None = None,
    ) -> Any:
        """Returns the result of an op that is the same for each position of labels outside of `core`.

        Args:
            op: its name with everything that affects the result.
            values: the operands, with a label for each dimension.
            results: the labels of the result; core: labels that the op works along; made: sizes of new ones.
            kind: the reduction along labels that are in no result and not in `core`.
            places: positions that the op compares with read indices: an entry and labels that are added to it.
            others: sizes of labels that no operand has.
        """

    @abstractmethod
    def reduced(self, kind: str, value: Any, dims: Collection[int], axes: Collection[int] = ()) -> Any:
        """Returns a reduction along dimensions and mesh axes."""

    # Ops between devices.

    @abstractmethod
    def laid_out(self, value: Any, axes: Sequence[Sequence[int]]) -> Any:
        """Returns the shard of a global value with dimensions divided along mesh axes; local sizes are rounded up."""

    @abstractmethod
    def given(self, leaf: Any, axes: Sequence[Sequence[int]]) -> Any:
        """Returns the shard of a leaf that a program takes; elements beyond the end of the leaf are unknown."""

    @abstractmethod
    def gathered(self, value: Any, dim: int, axes: Sequence[int]) -> Any:
        """Returns an all-gather: the mesh axes become the major digits of a dimension."""

    @abstractmethod
    def received(self, value: Any, senders: Any) -> Any:
        """Returns the value that each device received from the device in `senders`; any value where that is -1."""

    @abstractmethod
    def merged(self, chosen: Any, first: Any, second: Any) -> Any:
        """Returns the first value on the chosen devices, and the second one on the others."""

    @abstractmethod
    def assembled(self, base: Any, tile: Any, places: Any) -> Any:
        """Returns a tensor with a tile at a place of each device; parts of the tile outside of the tensor are ignored.

        Args:
            places: a row for each dimension; a scalar has one place too.
        """

    @abstractmethod
    def is_shard(self, found: Any, value: Any, axes: Sequence[Sequence[int]]) -> bool:
        """Returns whether each device has the elements of its shard of a global value in a layout, ignoring padding."""

    # Queries of tensors.

    @abstractmethod
    def entry_of_devices(self, entries: Any) -> Entry:
        """Returns the index with the given number on each device."""

    @abstractmethod
    def is_number(self, value: Any) -> bool:
        """Returns whether a value is one number everywhere."""

    @abstractmethod
    def number_of(self, value: Any, lemma: str) -> str:
        """Returns the number that all elements of a value equal. Raises NotCertified if they are not one number."""

    @abstractmethod
    def entry(self, value: Any) -> Entry | None:
        """Returns a scalar integer that is known on each device, as an index; None for other values."""

    @abstractmethod
    def truth(self, value: Any) -> Any:
        """Returns for each device whether a scalar is true; None if that is unknown."""

    @abstractmethod
    def differs(self, value: Any, axes: Collection[int] | None = None) -> bool:
        """Returns whether a value may diverge across devices, along the given mesh axes or along any."""

    # Ops that a meaning may refine.

    def at(self, op: Any) -> None:
        """Records the op that is being read."""
        self.place = op

    def computed(self, op: tuple[Any, ...], name: str, values: Sequence[Any], element: str) -> Any:
        """Returns the result of an op on elements, which may be integers."""
        return self.pointwise(op, values)

    def compared(self, op: tuple[Any, ...], left: Any, right: Any) -> Any:
        """Returns a comparison, in the direction that the op names."""
        return self.pointwise(op, (left, right))

    def selected(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Returns a selection of elements."""
        return self.pointwise(("stablehlo.select",), (condition, then, otherwise))

    def clamped(self, value: Any, low: int, high: int, element: str) -> Any:
        """Returns an integer clamped between two numbers."""
        dims = [(size,) for size in value.shape]
        ends = [self.index(element, (end, ()), dims) for end in (low, high)]
        return self.pointwise(("stablehlo.clamp", element), [ends[0], value, ends[1]])

    def is_natural(self, value: Any) -> bool:
        """Returns whether a value is known to be a nonnegative integer."""
        return False

    def in_loops(self, value: Any) -> Entry | None:
        """Returns an integer value as an index that is affine in the position; None for other values."""
        return None

    def without_shift(self, value: Any) -> tuple[Any, Entry]:
        """Returns an integer without a per-device number subtracted from it, and that number; modulo its type."""
        return value, (0, ())

    def looked_up(self, value: Any) -> Any:
        """Returns the same value; an entry of a table of integers becomes an index."""
        return value

    def whole(self, value: Any) -> Any:
        """Returns the same value; one assembled of tiles becomes a value of one node, if possible."""
        return value

    def is_tiles(self, *values: Any) -> bool:
        """Returns whether one of the values is assembled of tiles."""
        return False

    def box(self, value: Any, starts: Sequence[int], sizes: Sequence[int]) -> Any:
        """Returns a box of a value that is assembled of tiles; None for other values."""
        return None

    # Ops that are composed of others.

    def zero(self, element: str, shape: Sequence[int] = ()) -> Any:
        """Returns zeros of a type."""
        if width(element):
            return self.index(element, (0, ()), [(size,) for size in shape])
        return self.constant(element, "False" if element == "i1" else "0.0", shape)

    def neutral(self, kind: str, element: str, shape: Sequence[int]) -> Any:
        """Returns a tensor of the neutral element of a reduction; None if the type has no such number."""
        of = int if width(element) else bool if element == "i1" else float
        text = next((one for one in NEUTRAL.get(kind, ()) if type(number(one)) is of), None)
        if text is None:
            return None
        dims = [(size,) for size in shape]
        return self.index(element, (int(text), ()), dims) if of is int else self.constant(element, text, shape)

    def is_zero(self, value: Any) -> bool:
        """Returns whether a value is zero everywhere."""
        return self.is_number(value) and self.number_of(value, "zero") in ZEROS

    def transposed(self, value: Any, permutation: Sequence[int]) -> Any:
        """Returns a transpose."""
        entries = [(0, ((1, permutation.index(dim)),)) for dim in range(value.rank)]
        return self.accessed(value, entries, [value.shape[dim] for dim in permutation], "transpose")

    def broadcast(self, value: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """Returns a broadcast: each dimension of the value becomes one of `dims`, or is of size 1 and repeated."""
        sizes = value.shape
        entries = [(0, ((1, dim),) if sizes[at] == shape[dim] else ()) for at, dim in enumerate(dims)]
        return self.accessed(value, entries, shape, "broadcast")

    @staticmethod
    def positions(rank: int) -> list[Entry]:
        """Returns the index of each position of a tensor."""
        return [(0, ((1, dim),)) for dim in range(rank)]

    def sliced(self, value: Any, dim: int, start: Entry, size: int, step: int = 1, lemma: str = "slice") -> Any:
        """Returns a slice: its start, which may depend on the device, is added to the index."""
        if start == (0, ()) and step == 1 and size == value.shape[dim]:
            return value
        entries, sizes = self.positions(value.rank), list(value.shape)
        entries[dim], sizes[dim] = (start[0], (*start[1], (step, dim))), size
        return self.accessed(value, entries, sizes, lemma)

    def windowed(self, value: Any, dim: int, count: int, stride: int, size: int, dilation: int) -> Any:
        """Returns the windows of a dimension: one dimension counts them, and one the elements of each."""
        entries: list[Entry] = [(0, ((1, one + (one > dim)),)) for one in range(value.rank)]
        entries[dim] = (0, ((stride, dim), (dilation, dim + 1)))
        sizes = [*value.shape[:dim], count, size, *value.shape[dim + 1 :]]
        return self.accessed(value, entries, sizes, "window")

    def reversed(self, value: Any, dims: Collection[int]) -> Any:
        """Returns a reverse along dimensions."""
        entries = self.positions(value.rank)
        for dim in dims:
            entries[dim] = value.shape[dim] - 1, ((-1, dim),)
        return self.accessed(value, entries, value.shape, "reverse")

    def dilated(self, value: Any, number: Any, dim: int, factor: int) -> Any:
        """Returns a value with numbers between the elements of a dimension, by padding a new minor dimension."""
        size, shape = value.shape[dim], list(value.shape)
        if factor == 1 or not size:
            return value
        value = self.reshaped(value, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
        high = [factor - 1 if one == dim + 1 else 0 for one in range(len(shape) + 1)]
        shape[dim] = size * factor
        value = self.reshaped(self.padded(value, number, [0] * len(high), high), shape)
        return self.sliced(value, dim, (0, ()), (size - 1) * factor + 1)

    def windows(self, value: Any, number: Any, along: Mapping[int, Window]) -> Any:
        """Returns the windows of a padded value: each dimension becomes one that counts them and one within them."""
        for dim, window in sorted(along.items(), reverse=True):
            value = self.dilated(value, number, dim, window.base)
            ends = ([end if one == dim else 0 for one in range(value.rank)] for end in (window.low, window.high))
            value = self.padded(value, number, *ends)
            value = self.windowed(value, dim, window.count, window.stride, window.size, window.dilation)
        return value

    def part_of(self, value: Any, dim: int, start: int, size: int) -> Any:
        """Returns a slice of a dimension; if the tensor is assembled of tiles, a slice of the value of the tiles."""
        starts, sizes = [0] * value.rank, list(value.shape)
        starts[dim], sizes[dim] = start, size
        found = self.box(value, starts, sizes)
        return self.sliced(value, dim, (start, ()), size) if found is None else found

    def scattered(self, value: Any, dim: int, axes: Sequence[int], lemma: str) -> Any:
        """Returns the slice of a dimension at the position of the device along mesh axes."""
        local = value.shape[dim] // prod(self.mesh.axes[axis] for axis in axes)
        return self.sliced(value, dim, (0, self.mesh.along(axes, local)), local, 1, lemma)

    def exchanged(self, value: Any, split: int, concat: int, axes: Sequence[int]) -> Any:
        """Returns an all-to-all: the device's digits of one dimension are exchanged for those of another one.

        The axes become a new dimension, `split` is sliced by the device, and the new dimension is merged into `concat`.
        """
        rank, shape = value.rank, list(value.shape)
        front = self.gathered(self.reshaped(value, [1, *shape]), 0, axes)
        moved = self.scattered(front, 1 + split, axes, "all_to_all")
        moved = self.transposed(moved, [*range(1, 1 + concat), 0, *range(1 + concat, rank + 1)])
        count = prod(self.mesh.axes[axis] for axis in axes)
        shape[split] //= count
        shape[concat] *= count
        return self.reshaped(moved, shape)

    def permuted(self, value: Any, senders: Any, element: str) -> Any:
        """Returns the value that each device received from the device in `senders`; zeros where that is -1."""
        found = self.received(value, senders)
        return found if (senders >= 0).all() else self.merged(senders >= 0, found, self.zero(element, value.shape))

    def tiled(self, base: Any, tile: Any, starts: Sequence[Entry]) -> Any:
        """Returns a tensor with a tile at a place of each device; raises NotCertified if a tile is out of bounds."""
        places = np.stack([self.mesh.by_device(start) for start in starts])
        most = np.array([size - one for size, one in zip(base.shape, tile.shape, strict=True)])[:, None]
        if not np.array_equal(np.clip(places, 0, most), places):
            raise NotCertified("a tile is out of bounds on some devices", "tiles")
        return self.assembled(base, tile, places)
