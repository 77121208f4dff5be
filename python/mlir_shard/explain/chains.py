# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The origin of each axis of a tensor: the annotation that it comes from, and the steps of propagation in between."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

from mlir_shard.explain.places import Place
from mlir_shard.explain.propagation_trace import PropagationTrace, TracedNode
from mlir_shard.explain.values import Annotation, AnnotationKind, Chain, Link, Step
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.propagation_edges import EdgeNodeType, EdgeValueRef
from mlir_shard.sharding.rule import factor_symbol

_CONSTRAINT = "sdy.sharding_constraint"


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An axis that reached a tensor in a step, from another tensor of a node."""

    step: int
    axis: AxisRef
    node: int
    source: EdgeValueRef
    target: EdgeValueRef


class _State(NamedTuple):
    """A tensor with an axis in a dimension, and its source: a step, or a member of its group before a step."""

    tensor: int
    axis: AxisRef
    dim: int
    by: _Arrival | tuple[int | None, float] | None


class Chains:
    """The causes of the axes of one propagation."""

    def __init__(self, trace: PropagationTrace) -> None:
        self._trace = trace
        self._origins: dict[_State, Annotation | Step] = {}
        self._annotations: dict[_State, Annotation] = {}

    @cached_property
    def _arrivals(self) -> dict[int, list[_Arrival]]:
        found: dict[int, list[_Arrival]] = {}
        count = self._trace.node_count
        for number, moves in self._trace.record.moves.items():
            index = number if number >= 0 else count - 1 - number
            node = self._trace.nodes[index]
            for step, move in moves:
                tensor = node.tensors[_position(move.target, node)]
                found.setdefault(tensor, []).append(_Arrival(step, move.axis, index, move.source, move.target))
        for arrivals in found.values():
            arrivals.sort(key=lambda one: one.step)
        return found

    def axes(self, tensor: int) -> list[tuple[int, AxisRef]]:
        """Returns the axes that a tensor is sharded on, each with its dimension."""
        sharding = self._trace.sharding(tensor)
        return [] if sharding is None else [(d, one) for d, of in enumerate(sharding.dim_shardings) for one in of.axes]

    def chains(self, tensor: int) -> list[Chain]:
        """Returns, for each axis of a tensor, the annotation that it comes from and the steps in between."""
        return [self.chain(tensor, axis, dim) for dim, axis in self.axes(tensor)]

    def chain(self, tensor: int, axis: AxisRef, dim: int) -> Chain:
        """Returns the annotation that an axis of a dimension of a tensor comes from, and the steps in between."""
        links: list[Link] = []
        origin = self.origin(tensor, axis, dim)
        while isinstance(origin, Step):
            links.append(origin.link)
            origin = origin.before
        return Chain(axis, dim, origin, tuple(reversed(links)))

    def origin(self, tensor: int, axis: AxisRef, dim: int) -> Annotation | Step:
        """Returns the last step that propagated an axis to a dimension of a tensor, or the annotation that has it.

        The chains of all tensors share their steps, so there are about as many steps as axes.
        """
        passed: list[tuple[_State, Link]] = []
        state, before = _State(tensor, axis, dim, None), inf
        while True:
            arrival = member = None
            given = _axes_with(self._trace.original(state.tensor), axis)
            if not given:
                arrival = self._arrival(state.tensor, axis, before)
                member = None if arrival else self._group_member(state.tensor, axis, before)
            elif not any(one.contains(axis) for one in given):
                # The annotation has a part of the axis, and a step may have propagated the rest.
                arrival = self._whole_arrival(state.tensor, axis, before)
            if arrival is None and member is None:
                return self._followed(passed, self._given(state), is_given=True)
            state = _State(state.tensor, axis, state.dim, arrival or (member, before))
            known = self._origins.get(state)
            if known is not None:
                return self._followed(passed, known)
            dim = state.dim
            if arrival is not None:
                link, before = self._link(arrival, dim), arrival.step
                at = dim_with(self._trace.sharding(link.source), axis)
                dim = dim if at is None else at
            else:
                assert member is not None
                link = self._in_group(member, state.tensor, dim)
            passed.append((state, link))
            state = _State(link.source, axis, dim, None)

    def _followed(
        self, passed: list[tuple[_State, Link]], origin: Annotation | Step, *, is_given: bool = False
    ) -> Annotation | Step:
        """Returns the last of the steps that follow an origin, and stores each of them."""
        for state, link in reversed(passed):
            # The operand of a constraint has the same annotation as its result.
            is_passed_over = (
                is_given
                and isinstance(origin, Annotation)
                and origin.kind is AnnotationKind.CONSTRAINT
                and link.place == origin.place
            )
            origin = origin if is_passed_over else Step(link, origin)
            is_given = False
            self._origins[state] = origin
        return origin

    def _given(self, state: _State) -> Annotation:
        if state not in self._annotations:
            self._annotations[state] = self.annotation(state.tensor, state.axis, state.dim)
        return self._annotations[state]

    def _arrival(self, tensor: int, axis: AxisRef, before: float) -> _Arrival | None:
        arrivals = [one for one in self._arrivals.get(tensor, ()) if one.step < before and one.axis.overlaps(axis)]
        return self._whole_arrival(tensor, axis, before) or (arrivals[0] if arrivals else None)

    def _whole_arrival(self, tensor: int, axis: AxisRef, before: float) -> _Arrival | None:
        return next((one for one in self._arrivals.get(tensor, ()) if one.step < before and one.axis == axis), None)

    def _group_member(self, tensor: int, axis: AxisRef, before: float) -> int | None:
        """Returns another member of the sharding group that has an axis from its annotation or from a step."""
        for member in self._trace.group_of(tensor):
            if member != tensor and (
                dim_with(self._trace.original(member), axis) is not None
                or self._arrival(member, axis, before) is not None
            ):
                return member
        return None

    def _in_group(self, source: int, target: int, dim: int) -> Link:
        place = self._trace.tensor(target).place
        return Link("sdy.sharding_group", place, "", source, target, "member", "member", dim, 0)

    def _link(self, arrival: _Arrival, dim: int) -> Link:
        node = self._trace.nodes[arrival.node]
        source, target = _position(arrival.source, node), _position(arrival.target, node)
        shown = self._trace.owner(node.op)
        return Link(
            self._trace.op_name(shown),
            self._trace.place(shown),
            _factor(node.rule, source, target, dim, dim_with(self._trace.sharding(node.tensors[source]), arrival.axis)),
            node.tensors[source],
            node.tensors[target],
            node.role(source),
            node.role(target),
            dim,
            arrival.step,
        )

    def annotation(self, tensor: int, axis: AxisRef | None, dim: int) -> Annotation:
        """Returns the annotation that gave a tensor its initial sharding, for an axis or for a closed dimension."""
        sharding = self._trace.original(tensor)
        found = None if axis is None else dim_with(sharding, axis)
        at = dim if found is None else found
        priority = 0 if sharding is None or at >= sharding.rank else sharding.dim_shardings[at].priority_or_default

        def annotation(kind: AnnotationKind, text: str, place: Place) -> Annotation:
            return Annotation(kind, text, place, sharding, priority)

        of = self._trace.tensor(tensor)
        if sharding is None:
            return annotation(AnnotationKind.UNKNOWN, "unknown", of.place)
        if of.op == "result":
            return annotation(AnnotationKind.RESULT, f"result {of.index} of @{of.function}", of.place)
        # An argument without a name is named by its number.
        argument = of.name if of.name == f"argument {of.index}" else f"argument {of.name}"
        if of.op == "argument" and of.place in self._trace.annotated:
            return annotation(AnnotationKind.ARGUMENT, argument, of.place)
        constraint = self._constraint(tensor, axis)
        if constraint is not None:
            return annotation(AnnotationKind.CONSTRAINT, "constraint", self._trace.place(constraint))
        if of.op == "argument":
            return annotation(AnnotationKind.ARGUMENT, argument, of.place)
        shown = self._trace.owner_of_tensor(tensor)
        name, place = self._trace.op_name(shown), self._trace.place(shown)
        if name == "sdy.manual_computation":
            return annotation(AnnotationKind.MANUAL, "manual computation", place)
        return annotation(AnnotationKind.OP, f"{name} {of.name}" if of.name != name else name, place)

    def _constraint(self, tensor: int, axis: AxisRef | None) -> int | None:
        """Returns a sharding constraint that defines or uses a tensor and has an axis, or any if `axis` is None."""
        for candidate in self._trace.ops_around(tensor):
            if self._trace.op_name(candidate) != _CONSTRAINT:
                continue
            result = self._trace.tensor_of_result(candidate, 0)
            if axis is None or dim_with(self._trace.original(result), axis) is not None:
                return candidate
        return None


def _position(ref: EdgeValueRef, node: TracedNode) -> int:
    return ref.index if ref.type is EdgeNodeType.OPERAND else len(node.operands) + ref.index


def dim_with(sharding: TensorSharding | None, axis: AxisRef) -> int | None:
    """Returns the dimension that is sharded on an axis, or on part of it; None if none exists."""
    for dim, of in enumerate(() if sharding is None else sharding.dim_shardings):
        if any(one.overlaps(axis) for one in of.axes):
            return dim
    return None


def _axes_with(sharding: TensorSharding | None, axis: AxisRef) -> list[AxisRef]:
    """Returns the axes of dimensions that overlap an axis: itself, its parts, and the axes that it is part of."""
    dims = () if sharding is None else sharding.dim_shardings
    return [one for of in dims for one in of.axes if one.overlaps(axis)]


def _factor(rule: OpShardingRule, source: int, target: int, dim: int, source_dim: int | None) -> str:
    """Returns the symbol of the factor that a dimension of a tensor shares with a dimension of another."""
    mappings = rule.tensor_mappings
    of_target = mappings[target].dim_mappings
    factors = of_target[dim].factor_indices if dim < len(of_target) else ()
    of_source = mappings[source].dim_mappings
    others = of_source[source_dim].factor_indices if source_dim is not None and source_dim < len(of_source) else ()
    shared = [factor for factor in factors if factor in others] or list(factors)
    return factor_symbol(shared[0]) if shared else ""
