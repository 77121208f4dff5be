# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one rank does: `python -m mlir_shard.runtime.launch.rank DIRECTORY [mpi LIBRARY | pjrt PLATFORM]`.

Of MPI each process is a rank; by PJRT one process has all devices; with neither a program runs alone.

The process begun by mpiexec forks before it has loaded anything. The child is the rank; the parent waits for it and
writes down how and when it ended. Nothing else can tell this of a process that a signal kills: mpiexec ends the other
ranks at once, and does not tell which was the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mlir_shard.runtime.launch.launcher_place import place
from mlir_shard.runtime.launch.run_folder import (
    COMPLETED,
    ENDED,
    PIDS,
    SHARED_MEMORY,
    TIMES,
    End,
    RankStatus,
    is_running,
)
from mlir_shard.runtime.program import RankTimes

if TYPE_CHECKING:
    from mlir_shard.runtime.launch.mpi_library import MpiProcess
    from mlir_shard.runtime.launch.run_folder import Exchange
    from mlir_shard.runtime.program import Program


FAILED = 1
_PR_SET_PDEATHSIG = 1
_WATCH_SECONDS = 0.5
_CLEANING_SECONDS = 2.0


def main() -> None:
    """Runs this process's rank of the program in the folder."""
    run = RankStatus(Path(sys.argv[1]))
    engine, argument = sys.argv[2:] or ("", "")
    found = place() if engine == "mpi" else None
    rank = found.rank if found else 0
    waiting = os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(_be_rank(run, rank, engine, argument, waiting))
    os._exit(_wait_for(child, run, rank))


def _wait_for(child: int, run: RankStatus, rank: int) -> int:
    # This process keeps its end of the connection to mpiexec: when that closes, mpiexec kills who has not ended.
    _, status = os.waitpid(child, 0)
    when = time.monotonic_ns()
    end = run.read(rank, ENDED)
    if end is not None and end.what == COMPLETED:
        return 0
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = f"was killed by {signal.Signals(number).name} ({signal.strsignal(number)})"
    else:
        what = f"ended with exit status {os.WEXITSTATUS(status)}"
    with contextlib.suppress(FileNotFoundError):
        run.write(rank, ENDED, End(what, when))
    # Never 0, the status of a rank that needs no other one any more: mpiexec would let the others wait.
    return FAILED


def _be_rank(run: RankStatus, rank: int, engine: str, argument: str, parent: int) -> int:
    _die_with(parent)
    _log_output(run, rank)
    run.write(rank, PIDS, (os.getpid(), parent))
    try:
        _execute(run, rank, engine, argument, parent)
    except BaseException as error:
        # The kind of an exception matters where the message does not speak for itself, as in a KeyError.
        kind = "" if type(error).__name__ == "RunError" else f"{type(error).__name__}: "
        print(f"{kind}{error}", file=sys.stderr, flush=True)
        return FAILED
    run.write(rank, ENDED, End(COMPLETED, time.monotonic_ns()))
    # MPICH takes leave of mpiexec in an exit handler of C; without it mpiexec kills the ranks that have not ended.
    ctypes.CDLL(None).exit(0)
    return 0


def _execute(run: RankStatus, rank: int, engine: str, argument: str, parent: int) -> None:
    from mlir_shard.runtime.launch.run_folder import Exchange

    exchange = Exchange(run.directory)
    program, owner = exchange.read_program()
    _watch(run, owner, parent)
    clock = _Clock(run, rank)
    if engine == "pjrt":
        _execute_all(exchange, program, argument, clock)
    else:
        _execute_one(exchange, program, Path(argument) if engine else None, clock)


def _execute_one(exchange: Exchange, program: Program, library: Path | None, clock: _Clock) -> None:
    """The work of one rank, with the MPI of `library` or alone."""
    from mlir_shard.runtime import arrays
    from mlir_shard.runtime.launch.jit import Executable

    mpi = _begin_mpi(library, clock.run, clock.rank) if library else None
    inputs = [
        arrays.cut(exchange.read_input(index), port.boxes[clock.rank], port.local.shape)
        for index, port in enumerate(program.arguments)
    ]
    clock.note("load")
    compiled = Executable(program, mpi)
    clock.note("compile")
    if mpi:
        mpi.barrier()
        clock.restart()
    results = compiled(inputs)
    clock.note("run")
    exchange.write_results(clock.rank, results)
    if mpi:
        mpi.finalize()


def _execute_all(exchange: Exchange, program: Program, platform: str, clock: _Clock) -> None:
    """The work of all ranks, each a device of PJRT."""
    from mlir_shard.runtime import arrays
    from mlir_shard.runtime.pjrt.executable import PjrtExecutable

    blocks = []
    for index, port in enumerate(program.arguments):
        whole = exchange.read_input(index)
        cut = [arrays.cut(whole, box, port.local.shape) for box in port.boxes]
        blocks.append([arrays.presented(block, port.spec.element_type) for block in cut])
    clock.note("load")
    executable = PjrtExecutable(program, platform)
    clock.note("compile")
    by_rank = executable(blocks)
    clock.note("run")
    for rank, results in enumerate(by_rank):
        exchange.write_results(rank, results)


class _Clock:
    """Writes down how long the parts of the work of a rank take."""

    def __init__(self, run: RankStatus, rank: int) -> None:
        self.run, self.rank = run, rank
        self._times = RankTimes()
        self._begin = time.perf_counter()

    def restart(self) -> None:
        """The part that is next begins now."""
        self._begin = time.perf_counter()

    def note(self, part: str) -> None:
        """Writes the time of the part that has ended, `load`, `compile` or `run`; the next one begins now."""
        self._times = dataclasses.replace(self._times, **{part: time.perf_counter() - self._begin})
        self.run.write(self.rank, TIMES, self._times)
        self.restart()


def _begin_mpi(library: Path, run: RankStatus, rank: int) -> MpiProcess:
    from mlir_shard.runtime.launch.mpi_library import MpiProcess, shared_memory

    process = MpiProcess(library)
    # MPICH removes these when it finalizes, and only then.
    run.write(rank, SHARED_MEMORY, shared_memory())
    return process


def _die_with(parent: int) -> None:
    """Has this process killed when its parent ends, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)


def _watch(run: RankStatus, owner: int, parent: int) -> None:
    """Ends this process when that of the run, or its parent, has ended; the former leaves its files to the ranks."""

    def watch() -> None:
        while is_running(owner) and is_running(parent):
            time.sleep(_WATCH_SECONDS)
        if not is_running(owner):
            # All ranks do this at once, so that one may put something, or miss it, where another has just looked.
            with contextlib.suppress(FileNotFoundError):
                run.remove_shared_memory()
            deadline = time.monotonic() + _CLEANING_SECONDS
            while run.directory.exists() and time.monotonic() < deadline:
                shutil.rmtree(run.directory, ignore_errors=True)
        os._exit(FAILED)

    threading.Thread(target=watch, daemon=True).start()


def _log_output(run: RankStatus, rank: int) -> None:
    """Sends what this process prints to the rank's log, unbuffered: a process that aborts flushes nothing."""
    log = os.open(run.log(rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)


if __name__ == "__main__":
    main()
