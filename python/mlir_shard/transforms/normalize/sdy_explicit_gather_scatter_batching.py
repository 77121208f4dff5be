# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes batch dimensions of gathers and scatters explicit, where the indices count along them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard.host import ir, rewrite
from mlir_shard.ir import stablehlo
from mlir_shard.ir.patterns import Pattern, apply_greedily
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import FunctionPass, register

CONCATENATE = "stablehlo.concatenate"
IOTA = "stablehlo.iota"
RESHAPE = "stablehlo.reshape"
BROADCAST = "stablehlo.broadcast_in_dim"


@register
class ExplicitGatherScatterBatching(FunctionPass):
    """Declares dimension 0 of the operand and of the indices of a gather or scatter as batching dimensions, which share
    their sharding, if each index into dimension 0 of the operand equals its position in dimension 0 of the indices; and
    removes that index. The idea is Shardy's."""

    name = "sdy-explicit-gather-scatter-batching"
    summary = "Makes implicit batch dimensions of gather and scatter explicit"

    def run(self, op: Any) -> None:
        apply_greedily(op, PATTERNS, rewrite.GreedyRewriteConfig())


def _make_explicit(op: Any, rewriter: Any) -> bool:
    numbers = SliceNumbers.of(op)
    # A scatter has its inputs before the indices, as many as results.
    number = 1 if op.name == "stablehlo.gather" else len(op.results)
    indices = op.operands[number]
    position = _batch_position(numbers, op.operands[0], indices)
    if position is None:
        return False
    collapsed, index_map = (tuple(dim for dim in dims if dim != 0) for dims in (numbers.collapsed, numbers.index_map))
    fewer = _without(op, indices, numbers.index_vector_dim, position)
    changed = op.clone(ip=ir.InsertionPoint(op))
    changed.operands[number] = fewer
    replace(numbers, collapsed=collapsed, batching=(0,), index_batching=(0,), index_map=index_map).set_on(changed)
    rewriter.replace_op(op, changed)
    return True


PATTERNS = (
    Pattern("explicit-gather-batching", "sdy-explicit-batching", "stablehlo.gather", _make_explicit),
    Pattern("explicit-scatter-batching", "sdy-explicit-batching", "stablehlo.scatter", _make_explicit),
)


def _batch_position(numbers: SliceNumbers, operand: Any, indices: Any) -> int | None:
    """Returns the entry of index vectors that is an implicit batch index into dimension 0; None if none exists."""
    rank, vector_dim = indices.type.rank, numbers.index_vector_dim
    if numbers.batching or operand.type.rank == 0 or rank == 0 or vector_dim >= rank:
        return None
    if indices.type.get_dim_size(vector_dim) <= 1 or indices.type.get_dim_size(0) != operand.type.get_dim_size(0):
        return None
    if 0 not in numbers.index_map or 0 not in numbers.collapsed:
        return None
    position = numbers.index_map.index(0)
    return position if _counts(indices, vector_dim, position) else None


def _counts(indices: Any, vector_dim: int, position: int) -> bool:
    """Returns whether entry `position` of the index vectors comes from an iota along dimension 0."""
    entries = _entries(indices, vector_dim)
    iota = defining_op(_before_reshapes(indices if entries is None else entries[position]), IOTA)
    return iota is not None and iota.attributes["iota_dimension"].value == 0


def _entries(indices: Any, vector_dim: int) -> list[Any] | None:
    """Returns the entries of the index vectors if these are a concatenation of single entries; else None."""
    concatenated = defining_op(indices, CONCATENATE)
    if concatenated is None or concatenated.attributes["dimension"].value != vector_dim:
        return None
    entries = list(concatenated.operands)
    return entries if len(entries) == indices.type.get_dim_size(vector_dim) else None


def _before_reshapes(value: Any) -> Any:
    """Returns the value before operations that keep dimension 0 and do not change the indices of an iota."""
    while (op := defining_op(value)) is not None:
        if op.name in (RESHAPE, BROADCAST) and _keeps_first_dim(op):
            value = op.operands[0]
        elif op.name == "stablehlo.select" and _is_negative(op.operands[0], op.operands[2]):
            value = op.operands[2]
        elif op.name == "stablehlo.clamp" and _spans(op):
            value = op.operands[1]
        else:
            break
    return value


def _is_negative(predicate: Any, value: Any) -> bool:
    """Returns whether a predicate tests for negative elements of a value; an iota has none."""
    compare = defining_op(predicate, "stablehlo.compare")
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return False
    return compare.operands[0] == value and _splat(compare.operands[1]) == 0


def _spans(clamp: Any) -> bool:
    """Returns whether a clamp changes no index into dimension 0 of its operand."""
    low, high = _splat(clamp.operands[0]), _splat(clamp.operands[2])
    return low is not None and high is not None and low <= 0 and high >= clamp.operands[1].type.get_dim_size(0) - 1


def _splat(value: Any) -> int | None:
    """Returns the integer that all elements of a constant, or of a broadcast of one, have; None if none exists."""
    while (broadcast := defining_op(value, BROADCAST)) is not None:
        value = broadcast.operands[0]
    constant = defining_op(value, "stablehlo.constant") or defining_op(value, "sdy.constant")
    if constant is None:
        return None
    elements = constant.attributes["value"]
    if not isinstance(elements, ir.DenseIntElementsAttr) or not elements.is_splat:
        return None
    return int(elements.get_splat_value().value)


def _keeps_first_dim(op: Any) -> bool:
    """Returns whether row i of dimension 0 of a reshape or a broadcast has the elements of row i of the operand."""
    source, target = op.operands[0].type, op.results[0].type
    if source.rank == 0 or target.rank == 0 or source.get_dim_size(0) != target.get_dim_size(0):
        return False
    return op.name == RESHAPE or op.attributes["broadcast_dimensions"][0] == 0


def _without(op: Any, indices: Any, vector_dim: int, position: int) -> Any:
    """Returns the index vectors without their entry `position`."""
    entries = _entries(indices, vector_dim)
    if entries is not None:
        parts = [entry for index, entry in enumerate(entries) if index != position]
    else:
        ranges = ((0, position), (position + 1, indices.type.get_dim_size(vector_dim)))
        parts = [_slice(op, indices, vector_dim, start, end) for start, end in ranges if start < end]
    if len(parts) == 1:
        return parts[0]
    with ir.InsertionPoint(op), op.location:
        return stablehlo.concatenate(parts, vector_dim)


def _slice(op: Any, value: Any, dim: int, start: int, end: int) -> Any:
    starts, limits = [0] * value.type.rank, list(value.type.shape)
    starts[dim], limits[dim] = start, end
    with ir.InsertionPoint(op), op.location:
        return stablehlo.slice_(value, starts, limits)
