# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of collectives that move nothing, that undo each other, or that can be merged.

An all-reduce and the slices of its result become a reduce-scatter. Chains are simplified where the values between the
collectives have no other use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.patterns import Pattern, Rewrite
from mlir_shard.ir.values import create_like, defining_op, has_one_use, users
from mlir_shard.sharding import (
    AllToAllParamList,
    AxisRefList,
    DimensionSharding,
    ListOfAxisRefLists,
    Mesh,
    TensorSharding,
)
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, axes_difference, greatest_common_prefix, sort_and_merge

LABEL = "sdy-collective"


def _value(op: Any, name: str) -> Any:
    return op.attributes[name].value


def _has_no_axes(name: str) -> Callable[[Any], bool]:
    def has_none(op: Any) -> bool:
        axes: AxisRefList | ListOfAxisRefLists = _value(op, name)
        per_dim = [axes] if isinstance(axes, AxisRefList) else axes.value
        return not any(of_dim.value for of_dim in per_dim)

    return has_none


def _noop(name: str, root: str, axes: str) -> Pattern:
    """Returns the pattern that replaces a collective along no axis by its operand."""
    has_none = _has_no_axes(axes)

    def apply(op: Any, rewriter: Any) -> bool:
        if not has_none(op):
            return False
        rewriter.replace_op(op, [op.operands[0]])
        return True

    return Pattern(name, LABEL, root, apply, may_match=has_none)


def _of(
    name: str,
    label: str,
    root: str,
    apply: Rewrite,
    operands: tuple[str, ...],
    may_match: Callable[[Any], bool] | None = None,
) -> Pattern:
    """Returns a pattern on ops whose first operand is a result of an op that has one of the names `operands`."""

    def is_of_one(op: Any) -> bool:
        return defining_op(op.operands[0], *operands) is not None

    return Pattern(name, label, root, apply, operands, may_match or is_of_one)


def permute_to_equivalent_sharding(op: Any, rewriter: Any) -> bool:
    """Replaces a collective permute to a sharding that is equivalent to that of its operand by the operand."""
    if not _keeps_sharding(op):
        return False
    rewriter.replace_op(op, [op.operands[0]])
    return True


def _keeps_sharding(permute: Any) -> bool:
    source = sharding_of(permute.operands[0])
    return source is not None and source.is_equivalent(_value(permute, "out_sharding"))


def _may_keep_sharding(permute: Any) -> bool:
    # The sharding of a block argument is not an attribute of an operation that defines it.
    return isinstance(permute.operands[0].owner, ir.Block) or _keeps_sharding(permute)


def all_slice_of_all_gather(op: Any, rewriter: Any) -> bool:
    """Replaces an all-slice along the axes of the all-gather before it by the operand of the all-gather."""
    if not _undoes_gather(op):
        return False
    rewriter.replace_op(op, [op.operands[0].owner.operation.operands[0]])
    return True


def _undoes_gather(all_slice: Any) -> bool:
    gather = defining_op(all_slice.operands[0], "sdy.all_gather")
    return gather is not None and gather.attributes["gathering_axes"] == all_slice.attributes["slicing_axes"]


def all_reduce_of_replicated_to_unreduced(op: Any, rewriter: Any) -> bool:
    """Replaces an all-reduce along the axes of a preceding `sdy.replicated_to_unreduced` by the operand of that op."""
    declared = defining_op(op.operands[0], "sdy.replicated_to_unreduced")
    if declared is None or declared.attributes["axes"] != op.attributes["reduction_axes"]:
        return False
    rewriter.replace_op(op, [declared.operands[0]])
    return True


def all_reduce_of_sharded_to_unreduced(op: Any, rewriter: Any) -> bool:
    """Replaces an all-reduce along the axes of a preceding `sdy.sharded_to_unreduced` by an all-gather along them."""
    declared = defining_op(op.operands[0], "sdy.sharded_to_unreduced")
    if declared is None:
        return False
    mesh = sdy.mesh_of(_value(declared, "out_sharding"), declared)
    per_dim: ListOfAxisRefLists = _value(declared, "axes")
    axes = [axis for one in per_dim.value for axis in one.value]
    reduced: AxisRefList = _value(op, "reduction_axes")
    if mesh is None or sort_and_merge(axes, mesh) != reduced.value:
        return False
    attributes = {"gathering_axes": declared.attributes["axes"], "out_sharding": op.attributes["out_sharding"]}
    rewriter.replace_op(op, create_like(op, declared.operands[0], attributes, "sdy.all_gather"))
    return True


def unused_all_to_all(op: Any, rewriter: Any) -> bool:
    """Erases an all-to-all without uses."""
    if not _is_unused(op):
        return False
    rewriter.erase_op(op)
    return True


def _is_unused(op: Any) -> bool:
    return not any(True for _ in op.results[0].uses)


