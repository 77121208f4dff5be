# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All that makes the communication of a local program less."""

from __future__ import annotations

from typing import Literal

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline


@register_pipeline("shard-optimize-communication", "Makes what a local program communicates less")
def shard_optimize_communication(
    collectives: Literal["shard", "stablehlo"] = option("shard", "the dialect of the collectives"),
) -> str:
    """Each pass goes by the program alone, so every device does the same in the same order."""
    common = "shard-drop-collectives,shard-fold-uniform-collectives,shard-hoist-collectives"
    sinking = "shard-join-collectives,shard-sink-gathers,shard-sink-reductions"
    if collectives == "stablehlo":
        return f"{common},{sinking},shard-merge-collectives,shard-drop-collectives,canonicalize,cse"
    simplify = "shard-simplify,shard-fold-uniform-collectives"
    merged = "shard-split-all-reduces,shard-merge-collectives"
    return f"{common},shard-simplify,{sinking},{merged},{simplify},canonicalize,cse"
