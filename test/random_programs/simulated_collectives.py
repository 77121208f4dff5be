# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The effects of MPI's collectives on the memory of all ranks of a group, after each rank has called one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from mlir_shard.runtime.launch import mpi_library

_IN_PLACE = ctypes.c_void_p(-1).value
_REDUCTIONS: dict[str, Any] = {
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
    "product": np.multiply,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
_ABI = mpi_library.of(mpi_library.MPICH)
DTYPES = {
    int(_ABI.handles[handle]): np.dtype({"f": "float", "i": "int"}[name[0]] + name[1:])
    for name, handle in mpi_library.DATATYPES.items()
}
_OPERATIONS = {int(_ABI.handles[handle]): _REDUCTIONS[name] for name, handle in mpi_library.REDUCTIONS.items()}


def read(buffer: int, count: int, datatype: int) -> bytes:
    """Returns the bytes of a buffer with `count` elements of an MPI datatype."""
    return ctypes.string_at(buffer, count * DTYPES[datatype].itemsize)


def _array(buffer: int, count: int, datatype: int) -> Any:
    return np.frombuffer(read(buffer, count, datatype), DTYPES[datatype])


def _write(buffer: int, data: bytes) -> None:
    ctypes.memmove(buffer, data, len(data))


def _same(what: str, values: Sequence[Any]) -> Any:
    """Returns the value that is common to all ranks; ValueError if ranks have different values."""
    if len(set(values)) > 1:
        raise ValueError(f"ranks give different {what}: {list(values)}")
    return values[0]


def _all_gather(calls: Sequence[Sequence[int]]) -> None:
    count, datatype = (_same(what, [call[place] for call in calls]) for place, what in ((1, "counts"), (2, "types")))
    gathered = b"".join(read(call[0], count, datatype) for call in calls)
    for call in calls:
        _write(call[3], gathered)


def _all_to_all(calls: Sequence[Sequence[int]]) -> None:
    count, datatype = (_same(what, [call[place] for call in calls]) for place, what in ((1, "counts"), (2, "types")))
    size = count * DTYPES[datatype].itemsize
    sent = [read(call[0], count * len(calls), datatype) for call in calls]
    for index, call in enumerate(calls):
        _write(call[3], b"".join(one[index * size : (index + 1) * size] for one in sent))


def _reduced(calls: Sequence[Sequence[int]], blocks: int = 1) -> Any:
    count, datatype, operation = (
        _same(what, [call[place] for call in calls]) for place, what in ((2, "counts"), (3, "types"), (4, "operations"))
    )
    arrays = [_array(call[1 if call[0] == _IN_PLACE else 0], count * blocks, datatype) for call in calls]
    with np.errstate(all="ignore"):
        return reduce(_OPERATIONS[operation], arrays)


def _all_reduce(calls: Sequence[Sequence[int]]) -> None:
    reduced = _reduced(calls).tobytes()
    for call in calls:
        _write(call[1], reduced)


def _reduce(calls: Sequence[Sequence[int]]) -> None:
    _write(calls[_same("roots", [call[5] for call in calls])][1], _reduced(calls).tobytes())


def _reduce_scatter(calls: Sequence[Sequence[int]]) -> None:
    for call, block in zip(calls, np.split(_reduced(calls, len(calls)), len(calls)), strict=True):
        _write(call[1], block.tobytes())


def _broadcast(calls: Sequence[Sequence[int]]) -> None:
    root = calls[_same("roots", [call[3] for call in calls])]
    sent = read(*root[:3])
    for call in calls:
        if call is not root:
            _write(call[0], sent)


def _gather(calls: Sequence[Sequence[int]]) -> None:
    root = calls[_same("roots", [call[6] for call in calls])]
    _write(root[3], b"".join(read(*call[:3]) for call in calls))


def _scatter(calls: Sequence[Sequence[int]]) -> None:
    root = calls[_same("roots", [call[6] for call in calls])]
    size = root[1] * DTYPES[root[2]].itemsize
    for index, call in enumerate(calls):
        _write(call[3], ctypes.string_at(root[0] + index * size, size))


# The effects by the names of collectives. Their argument is the arguments of the group's calls, in the order of ranks.
EFFECTS: dict[str, Callable[[Sequence[Sequence[int]]], None]] = {
    "MPI_Allgather": _all_gather,
    "MPI_Allreduce": _all_reduce,
    "MPI_Alltoall": _all_to_all,
    "MPI_Bcast": _broadcast,
    "MPI_Gather": _gather,
    "MPI_Reduce": _reduce,
    "MPI_Reduce_scatter_block": _reduce_scatter,
    "MPI_Scatter": _scatter,
}
