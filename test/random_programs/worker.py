# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that runs programs, and is replaced where it crashes or does not come back."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from random_programs.execution import CRASH, HANG, INVALID, WITHOUT_SHARDING, Outcome, outcome
from random_programs.routes import Setting

_Request = tuple[str, int]
_LINES_SHOWN = 12


class Worker:
    """Runs programs, one after the other, each for `timeout` seconds at most. Use as a context manager."""

    def __init__(self, setting: Setting, timeout: float) -> None:
        self._setting, self.timeout = setting, timeout
        self._process: SpawnProcess | None = None
        self._connection: Connection[_Request, Outcome | str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="random-programs-")
        self._log = Path(self._folder.name) / "log"

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, text: str, seed: int) -> Outcome:
        """What comes of a program."""
        if self._connection is None:
            self._start()
        assert self._connection is not None and self._process is not None
        self._connection.send((text, seed))
        stage, deadline = "", time.monotonic() + self.timeout
        while self._connection.poll(max(0.0, deadline - time.monotonic())):
            try:
                answer = self._connection.recv()
            except EOFError:
                self._process.join()
                code = self._process.exitcode
                self._stop()
                kind = INVALID if stage in WITHOUT_SHARDING else CRASH
                return Outcome(kind, stage, f"the process ended with status {code}{self._last_lines()}")
            if isinstance(answer, Outcome):
                is_crash = answer.kind == CRASH
                return replace(answer, detail=answer.detail + self._last_lines()) if is_crash else answer
            stage = answer
        self._stop()
        return Outcome(HANG, stage, f"no result after {self.timeout:g} s")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._log.write_bytes(b"")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._setting, str(self._log)), daemon=True)
        self._process.start()
        other.close()
        # What it takes to begin is no program's time.
        with contextlib.suppress(EOFError):
            self._connection.recv()

    def _last_lines(self) -> str:
        """The end of what the process has written before it ended."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "".join(f"\n  {line}" for line in lines[-_LINES_SHOWN:])

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _serve(connection: Connection[Outcome | str, _Request], setting: Setting, log: str) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    routes = setting.routes()
    connection.send("")
    while True:
        try:
            text, seed = connection.recv()
        except EOFError:
            return
        connection.send(outcome(text, routes, seed, connection.send))
