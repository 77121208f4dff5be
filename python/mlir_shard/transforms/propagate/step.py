# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one node does with given shardings: projected along the factors of its rule, propagated, and projected back.

Worked out once for each kind of node, strategy, directions and shardings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.basic_propagation import Directions
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.propagate.fixpoint import States, Step
from mlir_shard.transforms.propagate.value_graph import UNKNOWN, NodeKind, OpClass, ValueGraph
from mlir_shard.transforms.shardings import common_mesh

# The direction in which a phase of propagation goes along a factor of a node of some kind.
Phase = Callable[[NodeKind, int], PropagationDirection]


class Strategy(Protocol):
    """How shardings go along factors; see `sharding.basic_propagation` and `sharding.aggressive_propagation`."""

    def __call__(
        self,
        projection: ShardingProjection,
        rule: OpShardingRule,
        mesh: Mesh,
        directions: Directions,
        *,
        conservative: bool,
        elementwise: bool,
    ) -> ShardingProjection: ...


def both_ways(kind: NodeKind, factor: int) -> PropagationDirection:
    """The phase that goes both ways everywhere."""
    return PropagationDirection.BOTH


class Steps:
    """Makes the steps of a graph, and remembers what they gave."""

    def __init__(self, graph: ValueGraph, *, conservative: bool = False) -> None:
        self._graph = graph
        self._conservative = conservative
        self._known: dict[tuple[Strategy, int, Directions], dict[States, States | None]] = {}

    def of(self, strategy: Strategy, phase: Phase) -> Step:
        """The step of a strategy in a phase."""
        kinds = self._graph.kinds
        directions = [self._directions(kind, phase) for kind in kinds]
        known = [self._known.setdefault((strategy, number, of_kind), {}) for number, of_kind in enumerate(directions)]
        goes = [any(of_kind) for of_kind in directions]

        def step(kind: int, before: States) -> States | None:
            if not goes[kind]:
                return None
            of_kind = known[kind]
            if before not in of_kind:
                of_kind[before] = self._after(kinds[kind], before, strategy, directions[kind])
            return of_kind[before]

        return step

    def _directions(self, kind: NodeKind, phase: Phase) -> Directions:
        if kind.fixed_direction is not None:
            return (kind.fixed_direction,) * kind.rule.num_factors
        return tuple(phase(kind, factor) for factor in range(kind.rule.num_factors))

    def _after(self, kind: NodeKind, before: States, strategy: Strategy, directions: Directions) -> States | None:
        if all(state == UNKNOWN for state in before):
            return None
        rule, table = kind.rule, self._graph.table
        old = [table[state] for state in before]
        if kind.frame is not None and old[-1] is not None:
            old[-1] = kind.frame.as_sources_see(old[-1])
        found = common_mesh(old, self._graph.meshes)
        if found is None:
            return None
        mesh_or_ref, mesh = found
        count = len(rule.operand_mappings)
        projected = ShardingProjection.build(old[:count], old[count:], rule, mesh)
        result = strategy(
            projected,
            rule,
            mesh,
            directions,
            conservative=self._conservative and kind.is_op,
            elementwise=kind.op_class is OpClass.ELEMENTWISE,
        )
        if result is projected:
            return None
        after = list(before)
        tensors = zip(projected.tensors, result.tensors, rule.tensor_mappings, strict=True)
        for index, (tensor, changed, mapping) in enumerate(tensors):
            if changed is tensor:
                continue
            sharding = changed.to_sharding(mapping, rule.factor_sizes, mesh_or_ref, mesh)
            if _says_more(sharding, old[index]):
                if kind.frame is not None and index == len(old) - 1:
                    sharding = kind.frame.as_targets_see(sharding)
                after[index] = table.number(sharding)
        return None if tuple(after) == before else tuple(after)


def _says_more(new: TensorSharding, old: TensorSharding | None) -> bool:
    """Whether a sharding is more than the old one: what is sharded along factors may not be so along dimensions."""
    return new != old and (old is not None or bool(new.used_axes))
