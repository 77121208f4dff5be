# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a module into a value graph.

The ops are read as flat arrays; properties that depend on an op's name, types and attributes are computed once for all
ops that agree in them. Nothing of the IR changes between reading and writing back.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import is_static
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.registry import depends_on_context, has_rule_for_any_sizes
from mlir_shard.sharding import OpShardingRule, PropagationDirection
from mlir_shard.sharding.tensor import EdgeFrame
from mlir_shard.transforms.propagate.module_parts import (
    NumberedEdge,
    keep_manual_axes,
    numbered_edges,
)
from mlir_shard.transforms.propagate.survey import NODES, Signature, Survey
from mlir_shard.transforms.propagate.value_graph import (
    NOWHERE,
    STATE_TYPE,
    UNKNOWN,
    NodeKind,
    OpClass,
    ValueGraph,
)
from mlir_shard.transforms.shardings import RuleFor, Side, numbered_types, shardings_of

# The number of a kind, and the places of operands and results.
_Node = tuple[int, tuple[int, ...], tuple[int, ...]]


class ModuleReader:
    """A module as a value graph, and the mapping from the parts of the graph to those of the module.

    `place` returns the place of each value of `arrays`. Place p is that of value p - 1, or from `first_result` on that
    of a function's result, listed in `results` by the number of the function and the index. `argument_of` has the same
    for values that are arguments of functions. Nodes have the names of their ops if they are read `by_op_name`.
    `lookups_first` is that of `op_class`. Without `reuses`, the rule and the steps of each op are computed for
    it alone; with `has_own_sizes`, each op has the rule of its own sizes. Raises RuleError if a rule fails.
    """

    def __init__(
        self,
        module: Any,
        rule_for: RuleFor,
        *,
        by_op_name: bool = False,
        lookups_first: bool = False,
        has_own_sizes: bool = False,
        reuses: bool = True,
    ) -> None:
        any_sizes = has_rule_for_any_sizes if reuses and not has_own_sizes else None
        self.arrays = ModuleArrays(module, (sdy.SHARDING,), any_sizes)
        self.graph = ValueGraph(sdy.meshes(module), shares_kinds=reuses)
        self.first_result = 0
        self.results: list[tuple[int, int]] = []
        self._rule_for = rule_for
        self._reuses = reuses
        self._by_op_name = by_op_name
        self._numbers, self._definers = self.arrays.signatures, self.arrays.definers
        self._identities: dict[tuple[Any, int], OpShardingRule] = {}
        self._survey = Survey(self.arrays, rule_for, reuses=reuses, lookups_first=lookups_first)
        self._representatives = self._survey.representatives
        self._keys = list(map(sdy.sharding_key, self._representatives))
        # The places that differ from the default, which is number + 1 for results and NOWHERE for block arguments.
        self._moved: dict[int, int] = {}
        self._special_kinds: dict[tuple[int, int, bool, EdgeFrame | None, bool, bool], int | None] = {}
        self._functions = {self._symbol(op): op for op in self._survey.functions}
        self._arguments: dict[int, list[int]] = {op: self._place_arguments(op) for op in self._survey.functions}
        self.argument_of = {v: (op, i) for op, numbers in self._arguments.items() for i, v in enumerate(numbers)}
        self._edges = self._place_edges()
        self._read_shardings()
        self._tie_siblings()
        self._add_nodes()
        self._read_groups()
        self._read_returns()
        # All values are read by now, and the fixpoint needs the most memory.
        self.arrays.free_lookup()

    def node_numbers(self) -> Iterator[int]:
        """Yields the numbers of the ops that are nodes by their rules, in the order of the nodes."""
        for op in self._survey.nodes.numbers:
            if op in self._survey.own_rules or self._survey.signature(self._numbers[op]).is_node:
                yield op

    def node_ops(self) -> Iterator[Any]:
        """Returns the ops that are nodes by their rules, in the order of the nodes."""
        return map(self.arrays.operation, self.node_numbers())

    def ops_with_rules(self) -> Iterator[tuple[Any, OpShardingRule]]:
        """Yields the ops that have a rule, with it, including those in regions of others, which do not propagate."""
        for op, number in enumerate(self._numbers):
            signature = self._survey.signature(number)
            rule = self._rule_for(self.arrays.operation(op)) if signature.asks_each else signature.rule
            if rule is not None:
                yield self.arrays.operation(op), rule

    def ops_with_rules_of_context(self) -> Iterator[tuple[Any, OpShardingRule]]:
        """Yields the ops of `ops_with_rules` whose rules depend on other ops, such as those that define operands."""
        for op in self.arrays.with_signatures(list(map(depends_on_context, self._representatives))):
            operation = self.arrays.operation(op)
            rule = self._rule_for(operation)
            if rule is not None:
                yield operation, rule

    def first_ops(self) -> list[Any]:
        """Returns the first op of each signature."""
        return self._representatives

    def signatures_with(self, key: str) -> list[bool]:
        """Returns, for each signature, whether its ops have one result, with its sharding in the attribute `key`."""
        keyed = zip(self._keys, self._representatives, strict=True)
        return [own == key and len(op.results) == 1 for own, op in keyed]

    def _symbol(self, function: int) -> str:
        symbol: str = self.arrays.operation(function).attributes["sym_name"].value
        return symbol

    def place(self, value: int) -> int:
        """Returns the place of a value."""
        moved = self._moved.get(value)
        if moved is not None:
            return moved
        return value + 1 if self._definers[value] >= 0 else NOWHERE

    def _place_arguments(self, function: int) -> list[int]:
        """Gives the arguments of a function places; returns the numbers of the arguments."""
        numbers = self.arrays.arguments(function)
        self._moved.update((number, number + 1) for number in numbers)
        return numbers

    def _place_edges(self) -> dict[int, NumberedEdge]:
        """Gives the targets of each edge the place of its owner or of the op on the edge; returns edges by owner."""
        survey, arrays = self._survey, self.arrays
        edges = {}
        for edge in numbered_edges(arrays, survey.edge_ops):
            on_edge = survey.edge_results.get(edge.owner) if arrays.used_once[edge.owner] else None
            place = (edge.owner if on_edge is None else on_edge) + 1
            for target in (edge.owner, *edge.other_targets):
                self._moved[target] = place
            edges[edge.owner] = edge
        return edges

    def _read_shardings(self) -> None:
        graph, arrays = self.graph, self.arrays
        graph.states = array(STATE_TYPE, [UNKNOWN]) * (arrays.value_count + 1)
        uses, distinct = arrays.attributed(sdy.SHARDING)
        states = [[graph.table.number(one) for one in attribute.value.shardings] for attribute in distinct]
        for op, index in uses:
            self._set_results(op, states[index])
        own = dict(self._own_states())
        has_own = [signature in own for signature in range(len(self._representatives))]
        for op in self.arrays.with_signatures(has_own) if own else ():
            self._set_results(op, own[self._numbers[op]])
        for function in self._survey.functions:
            numbers = self._arguments[function]
            # A declaration has arguments in its signature, but no values for them.
            given = self._signature_states(function, Side.ARGUMENTS) if numbers else ()
            for number, state in zip(numbers, given, strict=True):
                graph.states[number + 1] = state
        kept: dict[tuple[int, tuple[str, ...]], int] = {}
        for owner, edge in self._edges.items():
            if edge.is_of_argument and self.place(owner) == owner + 1:
                graph.set_sharding(owner + 1, sharding_of(arrays.value(owner).maybe_downcast()))
            keep_manual_axes(edge, self.place(owner), graph, kept)

    def _signature_states(self, function: int, side: Side) -> list[int]:
        """Returns the state of each argument or result of a function."""
        return list(map(self.graph.table.number, shardings_of(self.arrays.operation(function), side)))

    def _own_states(self) -> Iterator[tuple[int, list[int]]]:
        """Yields the signatures of sdy's ops with other attributes for shardings, and the states of their results."""
        for signature, op in enumerate(self._representatives):
            if self._keys[signature] != sdy.SHARDING:
                states = [self.graph.table.number(sdy.get_sharding(result)) for result in op.results]
                if any(state != UNKNOWN for state in states):
                    yield signature, states

    def _set_results(self, op: int, states: list[int]) -> None:
        # An op without results may have a single-device sharding; a result with an edge has the sharding of the edge.
        for value, state in zip(self.arrays.results(op), states, strict=False):
            if self.place(value) == value + 1:
                self.graph.states[value + 1] = state

    def _add_nodes(self) -> None:
        """Adds a node for each op with a rule, and for each op on an edge."""
        asked = [s is None or s.is_special or s.asks_each for s in self._survey.signatures]
        watched = [
            None if ask or s is None else s.watched for ask, s in zip(asked, self._survey.signatures, strict=True)
        ]
        nodes = self.graph.nodes.native
        nodes.add_operations(self._survey.nodes, self._moved, watched, self._kind_of, self._nodes_of)

    def _kind_of(self, number: int, shared: bool) -> int:
        signature = self._survey.signature(number)
        if signature.rule is None:
            raise ValueError(f"'{signature.name}' has no sharding rule of its own")
        return self._kind(signature, signature.rule, shared)

    def _kind(self, signature: Signature, rule: OpShardingRule, shared: bool) -> int:
        name = signature.name if self._by_op_name else ""
        return self.graph.kind(NodeKind(rule, signature.op_class, shared_operands=shared, op_name=name))

    def _nodes_of(self, op: int) -> list[_Node]:
        """Returns the nodes of an op that is special or has a rule of its own."""
        rule = self._survey.own_rules.get(op)
        name = self._survey.signature(self._numbers[op]).name
        if rule is None:
            return self._special_nodes(op) if name in NODES else []
        signature, operands, place = self._survey.signature(self._numbers[op]), self.arrays.operands(op), self.place
        shared = any(not self.arrays.used_once[operands[index]] for index in signature.watched)
        kind = self._kind(signature, rule, shared)
        return [(kind, tuple(map(place, operands)), tuple(map(place, self.arrays.results(op))))]

    def _tie_siblings(self) -> None:
        for op in self._survey.with_several_results:
            results = self.arrays.results(op)
            ranks = [rank_of(result.type) for result in self._representatives[self._numbers[op]].results]
            ranked = zip(results, ranks, strict=True)
            own = tuple((value + 1, rank) for value, rank in ranked if self.place(value) == value + 1)
            self.graph.siblings.update({place: own for place, _ in own})

    def _special_nodes(self, op: int) -> list[_Node]:
        signature, (operand,), (result,) = self._numbers[op], self.arrays.operands(op), self.arrays.results(op)
        frame, is_deferred, is_of_loop = None, False, False
        sources: Sequence[int]
        match self._survey.signature(signature).name:
            case "sdy.propagation_barrier":
                sources = (operand,)
            case "sdy.func_data_flow_edge":
                sources = self._function_sources(operand)
            case _:
                edge = self._edges.get(operand)
                if edge is None:
                    return []
                frame, sources, is_deferred = edge.frame, edge.sources, edge.is_of_argument
                is_of_loop = bool(edge.other_targets)
        if not sources:
            return []
        key = (signature, len(sources), not self.arrays.used_once[operand], frame, is_deferred, is_of_loop)
        if not self._reuses or key not in self._special_kinds:
            self._special_kinds[key] = self._special_kind(*key)
        kind = self._special_kinds[key]
        return [] if kind is None else [(kind, tuple(map(self.place, sources)), (result + 1,))]

    def _special_kind(
        self,
        signature: int,
        sources: int,
        shared: bool,
        frame: EdgeFrame | None,
        is_deferred: bool,
        is_of_loop: bool,
    ) -> int | None:
        """Returns the kind of the node of an edge or a barrier; None for a value that is never sharded."""
        # The kind depends only on the signature, so the first op of the signature stands for all.
        first = self._representatives[signature]
        type_ = first.results[0].type
        if not is_static(type_):
            return None
        rule = self._identity(type_, sources)
        if first.name == "sdy.propagation_barrier":
            direction = PropagationDirection(first.attributes["allowed_direction"].value)
            return self.graph.kind(NodeKind(rule, OpClass.ELEMENTWISE, fixed_direction=direction, is_op=False))
        return self.graph.kind(
            NodeKind(
                rule,
                OpClass.EDGE,
                shared,
                frame=frame,
                is_op=False,
                is_deferred=is_deferred,
                is_of_loop=is_of_loop,
                is_between_functions=first.name == "sdy.func_data_flow_edge",
            )
        )

    def _function_sources(self, value: int) -> list[int]:
        """Returns the values that flow into a function's argument (operands of calls) or into the result of a call."""
        call = self.arrays.definers[value]
        if call >= 0:
            function = self._functions[self.arrays.operation(call).attributes["callee"].value]
            back = self._survey.returns.get(function)
            return [] if back is None else [self.arrays.operands(back)[self.arrays.results(call).index(value)]]
        function, index = self.argument_of[value]
        return [self.arrays.operands(call)[index] for call in self._survey.calls.get(self._symbol(function), ())]

    def _identity(self, type_: Any, sources: int) -> OpShardingRule:
        key = (type_, sources)
        if key not in self._identities:
            self._identities[key] = OpShardingRule.pointwise(shape_of(type_), sources)
        return self._identities[key]

    def _read_groups(self) -> None:
        members: dict[int, list[int]] = {}
        for op in self._survey.groups:
            group = self.arrays.operation(op).attributes["group_id"].value
            place = self.place(self.arrays.operands(op)[0])
            if place != NOWHERE:
                members.setdefault(group, []).append(place)
        for group in sorted(members):
            places = tuple(dict.fromkeys(members[group]))
            self.graph.groups.update(dict.fromkeys(places, places))

    def _read_returns(self) -> None:
        """Adds a place for each result of the functions that count as main, tied to the returned value."""
        self.first_result = len(self.graph.states)
        for function in self._main_functions():
            back = self._survey.returns.get(function)
            if back is None:
                continue
            states = self._signature_states(function, Side.RESULTS)
            numbers, types = numbered_types(self.arrays.operation(function), Side.RESULTS)
            kinds = list(map(self._return_kind, types))
            operands = self.arrays.operands(back)
            for index, (value, type_, state) in enumerate(zip(operands, numbers, states, strict=True)):
                kind = kinds[type_]
                if kind is not None:
                    self.graph.returns.native.add(kind, (self.place(value),), (len(self.graph.states),))
                    self.graph.states.append(state)
                    self.results.append((function, index))

    def _return_kind(self, type_: Any) -> int | None:
        """Returns the kind that ties a value of a type to a function's result; None if it is never sharded."""
        if not is_static(type_):
            return None
        rule = self._identity(type_, 1)
        return self.graph.kind(NodeKind(rule, fixed_direction=PropagationDirection.BOTH, is_op=False))

    def _main_functions(self) -> list[int]:
        if "main" in self._functions:
            return [self._functions["main"]]
        return [op for op in self._survey.functions if self._symbol(op) not in self._survey.calls]
