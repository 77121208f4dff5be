# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The step of a node from given shardings: projection to the factors of its rule, propagation, and projection back.

A fixpoint computes it once for each behaviour and shardings: kinds of nodes with the same steps have one behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation import Directions, agree
from mlir_shard.sharding.propagation_edges import AxisMove, axis_moves
from mlir_shard.sharding.rule import FactorType
from mlir_shard.sharding.tensor import EdgeFrame
from mlir_shard.transforms.propagate.value_graph import NOTHING, UNKNOWN, NodeKind, OpClass, States, ValueGraph
from mlir_shard.transforms.shardings import common_mesh

# Returns the direction of a phase of propagation through nodes of a kind along factors of a type.
# The direction depends on the class and name of the op and on whether operands are shared.
Phase = Callable[[NodeKind, FactorType], PropagationDirection]


Strategy = Callable[..., ShardingProjection]
"""How shardings propagate along factors: `sharding.propagation.propagate_basic` or `propagate_aggressive`."""


def both_ways(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    """Returns the direction of the phase that propagates both ways everywhere."""
    return PropagationDirection.BOTH


@dataclass(frozen=True, slots=True)
class _Projected:
    """The shardings of a node along the factors of its rule, before and after a step, on one mesh."""

    before: ShardingProjection
    after: ShardingProjection
    mesh_or_ref: str | Mesh
    mesh: Mesh


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """The properties that determine the step of a node from given shardings."""

    strategy: Strategy
    rule: OpShardingRule
    directions: Directions
    frame: EdgeFrame | None
    elementwise: bool
    conservative: bool


class Steps:
    """The behaviours of the kinds of nodes of a graph, by number, and the step of each behaviour."""

    def __init__(self, graph: ValueGraph, *, conservative: bool = False) -> None:
        self._graph = graph
        self._conservative = conservative
        self._behaviours: list[_Behaviour] = []
        self._numbers: dict[Hashable, int] = {}
        # The keys are the identities of the rules of the graph.
        self._factor_types: dict[int, tuple[FactorType, ...]] = {}
        # The directions of a phase, by the properties of a kind that determine them.
        self._turns: dict[Hashable, dict[FactorType, PropagationDirection]] = {}
        self._moves: dict[tuple[int, States], tuple[AxisMove, ...]] = {}

    def behaviours(self, strategy: Strategy, phase: Phase) -> list[int]:
        """Returns the behaviour of each kind by a strategy in a phase; NOTHING if shardings go in no direction."""
        return [self._behaviour(number, kind, strategy, phase) for number, kind in enumerate(self._graph.kinds)]

    def _behaviour(self, kind_number: int, kind: NodeKind, strategy: Strategy, phase: Phase) -> int:
        directions = self._directions(kind, phase)
        if not any(directions):
            return NOTHING
        elementwise, conservative = kind.op_class is OpClass.ELEMENTWISE, self._conservative and kind.is_op
        # A graph has one object for equal rules, and comparing rules is slow.
        alone = None if self._graph.shares_kinds else kind_number
        key = (strategy, id(kind.rule), directions, kind.frame, elementwise, conservative, alone)
        number = self._numbers.setdefault(key, len(self._behaviours))
        if number == len(self._behaviours):
            self._behaviours.append(_Behaviour(strategy, kind.rule, directions, kind.frame, elementwise, conservative))
        return number

    def _directions(self, kind: NodeKind, phase: Phase) -> Directions:
        if kind.fixed_direction is not None:
            return (kind.fixed_direction,) * kind.rule.num_factors
        types = self._factor_types.get(id(kind.rule))
        if types is None:
            types = tuple(map(kind.rule.factor_type, range(kind.rule.num_factors)))
            self._factor_types[id(kind.rule)] = types
        turn = (phase, kind.op_class, kind.shared_operands, kind.op_name)
        by_type = self._turns.setdefault(turn, {})
        for factor_type in types:
            if factor_type not in by_type:
                by_type[factor_type] = phase(kind, factor_type)
        return tuple([by_type[factor_type] for factor_type in types])

    def __call__(self, behaviour: int, before: States) -> States | None:
        """Returns the states of a node's places after a step from `before`; None if all stay."""
        return None if all(state == UNKNOWN for state in before) else self._after(self._behaviours[behaviour], before)

    def moves(self, behaviour: int, before: States) -> tuple[AxisMove, ...]:
        """Returns the axes that a step moves."""
        key = (behaviour, before)
        if key not in self._moves:
            of_node = self._behaviours[behaviour]
            projected = self._project(of_node, self._seen(of_node, before))
            self._moves[key] = (
                () if projected is None else axis_moves(projected.before, projected.after, of_node.rule, projected.mesh)
            )
        return self._moves[key]

    def _after(self, behaviour: _Behaviour, before: States) -> States | None:
        rule, frame, table = behaviour.rule, behaviour.frame, self._graph.table
        old = self._seen(behaviour, before)
        projected = self._project(behaviour, old)
        if projected is None:
            return None
        after = list(before)
        tensors = zip(projected.before.tensors, projected.after.tensors, rule.tensor_mappings, strict=True)
        for index, (tensor, changed, mapping) in enumerate(tensors):
            if changed is tensor:
                continue
            sharding = changed.to_sharding(mapping, rule.factor_sizes, projected.mesh_or_ref, projected.mesh)
            if _says_more(sharding, old[index]):
                if frame is not None and index == len(old) - 1:
                    sharding = frame.as_targets_see(sharding)
                after[index] = table.number(sharding)
        return None if tuple(after) == before else tuple(after)

    def _seen(self, behaviour: _Behaviour, states: States) -> list[TensorSharding | None]:
        """Returns the shardings that a node propagates between."""
        seen = [self._graph.table[state] for state in states]
        if behaviour.frame is not None and seen[-1] is not None:
            seen[-1] = behaviour.frame.as_sources_see(seen[-1])
        return seen

    def _project(self, behaviour: _Behaviour, shardings: list[TensorSharding | None]) -> _Projected | None:
        """Returns the projections before and after a step; None if it changes nothing."""
        found = common_mesh(shardings, self._graph.meshes)
        # Most steps have nothing to propagate.
        if found is None or agree(shardings, behaviour.rule):
            return None
        mesh_or_ref, mesh = found
        rule, count = behaviour.rule, len(behaviour.rule.operand_mappings)
        before = ShardingProjection.build(shardings[:count], shardings[count:], rule, mesh)
        after = behaviour.strategy(
            before,
            rule,
            mesh,
            behaviour.directions,
            conservative=behaviour.conservative,
            elementwise=behaviour.elementwise,
        )
        return None if after is before else _Projected(before, after, mesh_or_ref, mesh)


def _says_more(new: TensorSharding, old: TensorSharding | None) -> bool:
    """Returns whether a sharding differs from the old one or, if none exists, has axes.

    Axes along factors may be lost along dimensions.
    """
    return new != old and (old is not None or bool(new.used_axes))
