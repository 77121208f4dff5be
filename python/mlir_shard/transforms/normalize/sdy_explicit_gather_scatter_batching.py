# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch dimensions of gathers and scatters, found in indices that count along them and said as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir, rewrite
from mlir_shard.ir.patterns import Pattern, apply_greedily
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import Pass, register

_bindings = host.module("_mlir_libs._stablehlo")

CONCATENATE = "stablehlo.concatenate"
IOTA = "stablehlo.iota"
RESHAPE = "stablehlo.reshape"
BROADCAST = "stablehlo.broadcast_in_dim"


@register
class ExplicitGatherScatterBatching(Pass):
    """Where index i into dimension 0 of the operand is the position i in dimension 0 of the indices, says that both
    are batching dimensions, which shard alike, and leaves that index out. The idea is Shardy's."""

    name = "sdy-explicit-gather-scatter-batching"
    anchor = "func.func"
    summary = "Makes implicit batch dimensions of gather and scatter explicit"

    def run(self, op: Any) -> None:
        apply_greedily(op, PATTERNS, rewrite.GreedyRewriteConfig())


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The dimension numbers that gather and scatter have in common, in the words of gather.

    Attributes:
        index_map: the operand's dimension that each entry of an index vector is for
        collapsed: the operand's dimensions that the slices do not have
    """

    offset_dims: list[int]
    collapsed: list[int]
    batching: list[int]
    index_map: list[int]
    index_vector_dim: int


def _gather(op: Any, rewriter: Any) -> bool:
    read = _bindings.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    numbers = _Numbers(
        list(read.offset_dims),
        list(read.collapsed_slice_dims),
        list(read.operand_batching_dims),
        list(read.start_index_map),
        read.index_vector_dim,
    )
    position = _batch_position(numbers, op.operands[0], op.operands[1])
    if position is None:
        return False
    attribute = _bindings.GatherDimensionNumbers.get(
        offset_dims=numbers.offset_dims,
        collapsed_slice_dims=[dim for dim in numbers.collapsed if dim != 0],
        operand_batching_dims=[0],
        start_indices_batching_dims=[0],
        start_index_map=[dim for dim in numbers.index_map if dim != 0],
        index_vector_dim=numbers.index_vector_dim,
        context=op.context,
    )
    indices = _without(op, op.operands[1], numbers.index_vector_dim, position)
    _replace(op, 1, indices, "dimension_numbers", attribute, rewriter)
    return True


def _scatter(op: Any, rewriter: Any) -> bool:
    read = _bindings.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    numbers = _Numbers(
        list(read.update_window_dims),
        list(read.inserted_window_dims),
        list(read.input_batching_dims),
        list(read.scattered_dims_to_operand_dims),
        read.index_vector_dim,
    )
    inputs = len(op.results)
    position = _batch_position(numbers, op.operands[0], op.operands[inputs])
    if position is None:
        return False
    attribute = _bindings.ScatterDimensionNumbers.get(
        update_window_dims=numbers.offset_dims,
        inserted_window_dims=[dim for dim in numbers.collapsed if dim != 0],
        input_batching_dims=[0],
        scatter_indices_batching_dims=[0],
        scattered_dims_to_operand_dims=[dim for dim in numbers.index_map if dim != 0],
        index_vector_dim=numbers.index_vector_dim,
        context=op.context,
    )
    indices = _without(op, op.operands[inputs], numbers.index_vector_dim, position)
    _replace(op, inputs, indices, "scatter_dimension_numbers", attribute, rewriter)
    return True


PATTERNS = (
    Pattern("explicit-gather-batching", "sdy-explicit-batching", "stablehlo.gather", _gather),
    Pattern("explicit-scatter-batching", "sdy-explicit-batching", "stablehlo.scatter", _scatter),
)


def _batch_position(numbers: _Numbers, operand: Any, indices: Any) -> int | None:
    """Which entry of the index vectors is an implicit batch index into dimension 0; None where there is none."""
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
    """Whether entry `position` of the index vectors comes from an iota along dimension 0."""
    entries = _entries(indices, vector_dim)
    iota = defining_op(_before_reshapes(indices if entries is None else entries[position]), IOTA)
    return iota is not None and iota.attributes["iota_dimension"].value == 0


def _entries(indices: Any, vector_dim: int) -> list[Any] | None:
    """The entries of the index vectors, where these are a concatenation of single ones."""
    concatenated = defining_op(indices, CONCATENATE)
    if concatenated is None or concatenated.attributes["dimension"].value != vector_dim:
        return None
    entries = list(concatenated.operands)
    return entries if len(entries) == indices.type.get_dim_size(vector_dim) else None


def _before_reshapes(value: Any) -> Any:
    """The value that becomes `value` by operations that keep dimension 0 as it is, and change no index of an iota."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
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
    """Whether a predicate asks for negative elements of a value, of which an iota has none."""
    compare = defining_op(predicate, "stablehlo.compare")
    if compare is None or "LT" not in str(compare.attributes["comparison_direction"]):
        return False
    return compare.operands[0] == value and _splat(compare.operands[1]) == 0


