# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Common axes of several meshes of the same devices: each axis of these meshes consists of common axes.

The devices are a line, which each mesh splits into axes in its own way, and possibly orders in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod

from mlir_shard.sharding.axes import Axes, AxisRef, SubAxisInfo, add_axes_or_merge, sort_and_merge
from mlir_shard.sharding.mesh import Mesh, MeshAxis
from mlir_shard.sharding.tensor import TensorSharding

Parts = tuple[SubAxisInfo, ...]
"""Parts of the line, major to minor, that together are one axis."""


def parts_by_axis(mesh: Mesh) -> dict[str, Parts]:
    """Returns each axis as a part of the line of the devices in the mesh's order; no part for axes of size one."""
    parts: dict[str, Parts] = {}
    before = 1
    for axis in mesh.axes:
        parts[axis.name] = (SubAxisInfo(before, axis.size),) if axis.size > 1 else ()
        before *= axis.size
    return parts


def parts_on_line(mesh: Mesh, line: Sequence[int]) -> dict[str, Parts] | None:
    """Returns each axis as parts of the line of devices `line`. None if an axis does not consist of parts.

    An axis consists of parts if a step along it, or along a part, has the same length on the line wherever it begins.
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
    """Returns the places along an axis as parts of a line of `total` devices, major to minor. None if impossible."""
    parts: list[SubAxisInfo] = []
    while len(places) > 1:
        size = next((size for size in range(len(places), 1, -1) if _is_regular(places, size)), None)
        if size is None or total % (places[1] * size):
            return None
        parts.append(SubAxisInfo(total // (places[1] * size), size))
        places = places[::size]
    return tuple(reversed(parts)) if places == [0] else None


def _is_regular(places: Sequence[int], size: int) -> bool:
    """Returns whether places are runs of `size` places with equal, positive steps."""
    if len(places) % size or places[1] < 1:
        return False
    return all(
        places[begin + step] == places[begin] + step * places[1]
        for begin in range(0, len(places), size)
        for step in range(size)
    )


def part_of(axis: AxisRef, parts: Parts) -> Parts | None:
    """Returns the parts of the line that an axis of `parts`, or a sub-axis, covers. None if it cuts through a part."""
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
    """Returns the axes of a mesh, major to minor, that a part of the line of its devices covers. None if it cuts an
    axis where no sub-axis can begin or end."""
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
    """Returns the intersection, of size one if it is empty. None if no single split has both."""
    begin, end = max(one.pre_size, other.pre_size), min(one.next_pre_size, other.next_pre_size)
    if end <= begin:
        # Disjoint parts need not divide each other, but those of axes of one mesh do.
        return SubAxisInfo(begin, 1)
    is_split = begin % one.pre_size == begin % other.pre_size == 0
    is_split &= end % begin == 0 and one.next_pre_size % end == other.next_pre_size % end == 0
    return SubAxisInfo(begin, end // begin) if is_split else None


def order_on_line(
    mesh: Mesh, line: Sequence[SubAxisInfo], used: Iterable[AxisRef]
) -> tuple[tuple[int, ...], dict[str, Parts]] | None:
    """Returns the ids of the devices in an order in which each axis consists of parts of `line`, and these parts.

    line: the intervals of a line of as many devices, major to minor; used: the sub-axes whose borders parts must not
    cross. Intervals are split only if their size and that of an axis have just a divisor in common. None if the
    sub-axes of an axis do not divide each other.
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
    """Returns the sizes of the intervals between cuts of `total` devices, major to minor.

    A cut is the product of the sizes to its left. None if the cuts do not divide each other.
    """
    ordered = sorted({1, total, *cuts})
    if any(after % before for before, after in pairwise(ordered)):
        return None
    return tuple(after // before for before, after in pairwise(ordered))


def _sizes(name: str, size: int, used: Iterable[AxisRef]) -> tuple[int, ...] | None:
    infos = [axis.sub_axis_info for axis in used if axis.name == name and axis.sub_axis_info is not None]
    return interval_sizes(size, (cut for info in infos for cut in (info.pre_size, info.next_pre_size)))


def _taken(size: int, free: list[SubAxisInfo]) -> list[SubAxisInfo]:
    """Removes parts of `size` devices together from the free ones: largest first, split only if necessary."""
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
    """Returns the devices in an order in which a step along a part has the same length as on the line."""
    total = mesh.total_size
    ordered = [part for axis in mesh.axes for part in parts[axis.name]]
    places = [0]
    for part in ordered:
        stride = total // part.next_pre_size
        places = [before + step * stride for before in places for step in range(part.size)]
    assert prod(part.size for part in ordered) == total
    return tuple(device for _, device in sorted(zip(places, mesh.devices, strict=True)))


UsedAxes = Mapping[Mesh, Iterable[AxisRef]]


@dataclass(frozen=True, slots=True)
class _Line:
    """An order of the devices, and the axes of a mesh as parts of the line of the devices in that order."""

    device_ids: tuple[int, ...]
    parts: dict[str, Parts]


_Lines = Mapping[Mesh, _Line]


@dataclass(frozen=True, slots=True)
class MeshChange:
    """The axes of one mesh in terms of the axes of another one, `mesh`, with the same devices in the same order."""

    mesh: Mesh
    parts: Mapping[str, Parts]

    def axes(self, axes: Iterable[AxisRef]) -> Axes:
        """Returns the axes on the mesh, major to minor. Raises ValueError if one cannot be expressed by its axes."""
        found: list[AxisRef] = []
        for axis in axes:
            refs = self._refs(axis)
            if refs is None:
                raise ValueError(f"{axis} cannot be expressed by the axes of {self.mesh}")
            found += refs
        return add_axes_or_merge((), found, self.mesh)

    def sharding(self, sharding: TensorSharding, mesh_or_ref: str | Mesh) -> TensorSharding:
        """Returns a sharding on this mesh that places the same data on each device. Raises ValueError as `axes`."""
        return replace(
            sharding,
            mesh_or_ref=mesh_or_ref,
            dim_shardings=tuple(dim.with_axes(self.axes(dim.axes)) for dim in sharding.dim_shardings),
            replicated_axes=sort_and_merge(self.axes(sharding.replicated_axes), self.mesh),
            unreduced_axes=sort_and_merge(self.axes(sharding.unreduced_axes), self.mesh),
        )

    def can_say(self, axes: Iterable[AxisRef]) -> bool:
        """Returns whether each of the axes can be expressed by axes of the mesh."""
        return all(self._refs(axis) is not None for axis in axes)

    def _refs(self, axis: AxisRef) -> tuple[AxisRef, ...] | None:
        parts = part_of(axis, self.parts[axis.name])
        if parts is None:
            return None
        refs = [axes_of(part, self.mesh) for part in parts]
        return None if None in refs else tuple(one for found in refs for one in found or ())


def mesh_changes(first: Mesh, others: Iterable[Mesh], used: UsedAxes) -> dict[Mesh, MeshChange]:
    """Expresses `first` and, as far as possible, the others as meshes that have the same axes.

    used: the axes of each mesh that shardings use. A mesh whose axes consist of parts of the line of devices of `first`
    is changed to the order of `first`. Others keep their order, unless their cuts of the devices are incompatible: then
    the devices are taken in an order in which the cuts are the same. The axes are those of `first` if these are fine
    enough. The result has the resulting meshes too. It has neither meshes of other devices, nor meshes whose sub-axes
    have no common refinement with those of the others.
    """
    found = {first: _Line(first.device_ids, parts_by_axis(first))}
    axes = first.axes
    for mesh in others:
        if mesh in found or not mesh.axes or not mesh.has_same_devices(first):
            continue
        for in_other_order in (False, True):
            line = _other_line(mesh, axes, found, used) if in_other_order else _line(mesh, first)
            if line is None:
                continue
            found[mesh] = line
            finer = _refined(first, axes, line, found)
            # On the same axes as before, the other meshes are expressed as before.
            asked = () if finer is None else (mesh,) if finer == axes else found
            if finer is not None and all(_change(finer, found[one]).can_say(used.get(one, ())) for one in asked):
                axes = finer
                break
            del found[mesh]
    changes = {mesh: _change(axes, line) for mesh, line in found.items()}
    reached = dict.fromkeys(change.mesh for change in changes.values())
    return {mesh: MeshChange(mesh, parts_by_axis(mesh)) for mesh in reached} | changes


def _change(axes: tuple[MeshAxis, ...], line: _Line) -> MeshChange:
    return MeshChange(Mesh(axes, line.device_ids), line.parts)


def _line(mesh: Mesh, first: Mesh) -> _Line:
    """Returns the new order of devices of a mesh: that of `first` if its axes consist of parts of it, else its own."""
    if mesh.device_ids == first.device_ids:
        return _Line(first.device_ids, parts_by_axis(mesh))
    parts = parts_on_line(mesh, first.devices)
    return _Line(mesh.device_ids, parts_by_axis(mesh)) if parts is None else _Line(first.device_ids, parts)


def _other_line(mesh: Mesh, axes: tuple[MeshAxis, ...], lines: _Lines, used: UsedAxes) -> _Line | None:
    """Returns an order of devices in which a mesh is cut as `axes` and the used axes of `lines` are. None if none."""
    cuts = _cuts(parts_by_axis(Mesh(axes)))
    for one, line in lines.items():
        for axis in used.get(one, ()):
            cuts |= _cuts({axis.name: part_of(axis, line.parts[axis.name]) or ()})
    sizes = interval_sizes(mesh.total_size, cuts)
    if sizes is None:
        return None
    intervals: list[SubAxisInfo] = []
    for size in sizes:
        intervals.append(SubAxisInfo(intervals[-1].next_pre_size if intervals else 1, size))
    ordered = order_on_line(mesh, intervals, used.get(mesh, ()))
    return None if ordered is None else _Line(*ordered)


def _refined(first: Mesh, axes: tuple[MeshAxis, ...], line: _Line, lines: _Lines) -> tuple[MeshAxis, ...] | None:
    """Returns `axes`, which have the cuts of the other lines, cut as `line` too. None if cuts do not divide each other.

    The result is `axes` if these suffice.
    """
    present, added = _cuts(parts_by_axis(Mesh(axes))), _cuts(line.parts)
    if added <= present:
        return axes
    cuts = sorted({1, *present, *added})
    if any(after % before for before, after in pairwise(cuts)):
        return None
    return _named([SubAxisInfo(before, after // before) for before, after in pairwise(cuts)], first, lines)


def _cuts(parts: Mapping[str, Parts]) -> set[int]:
    return {cut for several in parts.values() for part in several for cut in (part.pre_size, part.next_pre_size)}


def _named(intervals: Sequence[SubAxisInfo], first: Mesh, lines: _Lines) -> tuple[MeshAxis, ...]:
    """Names axes as a mesh names exactly this part, or else as the axis of `first` that contains it, with a number."""
    whole: dict[SubAxisInfo, str] = {}
    for line in lines.values():
        for name, parts in line.parts.items():
            if len(parts) == 1:
                whole.setdefault(parts[0], name)
    own = {name: parts for name, parts in parts_by_axis(first).items() if parts}
    names: list[str] = []
    for interval in intervals:
        name = whole.get(interval, "")
        if not name or name in names:
            around = next((axis for axis, (part,) in own.items() if _contains(part, interval)), "axis")
            taken = {*names, *whole.values()}
            name = next(one for number in range(len(taken) + 1) if (one := f"{around}_{number}") not in taken)
        names.append(name)
    return tuple(MeshAxis(name, one.size) for name, one in zip(names, intervals, strict=True))


def _contains(part: SubAxisInfo, other: SubAxisInfo) -> bool:
    return part.pre_size <= other.pre_size and part.next_pre_size >= other.next_pre_size
