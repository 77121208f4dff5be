# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two sides of the comparison: Shardy in a process that may abort, and this project in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mlir_shard

_SERVER = Path(__file__).with_name("shardy_server.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The module after the passes, or None and the error."""

    text: str | None
    error: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of the module, without indentation and blank lines."""
        return [line.strip() for line in (self.text or "").splitlines() if line.strip()]


class Shardy:
    """The C++ Shardy of jaxlib. Use as a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Shardy:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, text: str, pipeline: str, *, verifies: bool = True) -> Outcome:
        """Runs a pipeline, and the verifier after each pass; an abort is also an error."""
        return self.begin(text, pipeline, verifies=verifies)()

    def begin(self, text: str, pipeline: str, *, verifies: bool = True) -> Callable[[], Outcome]:
        """Begins a run, and returns a function that waits for its outcome. Call that function before the next run."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        print(json.dumps([text, pipeline, verifies]), file=self._process.stdin, flush=True)
        return self._outcome

    def _outcome(self) -> Outcome:
        assert self._process is not None and self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process with Shardy has ended with status {self._process.wait()}")
        after, error = json.loads(answer)
        return Outcome(after, error or "")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


class Here:
    """This project's passes."""

    def __init__(self) -> None:
        self._context = mlir_shard.create_context()
        self._text, self._module = "", mlir_shard.parse("", self._context)

    def run(self, text: str, pipeline: str) -> Outcome:
        """Runs a pipeline; raises exceptions that are not diagnostics."""
        try:
            # Many passes run on the same text, one after the other.
            if text != self._text:
                self._module, self._text = mlir_shard.parse(text, self._context), text
            module = self._module.operation.clone()
            mlir_shard.run(module, pipeline, report=lambda _: None)
        except (mlir_shard.ParseError, mlir_shard.PassFailure) as error:
            return Outcome(None, f"{type(error).__name__}: {error}")
        return Outcome(mlir_shard.print_module(module.operation))
