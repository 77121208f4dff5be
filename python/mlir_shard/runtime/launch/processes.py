# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts the processes of a program, calls it on them, and ends all processes even after errors."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path
from types import TracebackType

from mlir_shard import _native
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.run_folder import (
    COMPLETED,
    ENDED,
    PIDS,
    TIMES,
    Call,
    Exchange,
    Fetch,
    Put,
    RankStatus,
    is_running,
    socket_address,
)
from mlir_shard.runtime.program import Held, Observe, Program, RankTimes
from mlir_shard.uninterrupted import uninterrupted

_SECONDS_TO_END = 2.0
_OBSERVE_SECONDS = 0.1
_LINES_SHOWN = 12
# The minimum memory of a process, or of a device in one. Ranks beyond the machine's memory would stall it, not fail.
_BYTES_OF_PROCESS = 32 << 20
_BYTES_OF_DEVICE = 4 << 20


def check_memory(ranks: int, *, in_one_process: bool) -> None:
    """Raises RunError if the machine does not have enough memory for this number of ranks."""
    bytes_of_one = _BYTES_OF_DEVICE if in_one_process else _BYTES_OF_PROCESS
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // bytes_of_one
    if ranks > max(most, 1):
        raise RunError(f"the program is for {ranks} devices, but this machine has memory for at most {most}")


