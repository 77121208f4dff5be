# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-flow edges by op name: they connect the values of an op with regions that must have one sharding."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.registered_function import (
    InterfaceError,
    RegistrationError,
    ask,
    check_op_names,
    check_takes,
    described,
)
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding


@dataclass(frozen=True, slots=True)
class DataFlowEdge:
    """A data-flow edge: the target that owns it, its sources, and its other targets.

    Targets are results of the op, or arguments of blocks in its regions; sources are operands of the op, or of
    terminators in its regions. All have the same shape, because they have the same sharding.
    """

    owner: Any
    sources: tuple[Any, ...]
    other_targets: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Boundary:
    """The values that pass into and out of an op with regions: all `ir.Value`s, or all numbers of `ModuleArrays`.

    Args:
        operands, results: the operands and results of the op.
        arguments: for each region, the arguments of its first block.
        returned: for each region that is not empty, the operands of the last op of its last block.
    """

    operands: Sequence[Any]
    results: Sequence[Any]
    arguments: Sequence[Sequence[Any]]
    returned: Sequence[Sequence[Any]]

    @staticmethod
    def of(op: Any) -> Boundary:
        """Returns the boundary of an op, as `ir.Value`s."""
        blocks = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
        arguments = [[] if block is None else list(block.arguments) for block in blocks]
        returned = [list(last.operands) for last in edge_holders(op)[1:]]
        return Boundary(list(op.operands), list(op.results), arguments, returned)


def check_edges(edges: Iterable[Any], op: Any) -> str | None:
    """Returns an error message, or None if targets belong to the op, each to one edge, and each edge has one shape."""
    known: dict[Any, int] = {}
    for number, edge in enumerate(edges):
        if not isinstance(edge, DataFlowEdge):
            return f"edge {number} is {edge!r}, but must be a DataFlowEdge"
        targets = (edge.owner, *edge.other_targets)
        for value in (*targets, *edge.sources):
            if not isinstance(value, ir.Value):
                return f"edge {number} contains {value!r}, which is not an ir.Value"
        for target in targets:
            if not _is_target(target, op):
                return f"{_shown(target)} of edge {number} is neither a result nor a block argument of the op"
            if target in known:
                return f"{_shown(target)} is a target of both edge {known[target]} and edge {number}"
            known[target] = number
        for value in (*edge.other_targets, *edge.sources):
            if _shape(value) != _shape(edge.owner):
                return (
                    f"edge {number} connects {_shown(value)} with its owner of type {edge.owner.type}, but the "
                    "values of an edge must have the same shape"
                )
    return None


def is_static_tensor(value: Any) -> bool:
    """Returns whether a value can be on an edge: its type has a static shape."""
    return is_static(value.type)


def is_static(type_: Any) -> bool:
    """Returns whether a type has a static shape."""
    return isinstance(type_, ir.ShapedType) and type_.has_rank and type_.has_static_shape


def _is_target(value: Any, op: Any) -> bool:
    owner = value.owner
    around = owner.owner if isinstance(owner, ir.Block) else owner
    return bool(around.operation == op.operation)


def _shape(value: Any) -> tuple[int, ...] | None:
    """Returns the shape of a tensor that can be on an edge; None for all other values."""
    return tuple(value.type.shape) if is_static_tensor(value) else None


def _shown(value: Any) -> str:
    kind = "a block argument" if isinstance(value.owner, ir.Block) else f"a value of '{value.owner.operation.name}'"
    return f"{kind} of type {value.type}"


EdgeFunction = Callable[[Any], Iterable[DataFlowEdge]]
KnownEdgeFunction = Callable[[Boundary], Iterable[DataFlowEdge]]
GetShardings = Callable[[Any], Sequence["TensorSharding | None"]]
SetShardings = Callable[[Any, Sequence[TensorSharding]], None]


@dataclass(frozen=True, slots=True)
class _ArgumentShardings:
    """The functions that read the shardings of block arguments that own edges from an op, and attach them to it."""

    get: GetShardings
    set: SetShardings


@dataclass(frozen=True, slots=True)
class _Entry:
    function: EdgeFunction
    arguments: _ArgumentShardings | None = None


_ROLE = "data-flow edges"
_entries: dict[str, _Entry | KnownEdgeFunction] = {}


