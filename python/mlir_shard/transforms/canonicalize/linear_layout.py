# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a sharding cuts a tensor that is read in row-major order, whatever the tensor's shape.

Where all blocks are even, the coordinate of a device along a mesh axis is one digit of the position of an element in
row-major order: position // stride % size. The strides of the axes say all of the sharding, so tensors of different
shapes hold the same data on every device exactly where their layouts are equal, and a transpose moves digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from mlir_shard.sharding import AxisRef, Mesh, TensorSharding


@dataclass(frozen=True, slots=True)
class Cut:
    """The devices along `axis`, `size` of them, each hold `stride` elements in a row before it is the next one's."""

    axis: AxisRef
    size: int
    stride: int

    @property
    def end(self) -> int:
        """The elements after which the devices take turns anew."""
        return self.stride * self.size


Layout = tuple[Cut, ...]


def layout_of(sharding: TensorSharding, shape: Sequence[int | None], mesh: Mesh) -> Layout | None:
    """The layout of a sharded tensor; None where a dimension is dynamic or its blocks are not even."""
    cuts: list[Cut] = []
    behind = 1
    for size, dim in zip(reversed(shape), reversed(sharding.dim_shardings), strict=True):
        if size is None or size % dim.sharded_size(mesh):
            return None
        stride = behind * (size // dim.sharded_size(mesh))
        for axis in reversed(dim.axes):
            cuts.append(Cut(axis, axis.size(mesh), stride))
            stride *= axis.size(mesh)
        behind *= size
    return _normalize(cuts, mesh)


def before_transpose(
    layout: Layout, source_shape: Sequence[int | None], permutation: Sequence[int], mesh: Mesh
) -> Layout | None:
    """The layout of the operand of a transpose whose result has `layout`.

    Dimension i of the result is dimension permutation[i] of the operand. None where a dimension is dynamic or a cut
    is not made of whole digits of dimensions.
    """
    sizes = [size for size in source_shape if size is not None]
    if len(sizes) != len(source_shape):
        return None
    source_strides = _strides(sizes)
    result_sizes = [sizes[dim] for dim in permutation]
    cuts: list[Cut] = []
    for cut in layout:
        parts = _split(cut, result_sizes)
        if parts is None:
            return None
        cuts += [Cut(part.axis, part.size, offset * source_strides[permutation[dim]]) for part, dim, offset in parts]
    return _normalize(cuts, mesh)


def _strides(shape: Sequence[int]) -> list[int]:
    return list(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else []


def _split(cut: Cut, shape: Sequence[int]) -> list[tuple[Cut, int, int]] | None:
    """The cut as sub-axes of its axis, one for each dimension it goes through, with the dimension and the stride in it.

    None where it is not made of whole digits.
    """
    parts = []
    for dim, (size, stride) in enumerate(zip(shape, _strides(shape), strict=True)):
        begin, end = max(cut.stride, stride), min(cut.end, stride * size)
        if begin >= end:
            continue
        if begin % stride or begin % cut.stride or end % begin or cut.end % end or (stride * size) % end:
            return None
        pre_size = cut.axis.pre_size * (cut.end // end)
        whole = end // begin == cut.size
        axis = cut.axis if whole else AxisRef.sub(cut.axis.name, pre_size, end // begin)
        parts.append((Cut(axis, end // begin, begin), dim, begin // stride))
    return parts


def _normalize(cuts: Iterable[Cut], mesh: Mesh) -> Layout:
    """From the largest stride to the smallest, sub-axes merged; an axis of one device cuts nothing."""
    merged: list[Cut] = []
    for cut in sorted((cut for cut in cuts if cut.size > 1), key=lambda cut: -cut.stride):
        major = merged[-1] if merged else None
        if major is not None and major.axis.can_merge(cut.axis) and major.stride == cut.end:
            merged[-1] = Cut(major.axis.merge(cut.axis, mesh), major.size * cut.size, cut.stride)
        else:
            merged.append(cut)
    return tuple(merged)
