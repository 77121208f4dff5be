# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""This process as one of MPI's: what is asked of the library around the program, which has its own calls."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from mlir_shard.runtime import mpi_abi
from mlir_shard.runtime.arrays import Array

_MOST_BYTES = 2**30
_SHARED_MEMORY = "/dev/shm/mpich_shm_"


class MpiProcess:
    """This process after MPI_Init, which is done once; the program itself has only calls that need it done.

    `has_begun` says that it was done here, not by somebody before. OSError where the library cannot be loaded or does
    not begin.
    """

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.implementation = mpi_abi.implementation_of(self.library)
        self.path = library
        is_initialized = ctypes.c_int()
        self.library.MPI_Initialized(ctypes.byref(is_initialized))
        self.has_begun = not is_initialized.value
        if self.has_begun and self.library.MPI_Init(None, None) != 0:
            raise OSError(f"MPI_Init of {library} failed")
        self.rank = self._number("MPI_Comm_rank")
        self.size = self._number("MPI_Comm_size")

    def predefined(self, name: str) -> Any:
        """A handle, by its name in MPI."""
        return mpi_abi.of(self.implementation).argument(name, self.library)

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        self.library.MPI_Barrier(self.predefined("MPI_COMM_WORLD"))

    def first(self, is_one: bool) -> int | None:
        """The first rank for which `is_one` holds, None where there is none; all ranks ask at once."""
        mine, least = ctypes.c_int(self.rank if is_one else self.size), ctypes.c_int()
        handles = map(self.predefined, ("MPI_INT", "MPI_MIN", "MPI_COMM_WORLD"))
        self.library.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(least), 1, *handles)
        return None if least.value == self.size else least.value

    def all_gather(self, array: Array) -> list[Array]:
        """The arrays of all ranks, which are of one type."""
        pieces = array.reshape(-1).view(np.uint8)
        gathered = np.empty((self.size, pieces.size), np.uint8)
        byte, world = self.predefined("MPI_BYTE"), self.predefined("MPI_COMM_WORLD")
        # A number of elements is an int of C.
        for start in range(0, pieces.size, _MOST_BYTES):
            piece = np.ascontiguousarray(pieces[start : start + _MOST_BYTES])
            received = np.empty((self.size, piece.size), np.uint8)
            data = [ctypes.c_void_p(one.ctypes.data) for one in (piece, received)]
            self.library.MPI_Allgather(data[0], piece.size, byte, data[1], piece.size, byte, world)
            gathered[:, start : start + piece.size] = received
        return [one.view(array.dtype).reshape(array.shape) for one in gathered]

    def unlink_shared_memory(self) -> None:
        """Takes the names from the memory that MPICH shares between ranks, so that none stays if they are killed.

        All ranks do this at once, and keep the memory. Only for the MPICH of PyPI, of which it is known to be no harm.
        """
        self.barrier()
        maps = Path("/proc/self/maps")
        for line in maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []:
            *_, path = line.split(maxsplit=5)
            if path.startswith(_SHARED_MEMORY):
                Path(path).unlink(missing_ok=True)

    def abort(self, status: int) -> None:
        """Ends all ranks."""
        self.library.MPI_Abort(self.predefined("MPI_COMM_WORLD"), status)

    def finalize(self) -> None:
        """Takes leave of the other ranks."""
        self.library.MPI_Finalize()

    def _number(self, function: str) -> int:
        number = ctypes.c_int()
        self.library[function](self.predefined("MPI_COMM_WORLD"), ctypes.byref(number))
        return number.value
