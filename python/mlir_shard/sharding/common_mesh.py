# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Axes that serve several meshes of the same devices: each of theirs is some of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mlir_shard.sharding.axes import AxisRef, SubAxisInfo
from mlir_shard.sharding.axis_lists import Axes, add_axes_or_merge, sort_and_merge
from mlir_shard.sharding.line_orders import interval_sizes, order_on_line
from mlir_shard.sharding.line_parts import Parts, axes_of, part_of, parts_by_axis, parts_on_line
from mlir_shard.sharding.mesh import Mesh, MeshAxis
from mlir_shard.sharding.tensor import TensorSharding

UsedAxes = Mapping[Mesh, Iterable[AxisRef]]


@dataclass(frozen=True, slots=True)
class _Line:
    """The devices in an order, and the axes of a mesh as parts of it."""

    device_ids: tuple[int, ...]
    parts: dict[str, Parts]


_Lines = Mapping[Mesh, _Line]


@dataclass(frozen=True, slots=True)
class MeshChange:
    """Axes of one mesh as axes of another one, `mesh`, on which they are the same devices in the same order."""

    mesh: Mesh
    parts: Mapping[str, Parts]

    def axes(self, axes: Iterable[AxisRef]) -> Axes:
        """The axes, major to minor; ValueError where one cannot be said on the mesh."""
        found: list[AxisRef] = []
        for axis in axes:
            refs = self._refs(axis)
            if refs is None:
                raise ValueError(f"{axis} is no axes of {self.mesh}")
            found += refs
        return add_axes_or_merge((), found, self.mesh)

    def sharding(self, sharding: TensorSharding, mesh_or_ref: str | Mesh) -> TensorSharding:
        """What places the same data on each device, on the mesh, which it refers to so; ValueError as in `axes`."""
        return replace(
            sharding,
            mesh_or_ref=mesh_or_ref,
            dim_shardings=tuple(replace(dim, axes=self.axes(dim.axes)) for dim in sharding.dim_shardings),
            replicated_axes=sort_and_merge(self.axes(sharding.replicated_axes), self.mesh),
            unreduced_axes=sort_and_merge(self.axes(sharding.unreduced_axes), self.mesh),
        )

    def can_say(self, axes: Iterable[AxisRef]) -> bool:
        """Whether each of the axes can be said on the mesh."""
        return all(self._refs(axis) is not None for axis in axes)

    def _refs(self, axis: AxisRef) -> tuple[AxisRef, ...] | None:
        parts = part_of(axis, self.parts[axis.name])
        if parts is None:
            return None
        refs = [axes_of(part, self.mesh) for part in parts]
        return None if None in refs else tuple(one for found in refs for one in found or ())


def mesh_changes(first: Mesh, others: Iterable[Mesh], used: UsedAxes) -> dict[Mesh, MeshChange]:
    """How to say `first` and, as far as possible, the others on meshes that have the same axes.

    used: the axes of each mesh that have to be said. Meshes whose devices lie along parts of the line of devices of
    `first` come to its order, others keep theirs, but for those that cut the devices otherwise: their devices are taken
    in an order in which the cuts are the same. The axes are those of `first` where these are fine enough. The meshes
    they are brought to are among the result too; not those of other devices, and those whose sub-axes and the others'
    have no common refinement.
    """
    found = {first: _Line(first.device_ids, parts_by_axis(first))}
    axes = first.axes
    for mesh in others:
        if mesh in found or not _has_devices_of(mesh, first):
            continue
        for line in (_line(mesh, first), _other_line(mesh, axes, found, used)):
            tried = found if line is None else found | {mesh: line}
            finer = None if line is None else _refined(first, axes, tried)
            if finer is None:
                continue
            changes = _changes(finer, tried)
            if all(changes[one].can_say(used.get(one, ())) for one in tried):
                found, axes = tried, finer
                break
    return _changes(axes, found)


def _changes(axes: tuple[MeshAxis, ...], lines: _Lines) -> dict[Mesh, MeshChange]:
    found = {mesh: MeshChange(Mesh(axes, line.device_ids), line.parts) for mesh, line in lines.items()}
    reached = [change.mesh for change in found.values()]
    return {mesh: MeshChange(mesh, parts_by_axis(mesh)) for mesh in reached} | found


def _has_devices_of(mesh: Mesh, first: Mesh) -> bool:
    if not mesh.axes or mesh.total_size != first.total_size:
        return False
    # Devices in order are as many as there are, and need not be listed.
    return not (mesh.device_ids or first.device_ids) or set(mesh.devices) == set(first.devices)


def _line(mesh: Mesh, first: Mesh) -> _Line:
    """The order of devices that a mesh is to have: that of `first` where its axes are parts of it, else its own."""
    if mesh.device_ids == first.device_ids:
        return _Line(first.device_ids, parts_by_axis(mesh))
    parts = parts_on_line(mesh, first.devices)
    return _Line(mesh.device_ids, parts_by_axis(mesh)) if parts is None else _Line(first.device_ids, parts)


def _other_line(mesh: Mesh, axes: tuple[MeshAxis, ...], lines: _Lines, used: UsedAxes) -> _Line | None:
    """The order of devices in which the axes of a mesh are cut as `axes` are, and what is used of them in `lines`."""
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


def _refined(first: Mesh, axes: tuple[MeshAxis, ...], lines: _Lines) -> tuple[MeshAxis, ...] | None:
    """Axes that are cut wherever those of a mesh are: `axes` if they are; None where cuts do not divide each other."""
    cuts = sorted({1, *(cut for line in lines.values() for cut in _cuts(line.parts))})
    if any(after % before for before, after in pairwise(cuts)):
        return None
    if _cuts(parts_by_axis(Mesh(axes))).issuperset(cuts[1:]):
        return axes
    return _named([SubAxisInfo(before, after // before) for before, after in pairwise(cuts)], first, lines)


def _cuts(parts: Mapping[str, Parts]) -> set[int]:
    return {cut for several in parts.values() for part in several for cut in (part.pre_size, part.next_pre_size)}


def _named(intervals: Sequence[SubAxisInfo], first: Mesh, lines: _Lines) -> tuple[MeshAxis, ...]:
    """Axes named as a mesh names just this part, else as the axis of `first` around it, with a number."""
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
