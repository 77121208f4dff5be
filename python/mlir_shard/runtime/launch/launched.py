# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution on ranks that a site's launcher (mpirun or srun) has started: each runs the same command or script."""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.code_cache import CodeCache
from mlir_shard.runtime.launch.launcher_place import is_by_srun_alone, place
from mlir_shard.runtime.launch.libraries import blas
from mlir_shard.runtime.launch.measured_calls import measure
from mlir_shard.runtime.launch.mpi import WHEEL, MpiInstallation, is_wheel, site_library
from mlir_shard.runtime.launch.mpi_library import MpiProcess
from mlir_shard.runtime.program import Held, Observe, Program, RankTimes, run_and_close

FAILED = 1


class OtherRankFailed(RunError):
    """The failure of another rank, which reports the reason."""


def is_launched() -> bool:
    """Returns whether a launcher has started this process and others with it."""
    found = place()
    return found is not None and found.size > 1


@functools.cache
def join(choice: str = WHEEL) -> MpiProcess:
    """Initializes MPI once, until this process ends; raises RunError if no MPI is found or its initialization fails.

    choice: as for `MpiInstallation.find`, except that `WHEEL` means the MPI of the launcher.
    """
    library = site_library() if choice == WHEEL else MpiInstallation.find(choice).library
    try:
        process = MpiProcess(library)
    except OSError as error:
        raise RunError(f"cannot initialize MPI: {error}") from error
    found = place()
    if found is not None and found.size != process.size:
        message = f"the launcher has started {found.size} ranks, but {library} reports {process.size}: {_advice()}"
        raise RunError(message) if found.rank == 0 else OtherRankFailed(message)
    if is_wheel(library):
        process.unlink_shared_memory()
    if process.has_begun:
        atexit.register(_leave, process)
    return process


def _advice() -> str:
    if is_by_srun_alone():
        return "start them by `srun --mpi=pmi2`, or `srun --mpi=pmix` for Open MPI"
    return "the library does not belong to the launcher, select another MPI by --mpi"


@dataclass(frozen=True, slots=True)
class LaunchedEngine:
    """An engine that runs a program on the launched ranks; each rank receives the results of all.

    A run of more than `timeout` seconds ends all ranks. `observe` is called with the times after a run; `repeat` and
    `threads` are those of `MpiEngine`; `cache` keeps machine code.
    """

    choice: str = WHEEL
    timeout: float | None = None
    observe: Observe | None = None
    repeat: int = 1
    threads: int = 1
    cache: CodeCache | None = None

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Implements `Engine.run`; if a rank raises an exception before the run, the others raise OtherRankFailed."""
        return run_and_close(self.start(program), inputs, program.ranks, self.repeat)

    def start(self, program: Program) -> LaunchedDevices:
        """Implements `DeviceEngine.start`; all ranks must call it."""
        process = join(self.choice)
        if program.ranks != process.size:
            raise RunError(f"the program is for {program.ranks} ranks, but the launcher has started {process.size}")
        blas.set_threads(self.threads)
        return LaunchedDevices(program, process, self.timeout, self.observe, self.cache)


@dataclass(frozen=True, slots=True)
class LocalTensor(Held):
    """This rank's shard of a tensor."""

    array: Array