def all_to_all_of_all_to_all(op: Any, rewriter: Any) -> bool:
    """Merges two consecutive all-to-alls that have no dimension in common."""
    inner = defining_op(op.operands[0], "sdy.all_to_all")
    if inner is None or not has_one_use(inner.results[0]):
        return False
    first: AllToAllParamList = _value(inner, "params")
    second: AllToAllParamList = _value(op, "params")
    if first.overlaps(second):
        return False
    merged = sdy.attribute(first.combined(second), op.context)
    attributes = {"params": merged, "out_sharding": op.attributes["out_sharding"]}
    rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
    return True


_REPLICATED = ("sdy.replicated_to_unreduced",)
_SHARDED = ("sdy.sharded_to_unreduced",)
# An all-reduce of what was declared unreduced becomes an all-gather.
_GATHERS = ("sdy.all_gather", *_SHARDED)
PATTERNS = (
    _noop("all-gather-noop", "sdy.all_gather", "gathering_axes"),
    _noop("all-slice-noop", "sdy.all_slice", "slicing_axes"),
    _of("all-slice-of-all-gather", LABEL, "sdy.all_slice", all_slice_of_all_gather, _GATHERS, _undoes_gather),
    _noop("all-reduce-noop", "sdy.all_reduce", "reduction_axes"),
    _of("all-reduce-of-replicated", LABEL, "sdy.all_reduce", all_reduce_of_replicated_to_unreduced, _REPLICATED),
    _of("all-reduce-of-sharded", LABEL, "sdy.all_reduce", all_reduce_of_sharded_to_unreduced, _SHARDED),
    _noop("reduce-scatter-noop", "sdy.reduce_scatter", "reduce_scatter_axes"),
    Pattern(
        "permute-noop",
        LABEL,
        "sdy.collective_permute",
        permute_to_equivalent_sharding,
        may_match=_may_keep_sharding,
    ),
    Pattern("all-to-all-unused", LABEL, "sdy.all_to_all", unused_all_to_all, may_match=_is_unused),
    _of("all-to-all-fusion", LABEL, "sdy.all_to_all", all_to_all_of_all_to_all, ("sdy.all_to_all",)),
)
CHAIN_LABEL = "shard-collective"


def _between(op: Any, name: str) -> Any | None:
    """Returns the collective `name` that defines the operand of `op`, if `op` is its only use; else None."""
    inner = defining_op(op.operands[0], name)
    return inner if inner is not None and has_one_use(inner.results[0]) else None


def _axes(op: Any, name: str) -> list[Axes]:
    return [of_dim.value for of_dim in op.attributes[name].value.value]


def _lists(axes_per_dim: list[Axes], op: Any) -> Any:
    return sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, axes_per_dim))), op.context)


def _is_even(value: Any, sharding: TensorSharding | None, mesh: Mesh) -> bool:
    """Returns whether all shards of a value under a sharding are full; False if its shape is not static."""
    if sharding is None or not value.type.has_static_shape:
        return False
    sizes = zip(value.type.shape, sharding.dim_shardings, strict=True)
    return all(size % of_dim.sharded_size(mesh) == 0 for size, of_dim in sizes)


def _merged(name: str, key: str, *, outer_first: bool, only_even: bool = False) -> Callable[[Any, Any], bool]:
    def apply(op: Any, rewriter: Any) -> bool:
        inner = _between(op, name)
        mesh = sdy.mesh_of(op.attributes["out_sharding"].value, op)
        if inner is None or mesh is None:
            return False
        if only_even and not _is_even(inner.operands[0], sharding_of(inner.operands[0]), mesh):
            return False
        pairs = zip(_axes(op, key), _axes(inner, key), strict=True)
        parts = [(outer, of_inner) if outer_first else (of_inner, outer) for outer, of_inner in pairs]
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes[key] = _lists([add_axes_or_merge(major, minor, mesh) for major, minor in parts], op)
        rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
        rewriter.erase_op(inner)
        return True

    return apply


# Between two gathers of uneven shards padding is cut off, which a single gather would send.
all_gather_of_all_gather = _merged("sdy.all_gather", "gathering_axes", outer_first=True, only_even=True)
all_slice_of_all_slice = _merged("sdy.all_slice", "slicing_axes", outer_first=False)


def permute_of_permute(op: Any, rewriter: Any) -> bool:
    """Merges two consecutive collective permutes; the second one determines the layout."""
    inner = _between(op, "sdy.collective_permute")
    if inner is None:
        return False
    attributes = {name: op.attributes[name] for name in op.attributes}
    rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
    rewriter.erase_op(inner)
    return True


