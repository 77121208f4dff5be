# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of axes, as they shard one dimension or stand in one set: merging, cutting, comparing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.mesh import Mesh

Axes = tuple[AxisRef, ...]


def total_size(axes: Iterable[AxisRef], mesh: Mesh) -> int:
    """The product of the sizes of the axes."""
    return prod(axis.size(mesh) for axis in axes)


def add_axis_or_merge(axes: Sequence[AxisRef], axis: AxisRef, mesh: Mesh) -> Axes:
    """`axes` with `axis` at the end, merged into the last one where it continues it."""
    if axes and axes[-1].can_merge(axis):
        return (*axes[:-1], axes[-1].merge(axis, mesh))
    return (*axes, axis)


def add_axes_or_merge(axes: Sequence[AxisRef], added: Iterable[AxisRef], mesh: Mesh) -> Axes:
    """`axes` with each of `added` at the end, merged where one continues another."""
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
