# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of a propagation: the origins of axes, the steps that moved them, and the attributes for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import owning_op, shardable_value, sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import operations_named_in_post_order
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import AxisRef, OpShardingRule, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation_edges import (
    AxisMove,
    EdgeNodeType,
    EdgeValueRef,
    axis_moves,
    computation_input_origin,
    computation_name,
    computation_output_origin,
    constraint_name,
    find_origin,
    input_origin,
    origins_by_name,
    output_origin,
    propagation_edges,
)
from mlir_shard.transforms.shardings import Side, attributes_of, set_attributes

SHARDING_ORIGIN_NAME = "sdy.sharding_origin_name"
SHARDING_ORIGINS = "sdy.sharding_origins"
PROPAGATION_EDGES = "sdy.propagation_edges"
BLOCK_ARG_SHARDING_ORIGINS = "sdy.block_arg_sharding_origins"
BLOCK_ARG_PROPAGATION_EDGES = "sdy.block_arg_propagation_edges"
RESULT_SHARDING_ORIGINS = "sdy.result_sharding_origins"
RESULT_PROPAGATION_EDGES = "sdy.result_propagation_edges"
ALL = (
    SHARDING_ORIGINS,
    PROPAGATION_EDGES,
    BLOCK_ARG_SHARDING_ORIGINS,
    BLOCK_ARG_PROPAGATION_EDGES,
    RESULT_SHARDING_ORIGINS,
    RESULT_PROPAGATION_EDGES,
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """A sharding that a value has or is constrained to, and its origin."""

    value: Any
    sharding: TensorSharding | None
    origin: str


def name_origins(module: Any) -> list[Beginning]:
    """Names all sharding constraints and manual computations of a module; replaces the names that some have.

    Returns the beginnings of propagation, whose values are those that hold shardings (see `shardable_value`).
    """
    beginnings = [*_of_constraints(module), *_of_computations(module), *_of_functions(module)]
    holders = [(shardable_value(one.value), one) for one in beginnings]
    return [Beginning(holder, one.sharding, one.origin) for holder, one in holders if holder is not None]


def set_name(op: Any, name: str) -> None:
    """Sets the name of an op in origins."""
    op.attributes[SHARDING_ORIGIN_NAME] = ir.StringAttr.get(name, op.context)


def name_of(op: Any) -> str | None:
    """Returns the name of an op in origins, or None."""
    if SHARDING_ORIGIN_NAME not in op.attributes:
        return None
    name: str = op.attributes[SHARDING_ORIGIN_NAME].value
    return name


def _of_constraints(module: Any) -> Iterator[Beginning]:
    for number, op in enumerate(operations_named_in_post_order(module, "sdy.sharding_constraint")):
        name = constraint_name(number)
        set_name(op, name)
        asked = sharding_of(op.results[0])
        yield Beginning(op.results[0], asked, name)
        # An empty constraint, as between members of a group, does not cause the sharding of its operand.
        if asked is not None and not (asked.is_fully_open and asked.is_fully_replicated):
            yield Beginning(op.operands[0], sharding_of(op.operands[0]), name)


def _of_computations(module: Any) -> Iterator[Beginning]:
    for number, op in enumerate(operations_named_in_post_order(module, "sdy.manual_computation")):
        name = computation_name(number)
        set_name(op, name)
        given = sdy.value(op.attributes["in_shardings"]).shardings
        for index, (argument, operand) in enumerate(zip(op.regions[0].blocks[0].arguments, op.operands, strict=True)):
            yield Beginning(argument, given[index], computation_input_origin(name, index))
            yield Beginning(operand, sharding_of(operand), computation_input_origin(name, index))
        for index, sharding in enumerate(sdy.value(op.attributes["out_shardings"]).shardings):
            yield Beginning(op.results[index], sharding, computation_output_origin(name, index))


def _of_functions(module: Any) -> Iterator[Beginning]:
    for function in module.operation.regions[0].blocks[0].operations:
        function = function.operation
        if function.name != "func.func" or not len(function.regions[0].blocks):
            continue
        block = function.regions[0].blocks[0]
        for index, argument in enumerate(block.arguments):
            yield Beginning(argument, sharding_of(argument), input_origin(index))
        for index, returned in enumerate(returned_values(block)):
            yield Beginning(returned, sdy.get_result_sharding(function, index), output_origin(index))


def returned_values(block: Any) -> Sequence[Any]:
    """Returns the values that a block returns from its function; none if the block has another terminator."""
    last = block.operations[len(block.operations) - 1].operation
    return list(last.operands) if last.name == "func.return" else []


ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class Record(Generic[ValueT]):
    """The origins of axes by value, and the moves of axes by the number of an op, with their steps.

    `ValueT` stands for a value. `next_step` is the number of the next step. Steps that move no axes are counted too.
    """

    next_step: int = 0
    origins: dict[ValueT, dict[AxisRef, str]] = field(default_factory=dict)
    moves: dict[int, list[tuple[int, AxisMove]]] = field(default_factory=dict)

    def begin(self, value: ValueT, sharding: TensorSharding | None, origin: str) -> None:
        """Records an origin for the axes of a value that have none yet."""
        for axis in _axes_of(sharding):
            self.origins.setdefault(value, {}).setdefault(axis, origin)

    def knows(self, value: ValueT, sharding: TensorSharding) -> bool:
        """Returns whether the origins of all axes of a sharding are known."""
        return all(axis in self.origins.get(value, {}) for axis in _axes_of(sharding))

    def step(self, op: int, operands: Sequence[ValueT], results: Sequence[ValueT], moves: Sequence[AxisMove]) -> None:
        """Records one step of propagation through an op and the values around it."""

        def value(ref: EdgeValueRef) -> ValueT:
            return (operands if ref.type is EdgeNodeType.OPERAND else results)[ref.index]

        for move in moves:
            self.moves.setdefault(op, []).append((self.next_step, move))
            origin = find_origin(self.origins.get(value(move.source), {}), move.axis)
            if origin is not None:
                self.origins.setdefault(value(move.target), {}).setdefault(move.axis, origin)
        self.next_step += 1

    def share(self, values: Sequence[ValueT]) -> None:
        """Gives all of the values, which have the same sharding, the origins of each of them."""
        for value in values:
            for other in values:
                for axis, origin in self.origins.get(other, {}).items():
                    self.origins.setdefault(value, {}).setdefault(axis, origin)


def _axes_of(sharding: TensorSharding | None) -> Iterator[AxisRef]:
    for dim in () if sharding is None else sharding.dim_shardings:
        yield from dim.axes


EDGE = "sdy.data_flow_edge"
# Ops that have the origins of their only result directly, not in a list.
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
    """Attaches the origins of axes to the values, which hold shardings.

    A function's result has the origins of the returned value. An op has a list of origins for its results, but
    constraints and data-flow edges have those of their only result.
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
                _set_one(op, BLOCK_ARG_SHARDING_ORIGINS, value.owner.arguments, index, attribute)
        elif op.name in _ONE_RESULT:
            op.attributes[SHARDING_ORIGINS] = attribute
        else:
            index = ir.OpResult(value).result_number
            _set_one(op, SHARDING_ORIGINS, op.results, index, attribute)
    signatures.attach(SHARDING_ORIGINS)


def _set_one(op: Any, name: str, values: Sequence[Any], index: int, attribute: Any) -> None:
    """Sets one of the dictionaries that an op has for its values."""
    dictionaries = list(op.attributes[name]) if name in op.attributes else [_dictionary({}, op.context)] * len(values)
    dictionaries[index] = attribute
    op.attributes[name] = ir.ArrayAttr.get(dictionaries, op.context)


def _dictionary(texts: Mapping[str, str], context: Any) -> Any:
    return ir.DictAttr.get({name: ir.StringAttr.get(text, context) for name, text in texts.items()}, context)


def _own_origin(value: Any, op: Any) -> str | None:
    """Returns the name of the sharding that a value began with, as an origin."""
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

    The moves between the values that a function returns and its results are given with the function; as in Shardy, all
    of them are attached to its first result.
    """
    signatures = _Signatures()
    for op, of_op in moves:
        if not of_op:
            continue
        attribute = sdy.attribute(propagation_edges(of_op), op.context)
        if op.name == "func.func":
            signatures.add(op, Side.RESULTS, 0, attribute)
        else:
            op.attributes[PROPAGATION_EDGES] = attribute
    signatures.attach(PROPAGATION_EDGES)


def next_step(edges: Iterable[Any]) -> int:
    """Returns the number of the step after all steps in given attributes."""
    steps = (step.step_index for attribute in edges for step in sdy.value(attribute).value)
    return max(steps, default=-1) + 1


class ConstraintRecord:
    """A record whose values are those of the IR."""

    def __init__(self, module: Any, *, origins: bool, edges: bool) -> None:
        self._origins, self._edges = origins, edges
        self._constraints: list[Any] = []
        self._record: Record[Any] = Record(next_step(ModuleArrays(module).attributes(PROPAGATION_EDGES)[1]))
        for beginning in name_origins(module) if origins else ():
            self._record.begin(beginning.value, beginning.sharding, beginning.origin)

    def applied(self, constraint: Any, before: TensorSharding | None) -> None:
        """Records a constraint that may have been applied; `before` is the sharding that its operand had."""
        operand, result = constraint.operands[0], constraint.results[0]
        after, asked = sharding_of(operand), sharding_of(result)
        mesh = None if after is None else sdy.mesh_of(after, constraint)
        if after == before or mesh is None or mesh.is_maximal:
            return
        rule = OpShardingRule.pointwise(shape_of(result.type), 1)
        old = ShardingProjection.build([before], [asked], rule, mesh)
        new = ShardingProjection.build([after], [asked], rule, mesh)
        if new != old:
            moves = axis_moves(old, new, rule, mesh)
            self._record.step(len(self._constraints), [shardable_value(operand)], [result], moves)
            self._constraints.append(constraint)

    def write(self) -> None:
        """Attaches the requested records to the module."""
        if self._origins:
            write_origins(self._record.origins.items())
        if self._edges:
            write_edges((op, self._record.moves.get(number, ())) for number, op in enumerate(self._constraints))