class LaunchedDevices:
    """The launched ranks with a program; all ranks must call the same methods in the same order."""

    def __init__(
        self,
        program: Program,
        process: MpiProcess,
        timeout: float | None,
        observe: Observe | None,
        cache: CodeCache | None,
    ) -> None:
        from mlir_shard.runtime.launch.jit import Executable
        from mlir_shard.runtime.launch.object_code import CodeMissing, SharedByMpi

        self._program, self._process, self._timeout, self._observe = program, process, timeout, observe
        begin, failure = time.perf_counter(), None
        with self._limited():
            try:
                self._executable = Executable(program, process, SharedByMpi(process), cache)
            except CodeMissing:
                pass
            except (RuntimeError, OSError, RunError) as error:
                failure = RunError(f"rank {process.rank} of {process.size} cannot compile the program: {error}")
            who = process.first(failure is not None)
        if failure:
            raise failure
        if who is not None:
            raise OtherRankFailed(f"rank {who} of {process.size} cannot compile the program")
        self._compile_time = time.perf_counter() - begin

    def __call__(self, inputs: Sequence[Array | Held], repeat: int = 1) -> list[Held]:
        """Implements `Devices.__call__`."""
        process, begin = self._process, time.perf_counter()
        with self._limited():
            local = [self._local(index, given) for index, given in enumerate(inputs)]
            loaded = time.perf_counter() - begin
            with _all_or_none(process):
                measured = measure(self._executable, local, repeat, self._begin)
            messages = self._executable.messages()
            times = RankTimes(loaded, self._compile_time, measured.seconds, messages, measured.peak_bytes)
            if self._observe:
                self._observe(_of_all(process, times))
        return [LocalTensor(one) for one in measured.results]

    def _begin(self) -> None:
        self._executable.messages()
        self._process.barrier()

    def _local(self, index: int, given: Array | Held) -> Callable[[], Array]:
        """Returns a function that returns this rank's shard of an argument, a new one if calls may overwrite it."""
        if isinstance(given, LocalTensor):
            return lambda: given.array
        whole = cast("Array", given)
        if self._program.arguments[index].donated:
            return partial(self._part, index, whole)
        part = self._part(index, whole)
        return lambda: part

    def put(self, index: int, array: Array) -> LocalTensor:
        """Implements `Devices.put`."""
        return LocalTensor(self._part(index, array))

    def _part(self, index: int, array: Array) -> Array:
        port = self._program.arguments[index]
        return arrays.cut(array, port.boxes[self._process.rank], port.local.shape)

    def fetch(self, tensors: Sequence[Held]) -> list[list[Array]]:
        """Implements `Devices.fetch`."""
        with self._limited():
            return [self._process.all_gather(one.array) for one in tensors if isinstance(one, LocalTensor)]

    @property
    def is_running(self) -> bool:
        """Implements `Devices.is_running`."""
        return True

    def close(self) -> None:
        """Does nothing: the launcher ends the ranks."""

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Ends all ranks after the timeout."""
        # Only rank 0 has a timer and reports: if another rank ended first, all ranks would end without a message.
        if not self._timeout or self._process.rank:
            yield
            return
        timer = threading.Timer(self._timeout, _give_up, [self._timeout])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def _all_or_none(process: MpiProcess) -> Iterator[None]:
    """Ends all ranks if this rank raises an exception in the context: others may wait for it."""
    has_ended = False
    try:
        yield
        has_ended = True
    finally:
        if not has_ended:
            _say(f"rank {process.rank} of {process.size} failed: {sys.exc_info()[1]}")
            process.abort(FAILED)


def _leave(process: MpiProcess) -> None:
    """Finalizes MPI, which waits for all ranks; if the script ended with an exception, ends all ranks instead."""
    if getattr(sys, "last_value", None) is None:
        process.finalize()
    else:
        process.abort(FAILED)


def _of_all(process: MpiProcess, times: RankTimes) -> list[RankTimes]:
    written = pickle.dumps(times)
    sizes = process.all_gather(np.array([len(written)]))
    padded = np.zeros(max(int(one[0]) for one in sizes), np.uint8)
    padded[: len(written)] = np.frombuffer(written, np.uint8)
    return [pickle.loads(one.tobytes()) for one in process.all_gather(padded)]


def _give_up(timeout: float) -> None:
    _say(f"the program was stopped after {timeout:g} s")
    # The launcher ends all ranks if one exits without finalizing MPI.
    os._exit(FAILED)


def _say(message: str) -> None:
    """Prints an error and flushes it: later output is lost."""
    print(f"{Path(sys.argv[0]).stem.replace('_', '-')}: error: {message}", file=sys.__stderr__, flush=True)
