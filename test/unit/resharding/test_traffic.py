# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of closed-form counts against the elements that each device lacks and the messages of the direct exchange."""

from __future__ import annotations

import random

import pytest
from resharding.every_layout import mesh_of

from mlir_shard.resharding.cost.traffic import Traffic
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, TensorSharding


def random_dims(choice: random.Random, num_axes: int, rank: int) -> tuple[tuple[int, ...], ...]:
    """Distributes some of the axes, in random order, over the dimensions."""
    axes = choice.sample(range(num_axes), choice.randint(0, num_axes))
    places = sorted(choice.randrange(rank) for _ in axes)
    return tuple(tuple(axis for axis, place in zip(axes, places, strict=True) if place == dim) for dim in range(rank))


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ((4, 2, 2), (16, 32)),
        ((8, 4, 2), (64, 64, 128)),
        ((2, 2, 2, 2), (16, 16, 16)),
        ((9, 3), (27, 54)),
        ((4, 1, 4), (16, 32)),
        # Shards of some dimensions are full, of others short or empty; sizes of axes have different prime factors.
        ((2, 4, 2), (16, 4, 2)),
        ((4, 2, 2), (16, 5, 16)),
        ((2, 3, 2), (12, 24)),
        ((6, 2), (7, 24, 5)),
        ((4, 2, 3), (10, 9)),
        ((2, 2, 3), (12, 0)),
    ],
)
def test_counts_are_those_of_all_devices(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    choice = random.Random(f"{sizes} {shape}")
    traffic = Traffic(sizes, shape)
    tensor = GridTensor(Grid.of(mesh_of(*sizes), ()), shape, 1)
    for _ in range(60):
        before, after = (random_dims(choice, len(sizes), len(shape)) for _ in range(2))
        lacking = traffic.arrays.box(after) - traffic.arrays.overlap(before, after)
        assert traffic.lacking(before, after) == (traffic.arrays.total(lacking), lacking.max()), (before, after)
        messages = direct_exchange(*(tensor.layout(Placement(dims)) for dims in (before, after)))
        assert traffic.exchange_rounds(before, after) == messages.num_rounds, (before, after)


@pytest.mark.parametrize("is_any", [True, False])
def test_plans_for_more_bytes_than_numpy_can_count(is_any: bool) -> None:
    mesh = mesh_of(2, 4)
    size = 2**33
    first, second = (TensorSharding.closed_with(dims, "mesh") for dims in ([[], axes("ab")], [axes("b"), axes("a")]))
    source, target = (TensorLayout(one, mesh, (size, size)) for one in (first, second))
    plan = Planner(uses_direct_exchange=is_any).plan(source, target, 4)
    # The bound is 2^20 times that of a tensor 2^10 times smaller in both dimensions.
    small = Planner(uses_direct_exchange=is_any)
    bound = small.plan(*(TensorLayout(one.sharding, mesh, (size >> 10,) * 2) for one in (source, target)), 4).bound
    assert plan.bound.total == bound.total << 20
    assert plan.total_bytes == sum(map(sum, (step.bytes_received for step in plan.steps))) >= plan.bound.total
    assert plan.bytes_received <= plan.total_bytes <= 8 * 4 * size * size


def test_tensors_beyond_all_measure() -> None:
    whole = TensorLayout(TensorSharding.fully_closed(2, "mesh"), mesh_of(2), (10**150, 10**150))
    split = TensorLayout(TensorSharding.closed_with([axes("a"), []], "mesh"), mesh_of(2), (10**150, 10**150))
    for call in (Planner().plan, Planner().totals):
        with pytest.raises(ValueError, match="is too large"):
            call(split, whole, 4)


def axes(names: str) -> list[AxisRef]:
    return [AxisRef(name) for name in names]
