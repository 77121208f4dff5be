# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The binary interfaces of MPI libraries: how handles are passed, and the values of predefined handles and constants.

MPICH and the libraries that keep its interface (Intel MPI, Cray MPICH, MVAPICH) pass handles as ints, numbered in
`mpi.h`. Open MPI passes pointers; a predefined handle is the address of a global variable of the library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MPICH, OPEN_MPI = "MPICH", "Open MPI"

# Upstream lowers the mpi dialect for the implementation that this attribute of the module names.
ATTRIBUTE: Final = "dlti.map"

# The most elements that one call takes: a count is an int of C.
MOST_ELEMENTS: Final = 2**31 - 1

# Datatypes by the element type as MLIR writes it.
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
        attribute: the text of the module attribute `ATTRIBUTE`.
        passes_pointers: whether handles are pointers, rather than ints.
        handles: predefined handles by their names in MPI: the number, or the symbol whose address is the handle.
        proc_null, any_source: ranks with a special meaning.
        status_ignore: the address that stands for no status.
    """

    implementation: str
    attribute: str
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
    attribute='#dlti.map<"MPI:Implementation" = "MPICH">',
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
    attribute='#dlti.map<"MPI:Implementation" = "OpenMPI">',
    passes_pointers=True,
    handles=MappingProxyType(
        {
            _WORLD: "ompi_mpi_comm_world",
            "MPI_REQUEST_NULL": "ompi_request_null",
            "MPI_BYTE": "ompi_mpi_byte",
            "MPI_INT": "ompi_mpi_int",
            "MPI_FLOAT": "ompi_mpi_float",
            "MPI_DOUBLE": "ompi_mpi_double",
            "MPI_INT8_T": "ompi_mpi_int8_t",
            "MPI_INT16_T": "ompi_mpi_int16_t",
            "MPI_INT32_T": "ompi_mpi_int32_t",
            "MPI_INT64_T": "ompi_mpi_int64_t",
            "MPI_MAX": "ompi_mpi_op_max",
            "MPI_MIN": "ompi_mpi_op_min",
            "MPI_SUM": "ompi_mpi_op_sum",
            "MPI_PROD": "ompi_mpi_op_prod",
            "MPI_BAND": "ompi_mpi_op_band",
            "MPI_BOR": "ompi_mpi_op_bor",
            "MPI_BXOR": "ompi_mpi_op_bxor",
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
