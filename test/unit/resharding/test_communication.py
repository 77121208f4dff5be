# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the communication of collectives, against the moves of plans and their costs if there is such a move."""

from __future__ import annotations

import pytest

from mlir_shard.resharding.cost.communication import CollectiveKind, Communication, GroupAxis, Received
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.cost.links import Link
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import AllGather, AllReduce, AllToAll, Move, Placement, ReduceScatter
from mlir_shard.sharding import Mesh, ReductionOp

MESH = Mesh([("x", 2), ("y", 3), ("z", 4)])
MODEL = CostModel(Link(1e-6, 1e9), (("y", Link(3e-6, 2e8)),))
SUM = ReductionOp.SUM


@pytest.mark.parametrize(
    ("kind", "move", "before"),
    [
        (CollectiveKind.ALL_GATHER, AllGather(0, (1, 2)), Placement(((1, 2), ()))),
        (CollectiveKind.ALL_GATHER, AllGather(1, (0,)), Placement(((2,), (0,)))),
        (CollectiveKind.ALL_REDUCE, AllReduce((0, 1), SUM), Placement(((2,), ()), (0, 1))),
        (CollectiveKind.REDUCE_SCATTER, ReduceScatter(0, (1, 2), SUM), Placement(((), ()), (1, 2))),
        (CollectiveKind.ALL_TO_ALL, AllToAll((2,), 0, 1), Placement(((1, 2), ()))),
    ],
)
def test_bytes_and_time_are_those_of_the_move(kind: CollectiveKind, move: Move, before: Placement) -> None:
    tensor = GridTensor(Grid.of(MESH, ()), (24, 48), 4)
    axes = tuple(GroupAxis(MESH.axes[axis].name, MESH.axes[axis].size) for axis in move.axes)
    groups = MESH.total_size
    for axis in axes:
        groups //= axis.size
    sizes = tensor.local_bytes(before), tensor.local_bytes(tensor.after(move, before))
    communication = Communication(kind, axes, groups, *sizes, 4)
    cost = MODEL.cost(move, before, tensor)
    assert communication.bytes_received == cost.bytes_received
    assert communication.total_bytes == cost.total_bytes
    assert communication.time(MODEL.link) == pytest.approx(cost.time)


def test_root_receives_most() -> None:
    axes = (GroupAxis("x", 4),)
    gather = Communication(CollectiveKind.GATHER, axes, 2, 100, 400)
    assert (gather.bytes_received, gather.total_bytes) == (300, 600)
    scatter = Communication(CollectiveKind.SCATTER, axes, 2, 400, 100)
    assert (scatter.bytes_received, scatter.total_bytes) == (100, 600)
    reduce = Communication(CollectiveKind.REDUCE, axes, 1, 64, 64, 4)
    assert (reduce.bytes_received, reduce.total_bytes) == (96, 240)


def test_alone_nothing_is_received() -> None:
    for kind in CollectiveKind:
        received = Received(0, 0) if kind in (CollectiveKind.COLLECTIVE_PERMUTE, CollectiveKind.HALO_EXCHANGE) else None
        if kind is not CollectiveKind.RECV:
            alone = Communication(kind, (GroupAxis("x", 1),), 8, 64, 64, 4, received)
            assert (alone.bytes_received, alone.total_bytes, alone.time(MODEL.link)) == (0, 0, 0.0), kind
