# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves as the steps of a plan, with the layouts before and after each, its bytes, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.link_times import LinkTimes
from mlir_shard.resharding.plan import PlanStep, local_elements
from mlir_shard.resharding.step_cost import step_cost
from mlir_shard.resharding.step_traffic import StepTraffic, step_traffic
from mlir_shard.resharding.steps import Move, Placement
from mlir_shard.resharding.steps_cost import Rank, rank
from mlir_shard.resharding.tensor_layout import TensorLayout

# A move and the placement after it.
PlacedMove = tuple[Move, Placement]


def plan_steps(
    source: TensorLayout,
    target: TensorLayout,
    grid: Grid,
    start: Placement,
    moves: Sequence[PlacedMove],
    element_size: int,
    model: CostModel,
) -> tuple[PlanStep, ...]:
    """The steps of moves on a grid of one mesh, the first from `source`, which is `start`, and the last to `target`."""
    tensor = GridTensor(grid, source.shape, element_size)
    times = LinkTimes(grid, model.link)
    steps = []
    before, layout = start, source
    for number, (move, after) in enumerate(moves, 1):
        if number == len(moves):
            next_layout = target
        else:
            next_layout = TensorLayout(grid.sharding(after, source.sharding.mesh_or_ref), source.mesh, source.shape)
        cost = step_cost(move, before, after, tensor, times)
        steps.append(PlanStep(move, grid, layout, next_layout, cost, partial(_traffic, move, before, after, tensor)))
        before, layout = after, next_layout
    return tuple(steps)


def _traffic(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> StepTraffic:
    return step_traffic(move, before, after, tensor).in_bytes(tensor.element_size)


def moves_rank(
    source: TensorLayout, grid: Grid, start: Placement, moves: Sequence[PlacedMove], element_size: int, model: CostModel
) -> Rank | None:
    """What `rank_of` says of the steps that the moves are; None where one needs more memory than there is."""
    tensor = GridTensor(grid, source.shape, element_size)
    times = LinkTimes(grid, model.link)
    costs = []
    before = start
    for move, after in moves:
        costs.append(step_cost(move, before, after, tensor, times))
        before = after
    peak = max((cost.memory for cost in costs), default=local_elements(source) * element_size)
    if costs and model.memory_limit is not None and peak > model.memory_limit:
        return None
    seconds, received = sum(cost.time for cost in costs), sum(cost.total_bytes for cost in costs)
    return rank(model.objective, seconds, received, peak, len(costs))
