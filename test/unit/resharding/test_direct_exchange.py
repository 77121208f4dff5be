# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Direct exchanges deliver the target boxes in simulation and move the minimum number of bytes."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from resharding.every_layout import distinct_values, full_axes, halves, mesh_of, shardings

from mlir_shard.resharding import simulation
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.direct_exchange import ExchangeMessages, direct_exchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding

ELEMENT_SIZE = 4


def carry_out(source: TensorLayout, target: TensorLayout) -> ExchangeMessages:
    """Simulates the exchange and checks its results and its bytes."""
    messages = direct_exchange(source, target)
    values = distinct_values(source)
    found = simulation.exchange(messages, simulation.place(values, source))
    expected = simulation.place(simulation.reduce_partials(values, source, target), target)
    for device, block in found.items():
        # The comparison includes padding: nothing is written beyond the boxes.
        np.testing.assert_array_equal(block, expected[device], err_msg=f"{source} {target} {device}")
    bound = lower_bound(source, target, ELEMENT_SIZE)
    received = messages.bytes_received(ELEMENT_SIZE)
    assert sum(received) == sum(messages.bytes_sent(ELEMENT_SIZE)) == bound.total
    if messages.reducing is None:
        assert received == bound.per_device and bound.total == sum(bound.per_device)
    assert all(got >= least for got, least in zip(received, bound.per_device, strict=True))
    check_rounds(messages)
    return messages


def check_rounds(messages: ExchangeMessages) -> None:
    for phase in messages.phases:
        sent = [message.sender for message in phase.messages]
        got = [message.receiver for message in phase.messages]
        assert len(phase.rounds) == max((devices.count(one) for devices in (sent, got) for one in devices), default=0)
        for one in phase.rounds:
            assert one and len({message.sender for message in one}) == len(one) == len({m.receiver for m in one})
        assert not any(message.sender == message.receiver for message in phase.messages)


@pytest.mark.parametrize(("sizes", "pairs"), [((2, 2), 121), ((2, 3), 121)])
@pytest.mark.parametrize("shape", [(12, 12), (5, 7), (1, 3)])
def test_every_pair_of_rank_2(sizes: tuple[int, ...], pairs: int, shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    tried = 0
    for one, other in product(shardings(mesh, full_axes(mesh), 2), repeat=2):
        carry_out(TensorLayout(one, mesh, shape), TensorLayout(other, mesh, shape))
        tried += 1
    assert tried == pairs


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 2, 2), (4, 2), (3, 5)])
@pytest.mark.parametrize("shape", [(60,), (7,), (1,), (0,)])
def test_every_pair_of_rank_1(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    for one, other in product(shardings(mesh, halves(mesh), 1), repeat=2):
        carry_out(TensorLayout(one, mesh, shape), TensorLayout(other, mesh, shape))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2), (3, 5)])
