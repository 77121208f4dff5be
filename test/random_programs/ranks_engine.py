# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled programs on MPI ranks that are reused, because starting them takes longer than a program."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import unittest.mock
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from mlir_shard.host import ir
from mlir_shard.runtime import RunError, arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.launch.mpi import MpiInstallation
from mlir_shard.runtime.lowering import llvm, nonblocking_messages
from mlir_shard.runtime.program import Lowered, Program
from random_programs.contexts import context

_SETTINGS = {
    # Waiting ranks yield their core soon, because there are more ranks than cores.
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "64",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
}
# MPI has a limited number of communicators, and each program makes some of its own.
_MOST_PROGRAMS = 100
_PR_SET_PDEATHSIG = 1

_Request = tuple[Program, list[Array]]


class RanksEnded(Exception):
    """A rank has ended during a program."""


def lower(modules: Sequence[str], entry: str) -> list[Lowered]:
    """Lowers modules to the LLVM dialect as `Compile.lower` does. RunError if one cannot be lowered."""
    lowered = []
    for text in modules:
        try:
            module = ir.Module.parse(text, context())
        except ir.MLIRError as error:
            raise RunError(f"cannot parse the module between passes: {error}") from error
        with unittest.mock.patch.multiple(nonblocking_messages, _LEAST=1, _LEAST_FOR_A_BYTE=0):
            # Programs are small: every message that can be started early is.
            llvm.lower(module, entry)
        lowered.append(Lowered(str(module)))
    return lowered


class AloneEngine:
    """Runs a program of one rank in this process."""

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Runs a program as `Engine.run` does."""
        return [Executable(program)([one.copy() for one in inputs])]


@dataclass
class _Ranks:
    """Processes under mpiexec that wait for programs."""

    launcher: subprocess.Popen[bytes]
    connections: list[Connection[_Request, list[Array]]]
    count: int = 0


@dataclass
class RanksEngine:
    """Runs programs on as many ranks as they need. RanksEnded if a rank ends."""

    _ranks: dict[int, _Ranks] = field(default_factory=dict)

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Runs a program as `Engine.run` does."""
        ranks = self._ranks.get(program.ranks)
        if ranks is not None and ranks.count == _MOST_PROGRAMS:
            self._end(program.ranks)
            ranks = None
        if ranks is None:
            ranks = self._ranks[program.ranks] = _start(program.ranks)
        ranks.count += 1
        try:
            for rank, connection in enumerate(ranks.connections):
                blocks = [
                    arrays.cut(whole, port.boxes[rank], port.local.shape)
                    for port, whole in zip(program.arguments, inputs, strict=True)
                ]
                connection.send((program, blocks))
            return [connection.recv() for connection in ranks.connections]
        except (EOFError, ConnectionError) as error:
            self._end(program.ranks)
            raise RanksEnded(f"one of {program.ranks} ranks has ended") from error

    def _end(self, count: int) -> None:
        ranks = self._ranks.pop(count)
        for connection in ranks.connections:
            connection.close()
        ranks.launcher.terminate()
        ranks.launcher.wait()


def _start(count: int) -> _Ranks:
    mpi = MpiInstallation.find()
    with tempfile.TemporaryDirectory(prefix="random-programs-") as folder:
        address = str(Path(folder) / "ranks")
        with Listener(address, backlog=count) as listener:
            command = [sys.executable, str(Path(__file__).with_name("rank.py")), address, str(mpi.library)]
            launcher = subprocess.Popen(
                [*mpi.command(count), *command, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=python_process.python_environment(_SETTINGS),
                preexec_fn=_end_with_parent,
            )
            by_rank = {}
            for _ in range(count):
                connection = listener.accept()
                by_rank[connection.recv()] = connection
    return _Ranks(launcher, [by_rank[rank] for rank in range(count)])


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
