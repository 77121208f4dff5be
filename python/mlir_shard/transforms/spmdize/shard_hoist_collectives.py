# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives that bring the same each time around a loop, carried out once before it."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.editing import operations_named, operations_named_in_post_order
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.spmdize.collective_forms import is_of_values
from mlir_shard.transforms.spmdize.communication_reading import COLLECTIVES
from mlir_shard.transforms.spmdize.loop_invariants import LOOPS, LoopInvariants

_KEPT = frozenset(("shard.recv", "shard.send", "shard.update_halo"))


@register
class HoistCollectives(Pass):
    """Moves collectives out of `scf.for`, `scf.while` and `stablehlo.while` where their operands are the same each
    time: made outside, carried around unchanged, or made of such values by ops that do nothing else.

    Every device of a group goes around a loop with collectives in it as often as the others, so all of them carry out
    what is moved. A loop that is not gone around at all communicates more then than before; any other no more. What is
    under a condition in a loop stays there.
    """

    name = "shard-hoist-collectives"
    anchor = "builtin.module"
    summary = "Moves collectives that bring the same each time out of loops"

    def run(self, op: Any) -> bool:
        if not operations_named(op, *sorted(LOOPS)):
            return False
        is_changed = False
        for collective in operations_named_in_post_order(op, *sorted(COLLECTIVES - _KEPT)):
            is_changed |= is_of_values(collective) and _hoist(collective)
        return is_changed


def _hoist(collective: Any) -> bool:
    """Moves it out of as many of the loops around it as can be."""
    is_changed, left = False, collective
    while left is not None and left.parent.name in LOOPS:
        left = LoopInvariants(left.parent.operation).hoist(left)
        is_changed |= left is not None
    return is_changed