@pytest.mark.parametrize(("rank", "shape"), [(2, (30, 8)), (2, (13, 11)), (3, (8, 15, 4)), (3, (5, 7, 3))])
def test_sampled_pairs(sizes: tuple[int, ...], rank: int, shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    every = shardings(mesh, halves(mesh), rank)
    choice = random.Random(f"{sizes} {shape}")
    for _ in range(60):
        one, other = choice.choice(every), choice.choice(every)
        carry_out(TensorLayout(one, mesh, shape), TensorLayout(other, mesh, shape))


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (4, 2), (2, 2, 3)])
@pytest.mark.parametrize("shape", [(12,), (5,), (6, 4), (5, 3)])
def test_partial_values(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    every = shardings(mesh, halves(mesh), len(shape), unreduced=True)
    partial = [one for one in every if one.unreduced_axes]
    choice = random.Random(f"{sizes} {shape}")
    for _ in range(60):
        source = choice.choice(partial)
        kept = [one for one in every if set(one.unreduced_axes) <= set(source.unreduced_axes)]
        carry_out(TensorLayout(source, mesh, shape), TensorLayout(choice.choice(kept), mesh, shape))


def test_scalars_are_reduced() -> None:
    mesh = mesh_of(2, 3)
    source = TensorSharding("mesh", (), (), (AxisRef("a"), AxisRef("b")), ReductionOp.MAX)
    messages = carry_out(TensorLayout(source, mesh, ()), TensorLayout(TensorSharding("mesh", ()), mesh, ()))
    assert sum(messages.bytes_received(1)) == 2 * 5


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    mesh = mesh_of(4)
    source = TensorSharding("mesh", TensorSharding.fully_closed(1, "mesh").dim_shardings, (), (AxisRef("a"),))
    target = TensorSharding.fully_closed(1, "mesh")
    messages = carry_out(TensorLayout(source, mesh, (8,)), TensorLayout(target, mesh, (8,)))
    assert messages.bytes_received(1) == (12, 12, 12, 12)
    assert messages.num_rounds == 6


def test_devices_of_a_mesh_in_another_order() -> None:
    mesh = mesh_of(2, 3)
    order = list(range(6))
    choice = random.Random(0)
    every = shardings(mesh, full_axes(mesh), 2)
    for _ in range(60):
        choice.shuffle(order)
        other = mesh_of(2, 3, device_ids=order)
        transposed = mesh_of(3, 2, device_ids=order)
        source, target = choice.choice(every), choice.choice(every)
        carry_out(TensorLayout(source, mesh, (7, 6)), TensorLayout(target, other, (7, 6)))
        carry_out(TensorLayout(source, other, (7, 6)), TensorLayout(target, transposed, (7, 6)))


def test_parts_of_an_axis_that_no_grid_has_both() -> None:
    mesh = mesh_of(6)
    source = TensorSharding.closed_with([[AxisRef.sub("a", 1, 2)]], "mesh")
    target = TensorSharding.closed_with([[AxisRef.sub("a", 1, 3)]], "mesh")
    messages = carry_out(TensorLayout(source, mesh, (6,)), TensorLayout(target, mesh, (6,)))
    assert messages.bytes_received(1) == (0, 0, 1, 1, 0, 0)


def test_tiles_of_swapped_dimensions() -> None:
    """The rows go from axis "a" to axis "b", and the columns from axis "b" to axis "a"."""
    mesh = mesh_of(2, 3)
    a, b = AxisRef("a"), AxisRef("b")
    source = TensorLayout(TensorSharding.closed_with([[a], [b]], "mesh"), mesh, (6, 6))
    target = TensorLayout(TensorSharding.closed_with([[b], [a]], "mesh"), mesh, (6, 6))
    messages = carry_out(source, target)
    # Device 1, at (0, 1), holds rows 0 to 3 and columns 2 to 4; its target is rows 2 to 4 and columns 0 to 3.
    into_1 = {
        message.sender: [(tile.box.slices, tile.source_start, tile.target_start) for tile in message.tiles]
        for message in (*messages.moving.copies, *messages.moving.messages)
        if message.receiver == 1
    }
    assert into_1 == {
        0: [((slice(2, 3), slice(0, 2)), (2, 0), (0, 0))],
        1: [((slice(2, 3), slice(2, 3)), (2, 0), (0, 2))],
        3: [((slice(3, 4), slice(0, 2)), (0, 0), (1, 0))],
        4: [((slice(3, 4), slice(2, 3)), (0, 0), (1, 2))],
    }


def test_tiles_come_from_the_nearest_replica() -> None:
    mesh = mesh_of(2, 2, 2)
    source = TensorLayout(TensorSharding.closed_with([[AxisRef("b")]], "mesh"), mesh, (8,))
    target = TensorLayout(TensorSharding.fully_closed(1, "mesh"), mesh, (8,))
    messages = carry_out(source, target)
    # Each device receives only from the device that differs from it along "b", so one round is enough.
    assert messages.num_rounds == 1
    assert {(message.sender, message.receiver) for message in messages.moving.messages} == {
        (device, device ^ 2) for device in range(8)
    }


def test_nothing_moves_on_one_device() -> None:
    layout = TensorLayout(TensorSharding.fully_closed(0, "mesh"), Mesh.maximal(3), (4, 5))
    assert carry_out(layout, layout).num_rounds == 0
