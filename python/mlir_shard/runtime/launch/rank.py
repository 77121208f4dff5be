# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process of a rank: `python -m mlir_shard.runtime.launch.rank DIRECTORY [mpi LIBRARY | pjrt PLATFORM]`.

With MPI each process is a rank; with PJRT one process has all devices; with neither the program runs on one rank. The
process compiles the program in the folder, and executes the messages that it receives; see `run_folder`.

The process started by mpiexec forks before it imports anything large. The child is the rank; the parent waits for it
and records how and when it ended. This is the only way to find the first rank that a signal has killed: mpiexec then
ends the other ranks at once, and does not report which was the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import shutil
import signal
import socket
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlir_shard.runtime.launch.launcher_place import place
from mlir_shard.runtime.launch.measured_calls import measure
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
    from collections.abc import Callable, Sequence

    from mlir_shard.runtime.launch.mpi_library import MpiProcess
    from mlir_shard.runtime.launch.run_folder import Call, Exchange
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
    around = _Around(os.getpid(), os.getppid())
    child = os.fork()
    if child == 0:
        os._exit(_be_rank(run, rank, engine, argument, around))
    os._exit(_wait_for(child, run, rank))


def _wait_for(child: int, run: RankStatus, rank: int) -> int:
    # This process keeps its connection to mpiexec open: once it closes, mpiexec kills the ranks that have not ended.
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
    # The exit status must not be 0, because mpiexec would then let the other ranks wait.
    return FAILED


@dataclasses.dataclass(frozen=True, slots=True)
class _Around:
    """The ancestors of a rank: its parent, which waits for it, and the process of the launcher that started the parent.

    The launcher may have such a process on each machine, and may not notice the end of one.
    """

    parent: int
    launcher: int


def _be_rank(run: RankStatus, rank: int, engine: str, argument: str, around: _Around) -> int:
    _die_with(around.parent)
    _log_output(run, rank)
    run.write(rank, PIDS, (os.getpid(), around.parent))
    try:
        _execute(run, rank, engine, argument, around)
    except BaseException as error:
        # The message of an exception such as KeyError is not clear without its type.
        kind = "" if type(error).__name__ == "RunError" else f"{type(error).__name__}: "
        print(f"{kind}{error}", file=sys.stderr, flush=True)
        return FAILED
    run.write(rank, ENDED, End(COMPLETED, time.monotonic_ns()))
    # MPICH disconnects from mpiexec in a C exit handler; without it mpiexec kills the ranks that have not ended.
    ctypes.CDLL(None).exit(0)
    return 0


def _execute(run: RankStatus, rank: int, engine: str, argument: str, around: _Around) -> None:
    from multiprocessing.connection import Connection

    from mlir_shard.runtime.launch.run_folder import Exchange, Fetch, Put, socket_address

    exchange = Exchange(run.directory)
    with socket_address(run.directory) as address, socket.socket(socket.AF_UNIX) as connecting:
        connecting.connect(address)
        connection = Connection(connecting.detach())
    program, owner = exchange.read_program()
    _watch(run, owner, around)
    clock = _Clock(run, rank)
    worker: _Rank | _AllRanks
    if engine == "pjrt":
        worker = _AllRanks(exchange, program, argument, clock)
    else:
        worker = _Rank(exchange, program, Path(argument) if engine else None, clock)
    held: dict[int, Any] = {}
    try:
        connection.send(None)
        while (message := connection.recv()) is not None:
            if isinstance(message, Fetch):
                for number in message.numbers:
                    worker.write(number, held[number])
            elif isinstance(message, Put):
                held[message.number] = worker.read(message.index)
            else:
                _call(worker, message, held, program)
            connection.send(None)
    except (EOFError, ConnectionError):
        # The owner has ended, and `_watch` cleans up before it ends this process, or the owner kills this process.
        threading.Event().wait()
    worker.end()


def _call(worker: _Rank | _AllRanks, message: Call, held: dict[int, Any], program: Program) -> None:
    for number in message.freed:
        held.pop(number, None)

    def input_of(index: int, number: int | None) -> Callable[[], Any]:
        donated = program.arguments[index].donated
        if number is None and donated:
            return partial(worker.read, index)
        value = worker.read(index) if number is None else held.pop(number) if donated else held[number]
        return lambda: value

    inputs = [input_of(index, number) for index, number in enumerate(message.arguments)]
    held.update(zip(message.results, worker.call(inputs, message.repeat), strict=True))


