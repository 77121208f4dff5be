# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""References to mesh axes and to sub-axes, and lists of them: merged, cut and compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from mlir_shard.sharding.mesh import Mesh


class SubAxisInfo(NamedTuple):
    """Which part of a full axis a sub-axis is: `pre_size` is the product of the sizes to its left."""

    pre_size: int
    size: int

    @property
    def next_pre_size(self) -> int:
        """The pre-size of the sub-axis to the right of this one."""
        return self.pre_size * self.size


class AxisRef(NamedTuple):
    """A full axis, or with `sub_axis_info` a sub-axis of it.

    Methods with another axis need both to be valid in one mesh. Axes of different names have nothing in common. It is a
    tuple since lists of axes are keys of many tables, and tuples are hashed natively.

    Attributes:
        name: of the full axis.
        sub_axis_info: which part of it the sub-axis is, None for all of it.
    """

    name: str
    sub_axis_info: SubAxisInfo | None = None

    @staticmethod
    def sub(name: str, pre_size: int, size: int) -> AxisRef:
        """The sub-axis `"name":(pre_size)size`."""
        return AxisRef(name, SubAxisInfo(pre_size, size))

    def __str__(self) -> str:
        info = self.sub_axis_info
        return f'"{self.name}"' if info is None else f'"{self.name}":({info.pre_size}){info.size}'

    @property
    def pre_size(self) -> int:
        """The product of the sizes to the left, 1 for a full axis."""
        return 1 if self.sub_axis_info is None else self.sub_axis_info.pre_size

    def size(self, mesh: Mesh) -> int:
        """The number of devices along this axis; ValueError where the mesh has no such axis."""
        return mesh.axis_size(self.name) if self.sub_axis_info is None else self.sub_axis_info.size

    def next_pre_size(self, mesh: Mesh) -> int:
        """Where this axis ends: pre-size times size."""
        return mesh.axis_size(self.name) if self.sub_axis_info is None else self.sub_axis_info.next_pre_size

    @property
    def _end(self) -> float:
        # The end of a full axis is its size, which only the mesh knows; nothing valid lies beyond it.
        return inf if self.sub_axis_info is None else self.sub_axis_info.next_pre_size

    def lexicographic_key(self) -> tuple[str, int, float]:
        """Sorts by name, then pre-size, then size, a full axis as the largest that begins at 1."""
        return (self.name, self.pre_size, self._end)

    def mesh_order_key(self, mesh: Mesh) -> tuple[int, int, float]:
        """Sorts by the order of the axes in the mesh, then as `lexicographic_key`; ValueError for an unknown axis."""
        return (mesh.axis_index(self.name), self.pre_size, self._end)

    def contains(self, other: AxisRef) -> bool:
        """Whether this axis is `other` or can be split so that one part is `other`."""
        return self.name == other.name and self.pre_size <= other.pre_size and self._end >= other._end

    def is_prefix_of(self, other: AxisRef) -> bool:
        """Whether this axis is `other` or the major part of a split of `other`."""
        return other.contains(self) and self.pre_size == other.pre_size

    def is_suffix_of(self, other: AxisRef, mesh: Mesh) -> bool:
        """Whether this axis is `other` or the minor part of a split of `other`."""
        return other.contains(self) and self.next_pre_size(mesh) == other.next_pre_size(mesh)

    def overlaps(self, other: AxisRef) -> bool:
        """Whether the two axes have a part in common."""
        return self.name == other.name and self.pre_size < other._end and other.pre_size < self._end

    def can_coexist(self, other: AxisRef) -> bool:
        """Whether one split of the full axis has both, so that what they share and what they do not are sub-axes."""
        if self.name != other.name or self.sub_axis_info is None or other.sub_axis_info is None:
            return True
        first_begin, last_begin = sorted((self.pre_size, other.pre_size))
        first_end, last_end = sorted((self.sub_axis_info.next_pre_size, other.sub_axis_info.next_pre_size))
        if first_end <= last_begin:
            return last_begin % first_end == 0
        return last_begin % first_begin == 0 and first_end % last_begin == 0 and last_end % first_end == 0

    def overlap(self, other: AxisRef) -> AxisRef | None:
        """What the two axes have in common; None where nothing, or where they cannot coexist."""
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
        """The major part of this axis up to where `other` begins: this axis where they do not overlap.

        None where nothing is left, or where they cannot coexist.
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        if self.pre_size >= other.pre_size:
            return None
        return AxisRef.sub(self.name, self.pre_size, other.pre_size // self.pre_size)

    def suffix_without_overlap(self, other: AxisRef, mesh: Mesh) -> AxisRef | None:
        """The minor part of this axis from where `other` ends: this axis where they do not overlap.

        None where nothing is left, or where they cannot coexist.
        """
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        begin, end = other.next_pre_size(mesh), self.next_pre_size(mesh)
        return AxisRef.sub(self.name, begin, end // begin) if begin < end else None

    def greatest_common_prefix(self, other: AxisRef) -> AxisRef | None:
        """The smaller of the two axes where it is a prefix of the other; None where it is not."""
        if not self.can_coexist(other):
            return None
        if self.is_prefix_of(other):
            return self
        return other if other.is_prefix_of(self) else None

    def can_merge(self, other: AxisRef) -> bool:
        """Whether `other` is the sub-axis that comes right after this sub-axis."""
        if self.name != other.name or self.sub_axis_info is None or other.sub_axis_info is None:
            return False
        return self.sub_axis_info.next_pre_size == other.sub_axis_info.pre_size

    def merge(self, other: AxisRef, mesh: Mesh) -> AxisRef:
        """The one axis that this sub-axis and the next one make; ValueError where `can_merge` is False."""
        if not self.can_merge(other):
            raise ValueError(f"{other} does not begin where {self} ends, so they cannot be merged")
        size = self.size(mesh) * other.size(mesh)
        if size == mesh.axis_size(self.name):
            return AxisRef(self.name)
        return AxisRef.sub(self.name, self.pre_size, size)


Axes = tuple[AxisRef, ...]


def total_size(axes: Iterable[AxisRef], mesh: Mesh) -> int:
    """The product of the sizes of the axes."""
    size = 1
    for axis in axes:
        size *= axis.size(mesh)
    return size


def add_axis_or_merge(axes: Sequence[AxisRef], axis: AxisRef, mesh: Mesh) -> Axes:
    """`axes` with `axis` at the end, merged into the last one where it continues it."""
    if axes and axes[-1].can_merge(axis):
        return (*axes[:-1], axes[-1].merge(axis, mesh))
    return (*axes, axis)


def add_axes_or_merge(axes: Sequence[AxisRef], added: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """`axes` with each of `added` at the end, merged where one continues another."""
    if not axes and isinstance(added, tuple) and len(added) < 2:
        return added
    result = tuple(axes)
    for axis in added:
        result = add_axis_or_merge(result, axis, mesh)
    return result


def sort_and_merge(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """The axes in mesh order, merged where one continues another; no two of them may overlap."""
    return add_axes_or_merge((), sorted(axes, key=lambda axis: axis.mesh_order_key(mesh)), mesh)


def any_overlap(axes: Iterable[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Whether an axis of the first list overlaps one of the second."""
    return any(axis.overlaps(other) for axis in axes for other in others)


