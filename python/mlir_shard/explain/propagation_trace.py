# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The trace of one propagation: the tensors of the program, and the steps that propagated each axis to each tensor.

Everything is read from the IR before the results are written to it, so that later passes can change it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from mlir_shard.explain.places import Place, SourceTexts, place_of, tag
from mlir_shard.explain.values import Operation, Tensor
from mlir_shard.host import ir
from mlir_shard.ir.values import element_size
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.transforms.propagate.value_graph import NOWHERE, Node, NodeKind

if TYPE_CHECKING:
    from mlir_shard.transforms.debug_record import Record
    from mlir_shard.transforms.propagate.read_module import ModuleReader

OP_TAG = "op"
_EDGES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge")


@dataclass(frozen=True, slots=True)
class TracedNode:
    """A node of the value graph: an op with a rule, or an identity between tensors at a region or function.

    Attributes:
        op: the number of the op; for the results of a function, that of the function.
        kind: its rule and direction.
        operands, results: numbers of tensors, 0 for values that cannot have a sharding.
    """

    op: int
    kind: NodeKind
    operands: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def tensors(self) -> tuple[int, ...]:
        """The operands, then the results."""
        return self.operands + self.results

    @property
    def rule(self) -> OpShardingRule:
        """The sharding rule."""
        return self.kind.rule

    def role(self, position: int) -> str:
        """Returns the role of a tensor by its position, `operand 0`."""
        count = len(self.operands)
        return f"operand {position}" if position < count else f"result {position - count}"


