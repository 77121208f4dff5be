# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of a sample of the pairs of `python -m exhaustive_resharding`, of each mesh, rank, kind and shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exhaustive_resharding import campaign
from exhaustive_resharding.delivery import Deliveries
from exhaustive_resharding.problems import MESHES, RANKS, Kind, Problems
from resharding.every_layout import mesh_of

from mlir_shard.resharding.cost.step_cost import StepCost, StepTraffic
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.steps import AllGather, AllSlice, Move
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, TensorSharding

SAMPLE = 3
MESH = mesh_of(2, 2)


@pytest.mark.parametrize("kind", Kind)
def test_a_sample_of_plans_delivers(kind: Kind) -> None:
    total = campaign.Tally()
    every = Problems.of_kinds(MESHES, RANKS, (kind,))
    for problems in every:
        total.add(campaign.run(problems, SAMPLE))
    assert not total.failures, "\n".join(map(str, total.failures))
    assert total.pairs == SAMPLE * sum(len(problems.shapes) for problems in every)
    assert total.plans == len(campaign.planners()) * total.pairs
    assert total.simulated > total.pairs


@pytest.mark.parametrize(
    ("sizes", "rank", "kind", "pairs"),
    [
        # Each sharding distributes k of the n axes, in some order, over the dimensions.
        ((2, 3), 2, Kind.AXES, (1 + 2 * 2 + 2 * 3) ** 2),
        ((2, 2, 2), 3, Kind.AXES, (1 + 3 * 3 + 6 * 6 + 6 * 10) ** 2),
        ((2, 2, 2), 3, Kind.REORDERED, (1 + 3 * 3 + 6 * 6 + 6 * 10) ** 2),
        # Both halves of an axis, adjacent in this order, merge into the axis.
        ((4, 2), 3, Kind.SUB_AXES, (1 + 3 * 3 + 6 * 6 + 6 * 10) ** 2),
        # Sources partial along one axis have two targets, partial or reduced; those partial along both axes have four.
        ((2, 3), 0, Kind.UNREDUCED, 2 * 2 + 4),
    ],
)
def test_there_are_all_pairs(sizes: tuple[int, ...], rank: int, kind: Kind, pairs: int) -> None:
    assert len(set(Problems(mesh_of(*sizes), rank, kind).pairs)) == pairs


def test_meshes_without_an_axis_to_cut_have_no_sub_axes() -> None:
    assert [problems.mesh for problems in Problems.of_kinds(MESHES, (1,), (Kind.SUB_AXES,))] == [mesh_of(4, 2)]


def layout(*dims: str, size: int = 8) -> TensorLayout:
    sharding = TensorSharding.closed_with((map(AxisRef, axes) for axes in dims), "mesh")
    return TensorLayout(sharding, MESH, (size, size))


def step(move: Move, before: TensorLayout, after: TensorLayout) -> PlanStep:
    return PlanStep(
        move, Grid.of(MESH, ()), before, after, StepCost(0.0, 0, 0, 0), lambda: StepTraffic((0,) * 4, (0,) * 4)
    )


def plan(*steps: PlanStep, source: TensorLayout, target: TensorLayout) -> Plan:
    return Plan(source, target, 4, steps, 0.0, 0.0)


def test_wrong_plans_are_found_out() -> None:
    source, whole, target = layout("ab", ""), layout("", ""), layout("", "b")
    gather, keep = step(AllGather(0, (0, 1)), source, whole), step(AllSlice(1, (1,)), whole, target)
    deliveries = Deliveries()

    def fault(*steps: PlanStep) -> str | None:
        return deliveries.fault(plan(*steps, source=source, target=target), source, target)

    assert fault(gather, keep) is None
    assert fault(gather) == f"the tensor ends as {whole.sharding}"
    assert str(fault(keep)).endswith(f"where the tensor lies as {source.sharding}")
    # Devices 1 and 2 slice the columns of each other.
    swapped = replace(keep, move=AllSlice(1, (0,)))
    assert "device 1 lacks something of Box(start=(0, 4), size=(8, 4))" in str(fault(gather, swapped))
    assert "device 0 holds a block of shape [8, 8]" in str(fault(replace(gather, after=target), keep))
    assert deliveries.num_simulated == 4


def test_uneven_blocks_that_do_not_make_each_other_up_are_found_out() -> None:
    source, target = layout("ab", "", size=5), layout("a", "", size=5)
    gather = step(AllGather(0, (1,)), source, target)
    with pytest.raises(ValueError, match="boundaries do not align"):
        Deliveries().fault(plan(gather, source=source, target=target), source, target)
