# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that runs inputs, and is replaced where it crashes or does not come back."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from fuzzed_programs.outcome import HANG, HOST_SIGNAL, SIGNAL, Outcome, Runner
from fuzzed_programs.pipelines import own_passes
from mlir_shard import _native

_Request = tuple[bytes, str]
_MOST_BYTES = 8 << 30
_CRASHED = 70


class Worker:
    """Runs inputs, one after the other, each for `timeout` seconds at most. Use as a context manager.

    modules: the names of Python modules with more passes.
    """

    def __init__(self, timeout: float, modules: Sequence[str] = ()) -> None:
        self._timeout, self._modules = timeout, modules
        self._process: SpawnProcess | None = None
        self._connection: Connection[_Request, Outcome | str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fuzzed-programs-")
        self._log = Path(self._folder.name) / "log"

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, text: bytes, pipeline: str) -> Outcome:
        """Returns what comes of an input."""
        if self._connection is None:
            self._start()
        assert self._connection is not None and self._process is not None
        self._connection.send((text, pipeline))
        stage = ""
        while self._connection.poll(self._timeout):
            try:
                answer = self._connection.recv()
            except (EOFError, ConnectionResetError):
                return self._crash(stage)
            if isinstance(answer, Outcome):
                return answer
            stage = answer
        self._stop()
        return Outcome(HANG, stage, f"no result after {self._timeout:g} s")

    def _crash(self, stage: str) -> Outcome:
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode
        said = self._log.read_text(errors="replace").splitlines()
        self._stop()
        reports = [line for line in said if ": error: MLIR was ended by " in line]
        if code != _CRASHED or not reports:
            return Outcome(SIGNAL, stage, f"the process ended with status {code}: {said[-1:]}")
        return Outcome(HOST_SIGNAL if _is_of_host(reports[-1]) else SIGNAL, stage, reports[-1])

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._log.write_bytes(b"")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, str(self._log), self._modules), daemon=True)
        self._process.start()
        other.close()
        # The start of the process does not count in the time limit of an input.
        with contextlib.suppress(EOFError):
            self._connection.recv()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _is_of_host(report: str) -> bool:
    """Whether the report of a crash names the parser, which is upstream's, or a pass that is."""
    if "while it parsed this" in report or "while it verified this" in report:
        return True
    return "in pass '" in report and report.partition("in pass '")[2].partition("'")[0] not in own_passes()


def _serve(connection: Connection[Outcome | str, _Request], log: str, modules: Sequence[str]) -> None:
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    _native.report_crashes("fuzzed_programs", _CRASHED)
    for name in modules:
        importlib.import_module(name)
    runner = Runner()
    connection.send("")
    while True:
        try:
            text, pipeline = connection.recv()
        except EOFError:
            return
        connection.send(runner.run(text, pipeline, connection.send))