class PropagationTrace:
    """The tensors of a propagated program and the origins of their axes; ops are tagged with their numbers.

    Args:
        reader: the module as it was read, with the states after propagation.
        original: the states before propagation.
        record: the steps of propagation.
        sources: the texts of the program, for names of values.
        annotated: the places of arguments that had shardings in the user's program.
    """

    def __init__(
        self,
        reader: ModuleReader,
        original: Sequence[int],
        record: Record[int],
        sources: SourceTexts,
        annotated: Collection[Place],
    ) -> None:
        self._graph, self._arrays = reader.graph, reader.arrays
        self._original, self._sources = original, sources
        self.record, self.annotated = record, annotated
        self._first_result, self._results = reader.first_result, reader.results
        self._argument_of = reader.argument_of
        self._node_numbers = list(reader.node_numbers())
        self._signature_names = [op.name for op in self._arrays.representatives()]
        self._symbols = self._read_symbols()
        # By op, because ops of one signature may differ in sizes.
        self._types: list[list[tuple[Any, ...]]] = []
        self._locations = self._read_ops()
        self._arguments = dict(self._read_arguments())
        self._result_types = self._read_result_types()
        self._held = [False, *(reader.place(value) == value + 1 for value in range(self._arrays.value_count))]
        self._place_of = [reader.place(value) for value in range(self._arrays.value_count)]
        self.meshes: dict[str, Mesh] = self._graph.meshes
        self.place = lru_cache(maxsize=None)(self._place)
        self.tensor = lru_cache(maxsize=None)(self._tensor)

    # Data that is read from the IR.

    def _read_symbols(self) -> dict[int, str]:
        functions = [n for n, s in enumerate(self._arrays.signatures) if self._signature_names[s] == "func.func"]
        return {op: self._arrays.operation(op).attributes["sym_name"].value for op in functions}

    def _read_ops(self) -> list[Any]:
        locations = []
        types: dict[Any, tuple[Any, ...]] = {}
        for number in range(len(self._arrays)):
            op = self._arrays.operation(number)
            locations.append(op.location)
            tag(op, OP_TAG, number)
            of_results = [result.type for result in op.results]
            for one in of_results:
                if one not in types:
                    types[one] = static_type(one)
            self._types.append([types[one] for one in of_results])
        return locations

    def _read_arguments(self) -> Iterator[tuple[int, tuple[int, int, Any, tuple[Any, ...]]]]:
        """Yields the block arguments: the value, and the op that contains it, the index, the location and the type."""
        definers, parents = self._arrays.definers, self._arrays.parents
        owners: dict[Any, int] = {}
        for op in {parent for parent in parents if parent >= 0}:
            for region in self._arrays.operation(op).regions:
                for block in region.blocks:
                    owners[block] = op
                    for argument in block.arguments:
                        number = self._arrays.number_of(argument)
                        if number is not None and definers[number] < 0:
                            yield number, (op, argument.arg_number, argument.location, static_type(argument.type))

    def _read_result_types(self) -> list[tuple[Any, ...]]:
        types = {}
        for function, _ in self._results:
            if function not in types:
                op = self._arrays.operation(function)
                types[function] = list(map(static_type, op.attributes["function_type"].value.results))
        return [types[function][index] for function, index in self._results]

    # Ops and tensors.

    def op_name(self, op: int) -> str:
        """Returns the name of an op by its number."""
        return self._signature_names[self._arrays.signatures[op]]

    def signature(self, op: int) -> int:
        """Returns the signature of an op: ops of one signature agree in name, types and attributes."""
        return self._arrays.signatures[op]

    def _place(self, op: int) -> Place:
        return place_of(self._locations[op])

    def function_of(self, op: int) -> str:
        """Returns the name of the function that an op is in, or is; empty outside functions."""
        while op >= 0 and op not in self._symbols:
            op = self._arrays.parents[op]
        return self._symbols.get(op, "")

    def owner(self, op: int) -> int:
        """Returns the op whose region argument or result a data-flow edge is for; other ops are unchanged."""
        if self.op_name(op) not in _EDGES:
            return op
        value = self._arrays.operands(op)[0]
        definer = self._arrays.definers[value]
        return definer if definer >= 0 else self._arguments[value][0]

    def operations(self) -> Iterator[Operation]:
        """Yields the functions and the ops in them, without data-flow edges."""
        arguments: dict[int, list[int]] = {}
        for value, (owner, *_) in sorted(self._arguments.items()):
            arguments.setdefault(owner, []).append(value)
        for op in range(len(self._arrays)):
            function = self.function_of(op)
            if function and self.op_name(op) not in _EDGES:
                operands = tuple(map(self._behind_edges, self._arrays.operands(op)))
                results = tuple(self._arrays.results(op))
                inner = tuple(arguments.get(op, ()))
                parent = self._arrays.parents[op]
                yield Operation(op, self.op_name(op), self.place(op), function, parent, operands, results, inner)

    def _behind_edges(self, value: int) -> int:
        """Returns the operand of a data-flow edge, through several edges; other values are unchanged."""
        op = self._arrays.definers[value]
        while op >= 0 and self.op_name(op) in _EDGES:
            value = self._arrays.operands(op)[0]
            op = self._arrays.definers[value]
        return value

    def tensor_of_value(self, value: int) -> int | None:
        """Returns the number of the tensor that a value is, or whose sharding it has; None if it cannot be sharded."""
        number = self._place_of[value]
        return number if number != NOWHERE and self._is_tensor(number) else None

    def tensors(self) -> Iterator[Tensor]:
        """Yields all tensors with dimensions and their own sharding in program order, then the results of functions."""
        for place in range(1, len(self._graph.states)):
            if self._is_tensor(place):
                yield self.tensor(place)

    def _is_tensor(self, place: int) -> bool:
        if place >= self._first_result:
            return True
        if not self._held[place]:
            return False
        value = place - 1
        op = self._arrays.definers[value]
        type_ = self._type_of(value)
        return bool(type_ and type_[0]) and (op >= 0 or value in self._argument_of or self._is_owner(value))

    def _is_owner(self, value: int) -> bool:
        return value in self._arguments and self._graph.states[value + 1] >= 0

    def _type_of(self, value: int) -> tuple[Any, ...]:
        op = self._arrays.definers[value]
        if op < 0:
            return self._arguments[value][3] if value in self._arguments else ()
        return self._types[op][value - self._arrays.results(op)[0]]

    def tensor_of_result(self, op: int, index: int) -> int:
        """Returns the number of the tensor of a result of an op."""
        return self._place_of[self._arrays.results(op)[index]]

    def first_result(self, op: int) -> int | None:
        """Returns the number of the tensor of the first result of an op; None if it has no results."""
        results = self._arrays.results(op)
        return self._place_of[results[0]] if results else None

    def tensor_of_argument(self, function: str, index: int) -> int | None:
        """Returns the number of the tensor of an argument of a function; None if none exists."""
        op = next((op for op, symbol in self._symbols.items() if symbol == function), -1)
        return next((v + 1 for v, place in self._argument_of.items() if place == (op, index)), None)

    def sharding(self, tensor: int) -> TensorSharding | None:
        """Returns the sharding of a tensor after propagation."""
        return self._graph.sharding(tensor)

    def original(self, tensor: int) -> TensorSharding | None:
        """Returns the sharding of a tensor before propagation."""
        return self._graph.table[self._original[tensor]]

    def group_of(self, tensor: int) -> tuple[int, ...]:
        """Returns the tensors of the sharding group of a tensor; empty without a group."""
        return self._graph.groups.get(tensor, ())

    def ops_around(self, tensor: int) -> list[int]:
        """Returns the op that defines a tensor of the program, if there is one, and the ops that use it."""
        op = self._arrays.definers[tensor - 1]
        return [*([op] if op >= 0 else []), *self._arrays.users(tensor - 1)]

    def owner_of_tensor(self, tensor: int) -> int:
        """Returns the op that defines a tensor, or that has the region whose argument it is."""
        op = self._arrays.definers[tensor - 1]
        return self._arguments[tensor - 1][0] if op < 0 else self.owner(op)

    def regions(self, tensor: int) -> tuple[tuple[str, Place], ...]:
        """Returns the ops whose regions contain a tensor, from the outermost below the function, with their places."""
        if tensor >= self._first_result:
            return ()
        op = self._arrays.definers[tensor - 1]
        return self._regions_at(self._arguments[tensor - 1][0] if op < 0 else self._arrays.parents[op])

    def _regions_at(self, op: int) -> tuple[tuple[str, Place], ...]:
        if op < 0 or op in self._symbols:
            return ()
        return (*self._regions_at(self._arrays.parents[op]), (self.op_name(op), self.place(op)))

    def _tensor(self, number: int) -> Tensor:
        sharding = self.sharding(number)
        if number >= self._first_result:
            function, index = self._results[number - self._first_result]
            symbol, place = self._symbols[function], self.place(function)
            type_ = self._result_types[number - self._first_result]
            return Tensor(number, f"result {index}", "result", index, symbol, place, *_parts(type_), sharding)
        value = number - 1
        op = self._arrays.definers[value]
        parts = _parts(self._type_of(value))
        if op < 0:
            owner, index, location, _ = self._arguments[value]
            place, is_function = place_of(location), value in self._argument_of
            name = self._sources.argument_name(place) or place.name or f"argument {index}"
            what = "argument" if is_function else "region argument"
            return Tensor(number, name, what, index, self.function_of(owner), place, *parts, sharding)
        shown = self.owner(op)
        # A data-flow edge represents a result of the op, or an argument of its region.
        behind = self._arrays.operands(op)[0] if self.op_name(op) in _EDGES else value
        is_result = self._arrays.definers[behind] >= 0
        place, name = self.place(shown), self.op_name(shown)
        if is_result:
            index = behind - self._arrays.results(shown)[0]
            found = self._sources.result_name(place, name, index)
        else:
            _, index, location, _ = self._arguments[behind]
            found = self._sources.argument_name(place_of(location))
        found = found or place.name or name
        return Tensor(number, found, name, index, self.function_of(op), place, *parts, sharding)

    # Nodes.

    @cached_property
    def nodes(self) -> Sequence[TracedNode]:
        """The nodes of the graph, then those between returned values and results of functions."""
        graph, ops = self._graph, iter(self._node_numbers)
        found = []
        for node in graph.nodes:
            kind = graph.kinds[node.kind]
            op = next(ops) if kind.is_op else self._arrays.definers[node.results[0] - 1]
            found.append(self._traced(op, node))
        for node in graph.returns:
            function, _ = self._results[node.results[0] - self._first_result]
            found.append(self._traced(function, node))
        return found

    def _traced(self, op: int, node: Node) -> TracedNode:
        return TracedNode(op, self._graph.kinds[node.kind], node.operands, node.results)

    @cached_property
    def nodes_of(self) -> dict[int, list[tuple[int, int]]]:
        """The nodes around each tensor, each with the position of the tensor in it."""
        around: dict[int, list[tuple[int, int]]] = {}
        for number, node in enumerate(self.nodes):
            for position, tensor in enumerate(node.tensors):
                if tensor != NOWHERE:
                    around.setdefault(tensor, []).append((number, position))
        return around

    @property
    def node_count(self) -> int:
        """The number of nodes without those between returned values and results of functions."""
        return len(self._graph.nodes)

    @cached_property
    def node_of_op(self) -> dict[int, int]:
        """The node of each op that has one."""
        return {node.op: number for number, node in enumerate(self.nodes)}


def static_type(type_: Any) -> tuple[Any, ...]:
    """Returns the shape, element type and bytes of a static tensor type; an empty tuple for others."""
    if not isinstance(type_, ir.ShapedType) or not type_.has_static_shape:
        return ()
    shape = shape_of(type_)
    count = 1
    for size in shape:
        count *= size
    return tuple(shape), str(type_.element_type), count * (element_size(type_) or 8)


def _parts(type_: tuple[Any, ...]) -> tuple[tuple[int, ...], str, int]:
    return type_ if type_ else ((), "", 0)
