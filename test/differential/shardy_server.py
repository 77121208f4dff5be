# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Shardy's passes for another process: requests and answers are JSON, one per line.

A request is [module text, pipeline, whether passes are verified]; the answer is [module text afterwards, None] or
[None, error]. A client sends the next request after it has received the answer.
This file runs on its own: an abort of the C++ code ends only a fork of this process, and the next fork continues.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _sdy, _stablehlo


def _context() -> Any:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    _sdy.register_dialect(context)
    _stablehlo.register_dialect(context)
    return context


def _run(text: str, pipeline: str, verifies: bool) -> tuple[str | None, str | None]:
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as error:
        return None, f"invalid: {error}"
    try:
        manager = passmanager.PassManager.parse(pipeline)
        manager.enable_verifier(verifies)
        manager.run(module.operation)
    except (ir.MLIRError, ValueError) as error:
        return None, str(error)
    return str(module), None


def main() -> None:
    """Answers requests until the input ends."""
    # The output of C++ must not be mixed with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with _context(), ir.Location.unknown():
        # Loading the dialects takes as long as many programs, so only this process does, which reads no input.
        while child := os.fork():
            if os.waitpid(child, 0)[1] == 0:
                return
            print(json.dumps([None, "aborted"]), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(_run(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
