# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of an op with regions shard alike: its data-flow edges, by op name.

An edge goes from sources, operands of the op or of terminators in its regions, to targets, results or block arguments
of the op; one target owns it. A dialect says what the edges of its ops are by `data_flow_edges`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir


@dataclass(frozen=True, slots=True)
class DataFlowEdge:
    """One edge: the target that owns it, the values that are sources, and the other targets."""

    owner: Any
    sources: tuple[Any, ...]
    other_targets: tuple[Any, ...] = ()


EdgeFunction = Callable[[Any], Iterable[DataFlowEdge]]
_functions: dict[str, EdgeFunction] = {}


def data_flow_edges(*names: str) -> Callable[[EdgeFunction], EdgeFunction]:
    """Registers a function that gives, for an op of one of these names, its edges in the order of their owners."""

    def register(function: EdgeFunction) -> EdgeFunction:
        _functions.update(dict.fromkeys(names, function))
        return function

    return register


def has_edges(name: str) -> bool:
    """Whether ops of this name have data-flow edges."""
    return name in _functions


def edges_of(op: Any) -> tuple[DataFlowEdge, ...]:
    """The data-flow edges of an op, none for an op that is not registered."""
    function = _functions.get(op.name)
    return () if function is None else tuple(function(op))


def _arguments(op: Any, region: int) -> Sequence[Any]:
    blocks = op.regions[region].blocks
    return list(blocks[0].arguments) if len(blocks) else []


def _terminators(op: Any) -> list[Any]:
    """The last op of the last block of each region that has one; a region is left from there."""
    return [_last(region.blocks[len(region.blocks) - 1]) for region in op.regions if len(region.blocks)]


def _last(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation


@data_flow_edges("sdy.manual_computation", "sdy.named_computation")
def _computation(op: Any) -> Iterable[DataFlowEdge]:
    for argument, operand in zip(_arguments(op, 0), op.operands, strict=True):
        yield DataFlowEdge(argument, (operand,))
    yield from _from_terminators(op)


@data_flow_edges("stablehlo.case", "stablehlo.if", "scf.if", "scf.index_switch", "scf.execute_region")
def _from_terminators(op: Any) -> Iterable[DataFlowEdge]:
    returned = [list(terminator.operands) for terminator in _terminators(op)]
    for index, result in enumerate(op.results):
        yield DataFlowEdge(result, tuple(values[index] for values in returned if index < len(values)))


@data_flow_edges("stablehlo.optimization_barrier")
def _operand_by_operand(op: Any) -> Iterable[DataFlowEdge]:
    return (DataFlowEdge(result, (operand,)) for result, operand in zip(op.results, op.operands, strict=True))


@data_flow_edges("stablehlo.while")
def _stablehlo_while(op: Any) -> Iterable[DataFlowEdge]:
    returned = _terminators(op)[-1].operands
    arguments = [_arguments(op, region) for region in range(len(op.regions))]
    for index, result in enumerate(op.results):
        others = tuple(of_region[index] for of_region in arguments)
        yield DataFlowEdge(result, (op.operands[index], returned[index]), others)


@data_flow_edges("scf.for")
def _scf_for(op: Any) -> Iterable[DataFlowEdge]:
    # The bounds and the step come before what is carried, the induction variable before its arguments.
    return _loop(op, bounds=3, induction_variables=1)


def _loop(op: Any, bounds: int, induction_variables: int) -> Iterable[DataFlowEdge]:
    arguments, returned = _arguments(op, 0), _terminators(op)[0].operands
    for index, result in enumerate(op.results):
        sources = (op.operands[bounds + index], returned[index])
        yield DataFlowEdge(result, sources, (arguments[induction_variables + index],))


@data_flow_edges("scf.forall")
def _scf_forall(op: Any) -> Iterable[DataFlowEdge]:
    # The tensors that are shared come last among the operands and among the arguments.
    arguments, count = _arguments(op, 0), len(op.results)
    first_operand, first_argument = len(op.operands) - count, len(arguments) - count
    for index, result in enumerate(op.results):
        yield DataFlowEdge(result, (op.operands[first_operand + index],), (arguments[first_argument + index],))


@data_flow_edges("scf.while")
def _scf_while(op: Any) -> Iterable[DataFlowEdge]:
    condition, repeated = _terminators(op)
    for index, argument in enumerate(_arguments(op, 0)):
        yield DataFlowEdge(argument, (op.operands[index], repeated.operands[index]))
    # The first operand of the condition says whether to go on.
    for index, (result, argument) in enumerate(zip(op.results, _arguments(op, 1), strict=True)):
        yield DataFlowEdge(result, (condition.operands[1 + index],), (argument,))


def is_static_tensor(value: Any) -> bool:
    """Whether a value can carry an edge: it is shaped, and its shape static."""
    type_ = value.type
    return isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape
