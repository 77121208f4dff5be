# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code that one rank compiles for all ranks with the same CPU.

LLVM takes seconds for a program of some thousand operations, and the ranks of one machine share its cores.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mlir_shard.runtime.launch.mpi_library import MpiProcess

# A function of the C interface takes an array of the addresses of its arguments.
_INTERFACE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class SharedCode(Protocol):
    """The ranks of one program, some of which compile machine code that the others receive."""

    def take(self) -> bytes | None:
        """Returns the object file of another rank once it is compiled; None if this rank has to compile it.

        Raises:
            CodeMissing: the other rank has failed to compile it.
        """
        ...

    def give(self, code: bytes) -> None:
        """Sends the object file to the others if this rank had to compile it; `code` is empty if that has failed."""
        ...


class CodeMissing(RuntimeError):
    """The failure of the rank that compiles the machine code; that rank reports the reason."""


class SharedByMpi:
    """Machine code shared by launched ranks, on one or several machines: the first rank with each CPU compiles it."""

    def __init__(self, process: MpiProcess) -> None:
        self._process = process
        cpus = [one.tobytes() for one in process.all_gather(np.frombuffer(host_cpu(), np.uint8))]
        self._makers = sorted({cpus.index(cpu) for cpu in cpus})
        self._own = cpus.index(cpus[process.rank])

    def take(self) -> bytes | None:
        """Implements `SharedCode.take`."""
        if self._own == self._process.rank:
            return None
        code = self._exchange(b"")
        if not code:
            raise CodeMissing(f"rank {self._own} has no machine code")
        return code

    def give(self, code: bytes) -> None:
        """Implements `SharedCode.give`."""
        self._exchange(code)

    def _exchange(self, own: bytes) -> bytes:
        return {maker: self._process.broadcast(own, maker) for maker in self._makers}[self._own]


def host_cpu() -> bytes:
    """Returns a hash of 32 bytes that is equal for machines with the same CPU features and C library."""
    import hashlib

    import llvmlite.binding as llvm

    cpu = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {platform.libc_ver()}"
    return hashlib.sha256(cpu.encode()).digest()


class LoadedCode:
    """Machine code that another process has compiled.

    Args:
        code: an object file.
        libraries: libraries that define its external symbols, besides this process.
        addresses: addresses of other external symbols.
    """

    def __init__(self, code: bytes, libraries: Sequence[Path], addresses: Mapping[str, int]) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for library in libraries:
            llvm.load_library_permanently(str(library))
        for symbol, address in addresses.items():
            llvm.add_symbol(symbol, address)
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def lookup(self, entry: str) -> Any:
        """Returns a function of the C interface, as `ExecutionEngine.lookup` does."""
        return _INTERFACE(self._engine.get_function_address(f"_mlir__mlir_ciface_{entry}"))
