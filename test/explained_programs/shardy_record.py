# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A traced propagation of this project, and the record of the same propagation in Shardy's debugging attributes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.explain.chains import Chains
from mlir_shard.explain.places import SourceTexts, place_of
from mlir_shard.explain.propagation_trace import PropagationTrace
from mlir_shard.explain.values import Tensor
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import functions
from mlir_shard.passes import resolution
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.propagation_edges import (
    SELF,
    EdgeValueRef,
    computation_input_origin,
    computation_output_origin,
    input_origin,
    output_origin,
)
from mlir_shard.transforms.debug_record import EDGE, PROPAGATION_EDGES, SHARDING_ORIGINS, Record, name_of
from mlir_shard.transforms.propagate.read_module import ModuleReader
from mlir_shard.transforms.shardings import Side, attributes_of, shardings_of

PROPAGATION = "sdy-user-priority-propagate"
# Shardy's output for uninitialized memory.
_NO_ORIGIN = re.compile(r": \d+")


@dataclass(frozen=True)
class Traced:
    """A propagation by this project: the module, as it was read and traced, and the chains."""

    module: Any
    reader: ModuleReader
    trace: PropagationTrace

    @cached_property
    def chains(self) -> Chains:
        return Chains(self.trace)

    @cached_property
    def op_names(self) -> list[str]:
        return _op_names(self.reader.arrays)

    def result_of_function(self, function: int, index: int) -> int:
        """Returns the number of the tensor of a function's result, by the number of the function's op, or 0."""
        reader = self.reader
        return next((reader.first_result + n for n, key in enumerate(reader.results) if key == (function, index)), 0)


def _op_names(arrays: ModuleArrays) -> list[str]:
    names = [op.name for op in arrays.representatives()]
    return [names[signature] for signature in arrays.signatures]


def traced(text: str, annotated: Collection[tuple[str, int]]) -> Traced:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    places = {
        place_of(argument.location)
        for name, function in functions(module).items()
        for index, argument in enumerate(function.regions[0].blocks[0].arguments)
        if (name, index) in annotated
    }
    found: list[Traced] = []

    def observe(reader: ModuleReader, original: Sequence[int], record: Record[int]) -> None:
        trace = PropagationTrace(reader, original, record, SourceTexts({}), places)
        found.append(Traced(module, reader, trace))

    tree = resolution.from_text(f"builtin.module({PROPAGATION})")
    (step,) = tree.steps
    step.observers = (observe,)
    mlir_shard.run(module, tree)
    return found[0]


_Move = tuple[int, str, str]
"""The number of an op, and the roles, such as `operand 0`, of the source and the target of an axis that it moves."""


