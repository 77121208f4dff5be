# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a global module with a few annotations, of any of the input languages, to one where all is decided."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.pipeline_steps import step


@register_pipeline("shard-propagate", "Decides the sharding of every tensor from a few annotations")
def shard_propagate(
    conservative_propagation: bool = option(False, "do not split axes, nor shard factors that then need communication"),
) -> str:
    """Calls are inlined, upstream's `shard` annotations and sdy's constraints and groups are taken in, shardings
    propagated by the priorities of users and of ops, through regions too, and closed."""
    passes = [
        "inline",
        "convert-shard-to-sdy",
        "shard-unify-meshes",
        "sdy-apply-sharding-constraints",
        "sdy-sharding-group-import",
        "sdy-add-data-flow-edges",
        step("sdy-user-priority-propagate", conservative_propagation=conservative_propagation),
        "func.func(sdy-sink-data-flow-edges)",
        "sdy-remove-sharding-groups",
        "sdy-close-shardings",
    ]
    return ",".join(passes)
