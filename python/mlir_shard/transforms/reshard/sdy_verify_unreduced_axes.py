# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No operation may lose track of the axes along which its operands are partial values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.transforms.call_graph import functions
from mlir_shard.transforms.operations import operations_named
from mlir_shard.transforms.reshard.unreduced_axes import CALL, REDUCING_COLLECTIVES, RETURNS, UnreducedAxes
from mlir_shard.transforms.sharding_attributes import shardings_in

BARRIER = "sdy.propagation_barrier"


@register
class VerifyUnreducedAxes(Pass):
    """Fails where unreduced axes of operands are gone in the results without a reshard or a reducing collective, where
    new ones could not be reduced by a sum or by what the operation reduces with, and where calls and functions, or
    returned values and results, differ in them."""

    name = "sdy-verify-unreduced-axes"
    anchor = "func.func"
    summary = "Verifies that unreduced axes are reduced, or passed on"

    def run(self, op: Any) -> None:
        module = sdy.enclosing_module(op)
        axes = UnreducedAxes(functions(module), sdy.meshes(module))
        is_unreduced = any(sharding.unreduced_axes for sharding in shardings_in(op))
        # A function without unreduced axes may still call one that has some.
        for one in _concerned(op) if is_unreduced else operations_named(op, CALL, *REDUCING_COLLECTIVES):
            message = axes.check(one)
            if message is not None:
                raise PassFailure(f"'{one.name}' op {message}", one)


def _concerned(function: Any) -> Iterator[Any]:
    """The operations that use or define a value with unreduced axes, and those that reduce, call or return."""
    arrays = ModuleArrays(function)
    names = [op.name for op in arrays.representatives()]
    always = {index for index, name in enumerate(names) if name in (CALL, *RETURNS, *REDUCING_COLLECTIVES)}
    unreduced = _unreduced_values(arrays, names)
    for number, signature in enumerate(arrays.signatures):
        if signature in always or not unreduced.isdisjoint((*arrays.operands(number), *arrays.results(number))):
            yield arrays.operation(number)


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
