# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines of propagation: Shardy's, and the one from any input language."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.canonicalize.canonicalize import PATTERNS
from mlir_shard.transforms.gathers import bound_text, remarks_above
from mlir_shard.transforms.normalize.sdy_import_pipeline import constraint_passes
from mlir_shard.transforms.pipeline_steps import step
from mlir_shard.transforms.verified_repetition import verify_repetition


@register_pipeline("sdy-propagation-pipeline", "Propagates shardings, including import and export")
def propagation_pipeline(
    dedup_functions_fully: bool = option(
        False, "keep one copy of each function, even if its callers' shardings differ"
    ),
    keep_sharding_rules: bool = option(False, "keep the sharding rules of operations as attributes"),
    conservative_propagation: bool = option(False, "do not split axes or shard factors that require communication"),
    op_priorities: tuple[tuple[str, ...], ...] = option(
        (), "ops that propagate before all others, in this order: dialect.op, dialect.*, or a group of them in braces"
    ),
    debug_sharding_origins: bool = option(False, "attach the origins of shardings"),
    debug_propagation_edge_sharding: bool = option(False, "attach the edges along which shardings propagate"),
    avoid_export_for_partitioning: bool = option(False, "keep the program in a form that can be propagated again"),
    enable_insert_explicit_collectives: bool = option(
        False, "insert reshards for all operations and convert them to collectives"
    ),
    remove_all_gather_reduce_scatter_for_cmv1: bool = option(
        False, "remove all-gathers before and reduce-scatters after a matmul, for a collective matmul"
    ),
    enable_explicit_gather_scatter_batching: bool = option(False, "make batch dimensions of gathers explicit first"),
    update_non_divisible_input_output_shardings: bool = option(
        True, "shard inputs and outputs evenly, by full axes only"
    ),
    remarks_above: int | None = remarks_above(),
    inline_meshes: bool = option(False, "inline meshes in shardings and erase their definitions"),
    module_dump_directory: str = option("", "the directory to dump the modules between the stages to"),
) -> str:
    """Runs the import pipeline, makes calls transparent, propagates by user priorities, turns calls into functions
    again, and runs the export pipeline. Functions are copied for each call, and imported, unless
    `dedup-functions-fully` keeps them: then a function has one sharding for all its calls."""
    passes = [
        "shard-check-annotations",
        step(
            "sdy-import-pipeline",
            dedup_functions_fully=dedup_functions_fully,
            enable_explicit_gather_scatter_batching=enable_explicit_gather_scatter_batching,
            debug_sharding_origins=debug_sharding_origins,
            debug_propagation_edge_sharding=debug_propagation_edge_sharding,
            dump_directory=module_dump_directory,
            dump_index=1,
        ),
    ]
    if dedup_functions_fully:
        passes += ["sdy-add-func-data-flow-edges"]
    else:
        passes += ["sdy-flatten-call-graph", "symbol-dce", "sdy-import-func-calls", "symbol-dce"]
        passes += constraint_passes(debug_sharding_origins, debug_propagation_edge_sharding)
    passes += [
        "sdy-pre-order-funcs",
        step(
            "sdy-user-priority-propagate",
            # Reshards must use the rules of propagation. Most rules can be computed again, but not those that depend on
            # ops around, as constants are merged in between.
            keep_sharding_rules=keep_sharding_rules or conservative_propagation,
            keep_particular_rules=True,
            conservative_propagation=conservative_propagation,
            op_priorities=op_priorities or None,
            debug_sharding_origins=debug_sharding_origins,
            debug_propagation_edge_sharding=debug_propagation_edge_sharding,
        ),
    ]
    if dedup_functions_fully:
        passes += ["sdy-propagate-to-func-results", "func.func(sdy-sink-func-data-flow-edges)"]
    else:
        passes += ["sdy-export-named-computations", "sdy-propagate-to-func-results"]
    passes += ["sdy-unflatten-call-graph", "symbol-dce", "sdy-insert-func-call-reshards"]
    passes += [
        step(
            "sdy-export-pipeline",
            avoid_export_for_partitioning=avoid_export_for_partitioning,
            enable_insert_explicit_collectives=enable_insert_explicit_collectives,
            remove_all_gather_reduce_scatter_for_cmv1=remove_all_gather_reduce_scatter_for_cmv1,
            keep_sharding_rules=keep_sharding_rules,
            update_non_divisible_input_output_shardings=update_non_divisible_input_output_shardings,
            inline_meshes=inline_meshes,
            remarks_above=bound_text(remarks_above),
            dump_sharding_origins=debug_sharding_origins,
            dump_propagation_edges=debug_propagation_edge_sharding,
            dump_directory=module_dump_directory,
            dump_index=2,
        )
    ]
    return ",".join(passes)


# Patterns that drop shardings from which propagation starts.
_PATTERNS_OF_SDY = tuple(sorted({pattern.label for pattern in PATTERNS if pattern.label.startswith("sdy-")}))


@register_pipeline("shard-propagate", "Infers the sharding of every tensor from a few annotations")
def shard_propagate(
    conservative_propagation: bool = option(False, "do not split axes or shard factors that require communication"),
    verify_repetition: bool = verify_repetition(),
) -> str:
    """Inlines calls, imports upstream's `shard` annotations and sdy's constraints and groups, propagates shardings by
    the priorities of users and of ops, also through regions, and closes them. Each use of a constant, or of a tensor
    without content, is sharded on its own; equal ones are merged afterwards."""
    passes = [
        "shard-check-annotations",
        "shard-inline-calls",
        "symbol-dce",
        step("canonicalize", disable_patterns=_PATTERNS_OF_SDY),
        "func.func(shard-expand-merged-dims)",
        "shard-extract-to-gather",
        "func.func(shard-batch-gathers)",
        "convert-shard-to-sdy",
        "shard-unify-meshes",
        "shard-separate-meshes",
        step("sdy-constant-or-scalar-splitter", convert_constants=False, split_inside=True),
        "sdy-apply-sharding-constraints",
        "sdy-sharding-group-import",
        "func.func(shard-slice-by-steps,shard-iterate-unsharded)",
        "sdy-add-data-flow-edges",
        step(
            "sdy-user-priority-propagate",
            conservative_propagation=conservative_propagation,
            # Otherwise, axes of weights reach the result of an embedding, or the layers of a loop, before those of the
            # tokens.
            lookups_first=True,
            verify_repetition=verify_repetition or None,
        ),
        step("sdy-export-named-computations", shard_function_results=True),
        "sdy-unflatten-call-graph",
        "symbol-dce",
        "func.func(sdy-sink-data-flow-edges)",
        "sdy-remove-sharding-groups",
        "sdy-close-shardings",
        f"func.func({step('sdy-constant-or-scalar-merger', expressions=True)})",
        "shard-exchange-between-meshes",
    ]
    return ",".join(passes)
