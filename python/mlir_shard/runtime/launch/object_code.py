# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code that one rank makes for all ranks with the same CPU.

LLVM takes seconds for a program of some thousand operations, and ranks on one machine share its cores.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mlir_shard.runtime.launch.mpi_library import MpiProcess

# The C interface of a function takes an array of the addresses of its arguments.
_INTERFACE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class SharedCode(Protocol):
    """Ranks of one program, of which some make machine code and the others take it."""

    def take(self) -> bytes | None:
        """Waits for the object file of another rank and returns it; None if this rank has to make it.

        Raises:
            CodeMissing: the other rank has failed to make it.
        """
        ...

    def give(self, code: bytes) -> None:
        """Gives the object file to the others, if this rank had to make it; empty if that has failed."""
        ...


class CodeMissing(RuntimeError):
    """The rank that makes the machine code has failed, and reports why."""


class SharedByMpi:
    """Machine code shared by the ranks of a launcher, on one or several machines: the first with each CPU makes it."""

    def __init__(self, process: MpiProcess) -> None:
        self._process = process
        cpus = [one.tobytes() for one in process.all_gather(np.frombuffer(host_cpu(), np.uint8))]
        self._makers = sorted({cpus.index(cpu) for cpu in cpus})
        self._own = cpus.index(cpus[process.rank])

    def take(self) -> bytes | None:
        """As `SharedCode.take`."""
        if self._own == self._process.rank:
            return None
        code = self._exchange(b"")
        if not code:
            raise CodeMissing(f"rank {self._own} has no machine code")
        return code

    def give(self, code: bytes) -> None:
        """As `SharedCode.give`."""
        self._exchange(code)

    def _exchange(self, own: bytes) -> bytes:
        return {maker: self._process.broadcast(own, maker) for maker in self._makers}[self._own]


def host_cpu() -> bytes:
    """Returns 32 bytes that are equal for machines that can run each other's code."""
    import hashlib

    import llvmlite.binding as llvm

    cpu = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {platform.libc_ver()}"
    return hashlib.sha256(cpu.encode()).digest()


class LoadedCode:
    """Machine code that was made elsewhere.

    Args:
        code: an object file.
        libraries: where the symbols are that it does not define, besides those of this process.
        addresses: where more symbols are.
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
