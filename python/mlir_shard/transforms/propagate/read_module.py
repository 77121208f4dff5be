# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a module into a value graph.

The ops come as flat arrays; what depends on an op's name, types and attributes is asked once for all that agree in
them. Nothing of the IR changes between reading and writing back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import DataFlowEdge, edges_of, has_edges, is_static_tensor
from mlir_shard.host import ir
from mlir_shard.rules import RuleCache
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.registry import depends_on_context
from mlir_shard.sharding import OpShardingRule, PropagationDirection
from mlir_shard.transforms.propagate.edge_frames import edge_frame
from mlir_shard.transforms.propagate.op_classes import op_class
from mlir_shard.transforms.propagate.value_graph import NOWHERE, UNKNOWN, Node, OpClass, ValueGraph

# Ops that are read in a way of their own.
_SPECIAL = (
    "func.func",
    "func.return",
    "func.call",
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.propagation_barrier",
    "sdy.sharding_group",
)
# Ops of sdy with no attribute of their own for the sharding of their result.
_PLAIN = ("sdy.constant", "sdy.func_data_flow_edge", "sdy.propagation_barrier")
_PASSING_ON = (OpClass.ELEMENTWISE, OpClass.RESHAPING, OpClass.SLICING, OpClass.EDGE)


@dataclass(slots=True)
class _Signature:
    """What ops of one signature have in common.

    `scalars` says which operands can never be sharded. `asks_each` is for rules that look at more than the signature.
    """

    name: str
    is_special: bool
    asks_each: bool
    rule: OpShardingRule | None
    op_class: OpClass
    scalars: tuple[bool, ...]
    kinds: dict[tuple[int, bool], int] = field(default_factory=dict)


@dataclass(slots=True)
class _Program:
    """What is found op by op, before values have places."""

    nodes: list[tuple[int, OpShardingRule | None]] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    returns: dict[int, int] = field(default_factory=dict)
    calls: dict[str, list[int]] = field(default_factory=dict)
    groups: list[int] = field(default_factory=list)
    edges: list[tuple[Any, DataFlowEdge]] = field(default_factory=list)
    edge_results: dict[int, int] = field(default_factory=dict)


