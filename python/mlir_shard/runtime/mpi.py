# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a program on MPI ranks of this machine, with the MPICH that PyPI has, and one rank without MPI."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_shard.runtime import processes
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.program import Program

# libmpi.so is a linker script there, nothing to load.
_LIBRARY = re.compile(r"libmpi\.so\.\d+")

# All ranks are processes of this machine: no remote shell, no batch system, no look-up of the host's name.
_LAUNCHER_OPTIONS = ("-launcher", "fork", "-rmk", "user", "-localhost", "127.0.0.1")

_SETTINGS = {
    # Ranks that wait give the core away soon: without this, 200 reductions over 16 ranks on 2 cores take 18 s, not 1 s.
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
    # Messages go through shared memory. This transport is only set up; it needs no network and no large /dev/shm.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
}
# What an mpiexec around this process has set is not meant for the one inside.
_INHERITED = ("PMI_", "PMIX_", "HYDRA_", "HYDI_", "MPIR_CVAR_CH4_ROOTS")


@dataclass(frozen=True, slots=True)
class Mpich:
    """An installed MPICH: its launcher and its library."""

    mpiexec: Path
    library: Path

    @staticmethod
    def find() -> Mpich:
        """The `mpich` package of this interpreter; RunError where it is not installed."""
        try:
            distribution = importlib.metadata.distribution("mpich")
        except importlib.metadata.PackageNotFoundError as error:
            raise RunError(_not_usable("is not installed")) from error
        files = {file.name: Path(str(distribution.locate_file(file))).resolve() for file in distribution.files or ()}
        mpiexec = files.get("mpiexec")
        library = next((path for name, path in files.items() if _LIBRARY.fullmatch(name)), None)
        if mpiexec is None or library is None or not mpiexec.exists() or not library.exists():
            raise RunError(_not_usable("has no mpiexec or no libmpi.so.* where it is installed"))
        return Mpich(mpiexec, library)


def _not_usable(why: str) -> str:
    return f"the package mpich, which runs programs on several ranks, {why}: pip install 'mlir-shard[run]'"


@dataclass(frozen=True, slots=True)
class MpiEngine:
    """Runs each rank as a process under mpiexec; a run that takes longer than `timeout` seconds is stopped."""

    timeout: float | None = None

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """As `Engine.run`."""
        mpich = Mpich.find()
        launcher = [str(mpich.mpiexec), *_LAUNCHER_OPTIONS, "-n", str(program.ranks)]
        return processes.run(program, inputs, launcher, [str(mpich.library)], _environment(), self.timeout)


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
