# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engines that run a program on MPI ranks of this machine, or on one rank without MPI; the installations of MPI.

An installation is a launcher and a library that belong together.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import mpi_library, python_process
from mlir_shard.runtime.launch.mpi_library import MPICH, OPEN_MPI
from mlir_shard.runtime.launch.processes import RankProcesses
from mlir_shard.runtime.program import Observe, Program, run_and_close

WHEEL = "wheel"
SYSTEM = "system"
# In the wheel, libmpi.so without a version is a linker script, which cannot be loaded.
_WHEEL_LIBRARY = re.compile(r"libmpi\.so\.\d+")
_LIBRARIES = {OPEN_MPI: ("libmpi.so.40", "libmpi.so.20"), MPICH: ("libmpi.so.12", "libmpich.so.12")}
_FOLDERS = ("lib", "lib64", "lib/release", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
_LAUNCHERS = ("mpiexec", "mpirun")
_VERSION_SECONDS = 20
# All ranks run on this machine, so no remote shell, batch system or look-up of the host's name is needed.
_HYDRA_OPTIONS = ("-launcher", "fork", "-rmk", "user", "-localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class MpiInstallation:
    """A launcher and its library; `implementation` is `OPEN_MPI`, or `MPICH` for all MPIs with its interface."""

    launcher: Path
    library: Path
    implementation: str

    @staticmethod
    @functools.cache
    def find(choice: str = WHEEL) -> MpiInstallation:
        """Returns the installation that `choice` names; raises RunError if none exists.

        choice: `wheel`, the `mpich` package of this interpreter; `system`, the MPI on the path; or a launcher's path.
        """
        if choice == WHEEL:
            return _of_wheel()
        if choice == SYSTEM:
            found = next(filter(None, map(shutil.which, _LAUNCHERS)), None)
            if found is None:
                raise RunError(
                    f"neither {' nor '.join(_LAUNCHERS)} is on the path: install an MPI, or specify a launcher"
                )
            return _of_launcher(found)
        if shutil.which(choice) is None:
            raise RunError(f"'{choice}' is not an MPI launcher: no such program, or not executable")
        return _of_launcher(choice)

    def command(self, ranks: int) -> list[str]:
        """Returns the words before the command of a rank, which run it on `ranks` ranks of this machine."""
        if self.implementation == MPICH:
            return [str(self.launcher), *_HYDRA_OPTIONS, "-n", str(ranks)]
        return [str(self.launcher), "--host", f"localhost:{ranks}", "--bind-to", "none", "-n", str(ranks)]


def _of_wheel() -> MpiInstallation:
    try:
        distribution = importlib.metadata.distribution("mpich")
    except importlib.metadata.PackageNotFoundError as error:
        raise RunError(_not_usable("is not installed")) from error
    files = {file.name: Path(str(distribution.locate_file(file))).resolve() for file in distribution.files or ()}
    launcher = files.get("mpiexec")
    library = next((path for name, path in files.items() if _WHEEL_LIBRARY.fullmatch(name)), None)
    if launcher is None or library is None or not launcher.exists() or not library.exists():
        raise RunError(_not_usable("is installed without mpiexec or libmpi.so.*"))
    return MpiInstallation(launcher, library, MPICH)


def _not_usable(why: str) -> str:
    return f"the package mpich, which runs programs on several ranks, {why}: pip install 'mlir-shard[run]'"


def _of_launcher(launcher: str) -> MpiInstallation:
    path = Path(shutil.which(launcher) or launcher).absolute()
    implementation = _implementation(path)
    for library in _candidates(path, implementation):
        return MpiInstallation(path, library, implementation)
    names = " or ".join(_LIBRARIES[implementation])
    raise RunError(f"cannot find the library of '{launcher}', {names}, beside it or in the library path of the system")


def _implementation(launcher: Path) -> str:
    try:
        said = subprocess.run(
            [launcher, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"cannot determine the version of '{launcher}': {error}") from error
    text = said.stdout + said.stderr
    if re.search(r"Open ?MPI|OpenRTE|PRRTE", text):
        return OPEN_MPI
    if re.search(r"HYDRA|MPICH|Intel|MVAPICH", text, re.IGNORECASE):
        return MPICH
    raise RunError(
        f"'{launcher}' does not belong to a known MPI: expected Open MPI, MPICH or one compatible with MPICH"
    )


def _candidates(launcher: Path, implementation: str) -> Iterator[Path]:
    # A symbolic link may lead from the MPI's own folder to another folder, or the other way round.
    for start in dict.fromkeys((launcher, launcher.resolve())):
        for folder in _FOLDERS:
            for name in _LIBRARIES[implementation]:
                path = start.parent.parent / folder / name
                if path.exists() and _is_of(path, implementation):
                    yield path
    for name in _LIBRARIES[implementation]:
        if _is_of(Path(name), implementation):
            yield Path(name)


def site_library() -> Path:
    """Returns the library for a process that a site's launcher has started; raises RunError if none exists.

    It is Open MPI's library if the launcher is, or may be, Open MPI's (one that supports only PMIx may), else MPICH's.
    It is searched beside launchers on the path, in the system, and then in the wheel.
    """
    for implementation in _site_implementations():
        for launcher in filter(None, map(shutil.which, _LAUNCHERS)):
            for library in _candidates(Path(launcher).absolute(), implementation):
                return library
        for name in _LIBRARIES[implementation]:
            if _is_of(Path(name), implementation):
                return Path(name)
    if _is_wheel_possible():
        return _of_wheel().library
    raise RunError("cannot find the MPI library of the launcher: specify the MPI by --mpi")


def _site_implementations() -> tuple[str, ...]:
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return (OPEN_MPI,)
    return (MPICH,) if _is_wheel_possible() else (OPEN_MPI, MPICH)


def _is_wheel_possible() -> bool:
    """Returns whether the launcher supports PMI, which the wheel's MPICH needs, and not only PMIx."""
    return "PMIX_RANK" not in os.environ or "PMI_RANK" in os.environ


def is_wheel(library: Path) -> bool:
    """Returns whether a library is that of the `mpich` package of this interpreter."""
    try:
        return library.resolve() == _of_wheel().library
    except RunError:
        return False


def _is_of(library: Path, implementation: str) -> bool:
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError:
        return False
    return mpi_library.implementation_of(loaded) == implementation


_SETTINGS = {
    # Waiting ranks yield the core soon: without this, 200 reductions over 16 ranks on 2 cores take 18 s, not 1 s.
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
    # Messages use shared memory. This transport is only initialized; it needs neither a network nor a large /dev/shm.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    # The same for Open MPI: without this, 40 collectives over 8 ranks on 2 cores take 16 s, not 0.1 s.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Open MPI prints no backtraces, so that the last lines of a rank's output are its own.
    "OMPI_MCA_opal_signal": "",
    # Open MPI requires these if root runs it, as in a container.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
# Variables of an mpiexec or batch system that has started this process must not reach the mpiexec it starts.
_INHERITED = (
    *("PMI_", "PMIX_", "HYDRA_", "HYDI_", "MPIR_CVAR_CH4_ROOTS", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE"),
    *("SLURM_", "PALS_", "PBS_", "LSB_"),
)


@dataclass(frozen=True, slots=True)
class MpiEngine:
    """An engine that runs each rank as a process under mpiexec, and stops a run of more than `timeout` seconds.

    choice: the MPI, see `MpiInstallation.find`; observe: is called with the times of the ranks; repeat: the number of
    calls of the program in `run`; threads: the number of threads of a rank for matrix products.
    """

    timeout: float | None = None
    choice: str = WHEEL
    observe: Observe | None = None
    repeat: int = 1
    threads: int = 1

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Implements `Engine.run`."""
        return run_and_close(self.start(program), inputs, program.ranks, self.repeat)

    def start(self, program: Program) -> RankProcesses:
        """Implements `DeviceEngine.start`."""
        found = MpiInstallation.find(self.choice)
        launcher, arguments = found.command(program.ranks), ["mpi", str(found.library)]
        environment = _environment(self.threads)
        return RankProcesses(program, launcher, arguments, environment, self.timeout, observe=self.observe)


@dataclass(frozen=True, slots=True)
class SingleProcessEngine:
    """An engine that runs a program on one rank without MPI, in a separate process: the program may abort it."""

    timeout: float | None = None

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Implements `Engine.run`."""
        devices = RankProcesses(program, [], [], python_process.python_environment(), self.timeout)
        return run_and_close(devices, inputs, program.ranks)


def _environment(threads: int) -> dict[str, str]:
    settings = {name: os.environ.get(name, value) for name, value in _SETTINGS.items()}
    inherited = python_process.python_environment(settings, threads)
    return {name: value for name, value in inherited.items() if not name.startswith(_INHERITED)}
