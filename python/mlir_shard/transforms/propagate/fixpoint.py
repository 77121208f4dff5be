# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation over a value graph until nothing changes.

The order of visits is that of Shardy's greedy driver: all nodes once from the top, then each node that a change
touched, last touched first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.propagate.factor_propagation import propagate_factors
from mlir_shard.transforms.propagate.value_graph import Node, ValueGraph
from mlir_shard.transforms.shardings import common_mesh

Shardings = tuple["TensorSharding | None", ...]
# From the projection of an op, its rule, the mesh and the direction along a factor, the projection after propagation.
Strategy = Callable[
    [ShardingProjection, OpShardingRule, Mesh, Callable[[int], PropagationDirection]], ShardingProjection
]


class Fixpoint:
    """Propagates through nodes by a strategy; what one node does with given shardings is worked out once."""

    def __init__(self, graph: ValueGraph, *, conservative: bool = False, strategy: Strategy | None = None) -> None:
        self._graph = graph
        self._strategy: Strategy = strategy or partial(propagate_factors, conservative=conservative)
        # A rule has many equal mappings and is a large key, so steps are kept by the identity of the rule object.
        self._steps: dict[tuple[int, PropagationDirection, Shardings], Shardings | None] = {}

    def run(self) -> None:
        """Brings the shardings of the graph to the fixpoint."""
        self._through(self._graph.returns)
        worklist = _Worklist(len(self._graph.nodes))
        while (index := worklist.pop()) is not None:
            for value in self._propagate(self._graph.nodes[index]):
                worklist.add(other for other in self._touched(value) if other != index)
        self._through(self._graph.returns)

    def _touched(self, value: int) -> Iterator[int]:
        """The nodes around a value: the one it comes from, then those that use it, the last in the text first."""
        definer = self._graph.definer[value]
        if definer is not None:
            yield definer
        yield from reversed(self._graph.users[value])

    def _through(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._propagate(node)

    def _propagate(self, node: Node) -> list[int]:
        """Updates the shardings around a node; the numbers of the values whose sharding is another one now."""
        shardings = self._graph.shardings
        numbers = node.operands + node.results
        old = tuple(shardings[number] for number in numbers)
        if all(sharding is None for sharding in old):
            return []
        key = (id(node.rule), node.direction, old)
        if key not in self._steps:
            self._steps[key] = self._step(node, old)
        new = self._steps[key]
        changed = []
        for number, before, after in zip(numbers, old, new or old, strict=True):
            if after is not before and after != shardings[number]:
                shardings[number] = after
                changed.append(number)
        return changed

    def _step(self, node: Node, old: Shardings) -> Shardings | None:
        """The shardings after the node, each the very object before where it is the same; None where all are."""
        found = common_mesh(old, self._graph.meshes)
        if found is None:
            return None
        mesh_or_ref, mesh = found
        count = len(node.operands)
        before = ShardingProjection.build(old[:count], old[count:], node.rule, mesh)
        after = self._strategy(before, node.rule, mesh, lambda factor: node.direction)
        if after is before:
            return None
        return tuple(
            one
            if projected is tensor
            else _changed(one, projected.to_sharding(mapping, node.rule.factor_sizes, mesh_or_ref, mesh))
            for one, tensor, projected, mapping in zip(
                old, before.tensors, after.tensors, node.rule.tensor_mappings, strict=True
            )
        )


def _changed(old: TensorSharding | None, new: TensorSharding) -> TensorSharding | None:
    """`new`, or `old` where the new one says no more: a sharding seen along factors may not be one of dimensions."""
    if old is None and new.is_fully_replicated and not new.replicated_axes and not new.unreduced_axes:
        return None
    return old if new == old else new


class _Worklist:
    """Node numbers, each in it at most once; the last added comes first."""

    def __init__(self, count: int) -> None:
        self._stack = list(reversed(range(count)))
        self._waiting = set(self._stack)

    def pop(self) -> int | None:
        while self._stack:
            index = self._stack.pop()
            if index in self._waiting:
                self._waiting.discard(index)
                return index
        return None

    def add(self, indices: Iterable[int]) -> None:
        for index in indices:
            if index not in self._waiting:
                self._waiting.add(index)
                self._stack.append(index)
