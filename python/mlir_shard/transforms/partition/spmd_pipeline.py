# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The whole road: from a global module with a few annotations to the program of one device."""

from __future__ import annotations

from typing import Literal

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.gathers import bound_text, remarks_above
from mlir_shard.transforms.partition.verified_repetition import verify_repetition
from mlir_shard.transforms.pipeline_steps import step


@register_pipeline("spmd-pipeline", "Makes a module with a few annotations the program of one device")
def spmd_pipeline(
    conservative_propagation: bool = option(False, "do not split axes, nor shard factors that then need communication"),
    collectives: Literal["shard", "stablehlo"] = option(
        "shard", "the dialect of the collectives: upstream's `shard`, or StableHLO where the whole program is in it"
    ),
    planner: Literal["shardy", "optimal"] = option(
        "optimal", "whose reshards and collectives: Shardy's, or the cheapest"
    ),
    remarks_above: int | None = remarks_above(),
    verify_repetition: bool = verify_repetition(),
) -> str:
    """`shard-propagate` decides all shardings, then `shard-spmdize` goes by them."""
    passes = [
        step("shard-propagate", conservative_propagation=conservative_propagation),
        step(
            "shard-spmdize",
            collectives=collectives,
            planner=planner,
            remarks_above=bound_text(remarks_above),
            verify_repetition=verify_repetition or None,
        ),
    ]
    return ",".join(passes)
