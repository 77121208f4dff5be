# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the costs of moves, and of cost model files."""

from __future__ import annotations

import json
import sys
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from resharding.brute_force import moves, placements
from resharding.every_layout import mesh_of
from resharding.received_bytes import bytes_received

from mlir_shard.resharding.cost.cost_model import CostModel, Link, Objective
from mlir_shard.resharding.cost.step_cost import StepTraffic, step_traffic
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    Placement,
    ReduceScatter,
)
from mlir_shard.sharding import ReductionOp

MODEL = CostModel(Link(1.0, 100.0), (("b", Link(10.0, 50.0)),))
TENSOR = GridTensor(Grid.of(mesh_of(4, 3), ()), (12, 24), 1)
SUM = ReductionOp.SUM


@pytest.mark.parametrize(
    ("move", "before", "time"),
    [
        (AllSlice(0, (0,)), Placement(((), ())), 0.0),
        # Recursive doubling, and a ring of three.
        (AllGather(0, (0,)), Placement(((0,), ())), 2 * 1.0 + 9 * 24 / 100),
        (AllGather(0, (1,)), Placement(((1,), ())), 2 * 10.0 + 8 * 24 / 50),
        (AllToAll((0,), 0, 1), Placement(((0,), ())), 3 * 1.0 + 3 * 18 / 100),
        (AllToAll((0, 1), 0, 1), Placement(((0, 1), ())), 11 * 10.0 + 22 / 50),
        (CollectivePermute(((), (0,))), Placement(((), (1,))), None),
        (AllReduce((0,), SUM), Placement(((), ()), (0,)), 4 * 1.0 + 2 * 3 * 72 / 100),
        (ReduceScatter(1, (0,), SUM), Placement(((), ()), (0,)), 2 * 1.0 + 3 * 12 * 6 / 100),
        (DirectExchange(Placement(((), ()))), Placement(((0,), ())), 3 * 1.0 + 9 * 24 / 100),
    ],
)
def test_times(move: Any, before: Placement, time: float | None) -> None:
    if time is None:
        with pytest.raises(ValueError, match="no permutation of devices"):
            MODEL.cost(move, before, TENSOR)
    else:
        cost = MODEL.cost(move, before, TENSOR)
        assert cost.time == pytest.approx(time)
        assert cost.bytes_received == max(bytes_received(move, before, TENSOR))


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ((2, 3), (5, 7)),
        ((2, 3), (12, 6)),
        ((2, 2), (8, 6)),
        ((2, 2), (8, 4)),
        ((4, 2), (8, 16)),
        ((2, 2), (0, 5)),
        ((3,), (7,)),
        ((2, 2, 2), (8,)),
        # More bytes than NumPy's integers can represent.
        ((2, 4), (2**33, 2**33)),
        ((2, 3), (2**62, 3)),
        ((2, 2), (2**61 + 1, 3)),
    ],
)
def test_traffic_is_what_grid_tensors_and_messages_say(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    tensor = GridTensor(Grid.of(mesh_of(*sizes), ()), shape, 4)
    traffic = traffic_on(tensor.grid.sizes, shape)
    everywhere = list(placements(len(sizes), len(shape), unreduced=True))
    for before in everywhere:
        for move in moves(before, everywhere, len(sizes)):
            try:
                after = tensor.after(move, before)
            except ValueError:
                continue
            found = step_traffic(move, before, after, tensor).in_bytes(4)
            assert found.received == bytes_received(move, before, tensor), (move, before)
            assert sum(found.sent) == sum(found.received), (move, before)
            cost = MODEL.cost(move, before, tensor)
            assert (cost.total_bytes, cost.bytes_received) == (sum(found.received), max(found.received))
    for before, after in product(everywhere, everywhere):
        if before.unreduced == after.unreduced == ():
            found = step_traffic(DirectExchange(after), before, after, tensor)
            messages = direct_exchange(tensor.layout(before), tensor.layout(after))
            assert found == StepTraffic(messages.bytes_received(1), messages.bytes_sent(1))
            assert traffic.lacking(before.dims, after.dims) == (sum(found.received), max(found.received))
            assert traffic.exchange_rounds(before.dims, after.dims) == messages.num_rounds
            assert (
                0 <= traffic.most_senders(before.dims, after.dims) - 1 <= messages.num_rounds or not messages.num_rounds
            )


def test_files(tmp_path: Path) -> None:
    values = {"latency": 2e-6, "objective": "bytes", "memory_limit": 1000, "links": {"x": {"bandwidth": 5}}}
    expected = CostModel(Link(2e-6, 1e11), (("x", Link(2e-6, 5.0)),), Objective.BYTES, 1000)
    as_json = tmp_path / "model.json"
    as_json.write_text(json.dumps(values), encoding="utf-8")
    assert CostModel.of_file(as_json) == CostModel.from_mapping(values) == expected
    assert CostModel.from_mapping({}) == CostModel()
    as_toml = tmp_path / "model.toml"
    as_toml.write_text("latency = 2e-6\nobjective = 'bytes'\nmemory_limit = 1000\n[links.x]\nbandwidth = 5\n")
    if sys.version_info >= (3, 11):
        assert CostModel.of_file(as_toml) == expected
    else:
        with pytest.raises(ValueError, match=r"TOML requires Python 3\.11"):
            CostModel.of_file(as_toml)
    as_json.write_text("[", encoding="utf-8")
    for path in (as_json, tmp_path / "none.json"):
        with pytest.raises(ValueError, match=f"cost model .*{path.name}"):
            CostModel.of_file(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed": 1}, "speed: unknown"),
        ({"latency": -1}, "latency: .*at least 0"),
        ({"bandwidth": 0}, "bandwidth: .*positive"),
        ({"bandwidth": inf}, "bandwidth: .*positive"),
        ({"latency": nan}, "latency: .*at least 0"),
        ({"latency": True}, "latency: expected a number"),
        ({"links": [1]}, "links: expected a table"),
        ({"links": {"x": 3}}, "links.x: expected a table"),
        ({"links": {"x": {"bandwidth": "fast"}}}, "links.x.bandwidth: expected a number"),
        ({"links": {"x": {"width": 3}}}, "links.x.width: unknown"),
        ({"objective": "money"}, "objective: expected one of bytes, time, memory"),
        ({"memory_limit": 0}, "memory_limit: expected a positive"),
    ],
)
def test_mistakes_name_their_key(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CostModel.from_mapping(values)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_memory_limit_is_positive(limit: int) -> None:
    with pytest.raises(ValueError, match=f"a memory limit must be a positive number of bytes, got {limit}"):
        CostModel(memory_limit=limit)
    assert CostModel(memory_limit=1).memory_limit == 1


def test_an_axis_has_one_link() -> None:
    with pytest.raises(ValueError, match='"x" has two links'):
        CostModel(links=(("x", Link(0, 1)), ("x", Link(0, 2))))


def test_links_are_of_axes_of_the_mesh() -> None:
    model = CostModel(links=(("x", Link(0, 1)),))
    model.check_axes(["y", "x"])
    with pytest.raises(ValueError, match=r'^links\.x: not an axis of the mesh, which has "y", "z"$'):
        model.check_axes(["y", "z"])
