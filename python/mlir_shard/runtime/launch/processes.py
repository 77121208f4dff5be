# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starting the processes of a run, waiting for them, and leaving none behind however that ends."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.run_folder import COMPLETED, ENDED, PIDS, TIMES, Exchange, RankStatus, is_running
from mlir_shard.runtime.program import Observe, Program, RankTimes

_SECONDS_TO_END = 2.0
_OBSERVE_SECONDS = 0.1
_LINES_SHOWN = 12
# What a process, or a device of one, takes at the least; more than a machine holds would stall it, not fail.
_BYTES_OF_PROCESS = 32 << 20
_BYTES_OF_DEVICE = 4 << 20
# One thread a rank: they share the machine's cores already.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(
    program: Program,
    inputs: Sequence[Array],
    launcher: Sequence[str],
    rank_arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout: float | None,
    *,
    count: int | None = None,
    observe: Observe | None = None,
) -> list[list[Array]]:
    """Runs `launcher` with the command of a rank after it, and returns the local results of each rank.

    count: the number of processes, by default one for each rank; where it is 1, that does the work of all ranks.
    observe: is told the times of the processes.

    RunError where the machine has no memory for as many ranks, a rank fails, with its name and the last it wrote, or
    after `timeout` seconds. However this ends, by an exception such as KeyboardInterrupt too, the processes are gone
    and so are their files.
    """
    _check_memory(program.ranks, _BYTES_OF_PROCESS if count is None else _BYTES_OF_DEVICE)
    with tempfile.TemporaryDirectory(prefix="mlir-shard-", ignore_cleanup_errors=True) as name:
        exchange, status = Exchange(Path(name)), RankStatus(Path(name))
        exchange.write_program(program, inputs, os.getpid())
        command = [*launcher, *python_command("mlir_shard.runtime.launch.rank"), name, *rank_arguments]
        output = Path(name) / "launcher.log"
        running = _Observed(status, count or program.ranks, observe)
        code = _launch_and_wait(command, environment, output, running, timeout)
        failure = _failure(status, running.count, code, output)
        if failure:
            raise RunError(failure)
        running.tell()
        return [exchange.read_results(rank, len(program.results)) for rank in range(program.ranks)]


def _check_memory(ranks: int, bytes_of_one: int) -> None:
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // bytes_of_one
    if ranks > max(most, 1):
        raise RunError(f"the program is for {ranks} devices, and this machine has memory for {most} at the most")


@dataclass(frozen=True, slots=True)
class _Observed:
    """The processes of a run, and who is told their times."""

    status: RankStatus
    count: int
    observe: Observe | None

    def tell(self) -> None:
        if self.observe:
            self.observe([self.status.read(rank, TIMES) or RankTimes() for rank in range(self.count)])

    def wait(self, process: subprocess.Popen[bytes], timeout: float | None) -> int:
        """The exit status of the launcher; subprocess.TimeoutExpired after `timeout` seconds.

        Where a rank has failed and the launcher does not end the others soon, that counts as its failure.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        patience = math.inf
        while True:
            left = deadline - time.monotonic()
            try:
                return process.wait(max(0.0, min(left, _OBSERVE_SECONDS)))
            except subprocess.TimeoutExpired:
                if left <= _OBSERVE_SECONDS:
                    raise
            if self.observe:
                self.tell()
            if time.monotonic() > patience:
                return 1
            if patience == math.inf and self._has_failed():
                patience = time.monotonic() + _SECONDS_TO_END

    def _has_failed(self) -> bool:
        ends = [self.status.read(rank, ENDED) for rank in range(self.count)]
        return any(end is not None and end.what != COMPLETED for end in ends)


def python_command(module: str) -> list[str]:
    """The command that runs a module of this project in this interpreter."""
    return [sys.executable, "-m", module]


def python_environment(additions: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """This process's environment for a Python that finds what this one finds, and does not look where it is started.

    Before Python 3.11 it does look there, so it should be started in a folder of the project's own.
    """
    path = [os.path.abspath(entry) for entry in sys.path if entry]
    found = {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}
    return {**os.environ, **_ONE_THREAD, **found, **additions}


def _launch_and_wait(
    command: Sequence[str], environment: Mapping[str, str], output: Path, running: _Observed, timeout: float | None
) -> int:
    status = running.status
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=status.directory,
            # An interrupt from the terminal comes to this process alone, which then ends the others.
            start_new_session=True,
        )
    succeeded = False
    try:
        code = running.wait(process, timeout)
        succeeded = code == 0
        return code
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the program was stopped after {timeout:g} s") from error
    finally:
        if not succeeded:
            _end(process, status)


def _end(process: subprocess.Popen[bytes], status: RankStatus) -> None:
    """Ends the launcher and all ranks, and removes the shared memory that only ranks which finish remove."""
    pids = status.read_all(PIDS)
    _kill(pids)
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # Those that began meanwhile, too.
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


def _failure(status: RankStatus, ranks: int, code: int, output: Path) -> str | None:
    """What went wrong in a run whose launcher ended with `code`: the rank that failed first, and why."""
    ends = [(rank, status.read(rank, ENDED)) for rank in range(ranks)]
    failed = sorted((end.when, rank, end.what) for rank, end in ends if end is not None and end.what != COMPLETED)
    silent = [str(rank) for rank, end in ends if end is None]
    if failed:
        _, rank, what = failed[0]
        name = f"rank {rank} of {ranks}" if ranks > 1 else "the program"
        return f"{name} {what}{_last_lines(status.log(rank))}"
    if silent:
        return f"rank {', '.join(silent)} of {ranks} did not end by itself, or did not begin{_last_lines(output)}"
    return f"mpiexec ended with exit status {code}{_last_lines(output)}" if code else None


def _last_lines(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    written = [line.rstrip() for line in lines if line.strip()]
    if not written:
        return "; it wrote nothing"
    return "; the last it wrote:" + "".join(f"\n  {line}" for line in written[-_LINES_SHOWN:])