def data_flow_edges(
    *names: str,
    get_argument_shardings: GetShardings | None = None,
    set_argument_shardings: SetShardings | None = None,
) -> Callable[[EdgeFunction], EdgeFunction]:
    """Registers a function that returns the edges of an op of one of these names, in the order of their owners.

    Results that own edges have their shardings in `sdy.sharding`, like all results. Block arguments have no such
    attribute: `get_argument_shardings` returns the shardings of the arguments of an op that own an edge, in the order
    of the edges, with None for an argument without sharding, and `set_argument_shardings` attaches one to each of these
    arguments. Without these two functions, the shardings of such arguments are dropped at the end of propagation.

    Raises RegistrationError for invalid op names, and for functions that do not take these arguments.
    """
    check_op_names(names, dialects=False)
    arguments = None
    if get_argument_shardings is not None and set_argument_shardings is not None:
        check_takes("`get_argument_shardings`", get_argument_shardings, "op")
        check_takes("`set_argument_shardings`", set_argument_shardings, "op", "shardings")
        arguments = _ArgumentShardings(get_argument_shardings, set_argument_shardings)
    elif get_argument_shardings is not None or set_argument_shardings is not None:
        raise RegistrationError("`get_argument_shardings` and `set_argument_shardings` must be registered together")

    def register(function: EdgeFunction) -> EdgeFunction:
        check_takes(_ROLE, function, "op")

        @functools.wraps(function)
        def all_edges(op: Any) -> tuple[DataFlowEdge, ...]:
            return tuple(function(op))

        _entries.update(dict.fromkeys(names, _Entry(all_edges, arguments)))
        return function

    return register


def _known(*names: str) -> Callable[[KnownEdgeFunction], KnownEdgeFunction]:
    """Registers the edges of built-in ops, which depend on the boundary of the op alone and are not checked."""

    def register(function: KnownEdgeFunction) -> KnownEdgeFunction:
        _entries.update(dict.fromkeys(names, function))
        return function

    return register


def _registered(name: str) -> _Entry | None:
    """Returns the registration of a dialect for ops of a name; None if none exists."""
    entry = _entries.get(name)
    return entry if isinstance(entry, _Entry) else None


def has_edges(name: str) -> bool:
    """Returns whether ops of this name have data-flow edges."""
    return name in _entries


def are_known(name: str) -> bool:
    """Returns whether the boundary of an op of this name determines its edges: see `known_edges`."""
    return name in _entries and _registered(name) is None


def known_edges(name: str, boundary: Boundary) -> tuple[DataFlowEdge, ...]:
    """Returns the data-flow edges of an op whose edges are known, between the values of its boundary."""
    entry = _entries[name]
    if isinstance(entry, _Entry):
        raise ValueError(f"the edges of '{name}' are registered by a dialect and depend on the op")
    return tuple(entry(boundary))


def edges_of(op: Any) -> tuple[DataFlowEdge, ...]:
    """Returns the data-flow edges of an op; none for an op that is not registered.

    Raises InterfaceError if the registered function fails, or its results are not valid edges of the op.
    """
    entry = _entries.get(op.name)
    if entry is None:
        return ()
    if not isinstance(entry, _Entry):
        return tuple(entry(Boundary.of(op)))
    edges: tuple[DataFlowEdge, ...] = ask(_ROLE, entry.function, op)
    violation = check_edges(edges, op)
    if violation:
        raise InterfaceError(op, f"{described(_ROLE, entry.function, op)} do not match the op: {violation}")
    return edges


def edge_holders(op: Any) -> list[Any]:
    """Returns the ops whose operands are sources of the edges of an op: itself, and the last op of each region."""
    last = [region.blocks[len(region.blocks) - 1] for region in op.regions if len(region.blocks)]
    return [op, *(block.operations[len(block.operations) - 1].operation for block in last)]


def source_operands(holders: Sequence[Any], edges: Iterable[DataFlowEdge]) -> Iterator[list[tuple[int, int]]]:
    """Yields, for each edge, the operands that are its sources, at most one of each holder.

    An edge refers to its sources by value. If several operands are the same value, each edge takes the next one; edges
    after the last operand share the first.

    Args:
        holders: the ops with the operands, as from `edge_holders`.
        edges: the edges of one op, in order.

    Returns: for each edge, pairs of the number of the holder and the number of its operand.
    """
    first: dict[Any, dict[int, int]] = {}
    free: dict[Any, dict[int, deque[int]]] = {}
    for number, holder in enumerate(holders):
        for index, value in enumerate(holder.operands):
            first.setdefault(value, {}).setdefault(number, index)
            free.setdefault(value, {}).setdefault(number, deque()).append(index)
    for edge in edges:
        found: dict[int, int] = {}
        for source in edge.sources:
            possible = [number for number in first.get(source, ()) if number not in found]
            unused = next((number for number in possible if free[source][number]), None)
            if unused is not None:
                found[unused] = free[source][unused].popleft()
            elif possible:
                found[possible[0]] = first[source][possible[0]]
        yield list(found.items())


