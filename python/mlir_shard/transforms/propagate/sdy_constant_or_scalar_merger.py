# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One constant for all that propagation has left alike of those it was split in."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.constants import constant_ops
from mlir_shard.transforms.function_shardings import rank_of

BROADCAST = "stablehlo.broadcast_in_dim"


@register
class ConstantOrScalarMerger(Pass):
    """Merges constants of a block that agree in type and all attributes, shardings too, and broadcasts of one scalar
    that do. What is in different blocks stays apart."""

    name = "sdy-constant-or-scalar-merger"
    anchor = "func.func"
    summary = "Merges equal constants and broadcasts of scalars that have the same sharding"

    def run(self, op: Any) -> None:
        native_host().merge_equal(op.operation._CAPIPtr, [*constant_ops(), BROADCAST], _merges)


def _merges(capsule: Any) -> bool:
    op = ir.Operation._CAPICreate(capsule)
    return op.name != BROADCAST or rank_of(op.operands[0].type) == 0