def axes_difference(axes: Iterable[AxisRef], removed: Sequence[AxisRef], mesh: Mesh) -> Axes:
    """The axes and parts of axes that are in no axis of `removed`, in the order of `axes`."""
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
    """The largest prefix of `axis` that overlaps none of `others`."""
    result: AxisRef | None = axis
    for other in others:
        if result is None:
            return None
        result = result.prefix_without_overlap(other)
    return result


def truncate_at_overlap(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> Axes:
    """The largest prefix of the list that overlaps none of `others`; its last axis may be cut short."""
    for index, axis in enumerate(axes):
        kept = prefix_without_overlap(axis, others)
        if kept != axis:
            return tuple(axes[:index]) if kept is None else (*axes[:index], kept)
    return tuple(axes)


def is_strict_prefix(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Whether `others` begins with `axes` and has more; the last of `axes` may be a prefix of its counterpart."""
    if not axes:
        return bool(others)
    if axes == others:
        return False
    last = len(axes) - 1
    if last >= len(others) or any(axes[i] != others[i] for i in range(last)):
        return False
    return axes[last].is_prefix_of(others[last]) and tuple(axes) != tuple(others)


def greatest_common_prefix(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> Axes:
    """The axes both lists begin with; the last one may be the common prefix of two that differ."""
    result: list[AxisRef] = []
    for axis, other in zip(axes, others, strict=False):
        common = axis.greatest_common_prefix(other)
        if common is not None:
            result.append(common)
        if axis != other:
            break
    return tuple(result)


def split_mesh_axes(axes: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """All of the mesh, cut into full axes and sub-axes so that each sub-axis in `axes` is some of them, in mesh order.

    For a mesh <["x"=2, "y"=16]> and "y":(2)2 that is "x", "y":(1)2, "y":(2)2, "y":(4)4.
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
