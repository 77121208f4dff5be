# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of MPI among threads: a collective, messages, and the errors of ranks with inconsistent calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from mlir_shard.runtime.launch import mpi_library
from random_programs.simulated_mpi import RanksFailed, World

_ABI = mpi_library.of(mpi_library.MPICH)
_WORLD, _INT, _SUM = (int(_ABI.handles[name]) for name in ("MPI_COMM_WORLD", "MPI_INT32_T", "MPI_SUM"))


def _address(array: Any) -> int:
    return int(array.ctypes.data)


def test_an_all_reduce_of_each_half_of_the_ranks() -> None:
    world = World(4)
    functions = world.functions()

    def rank(number: int) -> int:
        half = ctypes.c_int()
        functions["MPI_Comm_split"](_WORLD, number // 2, number, ctypes.addressof(half))
        sent, received = np.array([10 + number], np.int32), np.zeros(1, np.int32)
        functions["MPI_Allreduce"](_address(sent), _address(received), 1, _INT, _SUM, half.value)
        return int(received[0])

    assert world.run(rank) == [21, 21, 25, 25]


def test_a_message_to_the_next_rank() -> None:
    world = World(3)
    functions = world.functions()

    def rank(number: int) -> int:
        sent, received, to = np.array([number], np.int32), np.zeros(1, np.int32), (number + 1) % 3
        ends = ((_address(sent), 1, _INT, to, 7), (_address(received), 1, _INT, (number - 1) % 3, 7))
        functions["MPI_Sendrecv"](*ends[0], *ends[1], _WORLD, None)
        return int(received[0])

    assert world.run(rank) == [2, 0, 1]


def test_different_collectives() -> None:
    world = World(2)
    functions = world.functions()

    def rank(number: int) -> None:
        sent, received = np.zeros(2, np.int32), np.zeros(2, np.int32)
        if number == 0:
            functions["MPI_Allreduce"](_address(sent), _address(received), 1, _INT, _SUM, _WORLD)
        else:
            functions["MPI_Allgather"](_address(sent), 1, _INT, _address(received), 1, _INT, _WORLD)

    with pytest.raises(RanksFailed, match="different collectives: rank 0 in MPI_Allreduce, rank 1 in MPI_Allgather"):
        world.run(rank)


def test_different_counts() -> None:
    world = World(2)
    functions = world.functions()

    def rank(number: int) -> None:
        sent, received = np.zeros(2, np.int32), np.zeros(2, np.int32)
        functions["MPI_Allreduce"](_address(sent), _address(received), 1 + number, _INT, _SUM, _WORLD)

    with pytest.raises(RanksFailed, match=r"different counts: \[1, 2\]"):
        world.run(rank)


def test_ranks_that_all_wait() -> None:
    world = World(3)
    functions = world.functions()

    def rank(number: int) -> None:
        received = np.zeros(1, np.int32)
        if number > 0:
            functions["MPI_Recv"](_address(received), 1, _INT, 0, 7, _WORLD, None)

    with pytest.raises(RanksFailed, match="2 ranks wait for ever, and 1 have ended: rank 1 waits for a message"):
        world.run(rank)
