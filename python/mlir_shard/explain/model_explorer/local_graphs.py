# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of the local program of an explained program, with the collectives as nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from mlir_shard.explain import text
from mlir_shard.explain.explanation import Explanation
from mlir_shard.explain.model_explorer.parts import RETURNS, Data, attribute, edge, namespace
from mlir_shard.explain.places import Place, place_of
from mlir_shard.explain.propagation_trace import static_type
from mlir_shard.explain.values import ExplainedCollective
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import operations_named
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.communication_report import duration

SUFFIX = " (local)"
"""The suffix of the name of a function in the name of its local graph."""
# Only the border, because node data colour the background.
_COLLECTIVE = {"borderColor": "#e37400"}


class LocalGraphs:
    """The nodes of a local program.

    Args:
        explanation: the explanation of the program.
    """

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._arrays = ModuleArrays(explanation.module)

    @cached_property
    def data(self) -> list[Data]:
        """The graph of each function, such as `@main (local)`, in the types of JSON."""
        return [
            {
                "id": f"@{name}{SUFFIX}",
                "nodes": list(self._nodes(function)),
                "groupNodeAttributes": {"": self._summary(name)},
            }
            for name, function in self._functions.items()
        ]

    @cached_property
    def collectives(self) -> dict[str, dict[str, ExplainedCollective]]:
        """The collectives by function and node."""
        ops = operations_named(self._explanation.module, *sorted(COLLECTIVES))
        explained = {self._number(op): one for op, one in zip(ops, self._explanation.collectives, strict=True)}
        return {
            name: {str(op): explained[op] for op in self._inside[function] if op in explained}
            for name, function in self._functions.items()
        }

    @cached_property
    def result_bytes(self) -> dict[str, dict[str, int]]:
        """The bytes of the results of each node, by function and node."""
        found: dict[str, dict[str, int]] = {}
        for name, function in self._functions.items():
            sizes = found.setdefault(name, {})
            for op in (function, *self._inside[function]):
                for index, value in enumerate(self._arguments[op]):
                    sizes[_argument_node(op, index)] = self._bytes([value])
                if results := self._arrays.results(op):
                    sizes[str(op)] = self._bytes(results)
        return found

    @cached_property
    def _ops(self) -> list[Any]:
        return [self._arrays.operation(number) for number in range(len(self._arrays))]

    @cached_property
    def _arguments(self) -> list[list[int]]:
        """The arguments of the blocks in the regions of each operation, as values."""
        found: list[list[int]] = [[] for _ in self._ops]
        for number in {parent for parent in self._arrays.parents if parent >= 0}:
            blocks = (block for region in self._ops[number].regions for block in region.blocks)
            values = (self._arrays.number_of(argument) for block in blocks for argument in block.arguments)
            found[number] = [value for value in values if value is not None]
        return found

    @cached_property
    def _functions(self) -> dict[str, int]:
        return {
            ir.StringAttr(op.attributes["sym_name"]).value: number
            for number, op in enumerate(self._ops)
            if op.name == "func.func" and len(op.regions[0].blocks)
        }

    @cached_property
    def _inside(self) -> dict[int, list[int]]:
        """The operations of each function, by its number."""
        function_of: dict[int, int] = {function: function for function in self._functions.values()}
        inside: dict[int, list[int]] = {function: [] for function in self._functions.values()}
        for number, parent in enumerate(self._arrays.parents):
            # The operations are in pre-order.
            if parent in function_of:
                function_of[number] = function_of[parent]
                inside[function_of[number]].append(number)
        return inside

    @cached_property
    def _sources(self) -> dict[int, tuple[str, int]]:
        """The node that each value comes from, and the number of its output of the node."""
        found: dict[int, tuple[str, int]] = {}
        for number in range(len(self._arrays)):
            found |= {value: (str(number), index) for index, value in enumerate(self._arrays.results(number))}
            for index, value in enumerate(self._arguments[number]):
                found[value] = _argument_node(number, index), 0
        return found

    def _number(self, op: Any) -> int:
        value = self._arrays.number_of(op.results[0])
        assert value is not None
        return self._arrays.definers[value]

    def _bytes(self, values: Sequence[int]) -> int:
        types = [static_type(self._arrays.value(value).type) for value in values]
        return sum(of[2] for of in types if of)

    def _nodes(self, function: int) -> Iterator[Data]:
        yield from self._argument_nodes(function, "arguments")
        (name,) = (name for name, number in self._functions.items() if number == function)
        for number in self._inside[function]:
            op = self._ops[number]
            incoming = [edge(*self._sources[value], index) for index, value in enumerate(self._arrays.operands(number))]
            if op.name in RETURNS:
                for index, one in enumerate(incoming):
                    yield _node(
                        f"result {index}", f"result {index}", "results", [], [{**one, "targetNodeInputId": "0"}]
                    )
                continue
            collective = self.collectives[name].get(str(number))
            place = place_of(op.location)
            attributes = [attribute("place", str(place))] if place != Place() else []
            if collective is not None:
                attributes += _collective_attributes(collective)
            node = _node(str(number), op.name, self._around(number), attributes, incoming)
            yield {**node, "outputsMetadata": self._outputs(number), **({"style": _COLLECTIVE} if collective else {})}
            yield from self._argument_nodes(number, self._region(number))

    def _argument_nodes(self, number: int, where: str) -> Iterator[Data]:
        for index, value in enumerate(self._arguments[number]):
            node = _node(_argument_node(number, index), f"argument {index}", where, [], [])
            yield {**node, "outputsMetadata": [_output(0, self._arrays.value(value).type)]}

    def _outputs(self, number: int) -> list[Data]:
        return [_output(index, result.type) for index, result in enumerate(self._ops[number].results)]

    def _around(self, number: int) -> str:
        """Returns the namespace of an op: that by a front end, else the ops whose regions contain it."""
        name = place_of(self._ops[number].location).name
        if name:
            return namespace(name)
        parent = self._arrays.parents[number]
        return "" if parent in self._functions.values() else self._region(parent)

    def _region(self, number: int) -> str:
        """Returns the namespace of the ops in the regions of an op."""
        around = self._around(number)
        label = f"{self._ops[number].name} {number}"
        return f"{around}/{label}" if around else label

    def _summary(self, function: str) -> dict[str, str]:
        report = self._explanation.report
        return {
            "function": f"@{function}, as a device runs it",
            "collectives": str(len(self.collectives[function])),
            "bytes received": f"{report.bytes_received:,}",
            "predicted time": duration(report.time),
        }


def _node(node: str, label: str, where: str, attributes: list[Data], incoming: list[Data]) -> Data:
    return {"id": node, "label": label, "namespace": where, "attrs": attributes, "incomingEdges": incoming}


def _collective_attributes(one: ExplainedCollective) -> Iterator[Data]:
    yield attribute("collective", text.collective_title(one))
    yield attribute("groups", str(one.collective.communication.groups))
    for number, cause in enumerate(one.causes, start=1):
        yield attribute("cause" if len(one.causes) == 1 else f"cause {number}", f"{cause.kind.value}: {cause.text}")
        if cause.alternative:
            yield attribute("instead", cause.alternative)


def _output(index: int, type_: Any) -> Data:
    return {"id": str(index), "attrs": [attribute("shape", str(type_))]}


def _argument_node(op: int, index: int) -> str:
    return f"{op} argument {index}"
