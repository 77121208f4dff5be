# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to run a program: the passes that partition it, the lowering of the local program, and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from mlir_shard.runtime.compile import DEFAULT_PIPELINES, Lower, Pipelines
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import launched
from mlir_shard.runtime.launch.code_cache import CodeCache
from mlir_shard.runtime.launch.cpu import NATIVE, Cpu
from mlir_shard.runtime.launch.launched import LaunchedEngine
from mlir_shard.runtime.launch.mpi import WHEEL, MpiEngine, MpiInstallation, SingleProcessEngine
from mlir_shard.runtime.launch.mpi_library import MPICH
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.pjrt import engine as pjrt_engine
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.pjrt.engine import CPU, PjrtEngine
from mlir_shard.runtime.program import DeviceEngine, Engine, Observe

MPI: Final = "mpi"
PJRT: Final = "pjrt"
ENGINES = (MPI, PJRT)

SHARD, STABLEHLO = "shard", "stablehlo"
COLLECTIVES = (SHARD, STABLEHLO)

_PIPELINES = {
    SHARD: DEFAULT_PIPELINES,
    # StableHLO's collectives require even shards, of function arguments and results too.
    STABLEHLO: Pipelines(
        "shard-propagate,sdy-update-non-divisible-input-output-shardings", "shard-spmdize{collectives=stablehlo}"
    ),
}


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run programs.

    pipelines: the default pipelines that partition a module; lower: the lowering of local programs for the engines;
    engine: runs the sharded program; alone: runs the unsharded program.
    """

    pipelines: Pipelines
    lower: Lower
    engine: DeviceEngine
    alone: Engine


def backend(
    name: str = MPI,
    *,
    timeout: float | None = None,
    mpi: str = WHEEL,
    cpu: str = NATIVE,
    platform: str = CPU,
    collectives: str | None = None,
    observe: Observe | None = None,
    repeat: int = 1,
    threads: int = 1,
    cache: str | None = None,
    remarks_above: str = "",
    verify_repetition: bool = False,
) -> Backend:
    """Returns an engine with its options, for `execute` and `Program.compile`.

    With `mpi`, a process that a launcher such as mpirun or srun has started with others is itself one of the ranks; any
    other process starts ranks on this machine.

    Args:
        name: `mpi` or `pjrt`.
        timeout: seconds after which a call is stopped; by default none.
        mpi: the MPI: `wheel` for the package `mpich`, `system` for the one on the path, or the path of a launcher.
        cpu: the CPU that MPI's programs are compiled for: `native`, or a level such as `x86-64-v3`.
        platform: the platform of PJRT: `cpu`, which has as many devices as a program needs, or another one of JAX.
        collectives: the dialect of the collectives of local programs, `shard` or `stablehlo`; by default `shard` with
            `mpi` and `stablehlo` with `pjrt`.
        observe: is called with the times of the ranks after each run.
        repeat: how many times each run calls the program.
        threads: the threads that a rank of MPI has for products of matrices and convolutions.
        cache: a folder that keeps MPI's compiled programs; by default they are not kept.
        remarks_above: the option of `spmd-pipeline` of this name; empty for its default.
        verify_repetition: whether each op is also decided individually, and differences are errors.

    Raises:
        RunError: the engine does not exist, or a package that it needs is missing.
    """
    if collectives is not None and collectives not in COLLECTIVES:
        raise RunError(f"unknown collectives '{collectives}': choose {' or '.join(COLLECTIVES)}")
    options = {"remarks-above": remarks_above, "verify-repetition": "true" if verify_repetition else ""}
    if name == MPI:
        kept = CodeCache(Path(cache)) if cache else None
        engine: DeviceEngine
        if launched.is_launched():
            engine = LaunchedEngine(mpi, timeout, observe, repeat, threads, kept)
            implementation = launched.join(mpi).implementation
        else:
            # The wheel is looked up when the program is run: compilation does not need it.
            implementation = MPICH if mpi == WHEEL else MpiInstallation.find(mpi).implementation
            engine = MpiEngine(timeout, mpi, observe, repeat, threads)
        # Ranks that a launcher has started may be on machines with other CPUs.
        lower = LoweringProcess(implementation, cpu=Cpu(cpu).name, cache=kept, compiles=not launched.is_launched())
        return Backend(_pipelines(collectives or SHARD, options), lower, engine, SingleProcessEngine(timeout))
    if name == PJRT:
        if collectives == SHARD:
            raise RunError("PJRT runs the collectives of StableHLO, not those of shard")
        pjrt_engine.check_installed()
        make = partial(PjrtEngine, timeout, platform)
        return Backend(_pipelines(STABLEHLO, options), xla_module.lower, make(observe, repeat), make())
    raise RunError(f"unknown engine '{name}': choose {' or '.join(ENGINES)}")


def _pipelines(collectives: str, options: Mapping[str, str]) -> Pipelines:
    """Returns the pipelines for a dialect of collectives, with the options that are not empty."""
    found = _PIPELINES[collectives]
    given = [f"{name}={value}" for name, value in options.items() if value]
    if not given:
        return found
    propagate = found.propagate
    if options["verify-repetition"]:
        propagate = propagate.replace("shard-propagate", "shard-propagate{verify-repetition=true}")
    return replace(found, propagate=propagate, spmdize=f"shard-spmdize{{collectives={collectives} {' '.join(given)}}}")
