# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attaches what is known of the origins of axes, and of the steps in which they went, to a module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import owning_op
from mlir_shard.host import ir
from mlir_shard.sharding import AxisRef
from mlir_shard.sharding.propagation_edges import (
    AxisMove,
    computation_input_origin,
    computation_output_origin,
    input_origin,
    origins_by_name,
    output_origin,
    propagation_edges,
)
from mlir_shard.transforms.function_shardings import Side, attributes_of, set_attributes
from mlir_shard.transforms.propagate import debug_attributes
from mlir_shard.transforms.propagate.debug_origins import name_of

EDGE = "sdy.data_flow_edge"
# Ops that have the origins of their only result as they are, not in a list.
_ONE_RESULT = ("sdy.sharding_constraint", EDGE)


class _Signatures:
    """Attributes for the arguments and results of functions, attached all at once."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, Side], tuple[Any, dict[int, Any]]] = {}

    def add(self, function: Any, side: Side, index: int, attribute: Any) -> None:
        key = (function.attributes["sym_name"].value, side)
        self._functions.setdefault(key, (function, {}))[1][index] = attribute

    def attach(self, name: str) -> None:
        for (_, side), (function, added) in self._functions.items():
            attributes = attributes_of(function, side)
            for index, attribute in added.items():
                attributes[index][name] = attribute
            set_attributes(function, side, attributes)


def write_origins(origins: Iterable[tuple[Any, Mapping[AxisRef, str]]]) -> None:
    """Attaches the origins of the axes of values, each one that holds a sharding.

    A function's result has those of what is returned. An op says it for each of its results, but for constraints and
    data-flow edges, which have one.
    """
    signatures = _Signatures()
    for value, of_axes in origins:
        if not of_axes:
            continue
        op = owning_op(value)
        for use in value.uses:
            user = use.owner.operation
            if user.name == "func.return":
                named = origins_by_name(of_axes, output_origin(use.operand_number))
                function = user.parent.operation
                signatures.add(function, Side.RESULTS, use.operand_number, _dictionary(named, op.context))
        attribute = _dictionary(origins_by_name(of_axes, _own_origin(value, op)), op.context)
        if isinstance(value.owner, ir.Block):
            index = ir.BlockArgument(value).arg_number
            if op.name == "func.func":
                signatures.add(op, Side.ARGUMENTS, index, attribute)
            else:
                _set_one(op, debug_attributes.BLOCK_ARG_SHARDING_ORIGINS, value.owner.arguments, index, attribute)
        elif op.name in _ONE_RESULT:
            op.attributes[debug_attributes.SHARDING_ORIGINS] = attribute
        else:
            index = ir.OpResult(value).result_number
            _set_one(op, debug_attributes.SHARDING_ORIGINS, op.results, index, attribute)
    signatures.attach(debug_attributes.SHARDING_ORIGINS)


def _set_one(op: Any, name: str, values: Sequence[Any], index: int, attribute: Any) -> None:
    """Sets one of the dictionaries that an op has for its values."""
    dictionaries = list(op.attributes[name]) if name in op.attributes else [_dictionary({}, op.context)] * len(values)
    dictionaries[index] = attribute
    op.attributes[name] = ir.ArrayAttr.get(dictionaries, op.context)


def _dictionary(texts: Mapping[str, str], context: Any) -> Any:
    return ir.DictAttr.get({name: ir.StringAttr.get(text, context) for name, text in texts.items()}, context)


def _own_origin(value: Any, op: Any) -> str | None:
    """What the sharding that a value began with is called as an origin."""
    if op.name == EDGE:
        value = op.operands[0]
        op = owning_op(value)
    is_argument = isinstance(value.owner, ir.Block)
    if op.name == "func.func":
        return input_origin(ir.BlockArgument(value).arg_number)
    name = name_of(op)
    if name is None or op.name != "sdy.manual_computation":
        return name
    if is_argument:
        return computation_input_origin(name, ir.BlockArgument(value).arg_number)
    return computation_output_origin(name, ir.OpResult(value).result_number)


def write_edges(moves: Iterable[tuple[Any, Sequence[tuple[int, AxisMove]]]]) -> None:
    """Attaches the moves of axes through operations, given with their steps.

    Those between what a function returns and its results are given with the function; as in Shardy they are all said
    of its first result.
    """
    signatures = _Signatures()
    for op, of_op in moves:
        if not of_op:
            continue
        attribute = sdy.attribute(propagation_edges(of_op), op.context)
        if op.name == "func.func":
            signatures.add(op, Side.RESULTS, 0, attribute)
        else:
            op.attributes[debug_attributes.PROPAGATION_EDGES] = attribute
    signatures.attach(debug_attributes.PROPAGATION_EDGES)


def next_step(edges: Iterable[Any]) -> int:
    """The number of the step after all those in given attributes."""
    steps = (step.step_index for attribute in edges for step in sdy.value(attribute).value)
    return max(steps, default=-1) + 1
