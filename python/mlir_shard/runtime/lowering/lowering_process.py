# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering in a separate process: a host pass may abort its process on an unexpected program.

The process also compiles to machine code, so that a single process for all ranks on this machine loads MLIR.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
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
from mlir_shard.runtime.launch.object_code import host_cpu
from mlir_shard.runtime.program import Lowered

_LINES_SHOWN = 12
_DIALECTS = ("arith", "complex", "func", "linalg", "memref", "scf", "tensor", "vector")


class LoweringProcess:
    """Lowers modules on tensors, given as text, to the LLVM dialect and to machine code, in one process per call.

    Args:
        implementation: the MPI implementation that runs them, see `mpi_library`.
        cpu: the CPU for which LLVM compiles them, one of `cpu.CPUS`.
        cache: the cache of the results; None to keep none.
        compiles: whether to compile to machine code, for this machine.
    """

    def __init__(
        self,
        implementation: str = mpi_library.MPICH,
        *,
        cpu: str = NATIVE,
        cache: CodeCache | None = None,
        compiles: bool = True,
    ) -> None:
        self._implementation, self._cpu, self._cache, self._compiles = implementation, cpu, cache, compiles

    @contextlib.contextmanager
    def begun(self) -> Iterator[Callable[[Sequence[str], str], list[Lowered]]]:
        """Starts a process ahead of the first call of the yielded function; ends it if it is not called."""
        waiting = [_begin()] if self._cache is None else []
        try:
            yield lambda modules, entry: self._lower(modules, entry, waiting)
        finally:
            for process in waiting:
                process.kill()
                process.communicate()

    def __call__(self, modules: Sequence[str], entry: str) -> list[Lowered]:
        """Returns each module in the LLVM dialect, with its machine code.

        Args:
            entry: the function to call from outside.

        Raises:
            RunError: a module cannot be lowered or compiled, with the diagnostics, or the process crashed, with its
                last output.
        """
        return self._lower(modules, entry, [])

    def _lower(self, modules: Sequence[str], entry: str, waiting: list[subprocess.Popen[str]]) -> list[Lowered]:
        request = {
            "modules": list(modules),
            "entry": entry,
            "implementation": self._implementation,
            "cpu": self._cpu,
            "compiles": self._compiles,
        }
        asked = json.dumps(request)
        # The functions that compute matrix products depend on the CPU, as machine code does.
        key = (asked, host_cpu()) if self._cache is not None else ()
        if self._cache is not None and (found := self._cache.get(*key)) is not None:
            return _from_answer(json.loads(found))
        process = waiting.pop() if waiting else _begin()
        written, complaints = process.communicate(asked)
        try:
            answer = json.loads(written)
        except ValueError as error:
            raise RunError(_crash(process.returncode, complaints)) from error
        if "error" in answer:
            raise RunError(answer["error"], [_from_json(one) for one in answer["diagnostics"]])
        if self._cache is not None:
            self._cache.put(written.encode(), *key)
        return _from_answer(answer)


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
    return f"lowering the program to LLVM crashed with {how}; its last output:{lines or ' none'}"


def _from_answer(answer: dict[str, Any]) -> list[Lowered]:
    return [Lowered(one["text"], base64.b64decode(one["code"]), one["compile_time"]) for one in answer["modules"]]


def _from_json(one: dict[str, Any]) -> Diagnostic:
    position = Position(**one["position"]) if one["position"] else None
    notes = tuple(map(_from_json, one["notes"]))
    return Diagnostic(one["severity"], one["message"], position, one["place"], notes)


def main() -> None:
    """Reads a request from standard input and writes the answer to standard output."""
    # Output of passes is redirected to standard error, which is shown after a crash, to keep it out of the answer.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    from mlir_shard import host
    from mlir_shard.host import ir
    from mlir_shard.runtime.launch import compiler
    from mlir_shard.runtime.lowering import llvm

    context = create_context()
    # Imports the wrappers of dialects before the request arrives; otherwise their first use would import them.
    for name in _DIALECTS:
        host.module(f"dialects.{name}")
    host.execution_engine()
    text = sys.stdin.read()
    if not text:
        # The parent process has ended.
        return
    request = json.loads(text)
    answer: dict[str, Any]
    made: list[dict[str, Any]] = []
    try:
        for text in request["modules"]:
            module = ir.Module.parse(text, context)
            llvm.lower(module, request["entry"], request["implementation"], Cpu(request["cpu"]))
            lowered, begin = str(module), time.perf_counter()
            code = compiler.compiled(module, request["entry"]) if request["compiles"] else b""
            taken = time.perf_counter() - begin
            made.append({"text": lowered, "code": base64.b64encode(code).decode(), "compile_time": taken})
        answer = {"modules": made}
    except ir.MLIRError as error:
        answer = {"error": f"cannot parse the module between passes: {error}", "diagnostics": []}
    except RunError as error:
        answer = {"error": error.message, "diagnostics": [dataclasses.asdict(one) for one in error.diagnostics]}
    with os.fdopen(answer_to, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
