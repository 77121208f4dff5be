# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of collectives that follow each other, where nothing else uses what is between them.

Shardy has none of these; a label of their own lets pipelines that equal Shardy's go without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.sharding import AxisRefList, ListOfAxisRefLists
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, axes_difference, greatest_common_prefix
from mlir_shard.transforms.canonicalize.pattern import Pattern, create_like, defining_op, has_one_use

LABEL = "shard-collective"


def _between(op: Any, name: str) -> Any | None:
    """The collective of this name that makes the operand of `op`, which alone uses it."""
    inner = defining_op(op.operands[0], name)
    return inner if inner is not None and has_one_use(inner.results[0]) else None


def _axes(op: Any, name: str) -> list[Axes]:
    return [of_dim.value for of_dim in op.attributes[name].value.value]


def _lists(axes_per_dim: list[Axes], op: Any) -> Any:
    return sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, axes_per_dim))), op.context)


def _merged(name: str, key: str, *, outer_first: bool) -> Callable[[Any, Any], bool]:
    def apply(op: Any, rewriter: Any) -> bool:
        inner = _between(op, name)
        mesh = sdy.mesh_of(op.attributes["out_sharding"].value, op)
        if inner is None or mesh is None:
            return False
        pairs = zip(_axes(op, key), _axes(inner, key), strict=True)
        parts = [(outer, of_inner) if outer_first else (of_inner, outer) for outer, of_inner in pairs]
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes[key] = _lists([add_axes_or_merge(major, minor, mesh) for major, minor in parts], op)
        rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
        rewriter.erase_op(inner)
        return True

    return apply


all_gather_of_all_gather = _merged("sdy.all_gather", "gathering_axes", outer_first=True)
all_slice_of_all_slice = _merged("sdy.all_slice", "slicing_axes", outer_first=False)


def permute_of_permute(op: Any, rewriter: Any) -> bool:
    """The second of two permutes says where the data is to be."""
    inner = _between(op, "sdy.collective_permute")
    if inner is None:
        return False
    attributes = {name: op.attributes[name] for name in op.attributes}
    rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
    rewriter.erase_op(inner)
    return True


def all_slice_of_part_of_all_gather(op: Any, rewriter: Any) -> bool:
    """What is gathered and sliced again need not be gathered: the axes that both begin with, in each dimension."""
    gather = _between(op, "sdy.all_gather")
    source = None if gather is None else sharding_of(gather.operands[0])
    if gather is None or source is None:
        return False
    target = op.attributes["out_sharding"].value
    mesh = sdy.mesh_of(target, op)
    gathered, sliced = _axes(gather, "gathering_axes"), _axes(op, "slicing_axes")
    common = [greatest_common_prefix(*pair) for pair in zip(gathered, sliced, strict=True)]
    if mesh is None or not any(common):
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


def all_to_all_and_back(op: Any, rewriter: Any) -> bool:
    """An all-to-all that undoes the one before it gives back what there was."""
    inner = _between(op, "sdy.all_to_all")
    if inner is None:
        return False
    source = sharding_of(inner.operands[0])
    if source is None or not source.is_equivalent(op.attributes["out_sharding"].value):
        return False
    rewriter.replace_op(op, [inner.operands[0]])
    rewriter.erase_op(inner)
    return True


PATTERNS = (
    Pattern("all-gather-fusion", LABEL, "sdy.all_gather", all_gather_of_all_gather),
    Pattern("all-slice-fusion", LABEL, "sdy.all_slice", all_slice_of_all_slice),
    Pattern("permute-fusion", LABEL, "sdy.collective_permute", permute_of_permute),
    Pattern("all-slice-of-part-of-all-gather", LABEL, "sdy.all_slice", all_slice_of_part_of_all_gather),
    Pattern("all-to-all-and-back", LABEL, "sdy.all_to_all", all_to_all_and_back),
)
