# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites contractions of StableHLO that the host lowers incorrectly, or to invalid operations."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo

_bindings = host.module("_mlir_libs._stablehlo")
_NUMBERS = "dot_dimension_numbers"
# The batching and contracting dimensions, and the ranks, of the only products of a batch of vectors for which the host
# builds a `linalg.batch_matmul`, whose operands have rank 3.
_OF_VECTORS = ([0], [0], [2], [1]), (4, 2)


def widens_unsigned(op: Any) -> bool:
    """Returns whether a contraction widens unsigned operands; the host would extend the sign."""
    return any(map(_is_unsigned, op.operands)) and any(one.type.element_type != _element(op) for one in op.operands)


def with_wide_operands(op: Any) -> list[Any]:
    """Rewrites to a contraction of operands that are converted to the element type of the result."""
    return [_contraction(op, [stablehlo.convert(one, _element(op)) for one in op.operands])]


def is_not_lowered(op: Any) -> bool:
    """Returns whether the host lowers a `dot_general` incorrectly or not at all."""
    return _is_of_vectors(op) or widens_unsigned(op)


def dot_general(op: Any) -> list[Any]:
    """Rewrites to a product of wide operands; exchanges those with vectors on the right, which have no dimension in
    the result except those of the batch."""
    operands = [stablehlo.convert(one, _element(op)) if widens_unsigned(op) else one for one in op.operands]
    if not _is_of_vectors(op):
        return [_contraction(op, operands)]
    (_, _, of_left, of_right), _ = _OF_VECTORS
    numbers = _bindings.DotDimensionNumbers.get(
        lhs_batching_dimensions=[0],
        rhs_batching_dimensions=[0],
        lhs_contracting_dimensions=of_right,
        rhs_contracting_dimensions=of_left,
    )
    return [_contraction(op, operands[::-1], {_NUMBERS: numbers})]


def _is_of_vectors(op: Any) -> bool:
    if tuple(one.type.rank for one in op.operands) != _OF_VECTORS[1]:
        return False
    numbers = _bindings.DotDimensionNumbers(op.attributes[_NUMBERS])
    batching = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    contracting = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    return tuple(map(list, (*batching, *contracting))) == _OF_VECTORS[0]


def _contraction(op: Any, operands: list[Any], changed: dict[str, Any] | None = None) -> Any:
    attributes = dict(op.attributes.items()) | (changed or {})
    return ir.Operation.create(op.name, [op.results[0].type], operands, attributes).results[0]


def _element(op: Any) -> Any:
    return op.results[0].type.element_type


def _is_unsigned(value: Any) -> bool:
    type_ = value.type.element_type
    return isinstance(type_, ir.IntegerType) and type_.is_unsigned
