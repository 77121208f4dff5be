# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices of gathers and scatters that equal their positions, and the batching dimensions that replace them."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.ir.values import defining_op
from mlir_shard.rules.computed_bodies import integer_of

GATHER, SCATTER = "stablehlo.gather", "stablehlo.scatter"
_CONCATENATE = "stablehlo.concatenate"


def number_of_indices(op: Any) -> int:
    """Returns the number of the operand with the indices; a scatter has as many inputs before it as results."""
    return 1 if op.name == GATHER else len(op.results)


def with_batching(op: Any, *, only_first: bool = False) -> tuple[Any, SliceNumbers] | None:
    """Builds the indices without entries that equal their positions; returns them and the dimension numbers.

    An entry of index vectors is removed if it indexes a dimension whose size is that of the dimension of the indices
    along which it counts, and slices have size 1 there. At least one entry is kept.

    Args:
        op: a gather or scatter.
        only_first: remove only an index into dimension 0 of the operand along dimension 0 of the indices, and only from
            an op without batching dimensions.

    Returns:
        None if no such entry exists.
    """
    numbers, operand, indices = SliceNumbers.of(op), op.operands[0], op.operands[number_of_indices(op)]
    vector_dim, count = numbers.index_vector_dim, len(numbers.index_map)
    if count < 2 or (only_first and numbers.batching):
        return None
    entries = _entries(indices, vector_dim)
    # For each dimension of the operand, that of the indices.
    found: dict[int, int] = {}
    for number, dim in enumerate(numbers.index_map):
        if dim not in numbers.collapsed or len(found) == count - 1 or (only_first and dim):
            continue
        place = position_dim(indices if entries is None else entries[number])
        if place is None or place in (vector_dim, *numbers.index_batching, *found.values()) or (only_first and place):
            continue
        if indices.type.get_dim_size(place) == operand.type.get_dim_size(dim):
            found[dim] = place
    if not found:
        return None
    left = [number for number, dim in enumerate(numbers.index_map) if dim not in found]
    with ir.InsertionPoint(op), op.location:
        if entries is None:
            parts = [stablehlo.along(indices, vector_dim, number, number + 1) for number in left]
        else:
            parts = [entries[number] for number in left]
        fewer = parts[0] if len(parts) == 1 else stablehlo.concatenate(parts, vector_dim)
    pairs = sorted((*zip(numbers.batching, numbers.index_batching, strict=True), *found.items()))
    return fewer, replace(
        numbers,
        collapsed=tuple(dim for dim in numbers.collapsed if dim not in found),
        batching=tuple(dim for dim, _ in pairs),
        index_batching=tuple(place for _, place in pairs),
        index_map=tuple(numbers.index_map[number] for number in left),
    )


def _entries(indices: Any, vector_dim: int) -> list[Any] | None:
    """Returns the entries of the index vectors if these are a concatenation of single entries; else None."""
    concatenated = defining_op(indices, _CONCATENATE)
    if concatenated is None or concatenated.attributes["dimension"].value != vector_dim:
        return None
    entries = list(concatenated.operands)
    return entries if len(entries) == indices.type.get_dim_size(vector_dim) else None


def position_dim(value: Any) -> int | None:
    """Returns the dimension along which each element of a tensor equals its position; None if no dimension is known."""
    op, type_ = defining_op(value), value.type
    if op is None or not type_.has_static_shape or not isinstance(type_.element_type, ir.IntegerType):
        return None
    dim = _counted_dim(op)
    # Larger positions would have wrapped around.
    return None if dim is None or type_.get_dim_size(dim) > 1 << (type_.element_type.width - 1) else dim


def _counted_dim(op: Any) -> int | None:
    """Returns the dimension whose position an op computes; None if no dimension is known."""
    match op.name:
        case "stablehlo.iota" | "stablehlo.dynamic_iota":
            dim: int = op.attributes["iota_dimension"].value
            return dim
        case "stablehlo.convert":
            return position_dim(op.operands[0])
        case "stablehlo.add" | "stablehlo.multiply":
            neutral = int(op.name == "stablehlo.multiply")
            others = [one for one in op.operands if integer_of(one) != neutral]
            return position_dim(others[0]) if len(others) == 1 else None
        case "stablehlo.select":
            return position_dim(op.operands[2]) if is_negative(op.operands[0], op.operands[2]) else None
        case "stablehlo.clamp":
            return _after_clamp(op)
        case "stablehlo.broadcast_in_dim":
            return _after_broadcast(op)
        case "stablehlo.reshape":
            return _after_reshape(op)
    return None


def is_negative(predicate: Any, value: Any) -> bool:
    """Returns whether a predicate tests for negative elements of a value; positions are not negative."""
    compare = defining_op(predicate, "stablehlo.compare")
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return False
    return compare.operands[0] == value and integer_of(compare.operands[1]) == 0


def _after_clamp(clamp: Any) -> int | None:
    """Returns the dimension of a clamped tensor if the clamp changes no position."""
    low, value, high = clamp.operands
    dim = position_dim(value)
    if dim is None:
        return None
    bounds = integer_of(low), integer_of(high)
    last = value.type.get_dim_size(dim) - 1
    return dim if bounds[0] is not None and bounds[1] is not None and bounds[0] <= 0 and bounds[1] >= last else None


def _after_broadcast(broadcast: Any) -> int | None:
    source, target = broadcast.operands[0], broadcast.results[0].type
    dim = position_dim(source)
    if dim is None:
        return None
    place: int = broadcast.attributes["broadcast_dimensions"][dim]
    return place if target.get_dim_size(place) == source.type.get_dim_size(dim) else None


def _after_reshape(reshape: Any) -> int | None:
    """Returns the dimension of a reshaped tensor with the same size and the same number of elements per position."""
    dim = position_dim(reshape.operands[0])
    if dim is None:
        return None
    old, new = (list(one.type.shape) for one in (reshape.operands[0], reshape.results[0]))
    wanted = old[dim], prod(old[dim + 1 :])
    return next((place for place, size in enumerate(new) if (size, prod(new[place + 1 :])) == wanted), None)
