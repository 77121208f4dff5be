# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the planner's plans against the cheapest of all sequences of moves."""

from __future__ import annotations

import random
from itertools import product

import pytest
from resharding.brute_force import BruteForce
from resharding.every_layout import mesh_of

from mlir_shard.resharding.cost.cost_model import CostModel, Link, Objective
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import AllReduce, Placement, ReduceScatter
from mlir_shard.resharding.tensor_layout import TensorLayout

# The latency equals the time of a hundred bytes, so that neither bytes nor messages alone decide.
BALANCED = CostModel(Link(1e-6, 1e8))
UNLIKE = CostModel(Link(1e-6, 1e8), (("a", Link(3e-6, 2e7)),))
BYTES = CostModel(objective=Objective.BYTES)
MEMORY = CostModel(objective=Objective.MEMORY)


def pairs_of(items: list[Placement], at_most: int) -> list[tuple[Placement, Placement]]:
    """Returns all pairs, or a sample, whose second placement is partial only along axes of the first."""
    pairs = [(one, other) for one, other in product(items, items) if set(other.unreduced) <= set(one.unreduced)]
    return pairs if len(pairs) <= at_most else random.Random(0).sample(pairs, at_most)


@pytest.mark.parametrize("model", [BALANCED, UNLIKE, BYTES, MEMORY], ids=["time", "links", "bytes", "memory"])
@pytest.mark.parametrize(
    ("sizes", "shape", "unreduced"),
    [
        ((2, 2), (8, 12), True),
        ((2, 3), (6, 12), False),
        ((2, 3), (5, 7), True),
        ((2, 2), (5, 5), True),
        ((4,), (8, 8), False),
        ((2, 2, 2), (16, 8), False),
        ((2, 2), (4, 4, 4), False),
    ],
)
def test_as_cheap_as_brute_force(
    sizes: tuple[int, ...], shape: tuple[int, ...], unreduced: bool, model: CostModel
) -> None:
    mesh = mesh_of(*sizes)
    tensor = GridTensor(Grid.of(mesh, ()).finest(), shape, 4)
    brute_force = BruteForce(tensor, model, unreduced=unreduced)
    planners = {
        is_any: Planner(model, uses_direct_exchange=is_any, exchange_reduces=is_any, most_states=100_000)
        for is_any in (False, True)
    }
    for before, after in pairs_of(brute_force.placements, 150):
        source, target = (
            TensorLayout(tensor.grid.sharding(placement, "mesh"), mesh, shape) for placement in (before, after)
        )
        for is_any, planner in planners.items():
            plan = planner.plan(source, target, 4)
            expected = brute_force.least(before, after, with_exchange=is_any)
            if is_any:
                # A plan may exchange at any step; the brute force exchanges only in the last move.
                assert plan.cost <= expected * (1 + 1e-9), (before, after)
            else:
                assert plan.cost == pytest.approx(expected, rel=1e-9), (before, after)
            assert plan.is_optimal, (before, after, is_any, plan.cost, plan.cost_bound)
            search = planner.native_search(tensor.grid, shape, 4)
            if search is not None and not after.unreduced:
                least = search.least((before.dims, before.unreduced), (after.dims, ()))
                assert least <= plan.cost * (1 + 1e-9), (before, after)


@pytest.mark.parametrize("dims", [((0, 1), ()), ((0, 1, 2), ()), ((0,), (2, 1))], ids=["whole", "scattered", "moved"])
def test_what_no_plan_costs_less_than_counts_all_partial_values(dims: tuple[tuple[int, ...], ...]) -> None:
    mesh = mesh_of(2, 2, 8)
    grid = Grid.of(mesh, ())
    before, after = Placement(((0, 1), ()), (2,)), Placement(dims)
    source, target = (
        TensorLayout(grid.sharding(placement, "mesh"), mesh, (4096, 4096)) for placement in (before, after)
    )
    planner = Planner(BALANCED)
    finest = grid.finest()
    search = planner.native_search(finest, source.shape, 4)
    assert search is not None
    states = [
        (placement.dims, placement.unreduced)
        for placement in (finest.placement(source.sharding), finest.placement(target.sharding))
    ]
    # A bound of one received value per element of the target's shard would be an eighth of the partial values.
    assert search.least(*states) > 0.9 * planner.totals(source, target, 4).seconds


@pytest.mark.parametrize(
    ("planner", "shape"),
    [
        (Planner(BYTES), (8,)),
        (Planner(exchange_reduces=True), (8,)),
        (Planner(), (1 << 63,)),
        (Planner(), (1 << 62, 8)),
    ],
    ids=["bytes", "exchanges that reduce", "a long dimension", "many bytes"],
)
def test_what_no_search_bounds(planner: Planner, shape: tuple[int, ...]) -> None:
    assert planner.native_search(Grid.of(mesh_of(2, 2), ()).finest(), (1 << 40, *shape), 4) is None


def test_of_plans_that_cost_the_same_the_one_with_few_collectives() -> None:
    """Sums of seconds in different orders have equal ranks, although their last digits differ."""
    mesh = mesh_of(4, 4, 2, 8, 2)
    grid = Grid.of(mesh, ())
    before, after = Placement(((4,), (3,), ()), (0, 1, 2)), Placement(((4,), (3,), (1,)))
    source, target = (
        TensorLayout(grid.sharding(placement, "mesh"), mesh, (8, 14336, 4096)) for placement in (before, after)
    )
    assert [type(step.move) for step in Planner().plan(source, target, 2).steps] == [ReduceScatter, AllReduce]
