# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled for MPICH's binary interface, run with Open MPI.

Programs know communicators, datatypes, reductions and requests by MPICH's numbers. Here each call of theirs is handed
on with the handles of Open MPI.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.runtime import mpich
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.jit import Executable
from mlir_shard.runtime.mpi_installation import OPEN_MPI
from mlir_shard.runtime.mpi_process import MpiProcess
from mlir_shard.runtime.program import Program

# The arguments of each function: a buffer, a number, the rank of another, a datatype, an operation, a communicator,
# a new communicator's place, a request's place, a status.
_FUNCTIONS = {
    "MPI_Allgather": "bntbntc",
    "MPI_Allgatherv": "bntbbbtc",
    "MPI_Allreduce": "bbntoc",
    "MPI_Alltoall": "bntbntc",
    "MPI_Alltoallv": "bbbtbbbtc",
    "MPI_Barrier": "c",
    "MPI_Bcast": "bntnc",
    "MPI_Comm_rank": "cb",
    "MPI_Comm_size": "cb",
    "MPI_Comm_split": "cnnC",
    "MPI_Gather": "bntbntnc",
    "MPI_Irecv": "bntrncR",
    "MPI_Isend": "bntrncR",
    "MPI_Recv": "bntrncs",
    "MPI_Reduce": "bbntonc",
    "MPI_Reduce_scatter_block": "bbntoc",
    "MPI_Scatter": "bntbntnc",
    "MPI_Send": "bntrnc",
    "MPI_Sendrecv": "bntrnbntrncs",
    "MPI_Wait": "Rs",
}
_POINTERS = frozenset("bCRs")

_WORLD = 0x44000000
_TYPES = {
    "f32": "float",
    "f64": "double",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
}
_OPERATIONS = {
    "max": "max",
    "min": "min",
    "sum": "sum",
    "product": "prod",
    "bitwise_and": "band",
    "bitwise_or": "bor",
    "bitwise_xor": "bxor",
}
_RANKS = {mpich.PROC_NULL: -2, mpich.ANY_SOURCE: -1}
# Instead of a buffer, what says that it is the other one, as the pointers that both know.
_IN_PLACE, _OPEN_MPI_IN_PLACE = ctypes.c_void_p(-1).value, 1
_STATUS_IGNORE = 0


def executable(program: Program, process: MpiProcess | None) -> Executable:
    """A program on a rank of MPI, or alone; RunError where it has calls that cannot be handed on."""
    if process is None:
        return Executable(program)
    if process.implementation != OPEN_MPI:
        return Executable(program, [process.path])
    return _TranslatedExecutable(program, process)


class _TranslatedExecutable(Executable):
    def __init__(self, program: Program, process: MpiProcess) -> None:
        names = sorted(set(re.findall(r"@(MPI_\w+)\(", program.text)))
        unknown = [name for name in names if name not in _FUNCTIONS]
        if unknown:
            raise RunError(f"the program calls what is not handed on to Open MPI: {', '.join(unknown)}")
        # The engine finds functions of Python by such names.
        super().__init__(replace(program, text=re.sub(r"@(?=MPI_\w+\()", "@_mlir_ciface_", program.text)))
        handles = _Handles(process)
        self._functions = {name: _translated(name, handles) for name in names}
        for name, function in self._functions.items():
            self._engine.register_runtime(name, function)


class _Handles:
    """Handles of Open MPI by those of MPICH."""

    def __init__(self, process: MpiProcess) -> None:
        self.process = process
        self.known = {
            "t": {mpich.DATATYPES[name]: self._address(f"ompi_mpi_{one}") for name, one in _TYPES.items()},
            "o": {
                mpich.OPERATION + mpich.REDUCTIONS[name]: self._address(f"ompi_mpi_op_{one}")
                for name, one in _OPERATIONS.items()
            },
            "c": {_WORLD: self._address("ompi_mpi_comm_world")},
        }
        self.requests: dict[int, ctypes.c_void_p] = {}

    def _address(self, symbol: str) -> int:
        return ctypes.addressof(ctypes.c_char.in_dll(self.process.library, symbol))

    def new_communicator(self, handle: int | None) -> int:
        """The number of a communicator that a call has made."""
        number = _WORLD + len(self.known["c"])
        self.known["c"][number] = handle or 0
        return number

    def new_request(self) -> int:
        """The number of a request that a call is about to make."""
        number = next(one for one in range(1, len(self.requests) + 2) if one not in self.requests)
        self.requests[number] = ctypes.c_void_p()
        return number


def _translated(name: str, handles: _Handles) -> Any:
    """The function for programs to call."""
    roles = _FUNCTIONS[name]
    real = handles.process.library[name]

    def call(*given: Any) -> int:
        try:
            return _call(real, roles, given, handles)
        except (KeyError, ctypes.ArgumentError) as error:
            # An exception would not reach anybody, and the program would go on without what it asked for.
            print(f"{name} cannot be handed on to Open MPI: {error!r}", file=sys.stderr, flush=True)
            handles.process.abort(1)
            raise

    types = [ctypes.c_void_p if role in _POINTERS else ctypes.c_int for role in roles]
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(call)


def _call(real: Callable[..., int], roles: str, given: Sequence[Any], handles: _Handles) -> int:
    translated: list[Any] = []
    made = ctypes.c_void_p()
    waited = 0
    for role, value in zip(roles, given, strict=True):
        if role in handles.known:
            translated.append(ctypes.c_void_p(handles.known[role][value]))
        elif role == "r":
            translated.append(_RANKS.get(value, value))
        elif role == "b":
            translated.append(ctypes.c_void_p(_OPEN_MPI_IN_PLACE if value == _IN_PLACE else value))
        elif role == "s":
            translated.append(ctypes.c_void_p(_STATUS_IGNORE))
        elif role == "C":
            translated.append(ctypes.byref(made))
        elif role == "R":
            place = ctypes.c_int.from_address(value)
            waited = place.value if roles == _FUNCTIONS["MPI_Wait"] else 0
            if waited == mpich.REQUEST_NULL:
                return 0
            if not waited:
                place.value = handles.new_request()
            translated.append(ctypes.byref(handles.requests[place.value]))
        else:
            translated.append(value)
    status = real(*translated)
    if "C" in roles:
        ctypes.c_int.from_address(given[roles.index("C")]).value = handles.new_communicator(made.value)
    if waited:
        del handles.requests[waited]
        ctypes.c_int.from_address(given[roles.index("R")]).value = mpich.REQUEST_NULL
    return status
