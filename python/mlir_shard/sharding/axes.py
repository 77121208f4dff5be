# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""References to mesh axes and to sub-axes of them, and what one says of another.

A full axis of size n reshaped to [k1, k2, ...] has sub-axes; the one of size k with sizes of product m to its left
is written `"a":(m)k`. It spans the interval m to m*k of the divisors of n, and a full axis the interval 1 to n, so
containing, overlapping and merging are about intervals. The idea is Shardy's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mlir_shard.sharding.mesh import Mesh


@dataclass(frozen=True, slots=True)
class SubAxisInfo:
    """Which part of a full axis a sub-axis is: `pre_size` is the product of the sizes to its left."""

    pre_size: int
    size: int

    @property
    def next_pre_size(self) -> int:
        """The pre-size of the sub-axis to the right of this one."""
        return self.pre_size * self.size


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A full axis, or with `sub_axis_info` a sub-axis of it.

    Questions about two axes take both to be valid in one mesh; axes of different names have nothing in common.
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

    def strictly_contains(self, other: AxisRef) -> bool:
        """Whether this axis contains `other` and is not equal to it."""
        return self != other and self.contains(other)

    def is_prefix_of(self, other: AxisRef) -> bool:
        """Whether this axis is `other` or the major part of a split of `other`."""
        return other.contains(self) and self.pre_size == other.pre_size

    def is_strict_prefix_of(self, other: AxisRef) -> bool:
        """Whether this axis is a prefix of `other` and not equal to it."""
        return self != other and self.is_prefix_of(other)

    def is_suffix_of(self, other: AxisRef, mesh: Mesh) -> bool:
        """Whether this axis is `other` or the minor part of a split of `other`."""
        return other.contains(self) and self.next_pre_size(mesh) == other.next_pre_size(mesh)

    def is_strict_suffix_of(self, other: AxisRef, mesh: Mesh) -> bool:
        """Whether this axis is a suffix of `other` and not equal to it."""
        return self != other and self.is_suffix_of(other, mesh)

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
