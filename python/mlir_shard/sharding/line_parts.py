# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes of a mesh as parts of the line of all devices, which several meshes may cut in different ways.

A part of the line is what a sub-axis is of an axis: so many blocks of devices to its left, and a size.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.sharding.axes import AxisRef, SubAxisInfo
from mlir_shard.sharding.mesh import Mesh

Parts = tuple[SubAxisInfo, ...]
"""Parts of the line, major to minor, that make one axis together."""


def parts_by_axis(mesh: Mesh) -> dict[str, Parts]:
    """Each axis as a part of the line of the devices as the mesh has them; axes of size one are no part."""
    parts: dict[str, Parts] = {}
    before = 1
    for axis in mesh.axes:
        parts[axis.name] = (SubAxisInfo(before, axis.size),) if axis.size > 1 else ()
        before *= axis.size
    return parts


def parts_on_line(mesh: Mesh, line: Sequence[int]) -> dict[str, Parts] | None:
    """Each axis as parts of the line of devices `line`; None where its devices do not lie so.

    They do where a step along an axis, or along a part of it, is as long on the line wherever it begins.
    """
    position = {device: index for index, device in enumerate(line)}
    if len(mesh.devices) != len(line) or not position.keys() >= set(mesh.devices):
        return None
    places = [position[device] for device in mesh.devices]
    parts: dict[str, Parts] = {}
    expected = [0]
    stride = len(line)
    for axis in mesh.axes:
        stride //= axis.size
        along = places[: stride * axis.size : stride]
        found = _parts(along, len(line))
        if found is None:
            return None
        parts[axis.name] = found
        expected = [before + step for before in expected for step in along]
    return parts if places == expected else None


def _parts(places: Sequence[int], total: int) -> Parts | None:
    """Steps from place 0 as parts of a line of `total` devices, major to minor."""
    parts: list[SubAxisInfo] = []
    while len(places) > 1:
        size = next((size for size in range(len(places), 1, -1) if _is_regular(places, size)), None)
        if size is None or total % (places[1] * size):
            return None
        parts.append(SubAxisInfo(total // (places[1] * size), size))
        places = places[::size]
    return tuple(reversed(parts)) if places == [0] else None


def _is_regular(places: Sequence[int], size: int) -> bool:
    """Whether places are runs of `size` steps of one length, that forward."""
    if len(places) % size or places[1] < 1:
        return False
    return all(
        places[begin + step] == places[begin] + step * places[1]
        for begin in range(0, len(places), size)
        for step in range(size)
    )


def part_of(axis: AxisRef, parts: Parts) -> Parts | None:
    """What a full axis of these parts, or a sub-axis of it, is on the line; None where it cuts amid a part."""
    info = axis.sub_axis_info
    if info is None:
        return parts
    found: list[SubAxisInfo] = []
    before = 1
    for part in parts:
        inside = _overlap(info, SubAxisInfo(before, part.size))
        if inside is None:
            return None
        if inside.size > 1:
            found.append(SubAxisInfo(part.pre_size * (inside.pre_size // before), inside.size))
        before *= part.size
    return tuple(found)


def axes_of(part: SubAxisInfo, mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """A part of the line of the devices of a mesh as axes of it, major to minor; None where it cuts amid an axis in a
    way that sub-axes do not."""
    found: list[AxisRef] = []
    for name, parts in parts_by_axis(mesh).items():
        if not parts:
            continue
        whole = parts[0]
        inside = _overlap(part, whole)
        if inside is None:
            return None
        if inside == whole:
            found.append(AxisRef(name))
        elif inside.size > 1:
            found.append(AxisRef.sub(name, inside.pre_size // whole.pre_size, inside.size))
    return tuple(found)


def _overlap(one: SubAxisInfo, other: SubAxisInfo) -> SubAxisInfo | None:
    """What is in both, of size one where nothing is; None where one split has not both."""
    begin, end = max(one.pre_size, other.pre_size), min(one.next_pre_size, other.next_pre_size)
    if end <= begin:
        # Apart they may still not divide each other, which the mesh's own axes never do.
        return SubAxisInfo(begin, 1)
    is_split = begin % one.pre_size == begin % other.pre_size == 0
    is_split &= end % begin == 0 and one.next_pre_size % end == other.next_pre_size % end == 0
    return SubAxisInfo(begin, end // begin) if is_split else None