class Recorded:
    """Shardy's record, by the numbers of ops and tensors in the propagation by this project."""

    def __init__(self, text: str, traced: Traced) -> None:
        self._traced = traced
        # The arrays refer to the module, which must live as long.
        self._module = mlir_shard.parse(text, mlir_shard.create_context())
        self._arrays = ModuleArrays(self._module.operation)

    @cached_property
    def op_names(self) -> list[str]:
        """The names of the ops, in order."""
        return _op_names(self._arrays)

    def sharding(self, tensor: Tensor) -> TensorSharding | None:
        """Returns the sharding of a tensor."""
        reader = self._traced.reader
        if tensor.number >= reader.first_result:
            function, index = reader.results[tensor.number - reader.first_result]
            return shardings_of(self._arrays.operation(function), Side.RESULTS)[index]
        return sharding_of(self._arrays.value(tensor.number - 1).maybe_downcast())

    @cached_property
    def names(self) -> Mapping[int, str]:
        """The names of constraints and manual computations in origins, by the number of the op."""
        found = {op: name_of(self._arrays.operation(op)) for op in range(len(self._arrays))}
        return {op: name for op, name in found.items() if name is not None}

    @cached_property
    def origins(self) -> Mapping[int, Mapping[str, str]]:
        """The origins of the axes of tensors, with `self` resolved."""
        found: dict[int, Mapping[str, str]] = {}
        uses, distinct = self._arrays.attributed(SHARDING_ORIGINS)
        for op, number in uses:
            given = distinct[number]
            of_results = [given] if self.op_names[op] in ("sdy.sharding_constraint", EDGE) else list(given)
            for index, one in enumerate(of_results):
                found[self._traced.trace.tensor_of_result(op, index)] = _read(one, self.own_origin(op))
        for op, name in enumerate(self.op_names):
            if name == "func.func":
                found.update(self._of_function(op))
        return found

    def _of_function(self, op: int) -> Iterator[tuple[int, Mapping[str, str]]]:
        function = self._arrays.operation(op)
        arguments = [value + 1 for value in self._arrays.arguments(op)]
        for index, attributes in enumerate(attributes_of(function, Side.ARGUMENTS)):
            if SHARDING_ORIGINS in attributes:
                yield arguments[index], _read(attributes[SHARDING_ORIGINS], input_origin(index))
        for index, attributes in enumerate(attributes_of(function, Side.RESULTS)):
            if SHARDING_ORIGINS in attributes:
                tensor = self._traced.result_of_function(op, index)
                yield tensor, _read(attributes[SHARDING_ORIGINS], output_origin(index))

    def own_origin(self, op: int) -> str:
        """Returns the meaning of `self` in the origins of a constraint, or of an edge of a manual computation."""
        if self.op_names[op] != EDGE:
            return self.names.get(op, "")
        value = self._arrays.operation(op).operands[0]
        name = self.names.get(self._traced.trace.owner(op), "")
        if isinstance(value.owner, ir.Block):
            return computation_input_origin(name, ir.BlockArgument(value).arg_number)
        return computation_output_origin(name, ir.OpResult(value).result_number)

    @cached_property
    def steps(self) -> Mapping[_Move, list[tuple[int, AxisRef]]]:
        """The steps of each move, with the axis of each step."""
        found: dict[_Move, list[tuple[int, AxisRef]]] = {}
        uses, distinct = self._arrays.attributed(PROPAGATION_EDGES)
        of_ops = [(op, distinct[number]) for op, number in uses]
        for op, name in enumerate(self.op_names):
            if name == "func.func":
                for attributes in attributes_of(self._arrays.operation(op), Side.RESULTS):
                    if PROPAGATION_EDGES in attributes:
                        of_ops.append((op, attributes[PROPAGATION_EDGES]))
        for op, attribute in of_ops:
            for step in sdy.value(attribute).value:
                for one in step.axis_entries:
                    for target in one.targets:
                        move = (op, _role(one.source), _role(target))
                        found.setdefault(move, []).append((step.step_index, one.axis_name))
        return found

    def first_step(self, tensor: int, axis: AxisRef) -> int | None:
        """Returns the first step that moved an axis, or else a part of it, to a tensor; None without such a step."""
        trace = self._traced.trace
        found = [
            (moved != axis, step)
            for number, position in trace.nodes_of.get(tensor, ())
            if self.op_names[trace.nodes[number].op] != "func.func"
            for (_, _, target), steps in self.steps_of.get(trace.nodes[number].op, ())
            if target == trace.nodes[number].role(position)
            for step, moved in steps
            if moved.overlaps(axis)
        ]
        return min(found)[1] if found else None

    @cached_property
    def steps_of(self) -> Mapping[int, list[tuple[_Move, list[tuple[int, AxisRef]]]]]:
        found: dict[int, list[tuple[_Move, list[tuple[int, AxisRef]]]]] = {}
        for move, steps in self.steps.items():
            found.setdefault(move[0], []).append((move, steps))
        return found


def _role(ref: EdgeValueRef) -> str:
    return f"{ref.type.value} {ref.index}"


def _read(attribute: Any, own: str) -> Mapping[str, str]:
    texts = {named.name: named.attr.value for named in attribute}
    return {axis: own if origin == SELF else origin for axis, origin in texts.items()}


def origin_of(origins: Mapping[str, str], axis: AxisRef) -> str | None:
    """Returns the origin of an axis, or of one with the same name that it was split from or merged of, or None."""
    name = str(axis).replace('"', "")
    full = name.partition(":")[0]
    found = next((origins[one] for one in (name, *origins) if one in origins and one.partition(":")[0] == full), None)
    return None if found is None or _NO_ORIGIN.fullmatch(found) else found
