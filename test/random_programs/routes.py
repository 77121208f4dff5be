# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to run programs: for each target the passes, and what runs what they make."""

from __future__ import annotations

from mlir_shard.runtime import xla_module
from mlir_shard.runtime.compile import DEFAULT_PIPELINES, Pipelines
from random_programs import generate, ranks_engine, xla_engine
from random_programs.execution import Route

# StableHLO's collectives by XLA, and on MPI ranks; upstream's on MPI ranks.
STABLEHLO, STABLEHLO_ON_RANKS, SHARD = "stablehlo", "stablehlo-on-ranks", "shard"
TARGETS = (STABLEHLO, STABLEHLO_ON_RANKS, SHARD)
# Those whose programs LLVM compiles.
COMPILED = (STABLEHLO_ON_RANKS, SHARD)
DIALECTS = {
    STABLEHLO: (generate.STABLEHLO,),
    STABLEHLO_ON_RANKS: (generate.STABLEHLO,),
    SHARD: generate.DIALECTS,
}
_IN_STABLEHLO = Pipelines(
    "shard-propagate,sdy-update-non-divisible-input-output-shardings",
    "shard-spmdize{collectives=stablehlo}",
)
_PIPELINES = {STABLEHLO: _IN_STABLEHLO, STABLEHLO_ON_RANKS: _IN_STABLEHLO, SHARD: DEFAULT_PIPELINES}


def route(target: str) -> Route:
    """The way of a target, to be called before jax is loaded: this process has then as many devices as are needed."""
    if target in COMPILED:
        ranks = ranks_engine.RanksEngine()
        return Route(_PIPELINES[target], ranks_engine.lower, ranks, ranks_engine.AloneEngine())
    xla_engine.prepare()
    xla = xla_engine.XlaEngine()
    return Route(_PIPELINES[target], xla_module.lower, xla, xla)
