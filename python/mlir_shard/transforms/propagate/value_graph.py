# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as propagation sees it: numbered values with shardings, and the ops between them with their rules.

Read once before propagation and written back once after it; in between nothing touches the IR.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.rules import RuleCache
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.transforms.walk import ops_below


@dataclass(frozen=True, slots=True)
class Node:
    """An op with a rule: the numbers of its operands and results, and the direction shardings may go through it."""

    rule: OpShardingRule
    operands: tuple[int, ...]
    results: tuple[int, ...]
    direction: PropagationDirection = PropagationDirection.BOTH
    op: Any = None


@dataclass(slots=True)
class ValueGraph:
    """The values of a module with their shardings, and the nodes between them.

    `definer` and `users` are by value the node it is a result of, if any, and the nodes it is an operand of.
    `returns` are not among `nodes`: they tie the operands of the return of each function that is not called to the
    function's results, which are numbered like values.
    """

    meshes: dict[str, Mesh]
    shardings: list[TensorSharding | None] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    definer: list[int | None] = field(default_factory=list)
    users: list[list[int]] = field(default_factory=list)
    returns: list[Node] = field(default_factory=list)
    _places: list[Any] = field(default_factory=list)
    _original: list[TensorSharding | None] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def add(self, place: _Place, sharding: TensorSharding | None) -> int:
        """Numbers a new place that can have a sharding."""
        self._places.append(place)
        self.shardings.append(sharding)
        self._original.append(sharding)
        self.definer.append(None)
        self.users.append([])
        return len(self._places) - 1

    def number(self, value: Any) -> int:
        """The number of an IR value."""
        if value not in self._numbers:
            self._numbers[value] = self.add(_ValuePlace(value), sdy.get_sharding(value))
        return self._numbers[value]

    def write_back(self) -> None:
        """Attaches to the IR every sharding that is not the one it was read with."""
        for place, sharding, original in zip(self._places, self.shardings, self._original, strict=True):
            if sharding != original:
                place.write(sharding)


@dataclass(frozen=True, slots=True)
class _Place:
    """Something in the IR that a sharding is attached to."""

    def write(self, sharding: TensorSharding) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _ValuePlace(_Place):
    value: Any

    def write(self, sharding: TensorSharding) -> None:
        sdy.set_sharding(self.value, sharding)


@dataclass(frozen=True, slots=True)
class _FunctionResultPlace(_Place):
    function: Any
    index: int

    def write(self, sharding: TensorSharding) -> None:
        sdy.set_result_sharding(self.function, self.index, sharding)


def read_module(module: Any, rules: RuleCache) -> ValueGraph:
    """The graph of all ops in `module` that have a rule. Raises RuleError where a rule fails."""
    graph = ValueGraph(sdy.meshes(module))
    called: set[str] = set()

    # The regions of an op with a rule say what it computes on elements.
    for op in ops_below(module, lambda op: rules.rule_for(op) is None):
        if op.name == "func.return":
            _add_returns(graph, op)
            continue
        if op.name == "func.call":
            called.add(op.attributes["callee"].value)
        node = _node(graph, op, rules)
        if node is None:
            continue
        for number in dict.fromkeys(node.operands):
            graph.users[number].append(len(graph.nodes))
        for number in node.results:
            graph.definer[number] = len(graph.nodes)
        graph.nodes.append(node)
    graph.returns = [node for node in graph.returns if node.op.attributes["sym_name"].value not in called]
    return graph


def _node(graph: ValueGraph, op: Any, rules: RuleCache) -> Node | None:
    direction = PropagationDirection.BOTH
    if op.name == "sdy.propagation_barrier":
        direction = PropagationDirection(op.attributes["allowed_direction"].value)
        rule: OpShardingRule | None = OpShardingRule.pointwise(shape_of(op.results[0].type), 1)
    else:
        rule = rules.rule_for(op)
    if rule is None:
        return None
    operands = tuple(graph.number(value) for value in op.operands)
    return Node(rule, operands, tuple(graph.number(value) for value in op.results), direction, op)


def _add_returns(graph: ValueGraph, op: Any) -> None:
    function = op.parent.operation
    if function.name != "func.func":
        return
    for index, value in enumerate(op.operands):
        if isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape:
            place = _FunctionResultPlace(function, index)
            result = graph.add(place, sdy.get_result_sharding(function, index))
            rule = OpShardingRule.pointwise(tuple(value.type.shape), 1)
            graph.returns.append(Node(rule, (graph.number(value),), (result,), op=function))