class _Rank:
    """One rank, with the MPI library `library` or without MPI."""

    def __init__(self, exchange: Exchange, program: Program, library: Path | None, clock: _Clock) -> None:
        from mlir_shard.runtime.launch.jit import Executable

        self._exchange, self._program, self._clock = exchange, program, clock
        self._mpi = _begin_mpi(library, clock.run, clock.rank) if library else None
        clock.note("load")
        self._executable = Executable(program, self._mpi)
        clock.note("compile", program.lowered.compile_time)

    def read(self, index: int) -> Any:
        """Reads the rank's shard of an input."""
        from mlir_shard.runtime import arrays

        port = self._program.arguments[index]
        return arrays.cut(self._exchange.read_input(index), port.boxes[self._clock.rank], port.local.shape)

    def call(self, inputs: Sequence[Callable[[], Any]], repeat: int) -> Sequence[Any]:
        """Runs the program together with the other ranks."""
        measured = measure(self._executable, inputs, repeat, self._begin)
        messages = self._executable.messages()
        self._clock.write(runs=measured.seconds, messages=messages, peak_bytes=measured.peak_bytes)
        return measured.results

    def _begin(self) -> None:
        self._executable.messages()
        if self._mpi:
            self._mpi.barrier()

    def write(self, number: int, value: Any) -> None:
        """Writes a local tensor."""
        self._exchange.write_tensor(self._clock.rank, number, value)

    def end(self) -> None:
        """Finalizes MPI."""
        if self._mpi:
            self._mpi.finalize()


class _AllRanks:
    """All ranks, each a device of PJRT."""

    def __init__(self, exchange: Exchange, program: Program, platform: str, clock: _Clock) -> None:
        from mlir_shard.runtime.pjrt.executable import PjrtExecutable

        self._exchange, self._program, self._clock = exchange, program, clock
        clock.note("load")
        self._executable = PjrtExecutable(program, platform)
        clock.note("compile")

    def read(self, index: int) -> Any:
        """Reads the shards of an input and puts them on the devices."""
        from mlir_shard.runtime import arrays

        port, given = self._program.arguments[index], self._exchange.read_input(index)
        cut = (arrays.cut(given, box, port.local.shape) for box in port.boxes)
        return self._executable.put([arrays.presented(block, port.spec.element_type) for block in cut])

    def call(self, inputs: Sequence[Callable[[], Any]], repeat: int) -> Sequence[Any]:
        """Runs the program on all devices."""
        measured = measure(self._executable, inputs, repeat)
        self._clock.write(runs=measured.seconds)
        return measured.results

    def write(self, number: int, value: Any) -> None:
        """Writes the local tensors of all devices."""
        for rank, block in enumerate(self._executable.take(value)):
            self._exchange.write_tensor(rank, number, block)

    def end(self) -> None:
        """Does nothing."""


class _Clock:
    """A recorder of the times of the parts of a rank's work."""

    def __init__(self, run: RankStatus, rank: int) -> None:
        self.run, self.rank = run, rank
        self._times = RankTimes()
        self._begin = time.perf_counter()

    def note(self, part: str, elsewhere: float = 0.0) -> None:
        """Records the time of the part that has ended, `load` or `compile`, and starts the next part.

        elsewhere: the seconds that another process has spent on the part.
        """
        self.write(**{part: time.perf_counter() - self._begin + elsewhere})
        self._begin = time.perf_counter()

    def write(self, **parts: Any) -> None:
        """Records fields of `RankTimes`."""
        self._times = dataclasses.replace(self._times, **parts)
        self.run.write(self.rank, TIMES, self._times)


def _begin_mpi(library: Path, run: RankStatus, rank: int) -> MpiProcess:
    from mlir_shard.runtime.launch import shared_memory
    from mlir_shard.runtime.launch.mpi_library import MpiProcess

    process = MpiProcess(library)
    # MPICH removes these files only when it finalizes.
    run.write(rank, SHARED_MEMORY, shared_memory.mapped())
    return process


def _die_with(parent: int) -> None:
    """Makes the system kill this process when its parent ends, on Linux; ends this process if the parent has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)


def _watch(run: RankStatus, owner: int, around: _Around) -> None:
    """Starts a thread that ends this process once its owner, its parent or its launcher has ended.

    If the owner has ended, the thread also removes the files of the run.
    """

    def watch() -> None:
        while is_running(owner) and is_running(around.parent) and is_running(around.launcher):
            time.sleep(_WATCH_SECONDS)
        if is_running(owner):
            if not is_running(around.launcher):
                print("the launcher process that started this rank has ended", file=sys.stderr, flush=True)
        else:
            # All ranks do this concurrently, so a rank may add files to a folder that another is removing.
            with contextlib.suppress(FileNotFoundError):
                run.remove_shared_memory()
            deadline = time.monotonic() + _CLEANING_SECONDS
            while run.directory.exists() and time.monotonic() < deadline:
                shutil.rmtree(run.directory, ignore_errors=True)
        os._exit(FAILED)

    threading.Thread(target=watch, daemon=True).start()


def _log_output(run: RankStatus, rank: int) -> None:
    """Redirects the output of this process to the rank's log, unbuffered: an aborted process does not flush buffers."""
    log = os.open(run.log(rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)


if __name__ == "__main__":
    main()