class RankProcesses:
    """Processes that hold a compiled program and tensors until they are closed, fail, or are garbage-collected.

    Args:
        program: the program of each rank.
        launcher: the words before the command of a rank.
        rank_arguments: the arguments of that command after the folder, see `rank`.
        environment: the environment of the launcher.
        timeout: seconds after which a call is stopped; the time of the first call includes the start.
        in_one_process: whether one process does the work of all ranks.
        observe: is called with the times of the processes.

    Every method raises RunError if the machine has too little memory for the ranks, if a rank fails (with its name and
    last output), or after the timeout. Then, and after any other exception such as KeyboardInterrupt, the processes
    have ended and their files are removed.
    """

    def __init__(
        self,
        program: Program,
        launcher: Sequence[str],
        rank_arguments: Sequence[str],
        environment: Mapping[str, str],
        timeout: float | None,
        *,
        in_one_process: bool = False,
        observe: Observe | None = None,
    ) -> None:
        check_memory(program.ranks, in_one_process=in_one_process)
        self._program = program
        self._lock = threading.Lock()
        self._numbers = 0
        # The numbers of unreferenced tensors, which the ranks free in the next call.
        self._freed: list[int] = []
        folder = tempfile.TemporaryDirectory(prefix="mlir-shard-", ignore_cleanup_errors=True)
        directory = Path(folder.name)
        _native.remove_at_crash(folder.name)
        self._exchange, status = Exchange(directory), RankStatus(directory)
        self._exchange.write_program(program, os.getpid())
        command = [
            *launcher,
            *python_process.python_command("mlir_shard.runtime.launch.rank"),
            folder.name,
            *rank_arguments,
        ]
        count = 1 if in_one_process else program.ranks
        with socket_address(directory) as address, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(count)
            process = _launch(command, environment, directory)
            self._watch = _Watch(process, status, count, timeout, observe)
            self._connections: list[Connection] = []
            # The finalizer also runs when the interpreter exits; it removes the folder last.
            self._finalizer = weakref.finalize(self, _end, os.getpid(), process, status, self._connections, folder)
            with self._ending_on_error():
                listener.settimeout(0)
                self._watch.until(partial(self._accept, listener))
                self._await_answers()

    def __call__(self, inputs: Sequence[Array | Held], repeat: int = 1) -> list[Held]:
        """Implements `Devices.__call__`; the results stay on the ranks. Tensors of donated arguments are freed."""
        with self._lock, self._ending_on_error():
            self._restart()
            numbers: list[int | None] = []
            for index, given in enumerate(inputs):
                if isinstance(given, ResidentTensor):
                    numbers.append(given.number)
                else:
                    assert not isinstance(given, Held)
                    self._exchange.write_input(index, given)
                    numbers.append(None)
            results = [self._next_number() for _ in self._program.results]
            freed, self._freed = self._freed, []
            self._send(Call(tuple(numbers), tuple(results), tuple(freed), repeat))
            self._await_answers()
            self._exchange.remove_inputs()
            self._watch.tell()
        return [ResidentTensor(self, number) for number in results]

    def put(self, index: int, array: Array) -> Held:
        """Implements `Devices.put`."""
        with self._lock, self._ending_on_error():
            self._restart()
            self._exchange.write_input(index, array)
            number = self._next_number()
            self._send(Put(index, number))
            self._await_answers()
            self._exchange.remove_inputs()
        return ResidentTensor(self, number)

    def fetch(self, tensors: Sequence[Held]) -> list[list[Array]]:
        """Implements `Devices.fetch`."""
        numbers = [one.number for one in tensors if isinstance(one, ResidentTensor)]
        with self._lock, self._ending_on_error():
            self._watch.restart()
            self._send(Fetch(tuple(numbers)))
            self._await_answers()
            return [self._exchange.take_tensor(number, self._program.ranks) for number in numbers]

    @property
    def is_running(self) -> bool:
        """Whether the processes have not ended."""
        return self._finalizer.alive

    def close(self) -> None:
        """Ends the processes; raises RunError if one of them fails while it ends."""
        with self._lock:
            if not self._finalizer.alive:
                return
            with self._ending_on_error():
                self._watch.restart()
                self._send(None)
                self._watch.until(self._watch.has_ended)
                self._watch.check_end()
            self._finalizer()

    def __enter__(self) -> RankProcesses:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._finalizer()

    def free(self, number: int) -> None:
        """Frees a tensor in the next call."""
        self._freed.append(number)

    def _restart(self) -> None:
        # The timeout of the first call includes the start.
        if self._numbers:
            self._watch.restart()

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    @contextlib.contextmanager
    def _ending_on_error(self) -> Iterator[None]:
        try:
            if not self._finalizer.alive:
                raise RunError("the ranks have ended, and their arrays are lost")
            yield
        except BaseException:
            self._finalizer()
            raise

    def _accept(self, listener: socket.socket, seconds: float) -> bool:
        wait_for_any([listener], seconds)
        with contextlib.suppress(BlockingIOError):
            while len(self._connections) < self._watch.count:
                accepted, _ = listener.accept()
                accepted.setblocking(True)
                self._connections.append(Connection(accepted.detach()))
        return len(self._connections) == self._watch.count

    def _send(self, message: Call | Put | Fetch | None) -> None:
        for connection in self._connections:
            # The failure of a rank is reported by the wait for its answer.
            with contextlib.suppress(OSError):
                connection.send(message)

    def _await_answers(self) -> None:
        """Waits for an answer of each rank."""
        left = list(self._connections)

        def are_done(seconds: float) -> bool:
            for one in wait_for_any(left, seconds):
                assert isinstance(one, Connection)
                try:
                    one.recv()
                except (EOFError, OSError):
                    # The rank's end will soon be in the folder.
                    time.sleep(min(seconds, _OBSERVE_SECONDS))
                    continue
                left.remove(one)
            return not left

        self._watch.until(are_done)


class ResidentTensor(Held):
    """A tensor on the ranks, which they free once this object is garbage-collected."""

    def __init__(self, owner: RankProcesses, number: int) -> None:
        self.owner, self.number = owner, number

    def __del__(self) -> None:
        self.owner.free(self.number)


def _launch(command: Sequence[str], environment: Mapping[str, str], directory: Path) -> subprocess.Popen[bytes]:
    with _output(directory).open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=directory,
            # An interrupt from the terminal reaches only this process, which then ends the others.
            start_new_session=True,
        )


def _output(directory: Path) -> Path:
    return directory / "launcher.log"


