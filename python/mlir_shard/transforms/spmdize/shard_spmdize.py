# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module whose shardings are decided to the program of one device."""

from __future__ import annotations

from mlir_shard.passes.registry import register_pipeline


@register_pipeline("shard-spmdize", "Makes a module whose shardings are decided the program of one device")
def shard_spmdize() -> str:
    """Changes of sharding are made explicit, then everything local; equal collectives are done once."""
    reshards = "func.func(sdy-sharding-constraint-to-reshard,sdy-insert-explicit-reshards{enable-full-version=true})"
    return f"{reshards},spmdize,cse"
