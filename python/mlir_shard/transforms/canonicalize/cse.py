# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `cse`: elimination of common sub-expressions, by the signatures of operations."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.editing import eliminate_common_ops, first_operations
from mlir_shard.passes import analyses, host_passes
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.transforms.canonicalize.purity import PURITIES


@register
class CSE(Pass):
    """Replaces operations by equal operations that dominate them, and erases unused ones.

    The result is the same as that of the host's pass of this name. The host's pass itself runs if a region has several
    blocks, or if an operation reads memory, because the operations in between then determine whether two are equal.
    """

    name = "cse"
    summary = "Eliminate common sub-expressions"

    def run(self, op: Any) -> bool | Changes | None:
        held = analyses.held(op)
        purities = None if held.has_branches else PURITIES.of_names(held.operations, lambda: first_operations(op))
        if purities is None:
            host_passes.run(f"{op.name}(cse)", op.operation, verify_each=False)
            return None
        replacing = eliminate_common_ops(op, purities, PURITIES.of_operation)
        return False if replacing is None else Changes(moved=replacing)
