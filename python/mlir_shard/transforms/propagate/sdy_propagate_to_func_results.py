# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions return decides the shardings of their results."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.editor import terminator
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.call_graph import functions, has_body, main_function
from mlir_shard.transforms.function_shardings import Side, set_shardings


@register
class PropagateToFuncResults(Pass):
    """Gives each result of each function but the main one the sharding of the value returned, or none."""

    name = "sdy-propagate-to-func-results"
    anchor = "builtin.module"
    summary = "Copies the shardings of returned values to the results of functions"

    def run(self, op: Any) -> None:
        main = main_function(op)
        for function in functions(op).values():
            if function == main or not has_body(function):
                continue
            last = terminator(function)
            if last.name == "func.return":
                set_shardings(function, Side.RESULTS, [sharding_of(value) for value in last.operands])