@dataclass
class _Watch:
    """The wait for the launcher and its ranks, with a timeout and an observer of their times."""

    process: subprocess.Popen[bytes]
    status: RankStatus
    count: int
    timeout: float | None
    observe: Observe | None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Starts the timeout of the next call."""
        self._deadline = math.inf if self.timeout is None else time.monotonic() + self.timeout

    def tell(self) -> None:
        """Reports the times of the processes to the observer."""
        if self.observe:
            self.observe([self.status.read(rank, TIMES) or RankTimes() for rank in range(self.count)])

    def until(self, is_done: Callable[[float], bool]) -> None:
        """Waits until `is_done`, called with the seconds to wait, is true; raises RunError on failures and timeouts.

        If a rank has failed, the wait fails even if the launcher does not end the other ranks soon.
        """
        patience = math.inf
        while True:
            left = self._deadline - time.monotonic()
            if is_done(max(0.0, min(left, _OBSERVE_SECONDS))):
                return
            if left <= _OBSERVE_SECONDS and time.monotonic() >= self._deadline:
                raise RunError(f"the program was stopped after {self.timeout:g} s")
            self.tell()
            if self.process.poll() is not None or time.monotonic() > patience:
                # The event may have occurred since the last check.
                if is_done(0.0):
                    return
                self.check_end()
                raise RunError("the ranks have ended before all of them answered")
            if patience == math.inf and self._has_failed():
                patience = time.monotonic() + _SECONDS_TO_END

    def has_ended(self, seconds: float) -> bool:
        """Returns whether the launcher ends within the given seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
            return True
        return False

    def check_end(self) -> None:
        """Raises RunError if not all processes have completed, or if the exit status of the launcher is not 0."""
        failure = _failure(self.status, self.count, self.process.poll() or 0)
        if failure:
            raise RunError(failure)

    def _has_failed(self) -> bool:
        ends = [self.status.read(rank, ENDED) for rank in range(self.count)]
        return any(end is not None and end.what != COMPLETED for end in ends)


def _end(
    owner: int,
    process: subprocess.Popen[bytes],
    status: RankStatus,
    connections: list[Connection],
    folder: tempfile.TemporaryDirectory[str],
) -> None:
    """Ends the launcher and all ranks, and removes their files and the shared memory of killed ranks."""
    if os.getpid() != owner:
        # This process is a fork of the owner.
        return
    with uninterrupted():
        for connection in connections:
            connection.close()
        if process.poll() != 0:
            _end_by_force(process, status)
        folder.cleanup()
        _native.keep_at_crash(folder.name)


def _end_by_force(process: subprocess.Popen[bytes], status: RankStatus) -> None:
    pids = status.read_all(PIDS)
    _kill(pids)
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # Ranks that have started since then are killed too.
    pids = status.read_all(PIDS)
    _kill(pids)
    deadline = time.monotonic() + _SECONDS_TO_END
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.005)
    status.remove_shared_memory()


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _failure(status: RankStatus, ranks: int, code: int) -> str | None:
    """Returns the failure of the first rank that failed, or of a launcher with exit status `code`; None without one."""
    ends = [(rank, status.read(rank, ENDED)) for rank in range(ranks)]
    failed = sorted((end.when, rank, end.what) for rank, end in ends if end is not None and end.what != COMPLETED)
    silent = [str(rank) for rank, end in ends if end is None]
    output = _output(status.directory)
    if failed:
        _, rank, what = failed[0]
        name = f"rank {rank} of {ranks}" if ranks > 1 else "the program"
        return f"{name} {what}{_last_lines(status.log(rank))}"
    if silent:
        return f"rank {', '.join(silent)} of {ranks} did not exit by itself, or did not start{_last_lines(output)}"
    return f"mpiexec ended with exit status {code}{_last_lines(output)}" if code else None


def _last_lines(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    written = [line.rstrip() for line in lines if line.strip()]
    if not written:
        return "; it had no output"
    return "; its last output:" + "".join(f"\n  {line}" for line in written[-_LINES_SHOWN:])
