# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""References to mesh axes and sub-axes, and operations on lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from mlir_shard.sharding.mesh import Mesh


class SubAxisInfo(NamedTuple):
    """The part of a full axis that a sub-axis is: `pre_size` is the product of the sizes to its left."""

    pre_size: int
    size: int

    @property
    def next_pre_size(self) -> int:
        """The pre-size of the sub-axis to the right of this one."""
        return self.pre_size * self.size


class AxisRef(NamedTuple):
    """A full axis, or with `sub_axis_info` a sub-axis of it.

    Methods with another axis require that both are valid in one mesh. Axes of different names do not overlap. The class
    is a tuple because lists of axes are keys of many tables, and tuples are hashed natively.

    Attributes:
        name: the name of the full axis.
        sub_axis_info: the part of the full axis that the sub-axis is, None for the full axis.
    """

    name: str
    sub_axis_info: SubAxisInfo | None = None

    @staticmethod
    def sub(name: str, pre_size: int, size: int) -> AxisRef:
        """Returns the sub-axis `"name":(pre_size)size`."""
        return AxisRef(name, SubAxisInfo(pre_size, size))

    def __str__(self) -> str:
        info = self.sub_axis_info
        return f'"{self.name}"' if info is None else f'"{self.name}":({info.pre_size}){info.size}'

    @property
    def pre_size(self) -> int:
        """The product of the sizes to the left, 1 for a full axis."""
        return 1 if self.sub_axis_info is None else self.sub_axis_info.pre_size

    def size(self, mesh: Mesh) -> int:
        """Returns the number of devices along this axis. Raises ValueError if the mesh has no such axis."""
        return mesh.axis_size(self.name) if self.sub_axis_info is None else self.sub_axis_info.size

    def next_pre_size(self, mesh: Mesh) -> int:
        """Returns the end of this axis: pre-size times size."""
        return mesh.axis_size(self.name) if self.sub_axis_info is None else self.sub_axis_info.next_pre_size

    @property
    def _end(self) -> float:
        # The end of a full axis is its size, which depends on the mesh; no valid sub-axis ends beyond it.
        return inf if self.sub_axis_info is None else self.sub_axis_info.next_pre_size

    def lexicographic_key(self) -> tuple[str, int, float]:
        """Returns a key that sorts by name, then pre-size, then size, a full axis as the largest with pre-size 1."""
        return (self.name, self.pre_size, self._end)

    def mesh_order_key(self, mesh: Mesh) -> tuple[int, int, float]:
        """Returns a key that sorts in mesh order, then as `lexicographic_key`. Raises ValueError for unknown axes."""
        return (mesh.axis_index(self.name), self.pre_size, self._end)

    def contains(self, other: AxisRef) -> bool:
        """Returns whether this axis is `other` or can be split so that one part is `other`."""
        return self.name == other.name and self.pre_size <= other.pre_size and self._end >= other._end

    def is_prefix_of(self, other: AxisRef) -> bool:
        """Returns whether this axis is `other` or the major part of a split of `other`."""
        return other.contains(self) and self.pre_size == other.pre_size

    def is_suffix_of(self, other: AxisRef, mesh: Mesh) -> bool:
        """Returns whether this axis is `other` or the minor part of a split of `other`."""
        return other.contains(self) and self.next_pre_size(mesh) == other.next_pre_size(mesh)

    def overlaps(self, other: AxisRef) -> bool:
        """Returns whether the two axes have a part in common."""
        return self.name == other.name and self.pre_size < other._end and other.pre_size < self._end

    def can_coexist(self, other: AxisRef) -> bool:
        """Returns whether one split of the full axis has both, so that their overlap and the rest are sub-axes."""
        if self.name != other.name or self.sub_axis_info is None or other.sub_axis_info is None:
            return True
        first_begin, last_begin = sorted((self.pre_size, other.pre_size))
        first_end, last_end = sorted((self.sub_axis_info.next_pre_size, other.sub_axis_info.next_pre_size))
        if first_end <= last_begin:
            return last_begin % first_end == 0
        return last_begin % first_begin == 0 and first_end % last_begin == 0 and last_end % first_end == 0

    def overlap(self, other: AxisRef) -> AxisRef | None:
        """Returns the sub-axis that two axes share. None if they do not overlap or cannot coexist."""
        if not self.overlaps(other) or not self.can_coexist(other):
            return None
        if self.sub_axis_info is None:
            return other
        if other.sub_axis_info is None:
            return self
        begin = max(self.pre_size, other.pre_size)
        end = min(self.sub_axis_info.next_pre_size, other.sub_axis_info.next_pre_size)
        return AxisRef.sub(self.name, begin, end // begin)

    def prefix_without_overlap(self, other: AxisRef) -> AxisRef | None:
        """Returns the major part of this axis up to the start of `other`, or this axis if the two do not overlap.

        None if nothing is left, or if the two cannot coexist.
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        if self.pre_size >= other.pre_size:
            return None
        return AxisRef.sub(self.name, self.pre_size, other.pre_size // self.pre_size)

    def suffix_without_overlap(self, other: AxisRef, mesh: Mesh) -> AxisRef | None:
        """Returns the minor part of this axis from the end of `other`, or this axis if the two do not overlap.

        None if nothing is left, or if the two cannot coexist.
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        begin, end = other.next_pre_size(mesh), self.next_pre_size(mesh)
        return AxisRef.sub(self.name, begin, end // begin) if begin < end else None

    def greatest_common_prefix(self, other: AxisRef) -> AxisRef | None:
        """Returns the smaller of the two axes if it is a prefix of the other. None if it is not."""
        if not self.can_coexist(other):
            return None
        if self.is_prefix_of(other):
            return self
        return other if other.is_prefix_of(self) else None

    def can_merge(self, other: AxisRef) -> bool:
        """Returns whether `other` is the sub-axis that immediately follows this sub-axis."""
        if self.name != other.name or self.sub_axis_info is None or other.sub_axis_info is None:
            return False
        return self.sub_axis_info.next_pre_size == other.sub_axis_info.pre_size

    def merge(self, other: AxisRef, mesh: Mesh) -> AxisRef:
        """Merges this sub-axis and the next one into one axis. Raises ValueError if `can_merge` is False."""
        if not self.can_merge(other):
            raise ValueError(f"{other} does not begin where {self} ends, so they cannot be merged")
        size = self.size(mesh) * other.size(mesh)
        if size == mesh.axis_size(self.name):
            return AxisRef(self.name)
        return AxisRef.sub(self.name, self.pre_size, size)


Axes = tuple[AxisRef, ...]


def total_size(axes: Iterable[AxisRef], mesh: Mesh) -> int:
    """Returns the product of the sizes of the axes."""
    size = 1
    for axis in axes:
        size *= axis.size(mesh)
    return size


def add_axis_or_merge(axes: Sequence[AxisRef], axis: AxisRef, mesh: Mesh) -> Axes:
    """Appends `axis` to `axes`, merged with the last axis if it continues that axis."""
    if axes and axes[-1].can_merge(axis):
        return (*axes[:-1], axes[-1].merge(axis, mesh))
    return (*axes, axis)


def add_axes_or_merge(axes: Sequence[AxisRef], added: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """Appends each of `added` to `axes`, merged with the previous axis if it continues that axis."""
    if not axes and isinstance(added, tuple) and len(added) < 2:
        return added
    result = tuple(axes)
    for axis in added:
        result = add_axis_or_merge(result, axis, mesh)
    return result


def sort_and_merge(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """Sorts the axes in mesh order, and merges axes that continue one another. No two of the axes may overlap."""
    return add_axes_or_merge((), sorted(axes, key=lambda axis: axis.mesh_order_key(mesh)), mesh)


def any_overlap(axes: Iterable[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Returns whether an axis of the first list overlaps one of the second."""
    return any(axis.overlaps(other) for axis in axes for other in others)


def axes_difference(axes: Iterable[AxisRef], removed: Sequence[AxisRef], mesh: Mesh) -> Axes:
    """Returns the axes and parts of axes that do not overlap `removed`, in the order of `axes`."""
    cuts = sorted(removed, key=AxisRef.lexicographic_key)
    result: list[AxisRef] = []
    for axis in axes:
        rest: AxisRef | None = axis
        for cut in cuts:
            if rest is None:
                break
            if rest.overlaps(cut):
                prefix = rest.prefix_without_overlap(cut)
                if prefix is not None:
                    result.append(prefix)
                rest = rest.suffix_without_overlap(cut, mesh)
        if rest is not None:
            result.append(rest)
    return tuple(result)


def prefix_without_overlap(axis: AxisRef, others: Iterable[AxisRef]) -> AxisRef | None:
    """Returns the largest prefix of `axis` that overlaps none of `others`. None if none exists."""
    result: AxisRef | None = axis
    for other in others:
        if result is None:
            return None
        result = result.prefix_without_overlap(other)
    return result


def truncate_at_overlap(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> Axes:
    """Returns the largest prefix of the list that overlaps none of `others`; its last axis may be a sub-axis."""
    for index, axis in enumerate(axes):
        kept = prefix_without_overlap(axis, others)
        if kept != axis:
            return tuple(axes[:index]) if kept is None else (*axes[:index], kept)
    return tuple(axes)


def is_strict_prefix(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Returns whether `axes` is a strict prefix of `others`; its last axis may be a prefix of its counterpart."""
    if not axes:
        return bool(others)
    if axes == others:
        return False
    last = len(axes) - 1
    if last >= len(others) or any(axes[i] != others[i] for i in range(last)):
        return False
    return axes[last].is_prefix_of(others[last]) and tuple(axes) != tuple(others)


def greatest_common_prefix(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> Axes:
    """Returns the common prefix of two lists; its last axis may be the common prefix of two axes that differ."""
    result: list[AxisRef] = []
    for axis, other in zip(axes, others, strict=False):
        common = axis.greatest_common_prefix(other)
        if common is not None:
            result.append(common)
        if axis != other:
            break
    return tuple(result)


def split_mesh_axes(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """Splits all axes of the mesh so that each axis in `axes` is a sequence of the parts; returns them in mesh order.

    For a mesh <["x"=2, "y"=16]> and "y":(2)2 the parts are "x", "y":(1)2, "y":(2)2, "y":(4)4.
    """
    cuts: dict[str, set[int]] = {axis.name: {1, axis.size} for axis in mesh.axes}
    for ref in axes:
        cuts[ref.name] |= {ref.pre_size, ref.next_pre_size(mesh)}
    result: list[AxisRef] = []
    for name, sizes in cuts.items():
        bounds = sorted(sizes)
        if len(bounds) <= 2:
            result.append(AxisRef(name))
        else:
            result += [AxisRef.sub(name, begin, end // begin) for begin, end in pairwise(bounds)]
    return tuple(result)
