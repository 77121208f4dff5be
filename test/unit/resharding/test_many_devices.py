# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of plans on meshes of many axes and devices: no data is built per device, and searches end."""

from __future__ import annotations

import random

import pytest
from resharding.every_layout import mesh_of

from mlir_shard.resharding import grid_problem
from mlir_shard.resharding import plan as steps_of_plans
from mlir_shard.resharding.cost import lower_bound, step_cost
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.traffic import MOST_DEVICES, Traffic
from mlir_shard.resharding.permuted_plan import permuted_plans
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import Placement
from mlir_shard.resharding.tensor_layout import Holdings, TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding

Dims = tuple[tuple[int, ...], ...]


def random_dims(choice: random.Random, num_axes: int, rank: int) -> Dims:
    """Distributes all axes, in random order, over the dimensions."""
    axes = choice.sample(range(num_axes), num_axes)
    places = sorted(choice.randrange(rank) for _ in axes)
    return tuple(tuple(axis for axis, place in zip(axes, places, strict=True) if place == dim) for dim in range(rank))


def layout(mesh: Mesh, shape: tuple[int, ...], dims: Dims) -> TensorLayout:
    names = mesh.axis_names
    return TensorLayout(
        TensorSharding.closed_with(([AxisRef(names[axis]) for axis in axes] for axes in dims), "mesh"), mesh, shape
    )


@pytest.mark.parametrize("is_any", [True, False])
@pytest.mark.parametrize("shape", [(4000, 1000, 5000), (1000, 37, 123), (100_000, 200_000, 100_000)])
@pytest.mark.parametrize("sizes", [(10, 10, 10, 10, 10), (2, 50, 1000)])
def test_nothing_is_made_for_each_device(
    sizes: tuple[int, ...], shape: tuple[int, ...], is_any: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this is made for each device")

    monkeypatch.setattr(Holdings, "of", refuse)
    monkeypatch.setattr(steps_of_plans, "step_traffic", refuse)
    monkeypatch.setattr(step_cost, "direct_exchange", refuse)
    monkeypatch.setattr(lower_bound, "_lacking", refuse)
    choice, mesh = random.Random(0), mesh_of(*sizes)
    for _ in range(5):
        source, target = (layout(mesh, shape, random_dims(choice, len(sizes), len(shape))) for _ in range(2))
        plan = Planner(uses_direct_exchange=is_any).plan(source, target, 4)
        assert 0 <= plan.bound.maximum <= plan.bound.total <= plan.total_bytes
        assert plan.peak_memory > 0 <= plan.gap
        assert all(step.most_bytes <= step.total_bytes for step in plan.steps)


@pytest.mark.parametrize("objective", [Objective.TIME, Objective.BYTES])
@pytest.mark.parametrize("is_any", [True, False])
def test_partial_values_of_many_devices(is_any: bool, objective: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this is made for each device")

    monkeypatch.setattr(Holdings, "of", refuse)
    mesh, shape = mesh_of(2, 50, 1000), (4000, 1000)
    partial = TensorSharding("mesh", TensorSharding.fully_closed(2, "mesh").dim_shardings, (), (AxisRef("b"),))
    source, target = TensorLayout(partial, mesh, shape), layout(mesh, shape, ((1,), (2,)))
    plan = Planner(CostModel(objective=objective), uses_direct_exchange=is_any).plan(source, target, 4)
    # The bound is a reduce-scatter over 50 devices; plans that gather after a reduction may move fewer bytes.
    assert plan.total_bytes <= 2 * 49 * 4 * 4000 * 1000
    assert 0 < plan.cost_bound <= plan.cost


@pytest.mark.parametrize("shape", [(1024, 1024, 1024, 1024), (1000, 37, 5, 123)])
def test_searches_end(shape: tuple[int, ...]) -> None:
    choice, mesh = random.Random(0), mesh_of(2, 2, 2, 2, 2, 2)
    for _ in range(3):
        source, target = (layout(mesh, shape, random_dims(choice, 6, 4)) for _ in range(2))
        for is_any in (True, False):
            plan = Planner(uses_direct_exchange=is_any).plan(source, target, 4)
            assert plan.cost_bound <= plan.cost


def test_few_devices_have_the_figures_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    choice, mesh = random.Random(0), mesh_of(2, 3, 4)
    pairs = [[layout(mesh, (10, 9), random_dims(choice, 3, 2)) for _ in range(2)] for _ in range(30)]
    searched = [Planner().plan(source, target, 4) for source, target in pairs]
    monkeypatch.setattr(grid_problem, "MOST_TO_SEARCH", 1)
    for (source, target), best in zip(pairs, searched, strict=True):
        plan = Planner().plan(source, target, 4)
        assert plan.cost_bound <= best.cost <= plan.cost
        received = [sum(of_device) for of_device in zip(*(step.bytes_received for step in plan.steps), strict=True)]
        assert plan.bytes_received == max(received, default=0)
        assert plan.bound.total == sum(plan.bound.per_device)


def test_rounds_of_many_devices_are_enough() -> None:
    choice = random.Random(0)
    for sizes, shape in (((4, 2, 3), (10, 9)), ((6, 2), (7, 24)), ((2, 3, 2), (12, 24))):
        # With an additional unused axis, the mesh has too many devices to count them one by one.
        traffic, of_many = Traffic(sizes, shape), Traffic((*sizes, MOST_DEVICES), shape)
        for _ in range(60):
            before, after = (random_dims(choice, len(sizes), len(shape)) for _ in range(2))
            assert traffic.exchange_rounds(before, after) <= of_many.exchange_rounds(before, after), (before, after)


def test_permuted_plans_arrive() -> None:
    choice, sizes = random.Random(0), (2, 2, 3, 2, 3, 2)
    found = 0
    for _ in range(300):
        start, end = (
            Placement(tuple(tuple(axis for axis in axes if axis not in left_out) for axes in dims))
            for dims in (random_dims(choice, 6, 3) for _ in range(2))
            for left_out in (choice.sample(range(6), 2),)
        )
        for plan in permuted_plans(start, end, sizes, (1, 4, 100)):
            found += 1
            placement = start
            for move in plan:
                placement = move.apply(placement)
            assert placement == end
    assert found > 100


@pytest.mark.parametrize("dims", [((0,), ()), ((), (0,)), ((), ())])
def test_bounds_with_partial_values_of_many_devices_hold_of_few(dims: Dims, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh, shape = mesh_of(2, 3), (12, 6)
    partial = TensorSharding("mesh", TensorSharding.fully_closed(2, "mesh").dim_shardings, (), (AxisRef("b"),))
    source, target = TensorLayout(partial, mesh, shape), layout(mesh, shape, dims)
    planner = Planner(CostModel(objective=Objective.BYTES))
    exact = planner.plan(source, target, 4)
    monkeypatch.setattr(steps_of_plans, "MOST_DEVICES", 0)
    plan = Planner(CostModel(objective=Objective.BYTES)).plan(source, target, 4)
    assert 0 < plan.cost_bound <= exact.cost_bound <= plan.cost
    least = steps_of_plans.least_cost(source, target, 4, CostModel(objective=Objective.BYTES))
    assert 0 < least <= exact.cost_bound
