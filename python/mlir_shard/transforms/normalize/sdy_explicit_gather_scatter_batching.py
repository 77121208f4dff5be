# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes batch dimensions of gathers and scatters explicit, where the indices count along them."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir, rewrite
from mlir_shard.ir.patterns import Pattern, apply_greedily
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.transforms.normalize.batching_indices import GATHER, SCATTER, number_of_indices, with_batching


@register
class ExplicitGatherScatterBatching(FunctionPass):
    """Declares dimension 0 of the operand and of the indices of a gather or scatter as batching dimensions, which share
    their sharding, if each index into dimension 0 of the operand equals its position in dimension 0 of the indices; and
    removes that index. The idea is Shardy's."""

    name = "sdy-explicit-gather-scatter-batching"
    summary = "Makes implicit batch dimensions of gather and scatter explicit"

    def run(self, op: Any) -> None:
        apply_greedily(op, PATTERNS, rewrite.GreedyRewriteConfig())


def _make_explicit(op: Any, rewriter: Any) -> bool:
    found = with_batching(op, only_first=True)
    if found is None:
        return False
    indices, numbers = found
    changed = op.clone(ip=ir.InsertionPoint(op))
    changed.operands[number_of_indices(op)] = indices
    numbers.set_on(changed)
    rewriter.replace_op(op, changed)
    return True


PATTERNS = (
    Pattern("explicit-gather-batching", "sdy-explicit-batching", GATHER, _make_explicit),
    Pattern("explicit-scatter-batching", "sdy-explicit-batching", SCATTER, _make_explicit),
)