def _spans(clamp: Any) -> bool:
    """Whether a clamp leaves all indices into dimension 0 of its operand as they are."""
    low, high = _splat(clamp.operands[0]), _splat(clamp.operands[2])
    return low is not None and high is not None and low <= 0 and high >= clamp.operands[1].type.get_dim_size(0) - 1


def _splat(value: Any) -> int | None:
    """The integer that all elements of a constant, or of a broadcast of one, are; None where there is none."""
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
    """Whether a reshape or a broadcast has in row i of dimension 0 what its operand has there."""
    source, target = op.operands[0].type, op.results[0].type
    if source.rank == 0 or target.rank == 0 or source.get_dim_size(0) != target.get_dim_size(0):
        return False
    return op.name == RESHAPE or op.attributes["broadcast_dimensions"][0] == 0


def _without(op: Any, indices: Any, vector_dim: int, position: int) -> Any:
    """The index vectors without their entry `position`."""
    count = indices.type.get_dim_size(vector_dim)
    entries = _entries(indices, vector_dim)
    if entries is not None:
        parts = [entry for index, entry in enumerate(entries) if index != position]
    else:
        ranges = ((0, position), (position + 1, count))
        parts = [_slice(op, indices, vector_dim, start, end) for start, end in ranges if start < end]
    if len(parts) == 1:
        return parts[0]
    attributes = {"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), vector_dim)}
    type_ = _resized(indices.type, vector_dim, count - 1)
    return _create(op, CONCATENATE, type_, parts, attributes)


def _slice(op: Any, value: Any, dim: int, start: int, end: int) -> Any:
    rank = value.type.rank
    starts, limits = [0] * rank, list(value.type.shape)
    starts[dim], limits[dim] = start, end
    numbers = {"start_indices": starts, "limit_indices": limits, "strides": [1] * rank}
    attributes = {name: ir.DenseI64ArrayAttr.get(each, op.context) for name, each in numbers.items()}
    return _create(op, "stablehlo.slice", _resized(value.type, dim, end - start), [value], attributes)


def _resized(type_: Any, dim: int, size: int) -> Any:
    shape = list(type_.shape)
    shape[dim] = size
    return ir.RankedTensorType.get(shape, type_.element_type, loc=ir.Location.unknown(type_.context))


def _create(op: Any, name: str, type_: Any, operands: list[Any], attributes: dict[str, Any]) -> Any:
    created = ir.Operation.create(
        name, results=[type_], operands=operands, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op)
    )
    return created.results[0]


def _replace(op: Any, operand: int, indices: Any, name: str, attribute: Any, rewriter: Any) -> None:
    """Replaces `op` by itself with other indices, as operand number `operand`, and other dimension numbers."""
    changed = op.clone(ip=ir.InsertionPoint(op))
    changed.operands[operand] = indices
    changed.attributes[name] = attribute
    rewriter.replace_op(op, changed)
