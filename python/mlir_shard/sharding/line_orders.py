# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Orders of the devices of a mesh in which its axes are parts of a line that is cut otherwise than they are.

Meshes of as many devices always have such an order: 2x3 devices lie as 3x2 ones do once these are taken column by
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import gcd, prod

from mlir_shard.sharding.axes import AxisRef, SubAxisInfo
from mlir_shard.sharding.line_parts import Parts
from mlir_shard.sharding.mesh import Mesh


def order_on_line(
    mesh: Mesh, line: Sequence[SubAxisInfo], used: Iterable[AxisRef]
) -> tuple[tuple[int, ...], dict[str, Parts]] | None:
    """The ids of the devices in an order in which each axis is parts of `line`, and these parts.

    line: the intervals of a line of as many devices, major to minor; used: the sub-axes that parts must not go across.
    They are cut where sizes have no more than a divisor in common, nowhere else. None where the sub-axes of an axis do
    not divide each other.
    """
    free = list(line)
    parts: dict[str, Parts] = {}
    used = tuple(used)
    for axis in mesh.axes:
        sizes = _sizes(axis.name, axis.size, used)
        if sizes is None:
            return None
        parts[axis.name] = tuple(_merged(part for size in sizes for part in _taken(size, free)))
    return _order(mesh, parts), parts


def interval_sizes(total: int, cuts: Iterable[int]) -> tuple[int, ...] | None:
    """The sizes of what is between cuts of `total` devices, major to minor; None where they do not divide each other.

    A cut is the number of blocks to its left.
    """
    ordered = sorted({1, total, *cuts})
    if any(after % before for before, after in pairwise(ordered)):
        return None
    return tuple(after // before for before, after in pairwise(ordered))


def _sizes(name: str, size: int, used: Iterable[AxisRef]) -> tuple[int, ...] | None:
    infos = [axis.sub_axis_info for axis in used if axis.name == name and axis.sub_axis_info is not None]
    return interval_sizes(size, (cut for info in infos for cut in (info.pre_size, info.next_pre_size)))


def _taken(size: int, free: list[SubAxisInfo]) -> list[SubAxisInfo]:
    """Parts that have `size` devices together, taken out of what is free: the largest that there are, and whole."""
    found: list[SubAxisInfo] = []
    while size > 1:
        place = max(
            range(len(free)),
            key=lambda index: (free[index].size == size, gcd(free[index].size, size), -free[index].size, -index),
        )
        one = free.pop(place)
        part = SubAxisInfo(one.pre_size, gcd(one.size, size))
        if part.size < one.size:
            free.insert(place, SubAxisInfo(part.next_pre_size, one.size // part.size))
        found.append(part)
        size //= part.size
    return found


def _merged(parts: Iterable[SubAxisInfo]) -> list[SubAxisInfo]:
    merged: list[SubAxisInfo] = []
    for part in parts:
        if merged and merged[-1].next_pre_size == part.pre_size:
            part = SubAxisInfo(merged[-1].pre_size, merged.pop().size * part.size)
        merged.append(part)
    return merged


def _order(mesh: Mesh, parts: Mapping[str, Parts]) -> tuple[int, ...]:
    """The devices such that a step along a part is as long as on the line."""
    total = mesh.total_size
    ordered = [part for axis in mesh.axes for part in parts[axis.name]]
    places = [0]
    for part in ordered:
        stride = total // part.next_pre_size
        places = [before + step * stride for before in places for step in range(part.size)]
    assert prod(part.size for part in ordered) == total
    return tuple(device for _, device in sorted(zip(places, mesh.devices, strict=True)))
