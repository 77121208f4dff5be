# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder through which a run hands its ranks the program and gets their results and their status."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.program import Program, RankTimes


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


@dataclass(frozen=True, slots=True)
class RankStatus:
    """The folder of the run, by its path."""

    directory: Path

    def log(self, rank: int) -> Path:
        """Where the output of a rank goes."""
        return self.directory / f"rank.{rank}.log"

    def write_pids(self, rank: int, pids: Sequence[int]) -> None:
        """Says which processes a rank has."""
        self._replace(f"rank.{rank}.pids", " ".join(map(str, pids)))

    def read_pids(self) -> list[int]:
        """The processes of the ranks that have begun."""
        return [int(pid) for path in self.directory.glob("rank.*.pids") for pid in path.read_text().split()]

    def write_end(self, rank: int, end: End) -> None:
        """Says how a rank ended."""
        self._replace(f"rank.{rank}.ended", f"{end.when} {end.what}")

    def read_end(self, rank: int) -> End | None:
        """How a rank ended, None where it did not say."""
        try:
            when, _, what = (self.directory / f"rank.{rank}.ended").read_text(encoding="utf-8").partition(" ")
        except FileNotFoundError:
            return None
        return End(what, int(when))

    def write_times(self, rank: int, times: RankTimes) -> None:
        """Says how long a rank took for what it has done."""
        done = (times.load, times.compile, times.run)
        self._replace(f"rank.{rank}.times", " ".join(str(seconds) for seconds in done if seconds is not None))

    def read_times(self, rank: int) -> RankTimes:
        """How long a rank took for what it has done, so far."""
        try:
            text = (self.directory / f"rank.{rank}.times").read_text(encoding="utf-8")
        except FileNotFoundError:
            return RankTimes()
        return RankTimes(*map(float, text.split()))

    def write_shared_memory(self, rank: int, paths: Sequence[str]) -> None:
        """Says which files of shared memory a rank has mapped."""
        self._replace(f"rank.{rank}.shm", "\n".join(paths))

    def remove_shared_memory(self) -> None:
        """Removes the files of shared memory that the ranks said they mapped, for ranks that cannot do so any more."""
        for said in self.directory.glob("rank.*.shm"):
            for name in said.read_text(encoding="utf-8").splitlines():
                Path(name).unlink(missing_ok=True)

    def _replace(self, name: str, text: str) -> None:
        # A reader sees the whole text or no file.
        written = self.directory / f".{name}"
        written.write_text(text, encoding="utf-8")
        written.replace(self.directory / name)


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
