# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusing an all-reduce and the slices of its result to a reduce-scatter.

Where every reduced axis comes first among the axes that some dimension is sliced along, each device needs only its
slice of the sum; the axes that are sliced but not reduced stay with an all-slice behind. The idea is Shardy's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.sharding import AxisRef, AxisRefList, DimensionSharding, ListOfAxisRefLists, TensorSharding
from mlir_shard.sharding.axes import add_axes_or_merge
from mlir_shard.transforms.canonicalize.collectives import LABEL
from mlir_shard.transforms.canonicalize.pattern import Pattern, create_like, defining_op, users

AxesPerDim = list[tuple[AxisRef, ...]]


def split_slicing_axes(slicing: AxesPerDim, reduced: tuple[AxisRef, ...]) -> tuple[AxesPerDim, AxesPerDim] | None:
    """What of the sliced axes of each dimension is scattered to, and what is sliced afterwards.

    The scattered ones are the leading axes that are in `reduced`; None where that leaves reduced axes over.
    """
    left = set(reduced)
    scattered: AxesPerDim = []
    residual: AxesPerDim = []
    for axes in slicing:
        count = 0
        while count < len(axes) and axes[count] in left:
            left.remove(axes[count])
            count += 1
        scattered.append(axes[:count])
        residual.append(axes[count:])
    return None if left else (scattered, residual)


def _slices_alike(reduce: Any, first: Any) -> list[Any] | None:
    """The users of `reduce` where each is an all-slice like `first`, in its block and not before it; else None."""
    slices = users(reduce.results[0])
    for user in slices:
        if user.name != "sdy.all_slice" or user.block != first.block:
            return None
        if user.attributes["slicing_axes"] != first.attributes["slicing_axes"]:
            return None
        if user != first and user.is_before_in_block(first):
            return None
    return slices


def _list_attribute(axes: AxesPerDim, op: Any) -> Any:
    return sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, axes))), op.context)


def _scattered_sharding(reduce: Any, slice_: Any, scattered: AxesPerDim) -> TensorSharding | None:
    reduced_sharding: TensorSharding = reduce.attributes["out_sharding"].value
    out_sharding: TensorSharding = slice_.attributes["out_sharding"].value
    mesh = sdy.mesh_of(reduced_sharding, reduce)
    if mesh is None:
        return None
    source = sharding_of(reduce.operands[0])
    if source is None:
        source = TensorSharding.fully_closed(len(scattered), reduced_sharding.mesh_or_ref)
    dims = tuple(
        DimensionSharding(add_axes_or_merge(dim.axes, axes, mesh), is_closed=True)
        for dim, axes in zip(source.dim_shardings, scattered, strict=True)
    )
    return replace(out_sharding, mesh_or_ref=reduced_sharding.mesh_or_ref, dim_shardings=dims)


def all_slice_of_all_reduce(op: Any, rewriter: Any) -> bool:
    """An all-reduce that is only sliced, everywhere alike, is a reduce-scatter, with a slice of it where needed."""
    reduce = defining_op(op.operands[0], "sdy.all_reduce")
    if reduce is None or reduce.block != op.block:
        return False
    slices = _slices_alike(reduce, op)
    slicing: AxesPerDim = [axes.value for axes in op.attributes["slicing_axes"].value.value]
    split = split_slicing_axes(slicing, reduce.attributes["reduction_axes"].value.value)
    if slices is None or split is None:
        return False
    scattered, residual = split
    sharding = _scattered_sharding(reduce, op, scattered)
    if sharding is None:
        return False
    attributes = {
        "reduce_scatter_axes": _list_attribute(scattered, op),
        "out_sharding": sdy.attribute(sharding, op.context),
    }
    if "reduction_op" in reduce.attributes:
        attributes["reduction_op"] = reduce.attributes["reduction_op"]
    result = create_like(reduce, reduce.operands[0], attributes, "sdy.reduce_scatter").results[0]
    if any(residual):
        remaining = {
            "slicing_axes": _list_attribute(residual, op),
            "out_sharding": op.attributes["out_sharding"],
        }
        result = create_like(op, result, remaining).results[0]
    for one in slices:
        rewriter.replace_op(one, [result])
    rewriter.erase_op(reduce)
    return True


PATTERNS = (Pattern("reduce-scatter-fusion", LABEL, "sdy.all_slice", all_slice_of_all_reduce),)
