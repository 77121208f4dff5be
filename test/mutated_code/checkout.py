# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A copy of the project with a mistake in it, on which tests are run."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutated_code.areas import ROOT, split

_FOLDERS = ("dialect_defs", "docs", "lib", "python", "test", "tools", "benchmarks")
_MOST_BYTES = 24 << 30
_LINES = 400
# The output of pytest and lit for a test that fails or cannot be imported, and for a fatal signal.
_CAUGHT = ("FAILED", "FAIL:", "Error", "Fatal")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of tests: True if one failed or hung, and the line of the output that names it."""

    is_caught: bool
    detail: str = ""


class Checkout:
    """A copy of the project as built in place. Use as a context manager."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="mutated-code-")
        self._root = Path(self._folder.name) / "project"

    def __enter__(self) -> Checkout:
        # Compiled files are valid for the times of their sources, which are copied.
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, self._root / name, symlinks=True)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, self._root / path.name)
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, path: Path, text: str, groups: Sequence[Sequence[str]]) -> Verdict:
        """Runs groups of tests with changed contents of a file, until one fails."""
        target = self._root / path
        original = target.read_bytes()
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()
        target.write_text(text, encoding="utf-8")
        try:
            for group in groups:
                verdict = self._group(group)
                if verdict.is_caught:
                    return verdict
            return Verdict(False)
        finally:
            target.write_bytes(original)

    def _group(self, tests: Sequence[str]) -> Verdict:
        python, lit = split(tests)
        if python:
            verdict = self._command("-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *python)
            if verdict.is_caught:
                return verdict
        if lit:
            main = "import sys; from lit.main import main; main()"
            return self._command("-c", main, "-q", "-j1", "--max-failures=1", *lit)
        return Verdict(False)

    def _command(self, *arguments: str) -> Verdict:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._root / "python"),
            # Two mistakes in one file may have equal sizes and times.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_limit_memory,
        )
        try:
            said, _ = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            return Verdict(True, f"no end after {self._timeout:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if process.returncode == 0:
            return Verdict(False)
        # A mistake may prevent the import of tests, which the output shows; otherwise it has none of these words.
        if not any(word in said for word in _CAUGHT) and process.returncode > 0:
            raise RuntimeError(f"tests cannot be run: {arguments}\n{said}")
        lines = [line for line in said.splitlines()[-_LINES:] if line.startswith(("FAILED", "ERROR", "FAIL:", "E  "))]
        return Verdict(True, (lines or said.splitlines() or [f"status {process.returncode}"])[-1])


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
