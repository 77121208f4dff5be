# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which axes came to which tensors of an op in one step of propagation, and from which of its tensors.

The source of an axis is the first tensor, operands before results, that was sharded along the factor like that
before. As in Shardy's record of propagation edges, of moves that only differ in the step the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.axis_lists import Axes, is_strict_prefix
from mlir_shard.sharding.edges import (
    AxisToPropagationDetails,
    EdgeNodeType,
    EdgeValueRef,
    PropagationEdges,
    PropagationOneStep,
)
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.projection import ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import DimMapping, OpShardingRule


@dataclass(frozen=True, slots=True)
class AxisMove:
    """`axis` went from the tensor `source` to the tensor `target` of an op."""

    axis: AxisRef
    source: EdgeValueRef
    target: EdgeValueRef


def axis_moves(
    before: ShardingProjection, after: ShardingProjection, rule: OpShardingRule, mesh: Mesh
) -> tuple[AxisMove, ...]:
    """The axes that are new in each tensor, in the order of the tensors.

    A sub-axis that has grown is new as it is now. What several factors of a dimension got is merged where it makes one
    axis. An axis without a source is left out.
    """
    refs = _references(len(before.operands), len(before.results))
    moves = []
    mappings = rule.tensor_mappings
    for target, old, new, mapping in zip(refs, before.tensors, after.tensors, mappings, strict=True):
        if new is old:
            continue
        for dim in mapping.dim_mappings:
            gained = _gained(dim, old, new, before, mesh)
            moves += [AxisMove(axis, refs[source], target) for axis, source in gained.items()]
    return tuple(moves)


def _references(operands: int, results: int) -> tuple[EdgeValueRef, ...]:
    first = (EdgeValueRef(EdgeNodeType.OPERAND, index) for index in range(operands))
    return (*first, *(EdgeValueRef(EdgeNodeType.RESULT, index) for index in range(results)))


def _gained(
    dim: DimMapping, old: TensorFactorShardings, new: TensorFactorShardings, before: ShardingProjection, mesh: Mesh
) -> dict[AxisRef, int]:
    """The new axes of a dimension, each with the position of its source among the tensors."""
    gained: dict[AxisRef, int] = {}
    previous: AxisRef | None = None
    for factor in dim.factor_indices:
        had, has = _axes_along(old, factor), _axes_along(new, factor)
        if had == has or not has:
            continue
        last = has[-1]
        if previous is not None and previous.can_merge(last):
            gained.pop(previous, None)
            last = previous.merge(last, mesh)
        previous = last
        source = _source(has, factor, before)
        if source is None:
            continue
        # The last axis there was may only have grown.
        same = len(had) - 1 if had and had[-1] != has[len(had) - 1] else len(had)
        for axis in (*has[same:-1], last):
            gained.setdefault(axis, source)
    return gained


def _source(axes: Axes, factor: int, before: ShardingProjection) -> int | None:
    for index, tensor in enumerate(before.tensors):
        along = _axes_along(tensor, factor)
        if along == axes or is_strict_prefix(axes, along):
            return index
    return None


def _axes_along(tensor: TensorFactorShardings, factor: int) -> Axes:
    sharding = tensor.factors[factor]
    return () if sharding is None else sharding.axes


def propagation_edges(moves: Iterable[tuple[int, AxisMove]]) -> PropagationEdges:
    """The edges that moves through one op leave behind, given with the number of their step."""
    first: dict[AxisMove, int] = {}
    for step, move in moves:
        first[move] = min(step, first.get(move, step))
    steps: dict[int, dict[tuple[AxisRef, EdgeValueRef], list[EdgeValueRef]]] = {}
    for move, step in first.items():
        steps.setdefault(step, {}).setdefault((move.axis, move.source), []).append(move.target)
    return PropagationEdges(tuple(PropagationOneStep(step, _entries(steps[step])) for step in sorted(steps)))


def _entries(targets: dict[tuple[AxisRef, EdgeValueRef], list[EdgeValueRef]]) -> tuple[AxisToPropagationDetails, ...]:
    order = sorted(targets, key=lambda entry: (entry[0].lexicographic_key(), _position(entry[1])))
    return tuple(
        AxisToPropagationDetails(axis, source, tuple(sorted(targets[axis, source], key=_position)))
        for axis, source in order
    )


def _position(ref: EdgeValueRef) -> tuple[bool, int]:
    return (ref.type is EdgeNodeType.RESULT, ref.index)
