# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Handles and constants of MPICH, as its mpi.h has them: what upstream's lowering of the mpi dialect goes by, too."""

from __future__ import annotations

from typing import Final

# Datatypes by the type of elements as MLIR writes it.
DATATYPES: Final = {
    "f32": 0x4C00040A,
    "f64": 0x4C00080B,
    "i8": 0x4C000137,
    "i16": 0x4C000238,
    "i32": 0x4C000439,
    "i64": 0x4C00083A,
}
# Reductions as the shard dialect names them: the cases of the mpi dialect's enumeration, which are numbered so, too.
REDUCTIONS: Final = {
    "max": 1,
    "min": 2,
    "sum": 3,
    "product": 4,
    "bitwise_and": 6,
    "bitwise_or": 8,
    "bitwise_xor": 10,
}
OPERATION: Final = 0x58000000
PROC_NULL: Final = -1
ANY_SOURCE: Final = -2
REQUEST_NULL: Final = 0x2C000000
STATUS_IGNORE: Final = 1
MOST_ELEMENTS: Final = 2**31 - 1
