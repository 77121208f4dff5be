# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering in a process of its own: a host pass may abort the process on a program it does not expect.

The process goes on to make machine code, so that only one process for all ranks, which run on this machine, loads MLIR.
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
    """Lowers texts of modules on tensors to the LLVM dialect and to machine code, in a process for each call.

    Args:
        implementation: of the MPI that runs them, see `mpi_abi`.
        cpu: what LLVM is to compile them for, one of `cpu.CPUS`.
        cache: where to keep the results.
        compiles: whether to make machine code, for this machine.
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
        """Begins a process, which loads what it needs, for the first call of what this gives; ends it if none comes."""
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
            RunError: with the diagnostics where one cannot be lowered or compiled, or with what was last written where
                that crashed.
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
        # What is called for a product of matrices depends on the CPU, as machine code does.
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
    return f"lowering the program to LLVM crashed with {how}; the last it wrote:{lines or ' nothing'}"


def _from_answer(answer: dict[str, Any]) -> list[Lowered]:
    return [Lowered(one["text"], base64.b64decode(one["code"]), one["compile_time"]) for one in answer["modules"]]


def _from_json(one: dict[str, Any]) -> Diagnostic:
    position = Position(**one["position"]) if one["position"] else None
    notes = tuple(map(_from_json, one["notes"]))
    return Diagnostic(one["severity"], one["message"], position, one["place"], notes)


def main() -> None:
    """Reads a request on standard input, writes the answer on standard output."""
    # What passes print goes where a crash is explained, and leaves the answer readable.
    answer_to = os.dup(1)
    os.dup2(2, 1)
    from mlir_shard import host
    from mlir_shard.host import ir
    from mlir_shard.runtime.launch import compiler
    from mlir_shard.runtime.lowering import llvm

    context = create_context()
    # Before there is something to do: wrappers of dialects are imported where they are first used.
    for name in _DIALECTS:
        host.module(f"dialects.{name}")
    host.execution_engine()
    text = sys.stdin.read()
    if not text:
        # The process that has begun this one has ended.
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
        answer = {"error": f"the text between the passes is not a module: {error}", "diagnostics": []}
    except RunError as error:
        answer = {"error": error.message, "diagnostics": [dataclasses.asdict(one) for one in error.diagnostics]}
    with os.fdopen(answer_to, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
