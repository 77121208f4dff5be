# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in machine code, and their calls on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import mpi_library
from mlir_shard.runtime.launch.call_frame import CallFrame
from mlir_shard.runtime.launch.code_cache import CodeCache
from mlir_shard.runtime.launch.libraries import blas, narrow_gemm, vector_math
from mlir_shard.runtime.launch.libraries.array_calls import ArrayFunctions
from mlir_shard.runtime.launch.mpi_library import MpiProcess
from mlir_shard.runtime.launch.object_code import LoadedCode, SharedCode, host_cpu
from mlir_shard.runtime.program import MessageTimes, Program

# The program's function that reports and resets its message counters; `lookup` adds the prefix of the C interface.
_MESSAGES = "read_message_counters"
MESSAGES_INTERFACE: Final = f"_mlir_ciface_{_MESSAGES}"

_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


# Parameters of mallopt in glibc.
_TRIM_THRESHOLD = -1
_MAPPED_BLOCKS = -4


def _keep_freed_memory() -> None:
    """Makes this process keep freed memory for the next call: the system would clear each newly allocated page."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MAPPED_BLOCKS, 0)
        # Disables trimming.
        libc.mallopt(_TRIM_THRESHOLD, -1)


def library_addresses(text: str) -> dict[str, int]:
    """Returns the addresses of the library functions that a program calls, by their symbols."""
    return {
        symbol: address
        for of_library in (blas, narrow_gemm, vector_math)
        for symbol, address in of_library.addresses(text).items()
    }


class Executable:
    """A program in machine code.

    Args:
        program: a program in the LLVM dialect; it is compiled unless it contains machine code.
        process: the rank that runs it; None if it runs alone, in which case it must not call MPI.
        shared: the exchange of machine code with the other ranks that run it; None without other ranks.
        cache: the cache of machine code.

    Raises:
        RunError: the program is for another MPI, or `compiler.make_engine` raises it.
        CodeMissing: another rank, which compiles the program for this rank, has failed.
    """

    def __init__(
        self,
        program: Program,
        process: MpiProcess | None = None,
        shared: SharedCode | None = None,
        cache: CodeCache | None = None,
    ) -> None:
        _keep_freed_memory()
        self._program = program
        if process:
            _check_implementation(program.text, process)
        libraries = [process.path] if process else []
        self._array_calls = ArrayFunctions(program.text)
        addresses = self._array_calls.addresses | library_addresses(program.text)
        code = program.lowered.code or (shared.take() if shared else None)
        if not code:
            code = b""
            try:
                code = self._made(libraries, addresses, cache, is_shared=shared is not None)
            finally:
                if shared:
                    shared.give(code)
        else:
            self._engine: Any = LoadedCode(code, libraries, addresses)

    def _made(
        self, libraries: Sequence[Path], addresses: Mapping[str, int], cache: CodeCache | None, *, is_shared: bool
    ) -> bytes:
        """Compiles the program, or loads it from the cache; returns the object file if `is_shared` or cached."""
        key = (host_cpu(), self._program.text) if cache else ()
        if cache and (kept := cache.get(*key)) is not None:
            self._engine = LoadedCode(kept, libraries, addresses)
            return kept
        # Imported here: a program with machine code does not need MLIR.
        from mlir_shard.runtime.launch import compiler

        # The engine keeps the module's context and the code of calls alive.
        self._engine = compiler.engine_of_text(self._program.text, libraries, self._program.entry, addresses)
        code = compiler.object_file(self._engine) if is_shared or cache else b""
        if cache:
            cache.put(code, *key)
        return code

    @cached_property
    def _function(self) -> Any:
        """The entry function's C interface."""
        return self._engine.lookup(self._program.entry)

    @cached_property
    def _frames(self) -> list[CallFrame]:
        """The frames that no call uses now; several threads may call concurrently."""
        return []

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """Runs the program on local inputs and returns its local results, in storage form; inputs must be C-contiguous.

        Inputs of donated arguments may be overwritten. The memory of a result is freed with the result.
        """
        frames = self._frames
        frame = frames.pop() if frames else self._new_frame()
        frame(self._function, inputs)
        self._array_calls.check()
        results = frame.results(inputs)
        frames.append(frame)
        return results

    def _new_frame(self) -> CallFrame:
        arguments, results = (
            [port.local for port in side] for side in (self._program.arguments, self._program.results)
        )
        return CallFrame(arguments, results, _free)

    def messages(self) -> MessageTimes | None:
        """Returns the times of messages in the calls since the last `messages`; None for a program without messages."""
        if MESSAGES_INTERFACE not in self._program.text:
            return None
        counters = (ctypes.c_int64 * 3)()
        _call_with(self._engine.lookup(_MESSAGES), counters)
        waited, overlapped, calls = counters
        return MessageTimes(waited * 1e-9, overlapped * 1e-9, calls)


def _call_with(function: Any, structure: Any) -> None:
    """Calls a C interface function, which takes addresses of pointers, with a pointer to a structure."""
    pointer = ctypes.c_void_p(ctypes.addressof(structure))
    function(ctypes.byref(ctypes.c_void_p(ctypes.addressof(pointer))))


def _check_implementation(text: str, process: MpiProcess) -> None:
    """Raises RunError if a program has handles of another MPI, which the library could mistake for addresses."""
    if mpi_library.of(process.implementation).entry not in text:
        raise RunError(
            f"the program is not compiled for {process.implementation}, the implementation of {process.path}"
        )
