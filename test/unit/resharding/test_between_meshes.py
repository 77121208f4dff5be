# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of plans between meshes over different devices: fewer, more, with some or no devices in common."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from exhaustive_resharding.delivery import Deliveries
from hypothesis import given, settings
from hypothesis import strategies as st
from sharding.strategies import meshes, shardings
from sharding.texts import sharding

from mlir_shard.resharding.cost.cost_model import CostModel, Link, Objective
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import AllGather, DirectExchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.tile_rounds import NO_DEVICE, tile_rounds
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.tools.reshard.plan_data import undelivered

PLANNERS = {objective: Planner(CostModel(objective=objective)) for objective in Objective}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[TensorLayout, TensorLayout]:
    """Draws layouts of one tensor on two meshes, each over arbitrary devices."""
    shape = tuple(draw(st.sampled_from([0, 1, 2, 3, 5, 8, 12])) for _ in range(draw(st.integers(0, 3))))
    found = []
    for _ in range(2):
        mesh = draw(meshes())
        if draw(st.booleans()):
            ids = st.integers(0, 40)
            size = mesh.total_size
            mesh = Mesh(mesh.axes, draw(st.lists(ids, min_size=size, max_size=size, unique=True)))
        on_mesh = replace(draw(shardings(mesh, len(shape))), unreduced_axes=())
        found.append(TensorLayout(on_mesh, mesh, shape))
    return found[0], found[1]


def lacked(source: TensorLayout, target: TensorLayout) -> dict[int, int]:
    """Returns the number of elements of its target box that each device lacks, counted element by element."""
    held = {device: np.zeros(source.shape, bool) for device in target.mesh.devices}
    for device, box in source.device_boxes().items():
        if device in held:
            held[device][box.slices] = True
    return {device: int((~held[device][box.slices]).sum()) for device, box in target.device_boxes().items()}


@given(pair=pairs(), objective=st.sampled_from(list(Objective)))
@settings(max_examples=150)
def test_plans_deliver_and_say_what_they_cost(pair: tuple[TensorLayout, TensorLayout], objective: Objective) -> None:
    source, target = pair
    plan = PLANNERS[objective].plan(source, target, 4)
    assert Deliveries().fault(plan, source, target) is None
    assert undelivered(plan) == ()
    assert dict(zip(target.mesh.devices, lower_bound(source, target, 1).per_device, strict=True)) == lacked(*pair)
    for step in plan.steps:
        assert len(step.bytes_received) == len(step.bytes_sent) == len(step.devices) == len(set(step.devices))
        assert sum(step.bytes_received) == sum(step.bytes_sent) == step.total_bytes
    assert plan.total_bytes >= plan.bytes_received and plan.total_bytes >= plan.bound.total
    assert 0 <= plan.cost_bound <= plan.cost
    if objective is Objective.BYTES:
        assert plan.is_optimal and plan.total_bytes == plan.bound.total


@given(pair=pairs())
@settings(max_examples=100)
def test_an_exchange_moves_the_least(pair: tuple[TensorLayout, TensorLayout]) -> None:
    source, target = pair
    exchange = direct_exchange(source, target)
    receives = dict(zip(target.mesh.devices_with(source.mesh), exchange.bytes_received(1), strict=True))
    assert receives == dict.fromkeys(receives, 0) | lacked(source, target)
    if source.mesh.has_same_devices(target.mesh):
        return
    # The bytes that the replicas of a shard send differ by at most one tile.
    sends = dict(zip(target.mesh.devices_with(source.mesh), exchange.bytes_sent(1), strict=True))
    tiles = [tile.box.num_elements for message in exchange.moving.messages for tile in message.tiles]
    holders: dict[object, list[int]] = {}
    for device, box in source.device_boxes().items():
        holders.setdefault(box, []).append(sends[device])
    assert all(max(of_box) - min(of_box) <= max(tiles, default=0) for of_box in holders.values())


@given(pair=pairs())
@settings(max_examples=100)
def test_rounds_of_tiles_deliver(pair: tuple[TensorLayout, TensorLayout]) -> None:
    source, target = pair
    array = np.arange(prod(source.shape)).reshape(source.shape)
    held = {device: array[box.slices] for device, box in source.device_boxes().items()}
    found = {device: np.full(box.size, -1) for device, box in target.device_boxes().items()}
    for one in tile_rounds(source, target):
        assert len(one.senders) == 1 + max(*source.mesh.devices, *target.mesh.devices)
        for device, sender in enumerate(one.senders):
            if sender == NO_DEVICE:
                continue
            start, into = one.source_starts[sender], one.target_starts[device]
            assert one.receivers[sender] == device
            tile = held[sender][tuple(slice(at, at + size) for at, size in zip(start, one.shape, strict=True))]
            found[device][tuple(slice(at, at + size) for at, size in zip(into, one.shape, strict=True))] = tile
    for device, box in target.device_boxes().items():
        np.testing.assert_array_equal(found[device], array[box.slices])


