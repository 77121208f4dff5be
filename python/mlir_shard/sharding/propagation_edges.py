# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The origins of propagated axes: the edges of each step, and the places where propagation starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from mlir_shard.sharding.axes import Axes, AxisRef, is_strict_prefix
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.projection import ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import DimMapping, OpShardingRule


class EdgeNodeType(Enum):
    """The kind of value at which an edge begins or ends: an operand or a result."""

    OPERAND = "operand"
    RESULT = "result"


class PropagationDirection(IntEnum):
    """The directions in which shardings are propagated through an op, from least to most."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3

    # Forward and backward are the two bits of a direction.
    def union(self, other: PropagationDirection) -> PropagationDirection:
        """Returns the direction that allows all that one of the two allows."""
        return _DIRECTIONS[int(self) | int(other)]

    def intersection(self, other: PropagationDirection) -> PropagationDirection:
        """Returns the direction that allows all that both allow."""
        return _DIRECTIONS[int(self) & int(other)]


_DIRECTIONS = tuple(PropagationDirection)


@dataclass(frozen=True, slots=True)
class EdgeValueRef:
    """Operand or result number `index`."""

    type: EdgeNodeType
    index: int

    def __str__(self) -> str:
        return f"{self.type.value}-{self.index}"


@dataclass(frozen=True, slots=True)
class AxisToPropagationDetails:
    """The propagation of `axis_name` from `source` to each of `targets`."""

    axis_name: AxisRef
    source: EdgeValueRef
    targets: tuple[EdgeValueRef, ...]


@dataclass(frozen=True, slots=True)
class PropagationOneStep:
    """All axes that were propagated in step number `step_index`."""

    step_index: int
    axis_entries: tuple[AxisToPropagationDetails, ...]


@dataclass(frozen=True, slots=True)
class PropagationEdges:
    """The steps in which axes were propagated to the values of an op."""

    value: tuple[PropagationOneStep, ...]


# The name of an origin at its own place.
SELF = "self"


def input_origin(index: int) -> str:
    """Returns the origin for the sharding of an argument of a function."""
    return f"input: {index}"


def output_origin(index: int) -> str:
    """Returns the origin for the sharding of a result of a function."""
    return f"output: {index}"


def constraint_name(number: int) -> str:
    """Returns the origin for a sharding constraint."""
    return f"constraint_{number}"


def op_name(number: int) -> str:
    """Returns the origin for an op that has shardings of its results."""
    return f"op_{number}"


def computation_name(number: int) -> str:
    """Returns the name of a manual computation, for the origins of its in- and out-shardings."""
    return f"mc_{number}"


def computation_input_origin(computation: str, index: int) -> str:
    """Returns the origin for an in-sharding of the manual computation of this name."""
    return f"{computation}_input: {index}"


def computation_output_origin(computation: str, index: int) -> str:
    """Returns the origin for an out-sharding of the manual computation of this name."""
    return f"{computation}_output: {index}"


def find_origin(origins: Mapping[AxisRef, str], axis: AxisRef) -> str | None:
    """Returns the origin of an axis, or of the first axis that contains it or that it contains. None if unknown."""
    if axis in origins:
        return origins[axis]
    return next((origin for other, origin in origins.items() if other.contains(axis) or axis.contains(other)), None)


def origins_by_name(origins: Mapping[AxisRef, str], own: str | None = None) -> dict[str, str]:
    """Returns the origins by axes as text, without the quotes of names, with SELF for the origin called `own`."""
    return {str(axis).replace('"', ""): SELF if origin == own else origin for axis, origin in origins.items()}


@dataclass(frozen=True, slots=True)
class AxisMove:
    """The propagation of `axis` from the tensor `source` to the tensor `target` of an op."""

    axis: AxisRef
    source: EdgeValueRef
    target: EdgeValueRef


def axis_moves(
    before: ShardingProjection, after: ShardingProjection, rule: OpShardingRule, mesh: Mesh
) -> tuple[AxisMove, ...]:
    """Returns the moves of axes that are new in each tensor, in the order of the tensors.

    A sub-axis that has grown counts as new in its present size. New axes of several factors of a dimension are merged
    if they make one axis. Axes without a source are omitted.
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
    """Returns the new axes of a dimension, with the position of the source of each among the tensors."""
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
        # The last previous axis may have grown.
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
    """Returns the edges of moves through one op, which are given with the numbers of their steps."""
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
