# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines after propagation: Shardy's export, and the one that turns every reshard into collectives."""

from __future__ import annotations

from typing import Literal

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.canonicalize import reshard
from mlir_shard.transforms.gathers import bound_text, remarks_above
from mlir_shard.transforms.pipeline_steps import Dumps, step
from mlir_shard.transforms.verified_repetition import verify_repetition


@register_pipeline("sdy-export-pipeline", "Cleans up after propagation, and makes changes of sharding explicit")
def export_pipeline(
    avoid_export_for_partitioning: bool = option(False, "keep the program in a form that can be propagated again"),
    enable_insert_explicit_collectives: bool = option(
        False, "insert reshards for all operations and convert them to collectives"
    ),
    remove_all_gather_reduce_scatter_for_cmv1: bool = option(
        False, "remove all-gathers before and reduce-scatters after a matmul, for a collective matmul"
    ),
    keep_sharding_rules: bool = option(False, "keep the sharding rules of operations as attributes"),
    dump_sharding_origins: bool = option(False, "keep the origins of the shardings of edges"),
    dump_propagation_edges: bool = option(False, "keep the propagation steps of edges"),
    update_non_divisible_input_output_shardings: bool = option(
        True, "shard inputs and outputs evenly, by full axes only"
    ),
    remarks_above: int | None = remarks_above(),
    inline_meshes: bool = option(True, "inline meshes in shardings and erase their definitions"),
    dump_directory: str = option("", "the directory to dump the modules between the stages to"),
    dump_index: int = option(0, "the number of the first dumped file"),
) -> str:
    """Merges constants, sinks data-flow edges, converts constraints to reshards, makes the shardings of inputs and
    outputs even, and closes all shardings; then inserts reshards, or collectives, where operations need them."""
    dumps = Dumps(dump_directory, dump_index)
    bound = bound_text(remarks_above)
    edges = step(
        "sdy-sink-data-flow-edges",
        sink_debug_sharding_origins=dump_sharding_origins,
        sink_debug_propagation_edge_sharding=dump_propagation_edges,
    )
    passes = [f"func.func(sdy-constant-or-scalar-merger,{edges})"]
    if not avoid_export_for_partitioning:
        passes += ["sdy-remove-sharding-groups", "func.func(sdy-sharding-constraint-to-reshard)"]
    if update_non_divisible_input_output_shardings:
        passes += ["sdy-update-non-divisible-input-output-shardings", "sdy-remove-sub-axes-in-input-output-shardings"]
    passes += ["sdy-close-shardings", *dumps.save("after_propagation")]
    if not avoid_export_for_partitioning:
        reshards = step(
            "sdy-insert-explicit-reshards", enable_full_version=enable_insert_explicit_collectives, remarks_above=bound
        )
        passes += [f"func.func(sdy-verify-unreduced-axes,{reshards})"]
        passes += _collectives(dumps, bound) if enable_insert_explicit_collectives else []
        passes += [step("canonicalize", enable_patterns="sdy-collective")]
        if enable_insert_explicit_collectives and remove_all_gather_reduce_scatter_for_cmv1:
            passes += ["func.func(sdy-remove-all-gather-reduce-scatter-for-cmv1)"]
        extent = "partitioner" if enable_insert_explicit_collectives else "minimal_partitioner"
        passes += dumps.save(f"after_{extent}_with_global_shapes")
    if dump_propagation_edges or dump_sharding_origins:
        passes += ["sdy-remove-propagation-debug-info"]
    if not keep_sharding_rules:
        passes += ["func.func(sdy-drop-sharding-rules)"]
    if inline_meshes and not avoid_export_for_partitioning:
        passes += ["sdy-inline-meshes"]
    return ",".join(passes)


def _collectives(dumps: Dumps, bound: int | str) -> list[str]:
    """Returns passes that merge successive reshards and turn them into collectives.

    Later canonicalization may fuse slices with reductions before them.
    """
    return [
        *dumps.save("after_explicit_reshards"),
        step("canonicalize", enable_patterns="sdy-reshard"),
        f"func.func({step('sdy-reshard-to-collectives', remarks_above=bound)})",
    ]


@register_pipeline("shard-reshard", "Converts every change of sharding to collectives of minimum cost")
def shard_reshard(
    planner: Literal["shardy", "optimal"] = option(
        "optimal", "the planner of reshards and collectives: Shardy's algorithm, or minimum cost"
    ),
    objective: Literal["bytes", "time", "memory"] | None = option(
        None, "the cost that planner=optimal minimizes (default: the objective of `costs`, or time)"
    ),
    costs: str = option("", "a TOML or JSON file with the latency and bandwidth of mesh axes"),
    direct_exchange: bool = option(False, "keep reshards for which a direct exchange is cheapest"),
    assumed_size: int = option(1024, "the assumed size of dynamic dimensions"),
    remarks_above: int | None = remarks_above(),
    verify_repetition: bool = verify_repetition(),
) -> str:
    """Inserts reshards where constraints, calls and operations need them, merges successive reshards, replaces each by
    the collectives of its plan, and merges successive collectives."""
    collectives = step(
        "sdy-reshard-to-collectives",
        planner=planner,
        objective=objective,
        costs=costs or None,
        direct_exchange=direct_exchange,
        assumed_size=assumed_size,
        remarks_above=bound_text(remarks_above),
    )
    reshards = step(
        "sdy-insert-explicit-reshards",
        enable_full_version=True,
        planner=planner,
        remarks_above=bound_text(remarks_above),
        verify_repetition=verify_repetition or None,
    )
    passes = [
        "shard-check-annotations",
        "func.func(sdy-sharding-constraint-to-reshard,shard-barrier-to-reshard)",
        "sdy-insert-func-call-reshards",
        f"func.func({reshards})",
        step("canonicalize", enable_patterns=reshard.EXACT),
        f"func.func({collectives})",
        step("canonicalize", enable_patterns=("sdy-collective", "shard-collective")),
    ]
    return ",".join(passes)
