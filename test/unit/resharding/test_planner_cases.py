# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the planner without exhaustive search: against seed plans, on other meshes, with budgets and limits."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from exhaustive_resharding.delivery import Deliveries
from resharding.every_layout import full_axes, halves, mesh_of, shardings

from mlir_shard.resharding import planner as planner_module
from mlir_shard.resharding.cost.cost_model import CostModel, Link, Objective
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.plan import moves_totals
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.seed_plans import seed_plans
from mlir_shard.resharding.steps import DirectExchange, Together
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding

BYTES = CostModel(objective=Objective.BYTES)
LINKS = CostModel(Link(1e-6, 1e8), (("a", Link(4e-6, 2e7)),))
MEMORY = CostModel(objective=Objective.MEMORY)


def layout(mesh: Mesh, shape: tuple[int, ...], *dims: list[AxisRef], name: str = "mesh") -> TensorLayout:
    return TensorLayout(TensorSharding.closed_with(dims, name), mesh, shape)


def axes(names: str) -> list[AxisRef]:
    return [AxisRef(name) for name in names]


def sample(mesh: Mesh, shape: tuple[int, ...], count: int) -> list[tuple[TensorLayout, TensorLayout]]:
    every = [TensorLayout(one, mesh, shape) for one in shardings(mesh, halves(mesh), len(shape))]
    pairs = list(product(every, every))
    return random.Random(0).sample(pairs, min(count, len(pairs)))


@pytest.mark.parametrize("model", [BYTES, LINKS, MEMORY], ids=lambda model: model.objective.value)
@pytest.mark.parametrize(("sizes", "shape"), [((4, 2), (16, 16)), ((4, 2, 2), (16, 32, 16)), ((2, 2, 2), (7, 5))])
@pytest.mark.parametrize("most_states", [5, 1000])
def test_no_seed_plan_is_cheaper(
    sizes: tuple[int, ...], shape: tuple[int, ...], model: CostModel, most_states: int
) -> None:
    planner = Planner(model, uses_direct_exchange=False, most_states=most_states)
    delivered = Deliveries()
    compared = 0
    for source, target in sample(mesh_of(*sizes), shape, 30):
        plan = planner.plan(source, target, 4)
        assert delivered.fault(plan, source, target) is None
        assert plan.cost_bound <= plan.cost == planner.totals(source, target, 4).rank(model.objective)[0]
        for seed in seed_plans(source, target, splits_axes=True, most_messages=0):
            totals = moves_totals(source, seed.grid, seed.start, seed.moves, 4, model)
            assert plan.cost <= totals.rank(model.objective)[0] * (1 + 1e-9), (source.sharding, target.sharding)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(("sizes", "of_shardy"), [((2, 2), 1.072), ((2, 3), 1.156)])
def test_fewer_bytes_than_shardy(sizes: tuple[int, ...], of_shardy: float) -> None:
    mesh = mesh_of(*sizes)
    every = [TensorLayout(one, mesh, (24, 24)) for one in shardings(mesh, full_axes(mesh), 2)]
    free, bound = Planner(BYTES), Planner(BYTES, uses_direct_exchange=False)
    moved = least = 0
    for source, target in product(every, every):
        plan = bound.plan(source, target, 4)
        moved, least = moved + plan.total_bytes, least + plan.bound.total
        assert free.plan(source, target, 4).bytes_over_bound == 1.0
    assert moved / least < of_shardy


def test_all_to_alls_go_one_by_one_where_they_send_fewer_messages() -> None:
    mesh = Mesh(dict.fromkeys("abcdef", 2))
    source = layout(mesh, (32, 64, 32, 64), [], axes("b"), axes("ca"), axes("ed"))
    target = layout(mesh, (32, 64, 32, 64), axes("ef"), [], [], axes("cba"))
    plan = Planner(uses_direct_exchange=False, splits_axes=False, most_states=1).plan(source, target, 4)
    assert not any(isinstance(step.move, Together) for step in plan.steps)
    # One all-to-all on both dimensions would send 3 messages instead of 2, and fewer bytes.
    assert plan.time == pytest.approx(1.186432e-05)


