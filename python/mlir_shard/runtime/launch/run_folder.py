# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder through which ranks get a program and inputs, and their results and status come back.

Messages go through a socket in the folder: a `Call`, a `Put` or a `Fetch` to every rank, None to end it. A rank answers
with None, once it has compiled and to every message but the last.
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
        arguments: the number of the tensor that ranks hold, or None for one whose global array is in the folder.
        results: the numbers that results get.
        freed: the numbers of tensors that are used no more, before the call.
        repeat: how many times to call the program, each time with the same inputs.
    """

    arguments: tuple[int | None, ...]
    results: tuple[int, ...]
    freed: tuple[int, ...]
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Put:
    """Has each rank hold its part of the argument `index`, whose global array is in the folder, as a tensor."""

    index: int
    number: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Has each rank write its local tensors of these numbers."""

    numbers: tuple[int, ...]


@contextlib.contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """The address of the socket, which has to be short: paths of folders for temporary files may be long."""
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
        """Writes what to run; the ranks end when the process `owner` does."""
        (self.directory / _PROGRAM).write_bytes(pickle.dumps((program, owner)))

    def write_input(self, index: int, array: Array) -> None:
        """Writes a global input."""
        np.save(self.directory / f"argument.{index}.npy", array, allow_pickle=False)

    def remove_inputs(self) -> None:
        """Removes the inputs of a call that has ended."""
        for path in self.directory.glob("argument.*.npy"):
            path.unlink()

    def read_program(self) -> tuple[Program, int]:
        """The program and its owner."""
        program: tuple[Program, int] = pickle.loads((self.directory / _PROGRAM).read_bytes())
        return program

    def read_input(self, index: int) -> Array:
        """A global input, mapped rather than read: a rank takes only its part."""
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
    """How a rank ended: `COMPLETED` or what went wrong, and when, in nanoseconds of the machine's monotonic clock."""

    what: str
    when: int


PIDS = "pids"
ENDED = "ended"
TIMES = "times"
SHARED_MEMORY = "shm"


@dataclass(frozen=True, slots=True)
class RankStatus:
    """The folder of the run, by its path.

    Each rank writes values of four kinds: the `PIDS` of its processes, how it `ENDED` (an `End`), the `TIMES` of its
    parts (`RankTimes`), and the paths of the `SHARED_MEMORY` that it has mapped.
    """

    directory: Path

    def log(self, rank: int) -> Path:
        """Where the output of a rank goes."""
        return self.directory / f"rank.{rank}.log"

    def write(self, rank: int, kind: str, value: object) -> None:
        """Writes a value of a rank, so that a reader finds all of it or no file."""
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
        """Returns what all ranks list under this kind."""
        ranks = [path.name.split(".")[1] for path in self.directory.glob(f"rank.*.{kind}")]
        return [value for rank in ranks for value in self.read(rank, kind) or ()]

    def remove_shared_memory(self) -> None:
        """Removes the files of shared memory of ranks that cannot do so any more.

        They have written the names once MPI had begun. Of those that had not come so far, it is what they have mapped,
        or, where they are gone, what nobody has.
        """
        running = [path for pid in self.read_all(PIDS) for path in shared_memory.mapped(pid)]
        for path in {*self.read_all(SHARED_MEMORY), *running}:
            Path(path).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            # It was written before ranks began.
            shared_memory.remove_unused((self.directory / _PROGRAM).stat().st_mtime)


def is_running(pid: int) -> bool:
    """Whether there is a process of that number of which not all threads have ended."""
    try:
        os.kill(pid, 0)
        # What has ended is there until somebody waits for it, which the first process of a system may be slow to do.
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
