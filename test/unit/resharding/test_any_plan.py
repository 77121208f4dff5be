# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of plans between any layouts: axes of size 1, sub-axes, permuted devices, partial values, empty tensors."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

import pytest
from exhaustive_resharding.delivery import Deliveries
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sharding.strategies import meshes, shardings
from sharding.texts import sharding

from mlir_shard.resharding.cost.cost_model import CostModel, Link, Objective
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import DirectExchange
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import Mesh, TensorSharding

# Powers of two, so that sums of times are exact.
LINKS = (("x", Link(2.0**-20, 2.0**30)), ("y", Link(2.0**-10, 2.0**20)))
MODELS = [CostModel(objective=objective, links=links) for objective in Objective for links in ((), LINKS)]
PLANNERS = {
    (model, is_any): Planner(model, uses_direct_exchange=is_any, exchange_reduces=is_any)
    for model in MODELS
    for is_any in (True, False)
}


def have_grid(mesh: Mesh, *ends: TensorSharding) -> bool:
    """Returns whether one grid has the axis parts of all shardings; otherwise partial values have no plan."""
    try:
        Grid.of(mesh, (axis for end in ends for axis in (*end.sharding_axes, *end.unreduced_axes)))
    except ValueError:
        return False
    return True


@st.composite
def layouts(draw: st.DrawFn, *, is_reordered: bool = False) -> tuple[TensorLayout, TensorLayout]:
    """Draws a source and a target layout of a tensor, with the devices of the target permuted if `is_reordered`."""
    mesh = draw(meshes())
    after = Mesh(mesh.axes, draw(st.permutations(range(mesh.total_size)))) if is_reordered else mesh
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.sampled_from([0, 1, 2, 3, 5, 7, 8, 12, 24])) for _ in range(rank))
    source, target = draw(shardings(mesh, rank)), draw(shardings(mesh, rank))
    if is_reordered:
        source = replace(source, unreduced_axes=())
    if is_reordered or not draw(st.booleans()):
        target = replace(target, unreduced_axes=())
    elif draw(st.booleans()):
        # The target is partial along the axes of the source, on which random shardings hardly ever agree.
        target = TensorSharding.closed_with(([],) * rank, "mesh")
        target = replace(target, unreduced_axes=source.unreduced_axes, reduction_op=source.reduction_op)
    assume(not source.unreduced_axes or have_grid(mesh, source, target))
    return TensorLayout(source, mesh, shape), TensorLayout(target, after, shape)


def check(plan: Plan, source: TensorLayout, target: TensorLayout, element_size: int) -> None:
    """Checks that a plan delivers the target, and that its figures match its steps and respect the lower bounds."""
    assert Deliveries().fault(plan, source, target) is None
    bound = lower_bound(source, target, element_size)
    assert (plan.source, plan.target, plan.element_size, plan.bound) == (source, target, element_size, bound)
    devices = target.mesh.total_size
    for step in plan.steps:
        assert len(step.bytes_received) == len(step.bytes_sent) == devices
        assert sum(step.bytes_received) == sum(step.bytes_sent) == step.total_bytes
        assert min(step.bytes_received) >= 0 and min(step.bytes_sent) >= 0 and step.time >= 0
        assert step.is_local <= (step.total_bytes == 0 and step.time == 0)
        if isinstance(step.move, DirectExchange):
            messages = direct_exchange(step.before, step.after)
            assert step.bytes_received == messages.bytes_received(element_size)
            assert step.bytes_sent == messages.bytes_sent(element_size)
    assert plan.total_bytes == sum(step.total_bytes for step in plan.steps) >= bound.total
    assert 0 <= plan.bytes_received <= plan.total_bytes
    assert isclose(plan.time, sum(step.time for step in plan.steps))
    assert 0 <= plan.cost_bound <= plan.cost and plan.gap >= 0 and plan.is_optimal == (plan.gap == 0)
    assert plan.peak_memory >= element_size * max(own.box((0,) * own.rank).num_elements for own in (source, target))
    if source == target:
        assert not plan.steps


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.objective.value}-{len(model.links)}")
@given(pair=st.one_of(layouts(), layouts(is_reordered=True)), size=st.sampled_from([1, 8]))
@settings(max_examples=15)
def test_plans_deliver(model: CostModel, pair: tuple[TensorLayout, TensorLayout], size: int) -> None:
    source, target = pair
    try:
        reduced_axes(source, target)
    except ValueError as error:
        message = str(error)
        for is_any in (True, False):
            with pytest.raises(ValueError) as raised:
                PLANNERS[model, is_any].plan(source, target, size)
            assert str(raised.value) == message
        return
    free, bound = (PLANNERS[model, is_any].plan(source, target, size) for is_any in (True, False))
    check(free, source, target, size)
    check(bound, source, target, size)
    # A larger set of moves does not increase the cost, unless the search ended early.
    assert free.cost <= bound.cost or not free.is_optimal
    if model.objective is Objective.BYTES:
        assert free.total_bytes == free.bound.total


@pytest.mark.parametrize("target", ["[{}, {}]", '[{"z", "y"}, {}]', '[{}, {"y", "z"}]', '[{"x", "z"}, {"y"}]'])
def test_an_axis_of_size_1_is_no_reduction(target: str) -> None:
    mesh = Mesh([("x", 1), ("y", 2), ("z", 2)])
    source = sharding('[{"y", "z"}, {}], unreduced={"x"}')
    before, after = (TensorLayout(one, mesh, (8, 5)) for one in (source, sharding(target)))
    assert reduced_axes(before, after) == ()
    for planner in PLANNERS.values():
        plan = planner.plan(before, after, 4)
        check(plan, before, after, 4)
        whole = replace(source, unreduced_axes=())
        assert plan.cost == planner.plan(replace(before, sharding=whole), after, 4).cost


def test_a_maximal_mesh_has_nothing_to_do() -> None:
    layout = TensorLayout(TensorSharding.fully_closed(0, "mesh"), Mesh.maximal(3), (4, 5))
    for planner in PLANNERS.values():
        plan = planner.plan(layout, layout, 4)
        assert (plan.steps, plan.total_bytes, plan.time, plan.num_collectives) == ((), 0, 0, 0)
        assert plan.peak_memory == 4 * 5 * 4 and plan.bytes_over_bound == 1.0
