# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The binary interfaces of MPI libraries, and the MPI process that this process is.

An interface consists of the types of handles and the values of predefined handles and constants. This process
initializes and finalizes the library, which the program calls directly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from mlir_shard import _native
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.launch import shared_memory

MPICH = "MPICH"
OPEN_MPI = "Open MPI"
# The module attribute with the MPI implementation for which upstream lowers the mpi dialect.
ATTRIBUTE: Final = "dlti.map"
# The maximum number of elements of one call: its count is a C int.
MOST_ELEMENTS: Final = 2**31 - 1
# Datatypes by element type in MLIR's syntax.
DATATYPES: Final = MappingProxyType(
    {
        "f32": "MPI_FLOAT",
        "f64": "MPI_DOUBLE",
        "i8": "MPI_INT8_T",
        "i16": "MPI_INT16_T",
        "i32": "MPI_INT32_T",
        "i64": "MPI_INT64_T",
    }
)
# Reductions by their names in the shard dialect.
REDUCTIONS: Final = MappingProxyType(
    {
        "max": "MPI_MAX",
        "min": "MPI_MIN",
        "sum": "MPI_SUM",
        "product": "MPI_PROD",
        "bitwise_and": "MPI_BAND",
        "bitwise_or": "MPI_BOR",
        "bitwise_xor": "MPI_BXOR",
    }
)
_WORLD = "MPI_COMM_WORLD"


@dataclass(frozen=True, slots=True)
class MpiAbi:
    """The interface of one implementation.

    Attributes:
        implementation: `MPICH` or `OPEN_MPI`.
        entry: the entry for it in the module attribute `ATTRIBUTE`.
        passes_pointers: whether handles are pointers instead of ints.
        handles: predefined handles by their names in MPI: a number, or the symbol whose address is the handle.
        proc_null, any_source: the values of MPI_PROC_NULL and MPI_ANY_SOURCE.
        status_ignore: the address MPI_STATUS_IGNORE.
    """

    implementation: str
    entry: str
    passes_pointers: bool
    handles: Mapping[str, int | str]
    proc_null: int
    any_source: int
    status_ignore: int

    def argument(self, name: str, library: ctypes.CDLL) -> ctypes.c_int | ctypes.c_void_p:
        """Returns the predefined handle `name` as an argument of a function of `library`."""
        handle = self.handles[name]
        if isinstance(handle, int):
            return ctypes.c_int(handle)
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, handle)))


_MPICH = MpiAbi(
    implementation=MPICH,
    entry='"MPI:Implementation" = "MPICH"',
    passes_pointers=False,
    handles=MappingProxyType(
        {
            _WORLD: 0x44000000,
            "MPI_REQUEST_NULL": 0x2C000000,
            "MPI_BYTE": 0x4C00010D,
            "MPI_INT": 0x4C000405,
            "MPI_FLOAT": 0x4C00040A,
            "MPI_DOUBLE": 0x4C00080B,
            "MPI_INT8_T": 0x4C000137,
            "MPI_INT16_T": 0x4C000238,
            "MPI_INT32_T": 0x4C000439,
            "MPI_INT64_T": 0x4C00083A,
            "MPI_MAX": 0x58000001,
            "MPI_MIN": 0x58000002,
            "MPI_SUM": 0x58000003,
            "MPI_PROD": 0x58000004,
            "MPI_BAND": 0x58000006,
            "MPI_BOR": 0x58000008,
            "MPI_BXOR": 0x5800000A,
        }
    ),
    proc_null=-1,
    any_source=-2,
    status_ignore=1,
)
_OPEN_MPI = MpiAbi(
    implementation=OPEN_MPI,
    entry='"MPI:Implementation" = "OpenMPI"',
    passes_pointers=True,
    handles=MappingProxyType(
        {
            **{name: f"ompi_{name.lower()}" for name in _MPICH.handles},
            **{name: f"ompi_mpi_op_{name.removeprefix('MPI_').lower()}" for name in REDUCTIONS.values()},
            "MPI_REQUEST_NULL": "ompi_request_null",
        }
    ),
    proc_null=-2,
    any_source=-1,
    status_ignore=0,
)
_ABIS = {abi.implementation: abi for abi in (_MPICH, _OPEN_MPI)}


def of(implementation: str) -> MpiAbi:
    """Returns the interface of `MPICH` or `OPEN_MPI`."""
    return _ABIS[implementation]


