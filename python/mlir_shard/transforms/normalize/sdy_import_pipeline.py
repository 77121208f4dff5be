# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that bring a program into the form propagation works on, in their order."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.pipeline_steps import Dumps, step


@register_pipeline("sdy-import-pipeline", "Prepares a program for propagation")
def import_pipeline(
    dedup_functions_fully: bool = option(
        False, "keep one copy of each function, even if its callers' shardings differ"
    ),
    enable_explicit_gather_scatter_batching: bool = option(False, "make batch dimensions of gathers explicit first"),
    debug_sharding_origins: bool = option(False, "attach the origins of the shardings of constraints"),
    debug_propagation_edge_sharding: bool = option(False, "record the edges along which shardings propagate"),
    dump_directory: str = option("", "the directory to dump the module before propagation to"),
    dump_index: int = option(0, "the number of the first dumped file"),
) -> str:
    """Names and cleans up meshes, splits constants and makes data flow explicit. With `dedup-functions-fully`, also
    applies constraints and forms groups; without it, this is done after the calls have been imported."""
    passes = [
        "symbol-dce",
        "sdy-lift-inlined-meshes",
        "sdy-remove-size-one-axes",
        "sdy-propagate-sharding-from-func-to-call",
        "sdy-constant-or-scalar-splitter",
    ]
    if enable_explicit_gather_scatter_batching:
        passes += ["sdy-explicit-gather-scatter-batching"]
    passes += ["symbol-dce", "sdy-manual-axes-cleanup"]
    # The changes from here on are internal to propagation, and of less interest to a reader.
    passes += Dumps(dump_directory, dump_index).save("before_propagation")
    passes += ["sdy-add-data-flow-edges"]
    if dedup_functions_fully:
        passes += constraint_passes(debug_sharding_origins, debug_propagation_edge_sharding)
    return ",".join(passes)


def constraint_passes(debug_sharding_origins: bool, debug_propagation_edge_sharding: bool) -> list[str]:
    """Returns the passes for constraints, then for groups: conflicts in a group may be visible only then."""
    applied = step(
        "sdy-apply-sharding-constraints",
        debug_sharding_origins=debug_sharding_origins,
        debug_propagation_edge_sharding=debug_propagation_edge_sharding,
    )
    return [applied, "sdy-sharding-group-import"]
