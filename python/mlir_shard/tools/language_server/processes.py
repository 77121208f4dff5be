# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes that analyse texts for the server: started in advance, and killed when their texts are closed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

_MODULE = "mlir_shard.tools.language_server.analysis"
# This number of texts, the most recently used ones, keep their processes.
_MOST_ALIVE = 4
_LONGEST_ANSWER = 1 << 30


class Ended(Exception):
    """The error for a process that ended before its answer, or whose request failed; the message is the reason."""


class _Process:
    """One process. It answers requests one after the other."""

    def __init__(self, process: asyncio.subprocess.Process, errors: int) -> None:
        self._process, self._errors = process, os.fdopen(errors, "rb")
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, files: Sequence[str]) -> _Process:
        """Starts a process that registers the passes and rules of files."""
        errors = os.memfd_create(_MODULE)
        command = [sys.executable, "-m", _MODULE, *files]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=errors, limit=_LONGEST_ANSWER
        )
        return cls(process, errors)

    async def ask(self, method: str, *arguments: Any) -> Any:
        """Returns the result of a request. Raises Ended if the request fails or the process ends."""
        # The answer is read even if the caller is cancelled; otherwise the next caller would get it.
        return await asyncio.shield(asyncio.ensure_future(self._exchange({"method": method, "arguments": arguments})))

    async def _exchange(self, request: dict[str, Any]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        async with self._turn:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                stdin.write(json.dumps(request).encode() + b"\n")
                await stdin.drain()
            line = await stdout.readline()
        if not line:
            raise Ended(await self._how_ended())
        answer = json.loads(line)
        if "error" in answer:
            raise Ended(answer["error"])
        return answer["result"]

    async def _how_ended(self) -> str:
        status = await self._process.wait()
        how = f"was terminated by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"the process that analyzes this text {how}{f': {lines[-1]}' if lines else ''}"

    def kill(self) -> None:
        """Ends the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._errors.close()


class _Opened:
    """A text and the process that reads it."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.process: _Process | None = None
        self.reading: asyncio.Task[Any] | None = None


class Analyses:
    """The texts that are open, by URI.

    Args:
        files: Python files that register passes and rules.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._spare: asyncio.Task[_Process] | None = None
        # The most recently used texts are at the end.
        self._opened: dict[str, _Opened] = {}

    def prepare(self) -> None:
        """Starts the process for the next text."""
        if self._spare is None:
            self._spare = asyncio.ensure_future(_Process.start(self._files))

    def open(self, uri: str, name: str, text: str, delay: float = 0) -> None:
        """Opens a text, in place of an earlier one, and reads it after a delay in seconds."""
        self.close(uri)
        opened = self._opened[uri] = _Opened(name, text)
        opened.reading = asyncio.ensure_future(self._read(opened, delay))

    def has(self, uri: str) -> bool:
        """Returns whether the text of a URI is open."""
        return uri in self._opened

    def close(self, uri: str) -> None:
        """Closes a text and ends its process."""
        if (opened := self._opened.pop(uri, None)) is not None:
            _stop(opened)

    def close_all(self) -> None:
        """Closes all texts, and ends the process that was started in advance."""
        for uri in list(self._opened):
            self.close(uri)
        if self._spare is not None and self._spare.done() and not self._spare.cancelled():
            self._spare.result().kill()

    async def result(self, uri: str) -> Any:
        """Returns the result of `Analysis.open` for the text of a URI; None if the text was replaced or closed.

        Raises:
            Ended: the request failed or the process ended.
        """
        opened = self._opened.pop(uri, None)
        if opened is None:
            return None
        self._opened[uri] = opened
        if opened.reading is None:
            opened.reading = asyncio.ensure_future(self._read(opened, 0))
        try:
            return await asyncio.shield(opened.reading)
        except asyncio.CancelledError:
            if opened.reading is not None and not opened.reading.cancelled():
                raise
            return None

    async def ask(self, uri: str, method: str, *arguments: Any) -> Any:
        """Returns the answer to a request about a text; None if the text is not open or the request fails."""
        try:
            await self.result(uri)
            opened = self._opened.get(uri)
            return await opened.process.ask(method, *arguments) if opened and opened.process else None
        except Ended:
            return None

    async def _read(self, opened: _Opened, delay: float) -> Any:
        await asyncio.sleep(delay)
        while opened.process is None:
            self.prepare()
            assert self._spare is not None
            spare = self._spare
            process = await asyncio.shield(spare)
            # Another text may have taken the process, and a text that was closed meanwhile leaves it to the next.
            if self._spare is spare:
                self._spare, opened.process = None, process
        self._stop_oldest()
        self.prepare()
        return await opened.process.ask("open", opened.name, opened.text)

    def _stop_oldest(self) -> None:
        alive = [one for one in self._opened.values() if one.process is not None]
        for one in alive[:-_MOST_ALIVE]:
            _stop(one)


def _stop(opened: _Opened) -> None:
    if opened.reading is not None:
        opened.reading.cancel()
    if opened.process is not None:
        opened.process.kill()
    opened.reading = opened.process = None