def implementation_of(library: ctypes.CDLL) -> str:
    """Returns the implementation whose interface a loaded library has."""
    return OPEN_MPI if hasattr(library, str(_OPEN_MPI.handles[_WORLD])) else MPICH


_MOST_BYTES = 2**30


class MpiProcess:
    """This process after MPI_Init, which is called once; the program itself neither initializes nor finalizes MPI.

    `has_begun` is whether this object has called MPI_Init, not an earlier caller. Raises OSError if the library cannot
    be loaded or initialized.
    """

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.implementation = implementation_of(self.library)
        self.path = library
        is_initialized = ctypes.c_int()
        self.library.MPI_Initialized(ctypes.byref(is_initialized))
        self.has_begun = not is_initialized.value
        if self.has_begun and self.implementation == MPICH:
            # If /dev/shm has no space for its shared memory, MPI_Init ends the process by this signal.
            _native.remove_mapped_at_bus_error(shared_memory.FOLDER, shared_memory.PREFIX)
        if self.has_begun and self.library.MPI_Init(None, None) != 0:
            raise OSError(f"MPI_Init of {library} failed")
        self.rank = self._number("MPI_Comm_rank")
        self.size = self._number("MPI_Comm_size")

    def predefined(self, name: str) -> Any:
        """Returns a predefined handle, by its name in MPI."""
        return of(self.implementation).argument(name, self.library)

    def barrier(self) -> None:
        """Waits until all ranks have called this."""
        self.library.MPI_Barrier(self.predefined("MPI_COMM_WORLD"))

    def first(self, is_one: bool) -> int | None:
        """Returns the first rank with a true `is_one`, None if no rank has one; all ranks must call it."""
        mine, least = ctypes.c_int(self.rank if is_one else self.size), ctypes.c_int()
        handles = map(self.predefined, ("MPI_INT", "MPI_MIN", "MPI_COMM_WORLD"))
        self.library.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(least), 1, *handles)
        return None if least.value == self.size else least.value

    def all_gather(self, array: Array) -> list[Array]:
        """Returns the arrays of all ranks, which must have the same shape and dtype; all ranks must call it."""
        pieces = array.reshape(-1).view(np.uint8)
        gathered = np.empty((self.size, pieces.size), np.uint8)
        byte, world = self.predefined("MPI_BYTE"), self.predefined("MPI_COMM_WORLD")
        # A count is a C int.
        for start in range(0, pieces.size, _MOST_BYTES):
            piece = np.ascontiguousarray(pieces[start : start + _MOST_BYTES])
            received = np.empty((self.size, piece.size), np.uint8)
            data = [ctypes.c_void_p(one.ctypes.data) for one in (piece, received)]
            self.library.MPI_Allgather(data[0], piece.size, byte, data[1], piece.size, byte, world)
            gathered[:, start : start + piece.size] = received
        return [one.view(array.dtype).reshape(array.shape) for one in gathered]

    def broadcast(self, data: bytes, root: int) -> bytes:
        """Returns the data of the rank `root`, less than 2 GiB; all ranks must call it."""
        world, byte = self.predefined("MPI_COMM_WORLD"), self.predefined("MPI_BYTE")
        size = ctypes.c_int(len(data))
        self.library.MPI_Bcast(ctypes.byref(size), 1, self.predefined("MPI_INT"), root, world)
        buffer = ctypes.create_string_buffer(data if self.rank == root else b"", max(size.value, 1))
        self.library.MPI_Bcast(buffer, size.value, byte, root, world)
        return buffer.raw[: size.value]

    def unlink_shared_memory(self) -> None:
        """Unlinks the files of the memory that MPICH shares between ranks, so that none remains if ranks are killed.

        All ranks do this at once, and keep the memory mapped. It is known to be safe only for the MPICH of PyPI.
        """
        self.barrier()
        for path in shared_memory.mapped():
            Path(path).unlink(missing_ok=True)

    def abort(self, status: int) -> None:
        """Ends all ranks."""
        self.library.MPI_Abort(self.predefined("MPI_COMM_WORLD"), status)

    def finalize(self) -> None:
        """Finalizes MPI, which waits for the other ranks."""
        self.library.MPI_Finalize()

    def _number(self, function: str) -> int:
        number = ctypes.c_int()
        self.library[function](self.predefined("MPI_COMM_WORLD"), ctypes.byref(number))
        return number.value
