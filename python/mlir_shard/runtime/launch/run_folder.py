# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder through which a run hands its ranks the program and gets their results and their status."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.program import Program


@dataclass(frozen=True, slots=True)
class Exchange:
    """The folder, by its path."""

    directory: Path

    def write_program(self, program: Program, inputs: Sequence[Array], owner: int) -> None:
        """Writes what to run; the ranks end when the process `owner` does."""
        (self.directory / "program").write_bytes(pickle.dumps((program, owner)))
        for index, array in enumerate(inputs):
            np.save(self.directory / f"argument.{index}.npy", array, allow_pickle=False)

    def read_program(self) -> tuple[Program, int]:
        """The program and its owner."""
        program: tuple[Program, int] = pickle.loads((self.directory / "program").read_bytes())
        return program

    def read_input(self, index: int) -> Array:
        """A global input, mapped rather than read: a rank takes only its part."""
        loaded: Array = np.load(self.directory / f"argument.{index}.npy", mmap_mode="r", allow_pickle=False)
        return loaded

    def write_results(self, rank: int, arrays: Sequence[Array]) -> None:
        """Writes the local results of a rank."""
        for index, array in enumerate(arrays):
            np.save(self.directory / f"result.{rank}.{index}.npy", array, allow_pickle=False)

    def read_results(self, rank: int, count: int) -> list[Array]:
        """The local results of a rank."""
        return [np.load(self.directory / f"result.{rank}.{index}.npy", allow_pickle=False) for index in range(count)]


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
        """Removes the files of shared memory of ranks that cannot do so any more."""
        for name in self.read_all(SHARED_MEMORY):
            Path(name).unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether there is a process of that number that has not ended."""
    try:
        os.kill(pid, 0)
        # What has ended is there until somebody waits for it, which the first process of a system may be slow to do.
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True
    return state not in ("Z", "X")
