# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function says about its results, for calls that say nothing."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.editor import attribute_columns
from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import TensorShardingPerValue
from mlir_shard.transforms.call_graph import functions
from mlir_shard.transforms.function_shardings import Side, shardings_per_value
from mlir_shard.transforms.operations import operations_named


@register
class PropagateShardingFromFuncToCall(Pass):
    """Gives each call without result shardings those of the function it calls, where that has any."""

    name = "sdy-propagate-sharding-from-func-to-call"
    anchor = "builtin.module"
    summary = "Gives calls without result shardings those of the function"

    def run(self, op: Any) -> None:
        found, meshes = functions(op), sdy.meshes(op)
        calls = operations_named(op, "func.call")
        symbols, known = attribute_columns(calls, "callee", sdy.SHARDING)
        of_function: dict[str, TensorShardingPerValue | None] = {}
        for call, symbol, given in zip(calls, symbols, known, strict=True):
            name = symbol.value
            if given is not None or name not in found:
                continue
            if name not in of_function:
                of_function[name] = shardings_per_value(found[name], Side.RESULTS, meshes)
            shardings = of_function[name]
            if shardings is not None:
                call.attributes[sdy.SHARDING] = sdy.attribute(shardings, op.context)
