# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of collectives: those that move nothing, those that undo each other, and pairs that make one."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.sharding import AllToAllParamList, AxisRefList, ListOfAxisRefLists
from mlir_shard.sharding.axes import sort_and_merge
from mlir_shard.transforms.canonicalize.pattern import Pattern, create_like, defining_op, has_one_use

LABEL = "sdy-collective"


def _value(op: Any, name: str) -> Any:
    return op.attributes[name].value


def _without_axes_per_dim(name: str) -> Any:
    def apply(op: Any, rewriter: Any) -> bool:
        axes: ListOfAxisRefLists = _value(op, name)
        if any(per_dim.value for per_dim in axes.value):
            return False
        rewriter.replace_op(op, [op.operands[0]])
        return True

    return apply


def all_reduce_without_axes(op: Any, rewriter: Any) -> bool:
    """An all-reduce along no axis is its operand."""
    axes: AxisRefList = _value(op, "reduction_axes")
    if axes.value:
        return False
    rewriter.replace_op(op, [op.operands[0]])
    return True


def permute_to_equivalent_sharding(op: Any, rewriter: Any) -> bool:
    """A collective permute to where the data already is is its operand."""
    source = sharding_of(op.operands[0])
    if source is None or not source.is_equivalent(_value(op, "out_sharding")):
        return False
    rewriter.replace_op(op, [op.operands[0]])
    return True


def all_slice_of_all_gather(op: Any, rewriter: Any) -> bool:
    """Slicing along the axes that were just gathered gives back what was gathered."""
    gather = defining_op(op.operands[0], "sdy.all_gather")
    if gather is None or gather.attributes["gathering_axes"] != op.attributes["slicing_axes"]:
        return False
    rewriter.replace_op(op, [gather.operands[0]])
    return True


def all_reduce_of_replicated_to_unreduced(op: Any, rewriter: Any) -> bool:
    """Reducing along the axes that were just declared unreduced gives back what was replicated."""
    declared = defining_op(op.operands[0], "sdy.replicated_to_unreduced")
    if declared is None or declared.attributes["axes"] != op.attributes["reduction_axes"]:
        return False
    rewriter.replace_op(op, [declared.operands[0]])
    return True


def all_reduce_of_sharded_to_unreduced(op: Any, rewriter: Any) -> bool:
    """Reducing along the axes that shardings were just declared unreduced on is gathering along them."""
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
    """An all-to-all whose result nobody uses is dropped."""
    if list(op.results[0].uses):
        return False
    rewriter.erase_op(op)
    return True


def all_to_all_of_all_to_all(op: Any, rewriter: Any) -> bool:
    """Two all-to-alls in a row that have no dimension in common are one."""
    inner = defining_op(op.operands[0], "sdy.all_to_all")
    if inner is None or not has_one_use(inner.results[0]):
        return False
    params = (*_value(inner, "params").value, *_value(op, "params").value)
    dims = [dim for param in params for dim in (param.src_dim, param.tgt_dim)]
    if len(set(dims)) != len(dims):
        return False
    merged = AllToAllParamList(tuple(sorted(params, key=lambda param: param.src_dim)))
    attributes = {"params": sdy.attribute(merged, op.context), "out_sharding": op.attributes["out_sharding"]}
    rewriter.replace_op(op, create_like(op, inner.operands[0], attributes))
    return True


PATTERNS = (
    Pattern("all-gather-noop", LABEL, "sdy.all_gather", _without_axes_per_dim("gathering_axes")),
    Pattern("all-slice-noop", LABEL, "sdy.all_slice", _without_axes_per_dim("slicing_axes")),
    Pattern("all-slice-of-all-gather", LABEL, "sdy.all_slice", all_slice_of_all_gather),
    Pattern("all-reduce-noop", LABEL, "sdy.all_reduce", all_reduce_without_axes),
    Pattern("all-reduce-of-replicated", LABEL, "sdy.all_reduce", all_reduce_of_replicated_to_unreduced),
    Pattern("all-reduce-of-sharded", LABEL, "sdy.all_reduce", all_reduce_of_sharded_to_unreduced),
    Pattern("reduce-scatter-noop", LABEL, "sdy.reduce_scatter", _without_axes_per_dim("reduce_scatter_axes")),
    Pattern("permute-noop", LABEL, "sdy.collective_permute", permute_to_equivalent_sharding),
    Pattern("all-to-all-unused", LABEL, "sdy.all_to_all", unused_all_to_all),
    Pattern("all-to-all-fusion", LABEL, "sdy.all_to_all", all_to_all_of_all_to_all),
)
