# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the live memory at each operation of a program, computed from the lifetimes of its buffers."""

from __future__ import annotations

import pytest
from explain.pages import LAYER, explained

from mlir_shard.explain.allocation.buffers import Buffer, Kind
from mlir_shard.explain.memory import memory_over_program
from mlir_shard.explain.memory_curve import MemoryPoint, memory_curve
from mlir_shard.explain.places import Place

BUFFERS = [
    Buffer(100, 1, 4, op=0),
    Buffer(50, 3, 6, op=1),
    Buffer(20, 3, 4, Kind.COLLECTIVE, op=1),
    Buffer(10, 5, 6, op=2),
    Buffer(1000, 6, 6),
]


def shown(number: int) -> tuple[str, Place]:
    return f"op {number}", Place("a.mlir", number + 1)


def test_points_are_what_is_live_when_operations_begin() -> None:
    assert memory_curve(BUFFERS, shown, always=7) == [
        MemoryPoint(107, 0, *shown(0)),
        MemoryPoint(157, 20, *shown(1)),
        MemoryPoint(67, 0, *shown(2)),
    ]


@pytest.mark.parametrize(("most", "ops"), [(2, ["op 1", "op 2"]), (1, ["op 1"])])
def test_of_many_points_the_highest_are_kept(most: int, ops: list[str]) -> None:
    assert [one.op for one in memory_curve(BUFFERS, shown, most=most)] == ops


def test_nothing_is_live_in_a_program_without_operations() -> None:
    assert memory_curve([], shown) == []


@pytest.mark.parametrize("engine", ["mpi", "pjrt"])
def test_the_highest_point_is_the_peak(engine: str) -> None:
    peak, points = memory_over_program(explained(LAYER).module, "layer", engine=engine)
    highest = max(one.values + one.collectives for one in points)
    assert 0 < peak.arguments + highest <= peak.without_constants
    if engine == "mpi":
        assert peak.arguments + highest == peak.without_constants