def all_slice_of_part_of_all_gather(op: Any, rewriter: Any) -> bool:
    """Removes the axes along which a value is gathered and then sliced again: the common prefix in each dimension."""
    gather = _between(op, "sdy.all_gather")
    source = None if gather is None else sharding_of(gather.operands[0])
    if gather is None or source is None:
        return False
    target = op.attributes["out_sharding"].value
    mesh = sdy.mesh_of(target, op)
    gathered, sliced = _axes(gather, "gathering_axes"), _axes(op, "slicing_axes")
    common = _common_axes(gathered, sliced)
    if mesh is None or not any(common):
        return False
    # Uneven shards along the first axes may differ from the shards along all axes joined together.
    if not _is_even(op.operands[0], source, mesh) or not _is_even(op.operands[0], target, mesh):
        return False
    left, added = (
        [axes_difference(axes, kept, mesh) for axes, kept in zip(of_dims, common, strict=True)]
        for of_dims in (gathered, sliced)
    )
    value = gather.operands[0]
    if any(left):
        dims = {
            dim: type(of)(axes_difference(of.axes, removed, mesh), is_closed=True)
            for dim, (of, removed) in enumerate(zip(source.dim_shardings, left, strict=True))
        }
        between = sdy.attribute(source.replace_dims(dims), op.context)
        attributes = {"gathering_axes": _lists(left, op), "out_sharding": between}
        value = create_like(op, value, attributes, "sdy.all_gather").results[0]
    if any(added):
        attributes = {"slicing_axes": _lists(added, op), "out_sharding": op.attributes["out_sharding"]}
        value = create_like(op, value, attributes).results[0]
    rewriter.replace_op(op, [value])
    rewriter.erase_op(gather)
    return True


def _common_axes(gathered: list[Axes], sliced: list[Axes]) -> list[Axes]:
    return [greatest_common_prefix(*pair) for pair in zip(gathered, sliced, strict=True)]


def _slices_gathered_axes(all_slice: Any) -> bool:
    gather = _between(all_slice, "sdy.all_gather")
    return gather is not None and any(_common_axes(_axes(gather, "gathering_axes"), _axes(all_slice, "slicing_axes")))


def all_to_all_and_back(op: Any, rewriter: Any) -> bool:
    """Replaces an all-to-all that undoes the one before it by the operand of that one."""
    inner = _between(op, "sdy.all_to_all")
    if inner is None:
        return False
    source = sharding_of(inner.operands[0])
    if source is None or not source.is_equivalent(op.attributes["out_sharding"].value):
        return False
    rewriter.replace_op(op, [inner.operands[0]])
    rewriter.erase_op(inner)
    return True


CHAIN_PATTERNS = (
    _of("all-gather-fusion", CHAIN_LABEL, "sdy.all_gather", all_gather_of_all_gather, _GATHERS),
    _of("all-slice-fusion", CHAIN_LABEL, "sdy.all_slice", all_slice_of_all_slice, ("sdy.all_slice",)),
    _of("permute-fusion", CHAIN_LABEL, "sdy.collective_permute", permute_of_permute, ("sdy.collective_permute",)),
    _of(
        "all-slice-of-part-of-all-gather",
        CHAIN_LABEL,
        "sdy.all_slice",
        all_slice_of_part_of_all_gather,
        _GATHERS,
        _slices_gathered_axes,
    ),
    _of("all-to-all-and-back", CHAIN_LABEL, "sdy.all_to_all", all_to_all_and_back, ("sdy.all_to_all",)),
)
AxesPerDim = list[Axes]


def split_slicing_axes(slicing: AxesPerDim, reduced: Axes) -> tuple[AxesPerDim, AxesPerDim] | None:
    """Splits the slicing axes of each dimension into those to scatter along and those to slice along afterwards.

    The axes to scatter along are the leading ones that are in `reduced`. Returns None if axes of `reduced` are left.
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


def _matching_slices(reduce: Any, first: Any) -> list[Any] | None:
    """Returns the users of `reduce` if each is an all-slice along the axes of `first`, in its block and not before it.

    Returns None otherwise.
    """
    slices = users(reduce.results[0])
    for user in slices:
        if user.name != "sdy.all_slice" or user.block != first.block:
            return None
        if user.attributes["slicing_axes"] != first.attributes["slicing_axes"]:
            return None
        if user != first and user.is_before_in_block(first):
            return None
    return slices


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
    """Replaces an all-reduce whose only uses are equal slices by a reduce-scatter, and a slice of it where needed."""
    reduce = defining_op(op.operands[0], "sdy.all_reduce")
    if reduce is None or reduce.block != op.block:
        return False
    slices = _matching_slices(reduce, op)
    split = split_slicing_axes(_axes(op, "slicing_axes"), reduce.attributes["reduction_axes"].value.value)
    if slices is None or split is None:
        return False
    scattered, residual = split
    sharding = _scattered_sharding(reduce, op, scattered)
    if sharding is None:
        return False
    out_sharding = sdy.attribute(sharding, op.context)
    attributes = {"reduce_scatter_axes": _lists(scattered, op), "out_sharding": out_sharding}
    if "reduction_op" in reduce.attributes:
        attributes["reduction_op"] = reduce.attributes["reduction_op"]
    result = create_like(reduce, reduce.operands[0], attributes, "sdy.reduce_scatter").results[0]
    if any(residual):
        remaining = {"slicing_axes": _lists(residual, op), "out_sharding": op.attributes["out_sharding"]}
        result = create_like(op, result, remaining).results[0]
    for one in slices:
        rewriter.replace_op(one, [result])
    rewriter.erase_op(reduce)
    return True


REDUCE_SCATTER_PATTERNS = (
    _of("reduce-scatter-fusion", LABEL, "sdy.all_slice", all_slice_of_all_reduce, ("sdy.all_reduce",)),
)