def test_latency_decides_for_fewer_messages() -> None:
    mesh = mesh_of(8)
    whole, split = layout(mesh, (8 * 8, 64), [], []), layout(mesh, (8 * 8, 64), axes("a"), [])
    (step,) = Planner().plan(split, whole, 1).steps
    assert not isinstance(step.move, DirectExchange)
    crossed = layout(mesh, (8 * 8, 64), [], axes("a"))
    cheap = Planner(CostModel(Link(0.0, 1e8)))
    assert cheap.plan(split, crossed, 1).bytes_over_bound == 1.0


def test_a_large_mesh_has_a_plan_with_a_gap() -> None:
    mesh = mesh_of(8, 8, 8, 4, 2)
    source = layout(mesh, (4096,) * 4, axes("a"), axes("ebd"), axes("c"), [])
    target = layout(mesh, (4096,) * 4, axes("dce"), axes("ab"), [], [])
    plan = Planner(BYTES, uses_direct_exchange=False, most_states=50).plan(source, target, 2)
    assert plan.bound.total <= plan.cost_bound < plan.cost < 3 * plan.bound.total
    assert 0 < plan.gap < 2 and not plan.is_optimal
    assert Planner(BYTES).plan(source, target, 2).is_optimal


def test_like_axes_cost_the_same() -> None:
    planner = Planner(CostModel(Link(1e-6, 1e9)), uses_direct_exchange=False)
    costs = set()
    for names, mesh in product(("abc", "cab", "bca"), (mesh_of(2, 2, 2), Mesh(zip("cab", (2, 2, 2), strict=True)))):
        one, other, third = (AxisRef(name) for name in names)
        source, target = layout(mesh, (16, 16), [one, other], [third]), layout(mesh, (16, 16), [third], [one])
        plan = planner.plan(source, target, 4)
        assert Deliveries().fault(plan, source, target) is None
        costs.add(plan.cost)
    assert len(costs) == 1


@pytest.mark.parametrize("is_any", [True, False])
@pytest.mark.parametrize("name", ["mesh", "other"])
def test_meshes_of_other_order(name: str, is_any: bool) -> None:
    mesh, other = mesh_of(2, 3), mesh_of(2, 3, device_ids=[3, 0, 4, 1, 5, 2])
    planner, delivered = Planner(BYTES, uses_direct_exchange=is_any), Deliveries()
    every = shardings(mesh, full_axes(mesh), 2)
    for one, two in product(every, every):
        source = TensorLayout(one, mesh, (12, 7))
        target = TensorLayout(replace(two, mesh_or_ref=name), other, (12, 7))
        plan = planner.plan(source, target, 4)
        assert delivered.fault(plan, source, target) is None
        assert plan.cost >= plan.cost_bound == lower_bound(source, target, 4).total
        assert not is_any or plan.is_optimal
        refs = {mesh: "mesh", other: name}
        for step in plan.steps if name != "mesh" else ():
            assert [refs[one.mesh] for one in (step.before, step.after)] == [
                step.before.sharding.mesh_or_ref,
                step.after.sharding.mesh_or_ref,
            ]


@pytest.mark.parametrize("is_any", [True, False])
def test_meshes_of_other_axes(is_any: bool) -> None:
    mesh, other = mesh_of(2, 3), Mesh([("x", 6)], [5, 4, 3, 2, 1, 0])
    planner, delivered = Planner(BYTES, uses_direct_exchange=is_any), Deliveries()
    for dims in (["ab", ""], ["a", "b"], ["", ""]):
        for wanted in (["x", ""], ["", "x"], ["", ""]):
            source = layout(mesh, (12, 7), *map(axes, dims))
            target = layout(other, (12, 7), *map(axes, wanted))
            assert delivered.fault(planner.plan(source, target, 4), source, target) is None


