# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the graph of a module."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.explain.difference.graph import (
    ARGUMENT,
    ARGUMENT_OF_CALL,
    CALL,
    RESULT,
    RESULT_OF_CALL,
    Graph,
    Node,
    Numbers,
    Root,
)
from mlir_shard.explain.difference.signatures import (
    NAMES,
    Role,
    Signature,
    held_shardings,
    signature_of,
    upstream_sharding,
)
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.runtime import names
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.shardings import Side, shardings_of

Show = Callable[[TensorSharding], str | None]
"""A function from a sharding to its text; equal texts are no difference, and None stands for no sharding."""


def read(module: Any, kinds: Numbers, show: Show) -> Graph:
    """Returns the graph of a module; graphs of one context with the same `kinds` can be compared."""
    return _Reader(module, kinds, show).graph()


class _Reader:
    def __init__(self, module: Any, kinds: Numbers, show: Show) -> None:
        self._module, self._kinds, self._show = module, kinds, show
        self._arrays = arrays = ModuleArrays(module, (sdy.SHARDING, *NAMES))
        self._signatures = [signature_of(op, kinds) for op in arrays.representatives()]
        self._children: list[list[int]] = [[] for _ in range(len(arrays))]
        self._top: list[int] = []
        for op, parent in enumerate(arrays.parents):
            (self._top if parent < 0 else self._children[parent]).append(op)
        self._shardings = self._read_shardings()
        self._nodes: list[Node] = []
        self._definers: list[Node | None] = []
        self._users: dict[int, list[tuple[Node, int]]] = {}
        functions = [op for op in self._top if self._signature(op).role is Role.FUNCTION and self._children[op]]
        self._functions = {arrays.operation(op).attributes["sym_name"].value: op for op in functions}
        self._called = set[int]()
        self._callees = self._read_callees()
        self._around: list[int] = []
        self._reached = set[int]()

    def graph(self) -> Graph:
        """Returns the graph."""
        roots = [self._root(op, name) for name, op in self._functions.items() if op not in self._called]
        # Functions that call each other may have no other callers.
        reached = set(self._reached)
        roots += [self._root(op, name) for name, op in self._functions.items() if op not in reached]
        others = [op for op in self._top if self._signature(op).role is not Role.FUNCTION]
        nodes: list[Node] = []
        self._add(others, {}, nodes, None, 0)
        roots.append(Root(-1, "", (), (), (), nodes))
        return Graph(self._arrays, roots, self._nodes, self._definers, self._users)

    def _signature(self, op: int) -> Signature:
        return self._signatures[self._arrays.signatures[op]]

    def _read_shardings(self) -> dict[int, tuple[str | None, ...]]:
        """Returns the shardings that operations hold, without operations that hold none."""
        uses, distinct = self._arrays.attributed(sdy.SHARDING)
        texts = [self._texts(attribute) for attribute in distinct]
        found = {op: texts[number] for op, number in uses}
        for op, signature in enumerate(self._arrays.signatures):
            name = self._signatures[signature].name
            if name == "shard.shard":
                found[op] = (upstream_sharding(self._arrays.operation(op)),)
            elif name.startswith("sdy."):
                held = held_shardings(self._arrays.operation(op))
                if held:
                    found[op] = tuple(text for attribute in held for text in self._texts(attribute))
        return found

    def _texts(self, attribute: Any) -> tuple[str | None, ...]:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorShardingPerValue):
            return tuple(map(self._show, value.shardings))
        return (self._show(value),) if isinstance(value, TensorSharding) else ()

    def _read_callees(self) -> dict[int, int]:
        found = {}
        for op, signature in enumerate(self._arrays.signatures):
            if self._signatures[signature].role is Role.CALL:
                callee = self._functions.get(self._arrays.operation(op).attributes["callee"].value)
                if callee is not None:
                    found[op] = callee
                    self._called.add(callee)
        return found

    def _root(self, function: int, name: str) -> Root:
        op = self._arrays.operation(function)
        nodes: list[Node] = []
        values: dict[int, int] = {}
        raw = self._arrays.arguments(function)
        arguments = []
        for position, (number, sharding) in enumerate(zip(raw, shardings_of(op, Side.ARGUMENTS), strict=True)):
            values[number] = self._value()
            type_, shown = self._arrays.value(number).type, self._shown(sharding)
            arguments.append(self._node(function, ARGUMENT, position, type_, (), (values[number],), shown))
        nodes += arguments
        returned = self._body(function, values, nodes)
        results = []
        types = op.attributes["function_type"].value.results
        columns = zip(types, shardings_of(op, Side.RESULTS), returned, strict=True)
        for position, (type_, sharding, value) in enumerate(columns):
            node = self._node(function, RESULT, position, type_, (value,), (), self._shown(sharding))
            self._use(node)
            results.append(node)
        nodes += results
        block = op.regions[0].blocks[0]
        named = tuple(names.location_name(one.location) for one in block.arguments)
        return Root(function, name, named, tuple(arguments), tuple(results), nodes)

    def _shown(self, sharding: TensorSharding | None) -> tuple[str | None, ...]:
        return (None if sharding is None else self._show(sharding),)

    def _body(self, function: int, values: dict[int, int], nodes: list[Node]) -> tuple[int, ...]:
        """Adds the nodes of a function; returns the values that the function returns."""
        self._around.append(function)
        self._reached.add(function)
        returned = self._blocks(function, values, nodes, None, [])
        self._around.pop()
        return returned

    def _call(self, op: int, function: int, values: dict[int, int], nodes: list[Node]) -> None:
        """Adds the nodes of a called function, with a node for each argument and result."""
        operands = [values[one] for one in self._arrays.operands(op)]
        called = self._arrays.operation(function)
        sides = (Side.ARGUMENTS, Side.RESULTS)
        arguments, results = (shardings_of(called, side) for side in sides)
        for position, (value, sharding) in enumerate(zip(operands, arguments, strict=True)):
            self._annotate(function, ARGUMENT_OF_CALL, position, value, sharding, nodes)
        inside = dict(zip(self._arrays.arguments(function), operands, strict=True))
        returned = self._body(function, inside, nodes)
        for position, (value, sharding) in enumerate(zip(returned, results, strict=True)):
            self._annotate(function, RESULT_OF_CALL, position, value, sharding, nodes)
        size = len(operands), len(returned)
        nodes.append(self._node(op, CALL, -1, size, returned, (), self._shardings.get(op, ()), True))
        values.update(zip(self._arrays.results(op), returned, strict=True))

    def _annotate(
        self, function: int, what: str, position: int, value: int, sharding: TensorSharding | None, nodes: list[Node]
    ) -> None:
        nodes.append(self._node(function, what, position, position, (value,), (), self._shown(sharding), True))

    def _blocks(
        self, op: int, values: dict[int, int], nodes: list[Node], parent: Node | None, taken: list[int]
    ) -> tuple[int, ...]:
        """Adds the nodes and arguments of all blocks of an operation; returns the values that a function returns."""
        returned: tuple[int, ...] = ()
        children = self._children[op]
        for number, (arguments, inside) in enumerate(self._split(op, children)):
            for argument in arguments:
                if argument not in values:
                    values[argument] = self._value()
                taken.append(values[argument])
            returned = self._add(inside, values, nodes, parent, number) or returned
        return returned

    def _split(self, op: int, children: list[int]) -> Iterator[tuple[Sequence[int], list[int]]]:
        """Yields the arguments and operations of each block of an operation."""
        operation = self._arrays.operation(op)
        blocks = [block for region in operation.regions for block in region.blocks]
        if len(blocks) == 1 and len(operation.regions) == 1:
            yield self._arrays.arguments(op), children
            return
        start = 0
        for block in blocks:
            arguments = [self._arrays.number_of(argument) or 0 for argument in block.arguments]
            end = start + sum(1 for _ in block.operations)
            yield arguments, children[start:end]
            start = end

    def _add(
        self, ops: Sequence[int], values: dict[int, int], nodes: list[Node], parent: Node | None, block: int
    ) -> tuple[int, ...]:
        returned: tuple[int, ...] = ()
        for op in ops:
            signature = self._signature(op)
            role = signature.role
            if role is Role.DECLARATION or role is Role.FUNCTION:
                continue
            if role is Role.RETURN and parent is None:
                returned = tuple(values[one] for one in self._arrays.operands(op))
                continue
            if op in self._callees and self._callees[op] not in self._around:
                self._call(op, self._callees[op], values, nodes)
                continue
            nodes.append(self._operation(op, signature, values, parent, block))
        return returned

    def _operation(
        self, op: int, signature: Signature, values: dict[int, int], parent: Node | None, block: int
    ) -> Node:
        is_annotation = signature.role is Role.ANNOTATION
        taken = self._arrays.operands(op)
        operands = [self._value_of(one, values) for one in (taken[:1] if is_annotation else taken)]
        made = self._arrays.results(op)
        results: list[int] = []
        if is_annotation:
            values.update((one, operands[0]) for one in made)
        else:
            results = [self._value_of(one, values) for one in made]
        inner: list[Node] = []
        arguments: list[int] = []
        node = Node(
            len(self._nodes),
            op,
            signature.name,
            -1,
            signature.kind,
            signature.loose_kind,
            tuple(operands),
            tuple(results),
            self._shardings.get(op, ()),
            parent,
            block,
            is_annotation,
            (parent is not None and parent.is_by_use) or self._is_by_use(signature, operands),
            inner if signature.has_regions else (),
            arguments if signature.has_regions else (),
        )
        self._nodes.append(node)
        for value in results:
            self._definers[value] = node
        if not is_annotation:
            self._use(node)
        if signature.has_regions:
            self._blocks(op, values, inner, node, arguments)
        return node

    def _value_of(self, number: int, values: dict[int, int]) -> int:
        # In a region without dominance a value may be used before its definition.
        if number not in values:
            values[number] = self._value()
        return values[number]

    def _is_by_use(self, signature: Signature, operands: Sequence[int]) -> bool:
        if signature.role is Role.OF_CONSTANTS:
            return all(map(self._is_constant, operands))
        if signature.role is Role.EXPANSION:
            return all(number in signature.scalars or self._is_constant(value) for number, value in enumerate(operands))
        return False

    def _is_constant(self, value: int) -> bool:
        node = self._definers[value]
        # An expansion of a scalar also belongs to its uses, and is constant if the scalar is.
        return node is not None and node.is_by_use and all(map(self._is_constant, node.operands))

    def _node(
        self,
        op: int,
        what: str,
        position: int,
        type_: Hashable,
        operands: tuple[int, ...],
        results: tuple[int, ...],
        shardings: tuple[str | None, ...],
        is_annotation: bool = False,
    ) -> Node:
        number = self._kinds.of((what, type_))
        index = len(self._nodes)
        node = Node(index, op, what, position, number, number, operands, results, shardings, None, 0, is_annotation)
        self._nodes.append(node)
        for value in results:
            self._definers[value] = node
        return node

    def _use(self, node: Node) -> None:
        for number, value in enumerate(node.operands):
            self._users.setdefault(value, []).append((node, number))

    def _value(self) -> int:
        self._definers.append(None)
        return len(self._definers) - 1
