# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `cse`: the host's, if there may be equal or unused operations."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.editing import may_have_redundant
from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import Pass, register


@register
class CSE(Pass):
    """Replaces operations by equal ones that dominate them, and erases unused ones.

    It is the host's pass of this name, which is not run if no two operations of a function agree in name, types,
    attributes and operands, and the results of all are used.
    """

    name = "cse"
    summary = "Eliminate common sub-expressions"

    def run(self, op: Any) -> bool | None:
        if not may_have_redundant(op):
            return False
        host_passes.run(f"{op.name}(cse)", op.operation, verify_each=False)
        return None
