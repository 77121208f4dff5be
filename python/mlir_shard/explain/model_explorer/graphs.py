# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of the functions of an explained program, a node for each op, argument and result.

The format is that of Model Explorer's `graph_builder`: https://github.com/google-ai-edge/model-explorer/wiki.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlir_shard.explain import text
from mlir_shard.explain.explanation import Explanation
from mlir_shard.explain.model_explorer.parts import RETURNS, Data, attribute, edge, namespace
from mlir_shard.explain.places import Place
from mlir_shard.explain.values import Annotation, ExplainedCollective, Link, Operation, Step, Tensor
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.communication.communication_report import duration

# The colours of the axes of a mesh, which are repeated if there are more axes.
_COLORS = ("#1a73e8", "#d93025", "#188038", "#9334e6", "#e37400", "#12858d", "#c5221f", "#7b5800")


@dataclass(frozen=True, slots=True)
class _Origin:
    """The ends of a chain: its annotation, and the last of its steps; None if it has no steps."""

    dim: int
    axis: AxisRef
    annotation: Annotation
    steps: int
    last: Link | None


class Graphs:
    """The nodes of a program.

    Args:
        explanation: the explanation of the program.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @cached_property
    def data(self) -> list[Data]:
        """The graph of each function, such as `@main`, in the types of JSON."""
        overlays = self._overlays()
        return [
            {
                "id": f"@{function}",
                "nodes": list(self._nodes(function)),
                "groupNodeAttributes": {"": self._summary(function)},
                "tasksData": {"edgeOverlaysDataListLeftPane": overlays.get(function, [])},
            }
            for function in self.functions
        ]

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions with bodies, in the order of the program."""
        return tuple(dict.fromkeys(one.function for one in self._operations.values() if one.name != "func.func"))

    @cached_property
    def outputs(self) -> dict[str, dict[str, list[Tensor | None]]]:
        """The results of each node that are tensors, by function and node; None for other values."""
        found: dict[str, dict[str, list[Tensor | None]]] = {name: {} for name in self.functions}
        for value, (node, output) in self._sources.items():
            function = self._function_of_node[node]
            if function in found:
                tensors = found[function].setdefault(node, [])
                tensors += [None] * (output + 1 - len(tensors))
                tensors[output] = self.explanation.tensor_of(value)
        for tensor in self.explanation.tensors:
            if tensor.op == "result" and tensor.function in found:
                found[tensor.function][_result_node(tensor.index)] = [tensor]
        return found

    @cached_property
    def collectives(self) -> dict[str, list[ExplainedCollective]]:
        """The collectives by node: that of the op that needs them, or else that of the tensor that they move."""
        by_place: dict[tuple[str, Place], list[Operation]] = {}
        for op in self._operations.values():
            by_place.setdefault((op.name, op.place), []).append(op)
        found: dict[str, list[ExplainedCollective]] = {}
        for collective in self.explanation.collectives:
            if not collective.causes:
                continue
            cause = collective.causes[0]
            ops = by_place.get((cause.op, cause.place), [])
            # Ops of several modules of PyTorch may have one place, inside of PyTorch.
            node = _op_node(next((op for op in ops if cause.tensor in self._tensors(op)), ops[0])) if ops else None
            if node is None and cause.tensor is not None:
                node = self._node_of_tensor.get(cause.tensor)
            if node is not None:
                found.setdefault(node, []).append(collective)
        return found

    def _tensors(self, op: Operation) -> set[int | None]:
        """Returns the numbers of the tensors that are operands or results of an op."""
        tensors = map(self.explanation.tensor_of, (*op.results, *op.operands))
        return {tensor.number for tensor in tensors if tensor is not None}

    @cached_property
    def _operations(self) -> dict[int, Operation]:
        return {one.number: one for one in self.explanation.operations}

    @cached_property
    def _sources(self) -> dict[int, tuple[str, int]]:
        """The node that each value comes from, and the number of its output of the node."""
        found = {}
        for op in self._operations.values():
            for index, value in enumerate(op.results):
                found[value] = _op_node(op), index
            for index, value in enumerate(op.arguments):
                found[value] = _argument_node(op, index), 0
        return found

    @cached_property
    def _function_of_node(self) -> dict[str, str]:
        found = {}
        for op in self._operations.values():
            found[_op_node(op)] = op.function
            found |= {_argument_node(op, index): op.function for index in range(len(op.arguments))}
        return found

    @cached_property
    def _node_of_tensor(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for nodes in self.outputs.values():
            for node, tensors in nodes.items():
                for tensor in tensors:
                    if tensor is not None:
                        found.setdefault(tensor.number, node)
        return found

    @cached_property
    def _origins(self) -> dict[int, list[_Origin]]:
        """The origins of the axes of each tensor."""
        return {
            tensor.number: [_origin(dim, axis, end) for dim, axis, end in self.explanation.origins(tensor)]
            for tensor in self.explanation.tensors
        }

    def _nodes(self, function: str) -> Iterator[Data]:
        returned: list[Data] = []
        for op in self._operations.values():
            if op.function != function:
                continue
            is_function = op.parent not in self._operations
            for index in range(len(op.arguments)):
                where = "arguments" if is_function else self._inside(op)
                yield self._node(function, _argument_node(op, index), f"argument {index}", where, op.place, [])
            if is_function:
                continue
            incoming = list(self._edges(op.operands))
            if op.name in RETURNS:
                returned = incoming
                continue
            yield self._node(function, _op_node(op), op.name, self._around(op), op.place, incoming)
        for index, one in enumerate(returned):
            edges = [{**one, "targetNodeInputId": "0"}]
            yield self._node(function, _result_node(index), f"result {index}", "results", Place(), edges)

    def _edges(self, operands: Sequence[int]) -> Iterator[Data]:
        for index, value in enumerate(operands):
            if value in self._sources:
                yield edge(*self._sources[value], index)

    def _node(self, function: str, node: str, label: str, namespace: str, place: Place, edges: list[Data]) -> Data:
        tensors = self.outputs[function].get(node, [])
        only = tensors[0] if len(tensors) == 1 else None
        attributes = []
        if only is not None:
            label = f"{label} {only.name}" if only.name.startswith("%") else label
            place = only.place
        if place != Place():
            attributes.append(attribute("place", str(place)))
        for index, tensor in enumerate(tensors):
            if tensor is not None:
                prefix = f"result {index}: " if len(tensors) > 1 else ""
                attributes += self._attributes(tensor, prefix)
        for number, collective in enumerate(self.collectives.get(node, ()), start=1):
            shown = "\n".join([text.collective_title(collective), *(cause.text for cause in collective.causes)])
            attributes.append(attribute(f"collective {number}", shown))
        outputs = [
            {"id": str(index), "attrs": list(_output_attributes(tensor))}
            for index, tensor in enumerate(tensors)
            if tensor is not None
        ]
        return {
            "id": node,
            "label": label,
            "namespace": namespace,
            "attrs": attributes,
            "incomingEdges": edges,
            "outputsMetadata": outputs,
        }

    def _attributes(self, tensor: Tensor, prefix: str) -> Iterator[Data]:
        yield attribute(f"{prefix}sharding", text.sharding_text(tensor))
        for origin in self._origins[tensor.number]:
            dimension = f"{prefix}dimension {origin.dim} on {origin.axis}"
            yield attribute(dimension, _origin_text(origin))
            source = self._node_of_tensor.get(origin.last.source) if origin.last is not None else None
            if source is not None:
                link = {"type": "node_ids", "nodeIds": [source]}
                yield {"key": f"{dimension}, from", "value": link}
        for lost in self.explanation.lost(tensor):
            dimension = f"{prefix}dimension {lost.dim} not on {lost.axis}"
            yield attribute(dimension, f"{lost.reason.value}: {lost.text}\nto change it: {lost.remedy}")

    def _around(self, op: Operation) -> str:
        """Returns the namespace of an op: that by a front end, else the ops whose regions contain it."""
        if op.place.name:
            return namespace(op.place.name)
        return self._inside(self._operations[op.parent]) if op.parent in self._operations else ""

    def _inside(self, op: Operation) -> str:
        """Returns the namespace of the ops in the regions of an op."""
        if op.parent not in self._operations:
            return ""
        label = f"{op.name} at line {op.place.line}" if op.place.line else f"{op.name} {op.number}"
        around = self._around(op)
        return f"{around}/{label}" if around else label

    def _summary(self, function: str) -> dict[str, str]:
        nodes = self.outputs[function]
        needed = [one for node, found in self.collectives.items() if node in nodes for one in found]
        report = self.explanation.report
        return {
            "function": f"@{function}",
            "collectives here": str(len(needed)),
            "bytes received": f"{report.bytes_received:,}",
            "predicted time": duration(report.time),
        }

    def _overlays(self) -> dict[str, list[Data]]:
        """Returns the steps of propagation along each axis, as edge overlays of the graph of each function."""
        found: dict[str, dict[str, dict[tuple[str, str], str]]] = {}
        for tensor in self.explanation.tensors:
            for origin in self._origins[tensor.number]:
                if origin.last is not None and (edge := self._edge(origin.last)) is not None:
                    of_axis = found.setdefault(tensor.function, {}).setdefault(origin.axis.name, {})
                    of_axis[edge] = origin.last.factor
        axes = sorted({axis for of_function in found.values() for axis in of_function})
        return {
            function: [
                {
                    "name": "How shardings came",
                    "type": "edge_overlays",
                    "overlays": [
                        {
                            "name": f"along {axis}",
                            "edgeColor": _COLORS[axes.index(axis) % len(_COLORS)],
                            "edges": [
                                {"sourceNodeId": source, "targetNodeId": target, "label": factor}
                                for (source, target), factor in edges.items()
                            ],
                        }
                        for axis, edges in sorted(of_function.items())
                    ],
                }
            ]
            for function, of_function in found.items()
        }

    def _edge(self, link: Link) -> tuple[str, str] | None:
        source, target = self._node_of_tensor.get(link.source), self._node_of_tensor.get(link.target)
        return None if source is None or target is None or source == target else (source, target)


def _origin(dim: int, axis: AxisRef, end: Annotation | Step) -> _Origin:
    last = None if isinstance(end, Annotation) else end.link
    steps = 0
    while isinstance(end, Step):
        end, steps = end.before, steps + 1
    return _Origin(dim, axis, end, steps, last)


def _origin_text(origin: _Origin) -> str:
    given, last = origin.annotation, origin.last
    begin = f"from {given.text} at {given.place}"
    if last is None:
        return begin
    factor = f", factor {last.factor}" if last.factor else ""
    steps = f"{origin.steps} step{'' if origin.steps == 1 else 's'}"
    return f"{begin}\n{steps}, the last through {last.op} at {last.place}{factor}"


def _output_attributes(tensor: Tensor) -> Iterator[Data]:
    yield attribute("__tensor_tag", tensor.name)
    yield attribute("shape", f"{tensor.type} {text.sharding_text(tensor)}")


def _op_node(op: Operation) -> str:
    return str(op.number)


def _argument_node(op: Operation, index: int) -> str:
    return f"{op.number} argument {index}"


def _result_node(index: int) -> str:
    return f"result {index}"
