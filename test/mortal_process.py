# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that answers requests, and that is replaced when a request ends it or exceeds the time limit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Begin = Callable[[str], None]
Serve = Callable[[Request, Begin], Answer]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the process during a request, with the last stage that began.

    `status` is the exit status of the process, or None if it was killed after the time limit; `said` is its output.
    """

    stage: str
    status: int | None
    said: tuple[str, ...]


class MortalProcess(Generic[Request, Answer]):
    """Answers requests one after the other, each within `timeout` seconds. Use as a context manager.

    make: creates, in the process, the function that answers requests. That function also gets a function that reports
        the beginning of each stage. `make` must be importable, and requests and answers must be picklable.
    """

    def __init__(self, make: Callable[[], Serve[Request, Answer]], timeout: float) -> None:
        self._make, self.timeout = make, timeout
        self._process: SpawnProcess | None = None
        self._connection: Connection[Request, Answer | str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="mortal-process-")
        self._log = Path(self._folder.name) / "log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def answer(self, request: Request) -> Answer | Ended:
        """Returns the answer to a request, or the end of the process during the request."""
        if self._connection is None:
            self._start()
        assert self._connection is not None and self._process is not None
        stage, deadline = "", time.monotonic() + self.timeout
        status = None
        try:
            self._connection.send(request)
            while self._connection.poll(max(0.0, deadline - time.monotonic())):
                answer = self._connection.recv()
                if not isinstance(answer, str):
                    return answer
                stage = answer
        except (EOFError, ConnectionError):
            self._process.join()
            status = self._process.exitcode
        self._stop()
        return Ended(stage, status, self.said())

    def said(self) -> tuple[str, ...]:
        """Returns the lines that the current process, or the previous one, has written."""
        return tuple(self._log.read_text(errors="replace").splitlines())

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._log.write_bytes(b"")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, str(self._log), self._make), daemon=True)
        self._process.start()
        other.close()
        # The time limit of a request does not include the start of the process.
        with contextlib.suppress(EOFError):
            self._connection.recv()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _serve(connection: Connection[Answer | str, Request], log: str, make: Callable[[], Serve[Request, Answer]]) -> None:
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    serve = make()
    connection.send("")
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(serve(request, connection.send))
