# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipelines to a local program: from decided shardings, and from a few annotations."""

from __future__ import annotations

from typing import Literal

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.canonicalize import reshard
from mlir_shard.transforms.communication.shard_collective_matmul import overlap
from mlir_shard.transforms.gathers import bound_text, remarks_above
from mlir_shard.transforms.pipeline_steps import step
from mlir_shard.transforms.verified_repetition import verify_repetition

# Run before reshards are inserted, and again after.
_WITHOUT_EMPTY = "shard-fold-empty-tensors"
_MESHES = "shard-unify-meshes,shard-exchange-between-meshes"
_EVEN = step("sdy-update-non-divisible-input-output-shardings", common_grid=True)


@register_pipeline("shard-spmdize", "Converts a fully sharded module to the local program")
def shard_spmdize(
    collectives: Literal["shard", "stablehlo"] = option(
        "shard", "the dialect of the collectives: upstream's `shard`, or `stablehlo` for programs entirely in StableHLO"
    ),
    planner: Literal["shardy", "optimal"] = option(
        "optimal", "the planner of reshards and collectives: Shardy's algorithm, or minimum cost"
    ),
    overlap: bool = overlap(),
    remarks_above: int | None = remarks_above(),
    verify_repetition: bool = verify_repetition(),
    certificate: str = option("", "the file to write the certificate for shard-check to; none if empty"),
) -> str:
    """Makes changes of sharding explicit, converts the module to the local program, and merges equal collectives.

    With `collectives=stablehlo`, arguments and results whose shards would be uneven are replicated along the axes that
    do not divide them.
    """
    bound = bound_text(remarks_above)
    verify = verify_repetition or None
    reshards = step(
        "sdy-insert-explicit-reshards",
        enable_full_version=True,
        planner=planner,
        remarks_above=bound,
        verify_repetition=verify,
    )
    split = "shard-reshape-parts,shard-split-windows,shard-split-scatters,shard-split-top-k,"
    split += step("shard-split-reductions", collectives=collectives)
    made_explicit = "shard-declare-partial-sums,sdy-sharding-constraint-to-reshard,shard-barrier-to-reshard"
    explicit = f"func.func({made_explicit},{split},{reshards})"
    collective = step(
        "sdy-reshard-to-collectives",
        planner=planner,
        direct_exchange=planner == "optimal",
        remarks_above=bound,
    )
    certified = step("shard-write-certificate", file=certificate, collectives=collectives)
    local = step("spmdize", collectives=collectives, remarks_above=bound, verify_repetition=verify)
    passes = [
        "shard-check-annotations",
        _MESHES,
        _WITHOUT_EMPTY,
        *([_EVEN] if collectives == "stablehlo" else []),
        "shard-rotate-shards",
        explicit,
        step("canonicalize", enable_patterns=(*reshard.EXACT, reshard.BACK)),
        f"func.func(shard-reduce-in-blocks,shard-scan-in-blocks,{collective})",
        step(
            "canonicalize",
            enable_patterns=("sdy-collective", "shard-collective"),
            disable_patterns=("all-to-all-fusion",) if planner == "optimal" else (),
        ),
        _WITHOUT_EMPTY,
        *([certified] if certificate else []),
        local,
        "shard-gather-to-linalg",
        "cse",
        step("shard-optimize-communication", collectives=collectives, overlap=overlap),
    ]
    return ",".join(passes)


@register_pipeline("spmd-pipeline", "Converts a partially annotated module to the local program")
def spmd_pipeline(
    conservative_propagation: bool = option(False, "do not split axes or shard factors that require communication"),
    collectives: Literal["shard", "stablehlo"] = option(
        "shard", "the dialect of the collectives: upstream's `shard`, or `stablehlo` for programs entirely in StableHLO"
    ),
    planner: Literal["shardy", "optimal"] = option(
        "optimal", "the planner of reshards and collectives: Shardy's algorithm, or minimum cost"
    ),
    overlap: bool = overlap(),
    remarks_above: int | None = remarks_above(),
    verify_repetition: bool = verify_repetition(),
    certificate: str = option("", "the file to write the certificate for shard-check to; none if empty"),
) -> str:
    """Decides all shardings by `shard-propagate`, then partitions the module with them by `shard-spmdize`."""
    verify = verify_repetition or None
    passes = [
        step("shard-propagate", conservative_propagation=conservative_propagation, verify_repetition=verify),
        step(
            "shard-spmdize",
            collectives=collectives,
            planner=planner,
            overlap=overlap,
            remarks_above=bound_text(remarks_above),
            verify_repetition=verify,
            certificate=certificate or None,
        ),
    ]
    return ",".join(passes)
