# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilation of modules in the LLVM dialect to machine code by the host's execution engine."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.passes.diagnostic import standard_error_to
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.libraries import vector_math

# The message of LLVM's JIT about missing symbols on standard error; the exception does not name them.
_NOT_FOUND = re.compile(r"Symbols not found: \[ ([^]]*) \]")
_SYMBOLS: Final = ("llvm.func", "llvm.mlir.global")


class SymbolsNotFound(RunError):
    """The error that neither the machine code nor a library on this machine defines `symbols`."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = tuple(symbols)
        names = ", ".join(f"'{symbol}'" for symbol in symbols)
        super().__init__(f"the program needs {names}, which no available library defines")


def make_engine(
    module: Any, libraries: Sequence[Path], entry: str, addresses: Mapping[str, int] = MappingProxyType({})
) -> Any:
    """Compiles a module in the LLVM dialect and returns the execution engine, in which `entry` can be looked up.

    Symbols that the module does not define are resolved from `addresses`, `libraries` and this process.

    Raises:
        SymbolsNotFound: a symbol is not defined.
        RunError: LLVM cannot compile the module.
    """
    # A file in memory, so that a killed rank leaves no file behind.
    with os.fdopen(os.memfd_create("stderr"), "w+b") as written:
        try:
            with standard_error_to(written):
                engine = host.execution_engine().ExecutionEngine(
                    module, opt_level=2, shared_libs=list(map(str, libraries))
                )
                for symbol, address in addresses.items():
                    engine.raw_register_runtime(symbol, ctypes.c_void_p(address))
                # Code is generated, and symbols are resolved, when a function is looked up.
                engine.lookup(entry)
        except RuntimeError as error:
            said = _read(written)
            symbols = [symbol for found in _NOT_FOUND.findall(said) for symbol in found.replace(",", " ").split()]
            if symbols:
                raise SymbolsNotFound(symbols) from error
            raise RunError(f"LLVM cannot generate machine code for the program: {said.strip() or error}") from error
        # Warnings, for example of libraries, are for the user.
        sys.stderr.write(_read(written))
    return engine


def engine_of_text(text: str, libraries: Sequence[Path], entry: str, addresses: Mapping[str, int]) -> Any:
    """Compiles a module given as text, after declaring vector functions in it, see `make_engine`."""
    context = ir.Context()
    context.enable_multithreading(False)
    module = ir.Module.parse(text, context)
    vector_math.declare(module)
    return make_engine(module, libraries, entry, addresses)


def object_file(engine: Any) -> bytes:
    """Returns the machine code of an `ExecutionEngine` in which a function has been looked up."""
    # A file in memory, so that a killed rank leaves no file behind.
    with os.fdopen(os.memfd_create("object"), "rb") as file:
        engine.dump_to_object_file(f"/proc/self/fd/{file.fileno()}")
        return file.read()


def compiled(module: Any, entry: str) -> bytes:
    """Returns the machine code of a module in the LLVM dialect, to be loaded by a process with the symbols it calls.

    Vector functions are declared in the module.

    Raises:
        RunError: LLVM cannot compile the module.
    """
    vector_math.declare(module)
    symbols = [op.operation for op in module.body.operations if op.operation.name in _SYMBOLS]
    outside = [one.attributes["sym_name"].value for one in symbols if _is_declared(one)]
    # Any address is valid here, because nothing is called or read.
    return object_file(make_engine(module, (), entry, dict.fromkeys(outside, 1)))


def _is_declared(symbol: Any) -> bool:
    return not len(symbol.regions[0].blocks) and "value" not in symbol.attributes


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")