@pytest.mark.parametrize("is_any", [True, False])
def test_axes_cut_at_sizes_that_do_not_divide_each_other(is_any: bool) -> None:
    mesh = mesh_of(6, 2)
    two, three = AxisRef.sub("a", 1, 2), AxisRef.sub("a", 1, 3)
    planner, delivered = Planner(BYTES, uses_direct_exchange=is_any), Deliveries()
    for source_dims, target_dims in (
        ([[two], []], [[three], []]),
        ([[AxisRef("b"), two], []], [[AxisRef("b")], [three]]),
    ):
        source, target = layout(mesh, (12, 6), *source_dims), layout(mesh, (12, 6), *target_dims)
        plan = planner.plan(source, target, 4)
        assert delivered.fault(plan, source, target) is None
        assert is_any == plan.is_optimal


def test_memory_limit() -> None:
    mesh = mesh_of(4)
    source, target = layout(mesh, (16, 16), axes("a"), []), layout(mesh, (16, 16), [], axes("a"))
    for limit, is_any in product((128, 200), (True, False)):
        plan = Planner(CostModel(memory_limit=limit), uses_direct_exchange=is_any).plan(source, target, 1)
        assert plan.peak_memory <= limit
    with pytest.raises(ValueError, match=r"no plan found .* within 127 bytes per device"):
        Planner(CostModel(memory_limit=127)).plan(source, target, 1)


def test_the_least_memory_is_not_more_with_more_moves() -> None:
    mesh = Mesh([("x", 3), ("y", 8)])
    source = layout(mesh, (2, 24), [AxisRef.sub("y", 4, 2)], [])
    target = layout(mesh, (2, 24), axes("xy"), [])
    for is_any in (True, False):
        plan = Planner(MEMORY, uses_direct_exchange=is_any).plan(source, target, 1)
        assert (plan.cost, plan.is_optimal) == (26, True)


@pytest.mark.parametrize("model", [CostModel(), BYTES], ids=["time", "bytes"])
def test_partial_values_are_exchanged_with_the_least_bytes(model: CostModel) -> None:
    three, four = mesh_of(3), mesh_of(4)
    scalar = TensorSharding("mesh", (), (), tuple(axes("a")))
    halved = TensorSharding.closed_with([[AxisRef.sub("a", 1, 2)], []], "mesh")
    halved = replace(halved, unreduced_axes=(AxisRef.sub("a", 2, 2),))
    for source, target in (
        (TensorLayout(scalar, three, ()), layout(three, ())),
        (TensorLayout(halved, four, (6, 6)), layout(four, (6, 6), [], axes("a"))),
    ):
        plan = Planner(model, exchange_reduces=True).plan(source, target, 4)
        assert plan.is_optimal and plan.bytes_over_bound == 1.0
        assert Deliveries().fault(plan, source, target) is None


def test_slices_and_gathers_are_one_move_each() -> None:
    mesh = mesh_of(2, 2, 2)
    whole, split = layout(mesh, (8, 8), [], []), layout(mesh, (8, 8), axes("ab"), axes("c"))
    (step,) = Planner().plan(whole, split, 1).steps
    assert isinstance(step.move, Together) and step.is_local
    plan = Planner(uses_direct_exchange=False).plan(split, whole, 1)
    assert plan.num_collectives == len(plan.steps) == 1


def test_partial_values_are_reduced_first_where_that_takes_fewer_steps() -> None:
    mesh, shape = mesh_of(4, 2), (12, 3)
    whole = layout(mesh, shape, axes("a"), [])
    source = TensorLayout(replace(whole.sharding, unreduced_axes=tuple(axes("b"))), mesh, shape)
    plan = Planner().plan(source, layout(mesh, shape, [], axes("b")), 4)
    assert plan.cost == plan.cost_bound
    assert len(plan.steps) == 2


