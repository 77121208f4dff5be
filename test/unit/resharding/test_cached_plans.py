# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans do not depend on earlier plans in a cache, because each process of a program compiles it separately."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import pytest
from resharding.every_layout import full_axes, halves, mesh_of, shardings
from resharding.random_ops import random_problem, sharded_op

import mlir_shard
from mlir_shard.resharding import grid_search, planner
from mlir_shard.resharding.cost.cost_model import CostModel, Link
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.op_problem import OpProblem
from mlir_shard.resharding.operator.reshard_prices import PlannedPrices
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.planner import Planner, shared_planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh, ReductionOp

PIPELINE = "builtin.module(shard-propagate,shard-spmdize{planner=optimal})"
MESHES = [mesh_of(2, 2), mesh_of(4, 2), mesh_of(2, 2, 3, 2), mesh_of(8, 4, 4, 2, 2)]


def some_pairs(mesh: Mesh, count: int) -> list[tuple[TensorLayout, TensorLayout]]:
    """Returns pairs of layouts of tensors with even and uneven shards; some sources are partial."""
    random = Random(mesh.total_size)
    axes = halves(mesh) if len(mesh.axes) < 4 else full_axes(mesh)
    sources, targets = (shardings(mesh, axes, 2, unreduced=unreduced) for unreduced in (True, False))
    pairs = []
    for _ in range(count):
        shape = random.choice([(24, 48), (10, 7)])
        source, target = random.choice(sources), random.choice(targets)
        pairs.append((TensorLayout(source, mesh, shape), TensorLayout(target, mesh, shape)))
    return pairs


def planned(plans: Planner, source: TensorLayout, target: TensorLayout) -> Plan | str:
    try:
        return plans.plan(source, target, 4)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("model", [CostModel(), CostModel(Link(1e-6, 1e8), (("a", Link(3e-6, 2e7)),))])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_plans_do_not_depend_on_those_before(mesh: Mesh, model: CostModel) -> None:
    pairs = some_pairs(mesh, 25)
    alone = [planned(Planner(model), *pair) for pair in pairs]
    for order in (pairs, pairs[::-1]):
        plans = Planner(model)
        for pair in order:
            assert planned(plans, *pair) == alone[pairs.index(pair)]
    assert any(isinstance(one, Plan) and one.steps for one in alone)


def test_totals_do_not_depend_on_plans() -> None:
    for source, target in some_pairs(mesh_of(4, 2), 40):
        with_plan = Planner()
        plan = planned(with_plan, source, target)
        if isinstance(plan, Plan):
            totals = with_plan.totals(source, target, 4)
            assert totals == Planner().totals(source, target, 4)
            assert totals.seconds == plan.cost
            assert totals.most_received == sum(step.most_bytes for step in plan.steps)


def test_plans_are_the_same_after_an_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = some_pairs(mesh_of(2, 2, 2), 25)
    expected = [planned(Planner(), *pair) for pair in pairs]
    monkeypatch.setattr(planner, "MOST_CACHED", 1)
    monkeypatch.setattr(grid_search, "MOST_CACHED", 1)
    plans = Planner()
    assert [planned(plans, *pair) for pair in (*pairs, *pairs)] == expected * 2


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_reshards_around_an_op_do_not_depend_on_the_ops_before(mesh: Mesh) -> None:
    random = Random(5)
    problems = [random_problem(random, mesh) for _ in range(25)]

    def around(cheapest: CheapestReshards, problem: OpProblem) -> PricedReshards:
        return cheapest.around(sharded_op(problem), problem.tensors, ReductionOp.SUM, {"m": mesh})

    alone = [around(CheapestReshards(PlannedPrices()), problem) for problem in problems]
    for order in (range(25), reversed(range(25))):
        cheapest = CheapestReshards(PlannedPrices())
        assert {index: around(cheapest, problems[index]) for index in order} == dict(enumerate(alone))
    assert any(one.reshards is not None for one in alone)


def test_a_mesh_of_the_same_name_is_another_mesh() -> None:
    problem = random_problem(Random(1), mesh_of(2, 2))
    cheapest = CheapestReshards(PlannedPrices())
    costs = [
        cheapest.around(sharded_op(problem), problem.tensors, ReductionOp.SUM, {"m": mesh}).cost
        for mesh in (mesh_of(2, 2), mesh_of(8, 8))
    ]
    assert costs[0] != costs[1]


@pytest.mark.parametrize("collectives", ["shard", "stablehlo"])
def test_a_program_does_not_depend_on_those_compiled_before(collectives: str, evict_plans: Callable[[], None]) -> None:
    programs = [
        f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<{size}x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{first}}}, {{}}]>}},
                %b: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{second}}}, {{}}]>}})
    -> (tensor<{size}x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x", "y"}}]>}}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{size}x32xf32>, tensor<32x64xf32>) -> tensor<{size}x64xf32>
  %1 = stablehlo.tanh %0 : tensor<{size}x64xf32>
  return %1 : tensor<{size}x64xf32>
}}
"""
        for size, (first, second) in product((16, 24), (('"x"', '"y"'), ('"y"', '"x", "y"'), ("", '"x"')))
    ]

    def compiled(text: str) -> str:
        module = mlir_shard.parse(text)
        mlir_shard.run(module, PIPELINE.replace("planner", f"collectives={collectives} planner"))
        return mlir_shard.print_module(module)

    alone = []
    for text in programs:
        evict_plans()
        alone.append(compiled(text))
    evict_plans()
    assert [compiled(text) for text in (*programs[::-1], *programs)] == [*alone[::-1], *alone]


@pytest.mark.usefixtures("evict_plans")
def test_programs_share_plans() -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  return %a : tensor<8x8xf32>
}
"""
    for _ in range(2):
        mlir_shard.run(mlir_shard.parse(text), PIPELINE)
    assert shared_planner.cache_info().hits
