# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launchers that tests start ranks with, if the machine has them.

The environment variable MLIR_SHARD_REQUIRE lists those of `openmpi`, `slurm` and `pmix` whose absence makes tests fail
instead of being skipped.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from hang_guard import SECONDS

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch.mpi import WHEEL, MpiInstallation
from mlir_shard.runtime.launch.mpi_library import OPEN_MPI

REQUIRED = "MLIR_SHARD_REQUIRE"

# These settings are also those of the ranks that shard-run starts: root may start them, and they share the cores.
_OPEN_MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclass(frozen=True)
class Launcher:
    """The arguments before a command, and the variables of its environment."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def run(
        self, *command: object, cwd: Path, environment: Mapping[str, str] = os.environ
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on ranks."""
        return subprocess.run(
            [*self.arguments, *map(str, command)],
            cwd=cwd,
            env={**environment, **self.environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def launcher(name: str, ranks: int) -> Launcher:
    """Returns the launcher `mpich`, `openmpi`, `slurm` or `pmix` for a number of ranks; skips the test if it is absent.

    `mpich` is the launcher of the wheel. Under `slurm` the wheel's MPICH connects by PMI 2, and under `pmix` Open MPI
    connects by PMIx.
    """
    if name in ("mpich", "openmpi"):
        return Launcher(tuple(MpiInstallation.find(installation(name)).command(ranks)), _OPEN_MPI_SETTINGS)
    if name == "pmix":
        open_mpi()
    kind = {"slurm": "pmi2", "pmix": "pmix"}[name]
    return Launcher((*srun(kind), "--kill-on-bad-exit", f"--ntasks={ranks}"), _OPEN_MPI_SETTINGS)


def installation(name: str) -> str:
    """Returns the installation `mpich` (the wheel) or `openmpi` for `MpiInstallation.find`, or skips the test."""
    return open_mpi() if name == "openmpi" else WHEEL


def open_mpi() -> str:
    """Returns the path of a launcher of Open MPI; skips the test if it is absent."""
    return _open_mpi() or _absent("openmpi", "Open MPI (install openmpi-bin)")


def srun(kind: str) -> list[str]:
    """Returns the command of srun for a process manager; skips the test unless this machine is a node of a cluster."""
    if shutil.which("srun") is None:
        _absent("slurm", "Slurm (install slurm-wlm)")
    if not _has_cluster():
        _absent("slurm", "Slurm (start a cluster: .ci/slurm-cluster)")
    if kind == "pmix" and not _has_pmix():
        _absent("pmix", "Slurm with PMIx (install libpmix-dev)")
    return ["srun", f"--mpi={kind}"]


def _absent(name: str, what: str) -> NoReturn:
    if name in os.environ.get(REQUIRED, "").split(","):
        pytest.fail(f"{REQUIRED} lists {name}, and there is no {what}", pytrace=False)
    pytest.skip(what)


@functools.cache
def _open_mpi() -> str | None:
    for found in filter(None, map(shutil.which, ("mpirun.openmpi", "mpirun", "mpiexec"))):
        try:
            if MpiInstallation.find(found).implementation == OPEN_MPI:
                return found
        except RunError:
            continue
    return None


@functools.cache
def _has_cluster() -> bool:
    node = socket.gethostname().partition(".")[0]
    asked = subprocess.run(
        ["sinfo", "--noheader", f"--nodes={node}", "--format=%T"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0 and bool(asked.stdout.strip())


@functools.cache
def _has_pmix() -> bool:
    return subprocess.run(["srun", "--mpi=pmix", "true"], capture_output=True, check=False).returncode == 0
