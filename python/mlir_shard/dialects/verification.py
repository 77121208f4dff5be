# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verifying sdy attributes on operations of any dialect, beyond what the host verifies.

The host calls a hook of the dialect of a discardable attribute to verify it, but a dialect defined at run time has no
such hook. This module therefore searches a module for the attributes. Uses that agree in everything that decides their
validity (the attribute, the types, the enclosing operations) are verified once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.dialects.verifiers.checks import Violation, plain_shape, report, require, value_as
from mlir_shard.dialects.verifiers.meshes import mesh_lookup
from mlir_shard.dialects.verifiers.sharding import check_sharding, check_shardings
from mlir_shard.host import ir
from mlir_shard.sharding import (
    EdgeNodeType,
    EdgeValueRef,
    OpShardingRule,
    PropagationEdges,
    TensorSharding,
    TensorShardingPerValue,
)
from mlir_shard.sharding.verify import check_edges_on_op, check_op_sharding_rule, common_mesh

SHARDING = "sdy.sharding"
SHARDING_RULE = "sdy.sharding_rule"
PROPAGATION_EDGES = "sdy.propagation_edges"
RESULT_PROPAGATION_EDGES = "sdy.result_propagation_edges"
BLOCK_ARG_PROPAGATION_EDGES = "sdy.block_arg_propagation_edges"

# Enclosing operations on which the validity of an attribute depends.
SCOPES = ("builtin.module", "sdy.manual_computation")


class Place(Enum):
    """The place of an attribute: an operation, or the attributes of an argument or result in a function's signature."""

    OPERATION = 0
    ARGUMENT = 1
    RESULT = 2


@dataclass(frozen=True, slots=True)
class AttributeUse:
    """A use of the attribute `name` on `op`, or on argument or result `index` of the function `op`."""

    op: Any
    name: str
    place: Place = Place.OPERATION
    index: int = 0


_SIGNATURE_PLACES = {Place.ARGUMENT: "arg_attrs", Place.RESULT: "res_attrs"}


# The operation, the name of the attribute, the number of the place, and the index there.
Found = tuple[Any, str, int, int]


def uses(op: Any) -> Iterator[AttributeUse]:
    """Returns the uses of the attributes that `verify` checks in and below `op`, in the order of the text.

    Of the uses that agree in everything that the checks depend on, only the first is returned.
    """
    return map(_use, native_host().attribute_uses(op.operation._CAPIPtr, QUERIES, SCOPES))


def _use(found: Found) -> AttributeUse:
    capsule, name, place, index = found
    return AttributeUse(ir.Operation._CAPICreate(capsule), name, Place(place), index)


def verify(op: Any) -> bool:
    """Returns whether the sdy attributes in and below `op` are valid; emits an error for the first invalid one."""
    return _are_valid(uses(op))


def are_valid(found: Iterable[Found]) -> bool:
    """Returns whether uses that the native core has found are valid; emits an error for the first invalid one."""
    return _are_valid(map(_use, found))


def _are_valid(found: Iterable[AttributeUse]) -> bool:
    signatures = _Signatures()
    return all(_is_valid(use, signatures) for use in found)


def _is_valid(use: AttributeUse, signatures: _Signatures) -> bool:
    try:
        if use.place is Place.OPERATION:
            CHECKS[use.name](use.op, use.op.attributes[use.name])
        elif use.name == SHARDING:
            signatures.check(use)
    except (Violation, InterfaceError) as violation:
        report(use.op, violation)
        return False
    return True


class _Signatures:
    """A checker of the attributes of arguments and results, which reads the attributes and types of a function once."""

    def __init__(self) -> None:
        self._read: dict[tuple[Any, Place], tuple[Any, Sequence[Any]]] = {}

    def check(self, use: AttributeUse) -> None:
        key = (use.op, use.place)
        if key not in self._read:
            type_ = use.op.attributes["function_type"].value
            types = type_.inputs if use.place is Place.ARGUMENT else type_.results
            self._read[key] = (use.op.attributes[_SIGNATURE_PLACES[use.place]], types)
        dictionaries, types = self._read[key]
        try:
            sharding = value_as(dictionaries[use.index][use.name], TensorSharding, use.name)
            check_sharding(sharding, types[use.index], use.op)
        except Violation as violation:
            raise Violation(f"{use.place.name.lower()} {use.index}: {violation}") from None


def _check_sharding(op: Any, attribute: Any) -> None:
    shardings = value_as(attribute, TensorShardingPerValue, SHARDING)
    check_shardings(shardings, [result.type for result in op.results], op, "result")


def _check_sharding_rule(op: Any, attribute: Any) -> None:
    rule = value_as(attribute, OpShardingRule, SHARDING_RULE)
    operands = [plain_shape(value.type) for value in op.operands]
    results = [plain_shape(value.type) for value in op.results]
    require(check_op_sharding_rule(rule, operands, results))


def _check_propagation_edges(op: Any, attribute: Any) -> None:
    edges = value_as(attribute, PropagationEdges, PROPAGATION_EDGES)
    shardings = [sharding for ref in _value_refs(edges) if (sharding := _sharding_at(op, ref)) is not None]
    if not shardings:
        raise Violation("propagation edges must be between values with shardings, but no value has a sharding")
    # On a data-flow edge op, operand numbers refer to the sources of its owner, which are operands of other ops.
    anywhere = op.name in ("sdy.data_flow_edge", "sdy.func_data_flow_edge")
    operands, results = (sys.maxsize, sys.maxsize) if anywhere else (len(op.operands), len(op.results))
    require(check_edges_on_op(edges, common_mesh(map(mesh_lookup(op), shardings)), operands, results))


def _value_refs(edges: PropagationEdges) -> Iterable[EdgeValueRef]:
    for step in edges.value:
        for entry in step.axis_entries:
            yield entry.source
            yield from entry.targets


def _sharding_at(op: Any, ref: EdgeValueRef) -> TensorSharding | None:
    values = op.operands if ref.type is EdgeNodeType.OPERAND else op.results
    return sharding_of(values[ref.index]) if 0 <= ref.index < len(values) else None


def _check_array_of_edges(name: str) -> Callable[[Any, Any], None]:
    def check(op: Any, attribute: Any) -> None:
        if not isinstance(attribute, ir.ArrayAttr):
            raise Violation(f"attribute '{name}' must be an array of #sdy.propagation_edges, got {attribute}")
        for element in attribute:
            value_as(element, PropagationEdges, name)

    return check


CHECKS: Mapping[str, Callable[[Any, Any], None]] = {
    SHARDING: _check_sharding,
    SHARDING_RULE: _check_sharding_rule,
    PROPAGATION_EDGES: _check_propagation_edges,
    RESULT_PROPAGATION_EDGES: _check_array_of_edges(RESULT_PROPAGATION_EDGES),
    BLOCK_ARG_PROPAGATION_EDGES: _check_array_of_edges(BLOCK_ARG_PROPAGATION_EDGES),
}


class _Likeness(IntEnum):
    """The properties in which uses of an attribute have to agree so that checking one of them is enough."""

    NONE = 0
    TYPES = 1
    RANKS = 2  # Of results.


# Edges depend on other operations around theirs, so no two uses agree. Shards may be uneven, so ranks suffice.
_LIKENESS = {PROPAGATION_EDGES: _Likeness.NONE, SHARDING: _Likeness.RANKS}
QUERIES = tuple((name, int(_LIKENESS.get(name, _Likeness.TYPES))) for name in CHECKS)
