# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a module whose shardings are decided to one in which every change of sharding is collectives, the cheapest."""

from __future__ import annotations

from typing import Literal

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register_pipeline
from mlir_shard.transforms.canonicalize import reshard
from mlir_shard.transforms.gathers import bound_text, remarks_above
from mlir_shard.transforms.pipeline_steps import step


@register_pipeline("shard-reshard", "Makes every change of sharding collectives, the cheapest there are")
def shard_reshard(
    planner: Literal["shardy", "optimal"] = option(
        "optimal", "whose reshards and collectives: Shardy's, or the cheapest"
    ),
    objective: Literal["bytes", "time", "memory"] | None = option(
        None, "what the cheapest have least of: what `costs` says, or time"
    ),
    costs: str = option("", "a TOML or JSON file with the latency and bandwidth of mesh axes"),
    direct_exchange: bool = option(False, "leave reshards that a direct exchange serves best"),
    assumed_size: int = option(1024, "the size that dynamic dimensions are taken to have"),
    remarks_above: int | None = remarks_above(),
) -> str:
    """Constraints, calls and operations get reshards where they need them; several in a row become one, and each the
    collectives of its plan, which are merged where they follow each other."""
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
