# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder with the program and the inputs for the ranks, their results and their status.

Messages use a socket in the folder: a `Call`, a `Put` or a `Fetch` to every rank, and None to end it. A rank answers
with None once it has compiled, and to every message but the last.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.launch import shared_memory
from mlir_shard.runtime.program import Program

_PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the program.

    Attributes:
        arguments: for each argument the number of a tensor on the ranks, or None if its global array is in the folder.
        results: the numbers of the result tensors.
        freed: the numbers of the tensors to free before the call.
        repeat: the number of calls of the program, each with the same inputs.
    """

    arguments: tuple[int | None, ...]
    results: tuple[int, ...]
    freed: tuple[int, ...]
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Put:
    """A request to keep each rank's shard of the argument `index`, whose global array is in the folder, as a tensor."""

    index: int
    number: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request to write each rank's local tensors with these numbers."""

    numbers: tuple[int, ...]


@contextlib.contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """Yields a short address of the socket in the folder, whose path may be too long for an address."""
    folder = os.open(directory, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/ranks"
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The folder, by its path."""

    directory: Path

    def write_program(self, program: Program, owner: int) -> None:
        """Writes the program; the ranks end when the process `owner` ends."""
        (self.directory / _PROGRAM).write_bytes(pickle.dumps((program, owner)))

    def write_input(self, index: int, array: Array) -> None:
        """Writes a global input."""
        np.save(self.directory / f"argument.{index}.npy", array, allow_pickle=False)

    def remove_inputs(self) -> None:
        """Removes the inputs of a call that has ended."""
        for path in self.directory.glob("argument.*.npy"):
            path.unlink()

    def read_program(self) -> tuple[Program, int]:
        """Returns the program and its owner."""
        program: tuple[Program, int] = pickle.loads((self.directory / _PROGRAM).read_bytes())
        return program

    def read_input(self, index: int) -> Array:
        """Returns a global input, memory-mapped: a rank reads only its shard."""
        loaded: Array = np.load(self.directory / f"argument.{index}.npy", mmap_mode="r", allow_pickle=False)
        return loaded

    def write_tensor(self, rank: int, number: int, array: Array) -> None:
        """Writes a local tensor of a rank."""
        np.save(self._tensor(rank, number), array, allow_pickle=False)

    def take_tensor(self, number: int, ranks: int) -> list[Array]:
        """Reads the local tensors of all ranks, and removes the files."""
        taken = []
        for rank in range(ranks):
            path = self._tensor(rank, number)
            taken.append(np.load(path, allow_pickle=False))
            path.unlink()
        return taken

    def _tensor(self, rank: int, number: int) -> Path:
        return self.directory / f"tensor.{rank}.{number}.npy"


COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a rank: `COMPLETED` or the failure, and its time in nanoseconds of the machine's monotonic clock."""

    what: str
    when: int


PIDS = "pids"
ENDED = "ended"
TIMES = "times"
SHARED_MEMORY = "shm"


@dataclass(frozen=True, slots=True)
class RankStatus:
    """The folder of the run, by its path.

    Each rank writes values of four kinds: `PIDS`, the ids of its processes; `ENDED`, its `End`; `TIMES`, its
    `RankTimes`; and `SHARED_MEMORY`, the paths of the shared memory that it has mapped.
    """

    directory: Path

    def log(self, rank: int) -> Path:
        """Returns the path of a rank's output."""
        return self.directory / f"rank.{rank}.log"

    def write(self, rank: int, kind: str, value: object) -> None:
        """Writes a value of a rank atomically: a reader sees all of it or no file."""
        written = self.directory / f".rank.{rank}.{kind}"
        written.write_bytes(pickle.dumps(value))
        written.replace(self.directory / f"rank.{rank}.{kind}")

    def read(self, rank: int | str, kind: str) -> Any:
        """Returns the value of a rank, or None if it has not written one."""
        try:
            return pickle.loads((self.directory / f"rank.{rank}.{kind}").read_bytes())
        except FileNotFoundError:
            return None

    def read_all(self, kind: str) -> list[Any]:
        """Returns the concatenation of the lists of this kind of all ranks."""
        ranks = [path.name.split(".")[1] for path in self.directory.glob(f"rank.*.{kind}")]
        return [value for rank in ranks for value in self.read(rank, kind) or ()]

    def remove_shared_memory(self) -> None:
        """Removes the files of shared memory of ranks that have been killed.

        Ranks write their paths once MPI is initialized. For other ranks it removes the files that they have mapped, or,
        if they have ended, the files that no process uses.
        """
        running = [path for pid in self.read_all(PIDS) for path in shared_memory.mapped(pid)]
        for path in {*self.read_all(SHARED_MEMORY), *running}:
            Path(path).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            # The program was written before the ranks started.
            shared_memory.remove_unused((self.directory / _PROGRAM).stat().st_mtime)


def is_running(pid: int) -> bool:
    """Returns whether a process exists and not all of its threads have ended."""
    try:
        os.kill(pid, 0)
        # A process that has ended exists until its parent waits for it, which may be late if the parent is init.
        return any(map(_is_thread_running, Path(f"/proc/{pid}/task").iterdir()))
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True


def _is_thread_running(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in ("Z", "X")