class ModuleReader:
    """A module as a value graph, and what in the module each part of the graph stands for.

    `places` has the place of each value of `arrays`; place p is that of value p - 1, or from `first_result` on that
    of a function's result, in `results` as the number of the function and the index. `argument_of` says the same of
    values that are functions' arguments. Raises RuleError where a rule fails.
    """

    def __init__(self, module: Any, rules: RuleCache) -> None:
        self.arrays = ModuleArrays(module, (sdy.SHARDING,))
        self.graph = ValueGraph(sdy.meshes(module))
        self.first_result = 0
        self.results: list[tuple[int, int]] = []
        self._rules = rules
        self._representatives = self.arrays.representatives()
        self._signatures: list[_Signature | None] = [None] * len(self._representatives)
        self._identities: dict[tuple[tuple[int, ...], int], OpShardingRule] = {}
        self._uses = Counter(chain.from_iterable(map(self.arrays.operands, range(len(self.arrays)))))
        self._program = _Program()
        self._survey()
        self.places = [NOWHERE if definer < 0 else value + 1 for value, definer in enumerate(self.arrays.definers)]
        self._functions = {self._symbol(op): op for op in self._program.functions}
        self._arguments: dict[int, list[int]] = {op: self._place_arguments(op) for op in self._program.functions}
        self.argument_of = {v: (op, i) for op, numbers in self._arguments.items() for i, v in enumerate(numbers)}
        self._edges = dict(self._place_edges())
        self._read_shardings()
        self.graph.nodes = list(self._nodes())
        self._read_groups()
        self._read_returns()

    def node_ops(self) -> Iterator[tuple[Any, OpShardingRule]]:
        """The ops that have a rule of their own, with it."""
        return ((self.arrays.operation(op), rule) for op, rule in self._program.nodes if rule is not None)

    def first_ops(self) -> list[Any]:
        """The first op of each signature."""
        return self._representatives

    def has_plain_sharding(self, op: int) -> bool:
        """Whether an op has one result, and its sharding in the attribute that ops of all dialects have."""
        first = self._representatives[self.arrays.signatures[op]]
        return len(first.results) == 1 and (first.name in _PLAIN or not first.name.startswith("sdy."))

    def _survey(self) -> None:
        program, signatures, parents = self._program, self.arrays.signatures, self.arrays.parents
        # The regions of an op with a rule say what it computes on elements.
        closed = [False] * len(self.arrays)
        for op in range(len(self.arrays)):
            if parents[op] >= 0 and closed[parents[op]]:
                closed[op] = True
                continue
            signature = self._signatures[signatures[op]] or self._add_signature(signatures[op])
            if signature.is_special:
                self._survey_special(op, signature.name)
                continue
            rule = self._rules.rule_for(self.arrays.operation(op)) if signature.asks_each else signature.rule
            if rule is not None:
                closed[op] = True
                program.nodes.append((op, rule))
            elif has_edges(signature.name):
                ir_op = self.arrays.operation(op)
                program.edges += ((ir_op, edge) for edge in edges_of(ir_op))

    def _add_signature(self, number: int) -> _Signature:
        op = self._representatives[number]
        special = op.name in _SPECIAL
        asks_each = not special and depends_on_context(op)
        rule = None if special or asks_each else self._rules.rule_for(op)
        scalars = tuple(isinstance(value.type, ir.ShapedType) and not rank_of(value.type) for value in op.operands)
        signature = _Signature(op.name, special, asks_each, rule, op_class(op), scalars)
        self._signatures[number] = signature
        return signature

    def _survey_special(self, op: int, name: str) -> None:
        program = self._program
        if name == "func.func":
            program.functions.append(op)
        elif name == "func.return":
            program.returns[self.arrays.parents[op]] = op
        elif name == "func.call":
            callee = self.arrays.operation(op).attributes["callee"].value
            program.calls.setdefault(callee, []).append(op)
        elif name == "sdy.sharding_group":
            program.groups.append(op)
        else:
            program.nodes.append((op, None))
            if name == "sdy.data_flow_edge":
                program.edge_results[self.arrays.operands(op)[0]] = self.arrays.results(op)[0]

    def _symbol(self, function: int) -> str:
        symbol: str = self.arrays.operation(function).attributes["sym_name"].value
        return symbol

    def _place_arguments(self, function: int) -> list[int]:
        """Gives the arguments of a function places; their numbers."""
        blocks = self.arrays.operation(function).regions[0].blocks
        numbers = [self._number(value) for value in blocks[0].arguments] if len(blocks) else []
        for number in numbers:
            self.places[number] = number + 1
        return numbers

    def _place_edges(self) -> Iterator[tuple[int, tuple[Any, DataFlowEdge]]]:
        """Gives the targets of each edge the place of its owner, or of the op on the edge; the edges by owner."""
        for op, edge in self._program.edges:
            owner = self._number(edge.owner)
            on_edge = self._program.edge_results.get(owner) if self._uses[owner] == 1 else None
            place = (owner if on_edge is None else on_edge) + 1
            for target in (edge.owner, *edge.other_targets):
                self.places[self._number(target)] = place
            yield owner, (op, edge)

    def _number(self, value: Any) -> int:
        number = self.arrays.number_of(value)
        if number is None:
            raise ValueError(f"a data-flow edge has a value that is not in the module: {value}")
        return number

    def _read_shardings(self) -> None:
        graph, arrays = self.graph, self.arrays
        graph.states = [UNKNOWN] * (len(arrays.definers) + 1)
        indices, distinct = arrays.attributes(sdy.SHARDING)
        for op, index in enumerate(indices):
            if index >= 0:
                self._set_results(op, distinct[index].value)
        for signature, op in enumerate(self._representatives):
            if op.name.startswith("sdy."):
                own = [sdy.get_sharding(result) for result in op.results]
                if any(own) and sdy.SHARDING not in op.attributes:
                    same = (other for other, number in enumerate(arrays.signatures) if number == signature)
                    for other in same:
                        self._set_results(other, own)
        for function in self._program.functions:
            for value, number in zip(self._values(function), self._arguments[function], strict=True):
                graph.set_sharding(number + 1, sdy.get_sharding(value))
        for owner, (_, edge) in self._edges.items():
            if isinstance(edge.owner, ir.BlockArgument) and self.places[owner] == owner + 1:
                graph.set_sharding(owner + 1, sharding_of(edge.owner))

    def _values(self, function: int) -> list[Any]:
        blocks = self.arrays.operation(function).regions[0].blocks
        return list(blocks[0].arguments) if len(blocks) else []

    def _set_results(self, op: int, shardings: Any) -> None:
        # An op without results may have the sharding of a device; a result with an edge has that of the edge.
        for value, sharding in zip(self.arrays.results(op), shardings, strict=False):
            if self.places[value] == value + 1:
                self.graph.set_sharding(value + 1, sharding)

    def _nodes(self) -> Iterator[Node]:
        arrays, places = self.arrays, self.places
        for op, rule in self._program.nodes:
            if rule is None:
                yield from self._special_node(op)
                continue
            operands, results = arrays.operands(op), arrays.results(op)
            if len(results) > 1:
                self._tie_siblings(op, results)
            signature = self._signatures[arrays.signatures[op]]
            if signature is not None:
                shared = signature.op_class in _PASSING_ON and self._shares(operands, signature.scalars)
                kind = signature.kinds.get((id(rule), shared))
                if kind is None:
                    kind = self.graph.kind(rule, signature.op_class, shared_operands=shared)
                    signature.kinds[id(rule), shared] = kind
                yield Node(kind, tuple([places[v] for v in operands]), tuple([places[v] for v in results]))

    def _shares(self, operands: list[int], scalars: tuple[bool, ...]) -> bool:
        """Whether an operand that can be sharded has other uses."""
        uses = self._uses
        return any(uses[value] != 1 and not scalar for value, scalar in zip(operands, scalars, strict=True))

    def _tie_siblings(self, op: int, results: list[int]) -> None:
        ranks = [rank_of(result.type) for result in self.arrays.operation(op).results]
        own = [(value + 1, rank) for value, rank in zip(results, ranks, strict=True) if self.places[value] == value + 1]
        for place, _ in own:
            self.graph.siblings[place] = tuple(other for other in own if other[0] != place)

    def _special_node(self, op: int) -> Iterator[Node]:
        ir_op = self.arrays.operation(op)
        result = ir_op.results[0]
        if not is_static_tensor(result):
            return
        operand, place = self.arrays.operands(op)[0], self.arrays.results(op)[0] + 1
        if ir_op.name == "sdy.propagation_barrier":
            direction = PropagationDirection(ir_op.attributes["allowed_direction"].value)
            kind = self.graph.kind(
                self._identity(result, 1), OpClass.ELEMENTWISE, fixed_direction=direction, is_op=False
            )
            yield Node(kind, (self.places[operand],), (place,))
            return
        frame = None
        if ir_op.name == "sdy.func_data_flow_edge":
            sources = self._function_sources(operand)
        elif operand in self._edges:
            around, edge = self._edges[operand]
            frame = edge_frame(around, edge.owner)
            sources = [self._number(source) for source in edge.sources]
        else:
            return
        if sources:
            rule = self._identity(result, len(sources))
            kind = self.graph.kind(
                rule, OpClass.EDGE, shared_operands=self._uses[operand] != 1, frame=frame, is_op=False
            )
            yield Node(kind, tuple(self.places[source] for source in sources), (place,))

    def _function_sources(self, value: int) -> list[int]:
        """What flows into a function's argument, the operands of calls, or into the result of a call."""
        call = self.arrays.definers[value]
        if call >= 0:
            function = self._functions[self.arrays.operation(call).attributes["callee"].value]
            back = self._program.returns.get(function)
            return [] if back is None else [self.arrays.operands(back)[self.arrays.results(call).index(value)]]
        function, index = self.argument_of[value]
        return [self.arrays.operands(call)[index] for call in self._program.calls.get(self._symbol(function), ())]

    def _identity(self, value: Any, sources: int) -> OpShardingRule:
        key = (shape_of(value.type), sources)
        if key not in self._identities:
            self._identities[key] = OpShardingRule.pointwise(*key)
        return self._identities[key]

    def _read_groups(self) -> None:
        members: dict[int, list[int]] = {}
        for op in self._program.groups:
            group = self.arrays.operation(op).attributes["group_id"].value
            place = self.places[self.arrays.operands(op)[0]]
            if place != NOWHERE:
                members.setdefault(group, []).append(place)
        for group in sorted(members):
            places = tuple(dict.fromkeys(members[group]))
            self.graph.groups.update(dict.fromkeys(places, places))

    def _read_returns(self) -> None:
        """Adds a place for each result of the functions that count as main, tied to what is returned."""
        self.first_result = len(self.graph.states)
        for function in self._main_functions():
            back = self._program.returns.get(function)
            if back is None:
                continue
            ir_op = self.arrays.operation(function)
            returned = self.arrays.operation(back).operands
            for index, number in enumerate(self.arrays.operands(back)):
                if is_static_tensor(returned[index]):
                    rule = self._identity(returned[index], 1)
                    kind = self.graph.kind(rule, fixed_direction=PropagationDirection.BOTH, is_op=False)
                    self.graph.returns.append(Node(kind, (self.places[number],), (len(self.graph.states),)))
                    self.graph.states.append(self.graph.table.number(sdy.get_result_sharding(ir_op, index)))
                    self.results.append((function, index))

    def _main_functions(self) -> list[int]:
        if "main" in self._functions:
            return [self._functions["main"]]
        return [op for op in self._program.functions if self._symbol(op) not in self._program.calls]
