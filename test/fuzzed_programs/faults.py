# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of runs on ranks: processes killed at random times, streams closed, no space left and no permission to write.

A run must end with a status other than 0 and an error without a traceback, or succeed, and must leave no process, no
file and no shared memory. Outcomes do not depend on the speed of a machine: the requirements hold whenever a fault
occurs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hang_guard import wait_until

from fuzzed_programs.outcome import DONE, HANG, INTERNAL, LEFT, REFUSED_RUN, SILENT, SUCCEEDED, Outcome

_TESTS = Path(__file__).parents[1]
_FAIL_ON_RANK = _TESTS / "tools" / "shard-run" / "Inputs" / "fail_on_rank.py"
PROGRAM = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
_SHM = Path("/dev/shm")
# The maximum time of a fault, during the run. On a slower machine the fault occurs in an earlier part of it.
_MOST_SECONDS = 4.0
MARK = "MLIR_SHARD_TEST_RUN"
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 1 << 14, 1 << 18
_ENOUGH = 1 << 30
_HOW_RANKS_FAIL = ("abort", "segv", "kill", "exit", "assert", "symbol")
_SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a run.

    Attributes:
        kind: `rank`, `child`, `run` and `interrupts` are signals, to a rank, any process below shard-run, shard-run
            itself, or several interrupts; `fails` makes a rank fail by itself; `closed`, `full` and `broken` affect
            standard output; `folder` and `room` affect temporary files; `memory` leaves little space for shared memory.
        after: the seconds after which a signal is sent.
        choice: a number that selects processes, kinds of failure and signals.
        hangs: whether a rank hangs, so that the signal arrives before the end.
    """

    kind: str
    after: float = 0.0
    choice: int = 0
    hangs: bool = False


KINDS = ("rank", "child", "run", "interrupts", "fails", "closed", "full", "broken", "folder", "room", "memory")


def make(seed: int, number: int) -> Fault:
    """Returns the fault of a number."""
    draw = Random(f"faults/{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    return Fault(kind, draw.uniform(0, _MOST_SECONDS), draw.randrange(1000), draw.random() < 0.5)


def run(fault: Fault, timeout: float) -> Outcome:
    """Returns the outcome of a run with a fault; `timeout` is in seconds."""
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        (folder / "program.mlir").write_text(PROGRAM)
        temporary = folder / "temporary"
        temporary.mkdir()
        started = _start(fault, folder, temporary, mark)
        memory = _private_memory(started.pid)
        try:
            _interfere(fault, started, mark)
            _, said = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return Outcome(HANG, fault.kind, f"no end after {timeout:g} s")
        finally:
            left = _left(mark, temporary, memory) if started.poll() is not None else ""
            if memory is not None:
                os.close(memory)
            for pid in _processes(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            started.communicate()
    return outcome_of(fault, started.returncode, said, left)


def outcome_of(fault: Fault, status: int, said: str, left: str) -> Outcome:
    """Returns the outcome for a status, a text on standard error, and the remains of the run."""
    errors = [line for line in said.splitlines() if "error: " in line]
    last = (errors or said.splitlines() or [""])[-1]
    # Before a command is imported, the interpreter itself prints a traceback and terminates by the signal.
    is_terminated = status == -signal.SIGINT
    if "internal error" in said or ("Traceback (most recent call last)" in said and not is_terminated):
        return Outcome(INTERNAL, fault.kind, last)
    if left:
        return Outcome(LEFT, fault.kind, left)
    if status == 0:
        return Outcome(SUCCEEDED if fault.kind in ("fails", "full") else DONE, fault.kind)
    # A signal to shard-run needs no error, and neither does a reader that has closed the pipe.
    if not errors and fault.kind not in ("run", "broken") and not is_terminated:
        return Outcome(SILENT, fault.kind, f"status {status}")
    return Outcome(REFUSED_RUN, fault.kind, last)


def _start(fault: Fault, folder: Path, temporary: Path, mark: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlir_shard.tools.shard_run", "program.mlir", "--no-timing"]
    how = _HOW_RANKS_FAIL[fault.choice % len(_HOW_RANKS_FAIL)] if fault.kind == "fails" else "hang"
    if fault.kind == "fails" or (fault.hangs and fault.kind in ("rank", "child", "run", "interrupts")):
        passes = f"shard-spmdize,fail-on-rank{{rank={fault.choice % 4} how={how}}}"
        command += ["--load", str(_FAIL_ON_RANK), "--pipeline", f"shard-propagate;{passes}"]
    where = str(temporary)
    if fault.kind == "folder":
        where = (str(folder / "nowhere"), str(folder / "program.mlir"), "/proc")[fault.choice % 3]
    streams = {"closed": subprocess.DEVNULL, "full": None, "broken": subprocess.PIPE}
    with _output(fault) as output:
        started = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "TMPDIR": where, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=streams.get(fault.kind, subprocess.DEVNULL) if output is None else output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=_preparation(fault),
        )
    if fault.kind == "broken" and started.stdout is not None:
        started.stdout.close()
        started.stdout = None
    return started


@contextlib.contextmanager
def _output(fault: Fault) -> Iterator[int | None]:
    if fault.kind != "full":
        yield None
        return
    output = os.open("/dev/full", os.O_WRONLY)
    try:
        yield output
    finally:
        os.close(output)


def _preparation(fault: Fault) -> Callable[[], None]:
    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if fault.kind == "closed":
            os.close(1)
        most = 1 << (12 + fault.choice % 16)
        # If that is not allowed, shared memory is common to all processes, and is not checked.
        _has_mounted(1 << (12 + fault.choice % 12) if fault.kind == "memory" else _ENOUGH)
        if fault.kind == "room":
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return prepare


def _has_mounted(size: int) -> bool:
    """Mounts private shared memory of a size in bytes for this process, and returns True if that is allowed."""
    libc = ctypes.CDLL(None)
    if libc.unshare(_CLONE_NEWNS) or libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None):
        return False
    return bool(libc.mount(b"tmpfs", bytes(_SHM), b"tmpfs", 0, f"size={size}".encode()) == 0)


def _interfere(fault: Fault, started: subprocess.Popen[str], mark: str) -> None:
    if fault.kind not in ("rank", "child", "run", "interrupts"):
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(fault.after)
    if fault.kind == "interrupts":
        for _ in range(1 + fault.choice % 4):
            started.send_signal(signal.SIGINT)
    elif fault.kind == "run":
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        started.send_signal(signals[fault.choice % len(signals)])
    else:
        below = [pid for pid in _processes(mark) if pid != started.pid]
        chosen = [pid for pid in below if _is_rank(pid)] if fault.kind == "rank" else below
        if chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen[fault.choice % len(chosen)], _SIGNALS[fault.choice % len(_SIGNALS)])
    if fault.hangs and fault.kind in ("rank", "child"):
        # The process may have been about to end; the others then wait for the hanging rank.
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(_MOST_SECONDS)
        started.send_signal(signal.SIGINT)


def _processes(mark: str) -> list[int]:
    """Returns the processes of a run that have not ended, found by their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                state = (folder / "stat").read_text().rpartition(") ")[2][0]
                found += [int(folder.name)] if state not in "ZX" else []
    return sorted(found)


def _is_rank(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"mlir_shard.runtime.launch.rank" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _private_memory(pid: int) -> int | None:
    """Opens the folder of a process's private shared memory, which keeps it alive; None if it has none."""
    with contextlib.suppress(OSError):
        found = os.open(f"/proc/{pid}/root{_SHM}", os.O_RDONLY)
        if os.fstat(found).st_dev != os.stat(_SHM).st_dev:
            return found
        os.close(found)
    return None


def _left(mark: str, temporary: Path, memory: int | None) -> str:
    """Returns the permanent remains of a run that has ended."""
    try:
        wait_until(lambda: not remains(mark, temporary, memory))
    except AssertionError:
        return ", ".join(remains(mark, temporary, memory))
    return ""


def remains(mark: str, temporary: Path, memory: int | None) -> list[str]:
    """Returns the remaining processes, files, and shared memory in a folder of a run."""
    files = [str(path) for path in temporary.iterdir()]
    return [*map(str, _processes(mark)), *files, *(() if memory is None else os.listdir(memory))]
