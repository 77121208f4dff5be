# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a program on MPI ranks of this machine, and one rank without MPI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_shard.runtime import processes
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.mpi_installation import WHEEL, MpiInstallation
from mlir_shard.runtime.program import Program
from mlir_shard.runtime.rank_times import Observe

_SETTINGS = {
    # Ranks that wait give the core away soon: without this, 200 reductions over 16 ranks on 2 cores take 18 s, not 1 s.
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
    # Messages go through shared memory. This transport is only set up; it needs no network and no large /dev/shm.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    # The same for Open MPI: without this, 40 collectives over 8 ranks on 2 cores take 16 s, not 0.1 s.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Open MPI prints no backtraces: the last lines that a rank writes are its own.
    "OMPI_MCA_opal_signal": "",
    # Open MPI asks for these where root runs it, as in a container.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
# What an mpiexec or a batch system around this process has set is not meant for the mpiexec inside.
_INHERITED = (
    *("PMI_", "PMIX_", "HYDRA_", "HYDI_", "MPIR_CVAR_CH4_ROOTS", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE"),
    *("SLURM_", "PALS_", "PBS_", "LSB_"),
)


@dataclass(frozen=True, slots=True)
class MpiEngine:
    """Runs each rank as a process under mpiexec; a run that takes longer than `timeout` seconds is stopped.

    choice: which MPI, see `MpiInstallation.find`; observe: is told the times of the ranks.
    """

    timeout: float | None = None
    choice: str = WHEEL
    observe: Observe | None = None

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """As `Engine.run`."""
        found = MpiInstallation.find(self.choice)
        launcher, arguments = found.command(program.ranks), ["mpi", str(found.library)]
        return processes.run(program, inputs, launcher, arguments, _environment(), self.timeout, observe=self.observe)


@dataclass(frozen=True, slots=True)
class SingleProcessEngine:
    """Runs a program of one rank, without MPI, in a process of its own: the program may abort it."""

    timeout: float | None = None

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """As `Engine.run`."""
        return processes.run(program, inputs, [], [], processes.python_environment(), self.timeout)


def _environment() -> dict[str, str]:
    settings = {name: os.environ.get(name, value) for name, value in _SETTINGS.items()}
    inherited = processes.python_environment(settings)
    return {name: value for name, value in inherited.items() if not name.startswith(_INHERITED)}