def test_partial_values_are_scattered_before_they_are_reduced_along_other_axes() -> None:
    mesh = mesh_of(4, 4, 2, 8, 2)
    first, second, third, fourth, fifth = mesh.axis_names
    shape = (8, 14336, 4096)
    whole = layout(mesh, shape, axes(fifth), axes(fourth), [])
    partial = replace(whole.sharding, unreduced_axes=tuple(map(AxisRef, (first, second, third))))
    target = layout(mesh, shape, axes(fifth), axes(fourth), axes(second))
    plan = Planner(uses_direct_exchange=False).plan(TensorLayout(partial, mesh, shape), target, 2)
    size = 8 * 14336 * 4096 * 2 // 16
    assert sum(step.most_bytes for step in plan.steps) <= size * 3 // 4 + 2 * (size // 4) * 7 // 8


def test_uneven_shards_are_exchanged_in_several_steps_where_one_is_too_large() -> None:
    mesh, shape = mesh_of(8, 8, 4, 8), (23, 142, 63, 32)
    parts = [AxisRef.sub("a", 1, 2), AxisRef.sub("a", 2, 4), AxisRef.sub("b", 1, 4), AxisRef.sub("b", 4, 2)]
    source = layout(mesh, shape, [parts[0]], [], [AxisRef("d"), AxisRef("b"), parts[1]], [])
    target = layout(mesh, shape, axes("d"), [parts[3], AxisRef.sub("a", 1, 4)], [parts[2]], [])
    plan = Planner().plan(source, target, 4)
    exchanges = sum(isinstance(step.move, DirectExchange) for step in plan.steps)
    assert exchanges == 2 and plan.bytes_received < 4 * plan.bound.maximum
    # 32 devices, with at most 3 rounds.
    mesh = mesh_of(4, 2, 2, 2)
    source = layout(mesh, (50, 130, 101), axes("abd"), axes("c"), [])
    target = layout(mesh, (50, 130, 101), [], [], axes("bc"))
    plan = Planner(most_messages=96).plan(source, target, 4)
    assert sum(isinstance(step.move, DirectExchange) for step in plan.steps) == 2
    assert Deliveries().fault(plan, source, target) is None


def test_partial_sums_are_scattered_as_the_greedy_plan_slices() -> None:
    mesh = mesh_of(2, 2, 2, 2, 2, 2)
    source = layout(mesh, (512, 512), axes("a"), axes("d"))
    source = replace(source, sharding=replace(source.sharding, unreduced_axes=tuple(axes("bcef"))))
    target = layout(mesh, (512, 512), axes("afe"), axes("cdb"))
    plan = Planner().plan(source, target, 4)
    # The plan has Shardy's all-reduce and slice as a reduce-scatter into both dimensions, and Shardy's permutation.
    assert plan.time == pytest.approx(7.62144e-06)
    assert plan.bytes_received == 262_144


def test_a_price_that_a_short_search_proves_needs_no_seed_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    # The finest grid has too many axes to be searched.
    mesh = mesh_of(4, 4, 4)
    source, target = layout(mesh, (64, 64), axes("ab"), []), layout(mesh, (64, 64), axes("a"), [])
    expected = Planner().totals(source, target, 4)
    monkeypatch.delattr(planner_module, "seed_plans")
    assert Planner(most_states=20).totals(source, target, 4) == expected


def test_plans_and_prices_share_seed_plans() -> None:
    mesh = mesh_of(4, 4, 4)
    source, target = layout(mesh, (64, 64), axes("ab"), []), layout(mesh, (64, 64), axes("ca"), axes("b"))
    seed_plans.cache_clear()
    for planner in (Planner(most_states=20), Planner()):
        for element_size in (2, 4):
            planner.plan(source, target, element_size)
    assert seed_plans.cache_info().misses == 1
    assert seed_plans.cache_info().hits
