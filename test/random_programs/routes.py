# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The routes by which programs run: for each target, the passes and the engine."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from mlir_shard.runtime.backends import SHARD, STABLEHLO
from mlir_shard.runtime.compile import Pipelines
from mlir_shard.runtime.pjrt import xla_module
from random_programs import generate, ranks_engine, simulated_engine, xla_engine
from random_programs.execution import Route
from random_programs.generate import SMALL

TARGETS = (SHARD, STABLEHLO)
PJRT, RANKS, SIMULATED = "pjrt", "ranks", "simulated"
ENGINES = (PJRT, RANKS, SIMULATED)
_BOTH = "both"
_PIPELINES = {
    STABLEHLO: Pipelines(
        "shard-propagate{verify-repetition=true},sdy-update-non-divisible-input-output-shardings",
        "shard-spmdize{collectives=stablehlo verify-repetition=true}",
    ),
    SHARD: Pipelines(
        "shard-propagate{verify-repetition=true}",
        "shard-spmdize{verify-repetition=true},shard-collective-matmul{always=true},canonicalize,cse",
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """The targets of programs, and the engine that runs them: XLA, ranks of MPI, or ranks that are threads.

    XLA runs only StableHLO's collectives; programs with those of `shard` are then simulated. `devices` is the maximum
    number of devices of a program.
    """

    targets: tuple[str, ...]
    engine: str
    devices: int = SMALL.most_devices

    @property
    def is_compiled(self) -> bool:
        """True if LLVM compiles a program."""
        return self.engine != PJRT or SHARD in self.targets

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects in which programs may be."""
        return (generate.STABLEHLO,) if STABLEHLO in self.targets else generate.DIALECTS

    def routes(self) -> tuple[Route, ...]:
        """Returns a route for each target. Call it before jax is loaded, because it sets the number of devices."""
        on_xla = [target for target in self.targets if self.engine == PJRT and target != SHARD]
        if on_xla:
            xla_engine.prepare(self.devices)
        xla, alone = xla_engine.XlaEngine(), ranks_engine.AloneEngine()
        compiled = ranks_engine.RanksEngine() if self.engine == RANKS else simulated_engine.SimulatedEngine()
        return tuple(
            Route(target, _PIPELINES[target], xla_module.lower, xla, xla)
            if target in on_xla
            else Route(target, _PIPELINES[target], ranks_engine.lower, compiled, alone)
            for target in self.targets
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options from which `setting_of` makes a setting."""
    parser.add_argument(
        "--target", choices=(*TARGETS, _BOTH), default=STABLEHLO, help="whose collectives; both are compared"
    )
    default = f"by default {PJRT} for {STABLEHLO}, {RANKS} for {SHARD}, {SIMULATED} for {_BOTH}"
    parser.add_argument("--engine", choices=ENGINES, help=f"what runs programs, {default}")


def setting_of(arguments: argparse.Namespace, parser: argparse.ArgumentParser, devices: int) -> Setting:
    """Returns the setting of the options; ends the process if they are inconsistent."""
    if (arguments.target, arguments.engine) == (SHARD, PJRT):
        parser.error(f"{PJRT} runs no collectives of {SHARD}")
    targets = TARGETS if arguments.target == _BOTH else (arguments.target,)
    defaults = {STABLEHLO: PJRT, SHARD: RANKS, _BOTH: SIMULATED}
    return Setting(targets, arguments.engine or defaults[arguments.target], devices)
