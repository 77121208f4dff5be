# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matmuls that communicate themselves, rather than by collectives around them."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.canonicalize.pattern import defining_op, has_one_use

DOTS = ("stablehlo.dot", "stablehlo.dot_general")


@register
class RemoveAllGatherReduceScatterForCMV1(Pass):
    """Removes each all-gather that only a matmul uses, and a reduce-scatter that alone uses a matmul none of whose
    all-gathers went. The matmul then has the sharding that the reduce-scatter gave; partial sums stay as they are.

    What is left is for a compiler that overlaps the communication with the matmul (XLA's collective matmul).
    """

    name = "sdy-remove-all-gather-reduce-scatter-for-cmv1"
    anchor = "func.func"
    summary = "Removes the all-gather before, or the reduce-scatter after, a matmul"

    def run(self, op: Any) -> None:
        removed: list[Any] = []
        for dot in operations_named(op, *DOTS):
            found = [defining_op(operand, "sdy.all_gather") for operand in dot.operands]
            gathers = [one for one in found if one is not None and has_one_use(one.results[0])]
            removed += gathers or _scatter(dot)
        for collective in removed:
            collective.results[0].replace_all_uses_with(collective.operands[0])
            collective.erase()


def _scatter(dot: Any) -> list[Any]:
    """The reduce-scatter that a matmul takes over, with its sharding."""
    result = dot.results[0]
    if not has_one_use(result):
        return []
    user = next(iter(result.uses)).owner.operation
    sharding = sdy.get_sharding(result)
    if user.name != "sdy.reduce_scatter" or sharding is None or sharding.unreduced_axes:
        return []
    sdy.set_sharding(result, sdy.get_sharding(user.results[0]))
    return [user]