# Cases small enough to try every sharding on the target's mesh as an intermediate one.
SMALL = [
    (Mesh([("x", 1)]), Mesh([("x", 4)], [4, 5, 6, 7]), (64,)),
    (Mesh([("x", 2)]), Mesh([("x", 2), ("y", 2)], [4, 5, 2, 3]), (8, 8)),
    (Mesh([("x", 4)]), Mesh([("x", 3)]), (7, 9)),
    (Mesh([("x", 2), ("y", 2)]), Mesh([("x", 3), ("y", 2)]), (5, 6)),
    (Mesh.maximal(1), Mesh([("x", 3), ("y", 2)]), (6, 4)),
]


def every(mesh: Mesh, rank: int) -> list[TensorSharding]:
    """Returns every sharding along full axes in the order of the mesh."""
    if mesh.is_maximal:
        return [TensorSharding.fully_closed(0, "mesh")]
    found = []
    for places in product(range(rank + 1), repeat=len(mesh.axes)):
        dims = (
            ", ".join(f'"{axis.name}"' for axis, place in zip(mesh.axes, places, strict=True) if place == dim + 1)
            for dim in range(rank)
        )
        found.append(sharding("[" + ", ".join(f"{{{axes}}}" for axes in dims) + "]"))
    return found


@pytest.mark.parametrize("link", [Link(1e-6, 1e9), Link(1e-9, 1e6)], ids=["messages", "bytes"])
@pytest.mark.parametrize(("before", "after", "shape"), SMALL, ids=str)
def test_nothing_between_is_cheaper(before: Mesh, after: Mesh, shape: tuple[int, ...], link: Link) -> None:
    """A plan costs no more than an exchange to any sharding on the target's mesh followed by a plan from there."""
    planner = Planner(CostModel(default=link))
    for one, other in product(every(before, len(shape)), every(after, len(shape))):
        source, target = TensorLayout(one, before, shape), TensorLayout(other, after, shape)
        plan = planner.plan(source, target, 4)
        for way in every(after, len(shape)):
            middle = TensorLayout(way, after, shape)
            exchange = direct_exchange(source, middle)
            busiest = max(max(exchange.bytes_received(4)), max(exchange.bytes_sent(4)))
            seconds = max(1, exchange.num_rounds) * link.latency + busiest / link.bandwidth
            assert plan.cost <= seconds * (1 + 1e-9) + planner.plan(middle, target, 4).cost


def test_many_get_parts_and_share_them() -> None:
    """One device sends a quarter of the tensor to each of four devices, instead of the tensor four times."""
    shape = (1 << 20,)
    source = TensorLayout(sharding("[{}]"), Mesh([("x", 1)]), shape)
    target = TensorLayout(sharding("[{}]"), Mesh([("x", 4)], [4, 5, 6, 7]), shape)
    plan = PLANNERS[Objective.TIME].plan(source, target, 4)
    assert [type(step.move) for step in plan.steps] == [DirectExchange, AllGather]
    assert max(plan.steps[0].bytes_sent) == 4 << 20


def test_disjoint_meshes_of_one_shape_send_one_message_each() -> None:
    source = TensorLayout(sharding('[{"x"}, {}]'), Mesh([("x", 4)]), (16, 3))
    target = replace(source, mesh=Mesh([("x", 4)], [4, 5, 6, 7]))
    plan = PLANNERS[Objective.TIME].plan(source, target, 4)
    assert [type(step.move) for step in plan.steps] == [DirectExchange] and plan.is_optimal
    assert plan.steps[0].devices == (4, 5, 6, 7, 0, 1, 2, 3)
    assert plan.steps[0].bytes_received == (48, 48, 48, 48, 0, 0, 0, 0)
    assert direct_exchange(source, target).num_rounds == 1


def test_partial_values_are_reduced_before() -> None:
    source = TensorLayout(sharding('[{}], unreduced={"x"}'), Mesh([("x", 2)]), (8,))
    target = TensorLayout(sharding("[{}]"), Mesh([("x", 2)], [2, 3]), (8,))
    with pytest.raises(ValueError, match=r"partial values require one mesh, got .*: reduce them on the first mesh"):
        PLANNERS[Objective.TIME].plan(source, target, 4)


def test_an_exchange_of_too_many_tiles_has_a_way_around() -> None:
    """Each of 300 column shards would need a tile of 512 row shards; an exchange to rows first needs few tiles."""
    source = TensorLayout(sharding('[{"x"}, {}]'), Mesh([("x", 512)]), (512, 512))
    target = TensorLayout(sharding('[{}, {"x"}]'), Mesh([("x", 300)]), (512, 512))
    plan = PLANNERS[Objective.TIME].plan(source, target, 4)
    assert isinstance(plan.steps[0].move, DirectExchange) and len(plan.steps) > 1
    assert undelivered(plan) == ()
