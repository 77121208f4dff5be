# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling a program for this machine and calling it on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.program import Program


class Executable:
    """A program in machine code. Symbols that it does not define are looked for in `libraries` and in this process.

    RunError where it cannot be compiled, or a symbol is not found; LLVM says on standard error which one.
    """

    def __init__(self, program: Program, libraries: Sequence[Path] = ()) -> None:
        self._program = program
        context = ir.Context()
        context.enable_multithreading(False)
        module = ir.Module.parse(program.text, context)
        # The engine refers to the module's context, and a call to the engine's code.
        try:
            self._engine = host.execution_engine().ExecutionEngine(
                module, opt_level=2, shared_libs=[str(library) for library in libraries]
            )
            # Code is made, and symbols are looked for, when somebody asks for a function.
            self._engine.lookup(program.entry)
        except RuntimeError as error:
            raise RunError(f"LLVM cannot make machine code of the program: {error}") from error

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """The local results for local inputs, C-contiguous and in storage form; the inputs may be overwritten."""
        program = self._program
        descriptors = [arrays.describe(array) for array in inputs]
        result_type = _structure([arrays.descriptor_type(len(port.local.shape)) for port in program.results])
        returned: Any = result_type()
        pointers = [ctypes.pointer(ctypes.pointer(one)) for one in descriptors]
        if program.results:
            pointers.insert(0, ctypes.pointer(ctypes.pointer(returned)))
        self._engine.invoke(program.entry, *pointers)
        # Results may be views of inputs, so they are copied before anything is freed.
        return [
            arrays.copy_out(getattr(returned, f"result{index}"), port.local)
            for index, port in enumerate(program.results)
        ]


def _structure(types: Sequence[type[ctypes.Structure]]) -> type[ctypes.Structure]:
    """What the C interface writes results to: their descriptors, one after the other."""
    fields = [(f"result{index}", type_) for index, type_ in enumerate(types)]
    return type("Results", (ctypes.Structure,), {"_fields_": fields})
