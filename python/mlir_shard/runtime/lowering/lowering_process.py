# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering in a process of its own: a host pass may abort the process on a program it does not expect."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlir_shard
from mlir_shard.dialects.contexts import create_context
from mlir_shard.passes.diagnostic import Diagnostic, Position
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import mpi_library, python_process
from mlir_shard.runtime.launch.code_cache import CodeCache
from mlir_shard.runtime.launch.cpu import NATIVE, Cpu

_LINES_SHOWN = 12


class LoweringProcess:
    """Lowers texts of modules on tensors to the LLVM dialect, in a process for each call.

    Args:
        implementation: of the MPI that runs them, see `mpi_abi`.
        cpu: what LLVM is to compile them for, one of `cpu.CPUS`.
        cache: where to keep what is lowered.
    """

    def __init__(
        self, implementation: str = mpi_library.MPICH, *, cpu: str = NATIVE, cache: CodeCache | None = None
    ) -> None:
        self._implementation, self._cpu, self._cache = implementation, cpu, cache

    @contextlib.contextmanager
    def begun(self) -> Iterator[Callable[[Sequence[str], str], list[str]]]:
        """Begins a process, which loads what it needs, for the first call of what this gives; ends it if none comes."""
        waiting = [_begin()] if self._cache is None else []
        try:
            yield lambda modules, entry: self._lower(modules, entry, waiting)
        finally:
            for process in waiting:
                process.kill()
                process.communicate()

    def __call__(self, modules: Sequence[str], entry: str) -> list[str]:
        """Returns each module in the LLVM dialect.

        Args:
            entry: the function to call from outside.

        Raises:
            RunError: with the diagnostics where one cannot be lowered, or with what was last written where that
                crashed.
        """
        return self._lower(modules, entry, [])

    def _lower(self, modules: Sequence[str], entry: str, waiting: list[subprocess.Popen[str]]) -> list[str]:
        request = {
            "modules": list(modules),
            "entry": entry,
            "implementation": self._implementation,
            "cpu": self._cpu,
        }
        key = json.dumps(request)
        if self._cache is not None and (found := self._cache.get(key)) is not None:
            kept: list[str] = json.loads(found)
            return kept
        process = waiting.pop() if waiting else _begin()
        written, complaints = process.communicate(key)
        try:
            answer = json.loads(written)
        except ValueError as error:
            raise RunError(_crash(process.returncode, complaints)) from error
        if "error" in answer:
            raise RunError(answer["error"], [_from_json(one) for one in answer["diagnostics"]])
        lowered: list[str] = answer["modules"]
        if self._cache is not None:
            self._cache.put(json.dumps(lowered).encode(), key)
        return lowered


def _begin() -> subprocess.Popen[str]:
    return subprocess.Popen(
        python_process.python_command("mlir_shard.runtime.lowering.lowering_process"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=python_process.python_environment(),
        cwd=Path(mlir_shard.__file__).parent.parent,
        encoding="utf-8",
        errors="replace",
    )


def _crash(code: int, written: str) -> str:
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    lines = "".join(f"\n  {line}" for line in written.splitlines()[-_LINES_SHOWN:])
    return f"lowering the program to LLVM crashed with {how}; the last it wrote:{lines or ' nothing'}"


def _from_json(one: dict[str, Any]) -> Diagnostic:
    position = Position(**one["position"]) if one["position"] else None
    notes = tuple(map(_from_json, one["notes"]))
    return Diagnostic(one["severity"], one["message"], position, one["place"], notes)


def main() -> None:
    """Reads a request on standard input, writes the answer on standard output."""
    # What passes print goes where a crash is explained, and leaves the answer readable.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    from mlir_shard.host import ir
    from mlir_shard.runtime.lowering import llvm

    context = create_context()
    text = sys.stdin.read()
    if not text:
        # The process that has begun this one has ended.
        return
    request = json.loads(text)
    answer: dict[str, Any]
    texts: list[str] = []
    try:
        for text in request["modules"]:
            module = ir.Module.parse(text, context)
            llvm.lower(module, request["entry"], request["implementation"], Cpu(request["cpu"]))
            texts.append(str(module))
        answer = {"modules": texts}
    except ir.MLIRError as error:
        answer = {"error": f"the text between the passes is not a module: {error}", "diagnostics": []}
    except RunError as error:
        answer = {"error": error.message, "diagnostics": [dataclasses.asdict(one) for one in error.diagnostics]}
    with os.fdopen(answer_to, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
