# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a global module with a few annotations, of any of the input languages, to one where all is decided."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.canonicalize.canonicalize import PATTERNS
from mlir_shard.transforms.pipeline_steps import step

# They drop shardings that propagation starts from.
_PATTERNS_OF_SDY = tuple(sorted({pattern.label for pattern in PATTERNS}))


@register_pipeline("shard-propagate", "Decides the sharding of every tensor from a few annotations")
def shard_propagate(
    conservative_propagation: bool = option(False, "do not split axes, nor shard factors that then need communication"),
) -> str:
    """Calls are inlined, upstream's `shard` annotations and sdy's constraints and groups are taken in, shardings
    propagated by the priorities of users and of ops, through regions too, and closed. Each use of a constant, or of a
    tensor without content, is sharded on its own; what is equal afterwards is merged."""
    passes = [
        "shard-inline-calls",
        "symbol-dce",
        step("canonicalize", disable_patterns=_PATTERNS_OF_SDY),
        "convert-shard-to-sdy",
        "shard-unify-meshes",
        step("sdy-constant-or-scalar-splitter", convert_constants=False, split_inside=True),
        "sdy-apply-sharding-constraints",
        "sdy-sharding-group-import",
        "sdy-add-data-flow-edges",
        step("sdy-user-priority-propagate", conservative_propagation=conservative_propagation),
        step("sdy-export-named-computations", shard_function_results=True),
        "sdy-unflatten-call-graph",
        "symbol-dce",
        "func.func(sdy-sink-data-flow-edges)",
        "sdy-remove-sharding-groups",
        "sdy-close-shardings",
        f"func.func({step('sdy-constant-or-scalar-merger', expressions=True)})",
    ]
    return ",".join(passes)