def keeps_argument_shardings(name: str) -> bool:
    """Returns whether a dialect registered how ops of this name store the shardings of their block arguments."""
    entry = _registered(name)
    return entry is not None and entry.arguments is not None


def argument_shardings(op: Any) -> list[TensorSharding | None]:
    """Returns the shardings of the block arguments of an op that own edges; empty if its dialect does not store them.

    Raises InterfaceError if the registered function fails, or does not return a sharding or None for each argument.
    """
    entry = _registered(op.name)
    if entry is None or entry.arguments is None:
        return []
    role, count = "getter of argument shardings", len(owning_arguments(op))
    found = ask(role, entry.arguments.get, op)
    is_sequence = isinstance(found, Sequence) and len(found) == count
    if is_sequence and all(one is None or isinstance(one, TensorSharding) for one in found):
        return list(found)
    raise InterfaceError(
        op,
        f"{described(role, entry.arguments.get, op)} returned {found!r}, but must return a TensorSharding or None "
        f"for each of {count} block arguments that own an edge",
    )


def set_argument_shardings(op: Any, shardings: Sequence[TensorSharding]) -> None:
    """Attaches the shardings of block arguments that own edges to the op, if its dialect stores them."""
    entry = _registered(op.name)
    if entry is not None and entry.arguments is not None:
        ask("setter of argument shardings", entry.arguments.set, op, tuple(shardings))


def owning_arguments(op: Any) -> list[Any]:
    """Returns the block arguments that own an edge of the op, in the order of the edges."""
    return [edge.owner for edge in edges_of(op) if isinstance(edge.owner.owner, ir.Block)]


@_known("sdy.manual_computation", "sdy.named_computation")
def _computation(values: Boundary) -> Iterable[DataFlowEdge]:
    for argument, operand in zip(values.arguments[0], values.operands, strict=True):
        yield DataFlowEdge(argument, (operand,))
    yield from _from_terminators(values)


@_known("stablehlo.case", "stablehlo.if", "scf.if", "scf.index_switch", "scf.execute_region")
def _from_terminators(values: Boundary) -> Iterable[DataFlowEdge]:
    for index, result in enumerate(values.results):
        yield DataFlowEdge(result, tuple(of_region[index] for of_region in values.returned if index < len(of_region)))


@_known("stablehlo.optimization_barrier")
def _operand_by_operand(values: Boundary) -> Iterable[DataFlowEdge]:
    return (DataFlowEdge(result, (operand,)) for result, operand in zip(values.results, values.operands, strict=True))


@_known("stablehlo.while")
def _stablehlo_while(values: Boundary) -> Iterable[DataFlowEdge]:
    for result, operand, returned, *arguments in zip(
        values.results, values.operands, values.returned[-1], *values.arguments, strict=True
    ):
        yield DataFlowEdge(result, (operand, returned), tuple(arguments))


@_known("scf.for")
def _scf_for(values: Boundary) -> Iterable[DataFlowEdge]:
    # The bounds and the step come before the carried operands, the induction variable before the carried arguments.
    carried, arguments = values.operands[3:], values.arguments[0][1:]
    for result, operand, returned, argument in zip(values.results, carried, values.returned[0], arguments, strict=True):
        yield DataFlowEdge(result, (operand, returned), (argument,))


@_known("scf.forall")
def _scf_forall(values: Boundary) -> Iterable[DataFlowEdge]:
    # The shared tensors are the last operands and the last arguments.
    arguments, count = values.arguments[0], len(values.results)
    first_operand, first_argument = len(values.operands) - count, len(arguments) - count
    for index, result in enumerate(values.results):
        yield DataFlowEdge(result, (values.operands[first_operand + index],), (arguments[first_argument + index],))


@_known("scf.while")
def _scf_while(values: Boundary) -> Iterable[DataFlowEdge]:
    condition, repeated = values.returned
    for argument, operand, returned in zip(values.arguments[0], values.operands, repeated, strict=True):
        yield DataFlowEdge(argument, (operand, returned))
    # The first operand of the condition is the flag that continues the loop.
    for result, passed, argument in zip(values.results, condition[1:], values.arguments[1], strict=True):
        yield DataFlowEdge(result, (passed,), (argument,))
