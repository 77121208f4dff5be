# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No operation may lose track of the axes along which its operands are partial values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges, keeps_argument_shardings
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import attribute_columns, first_names, operations_named
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.call_graph import functions
from mlir_shard.transforms.reshard.unreduced_axes import CALL, REDUCING_COLLECTIVES, RETURNS, UnreducedAxes
from mlir_shard.transforms.shardings import Side, shardings_in, shardings_of

BARRIER = "sdy.propagation_barrier"


@register
class VerifyUnreducedAxes(Pass):
    """Fails where unreduced axes of operands are gone in the results without a reshard or a reducing collective, where
    new ones could not be reduced by a sum or by what the operation reduces with, and where calls and functions, or
    returned values and results, differ in them."""

    name = "sdy-verify-unreduced-axes"
    anchor = "func.func"
    summary = "Verifies that unreduced axes are reduced, or passed on"

    def run(self, op: Any) -> bool:
        is_unreduced = any(sharding.unreduced_axes for sharding in shardings_in(op))
        concerned = _concerned(op) if is_unreduced else operations_named(op, CALL, *REDUCING_COLLECTIVES)
        if not concerned:
            return False
        module = sdy.enclosing_module(op)
        known = functions(module)
        axes = UnreducedAxes(known, sdy.meshes(module))
        for one in concerned if is_unreduced else _but_plain_calls(concerned, known, op):
            message = axes.check(one)
            if message is not None:
                raise PassFailure(f"'{one.name}' op {message}", one)
        return False


def _but_plain_calls(ops: list[Any], known: Mapping[str, Any], function: Any) -> list[Any]:
    """The operations without the calls of functions that have no unreduced axes, as the function around has none."""
    # Where a dialect keeps shardings in a place of its own, they have not been looked at.
    if any(map(keeps_argument_shardings, first_names(function))):
        return ops
    (symbols,) = attribute_columns(ops, "callee")
    plain = {one for one in set(symbols) if one is not None and not _is_unreduced_signature(known.get(one.value))}
    return [op for op, symbol in zip(ops, symbols, strict=True) if symbol is None or symbol not in plain]


def _is_unreduced_signature(function: Any | None) -> bool:
    if function is None:
        return False
    shardings = (one for side in Side for one in shardings_of(function, side))
    return any(one.unreduced_axes for one in shardings if one is not None)


def _concerned(function: Any) -> list[Any]:
    """The operations that use or define a value with unreduced axes, and those that reduce, call or return."""
    arrays = ModuleArrays(function)
    names = [op.name for op in arrays.representatives()]
    always = {index for index, name in enumerate(names) if name in (CALL, *RETURNS, *REDUCING_COLLECTIVES)}
    unreduced = _unreduced_values(arrays, names)
    return [
        arrays.operation(number)
        for number, signature in enumerate(arrays.signatures)
        if signature in always or not unreduced.isdisjoint((*arrays.operands(number), *arrays.results(number)))
    ]


def _unreduced_values(arrays: ModuleArrays, names: list[str]) -> set[int]:
    """The numbers of the values with unreduced axes, seen through propagation barriers."""
    of_signature: dict[int, list[bool]] = {}
    found = {value for value, definer in enumerate(arrays.definers) if definer < 0 and _is_unreduced(arrays, value)}
    for op, signature in enumerate(arrays.signatures):
        results = arrays.results(op)
        if names[signature] == BARRIER:
            found.update(results if not found.isdisjoint(arrays.operands(op)) else ())
            continue
        known = of_signature.get(signature)
        if known is None:
            known = [_is_unreduced(arrays, value) for value in results]
            # What an edge says is not in the attributes of the operation that it is of.
            if not has_edges(names[signature]):
                of_signature[signature] = known
        found.update(value for value, is_unreduced in zip(results, known, strict=True) if is_unreduced)
    return found


def _is_unreduced(arrays: ModuleArrays, value: int) -> bool:
    sharding = sharding_of(arrays.value(value).maybe_downcast())
    return sharding is not None and bool(sharding.unreduced_axes)
