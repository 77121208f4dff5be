# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardy's course of collectives as moves, and what it costs beside a plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from mlir_shard.resharding.collective_steps import CollectiveStep, ExchangeShards, GatherAlong, MoveAxes
from mlir_shard.resharding.cost_model import CostModel, Objective
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import AllGather, AllSlice, AllToAll, CollectivePermute, Move, Placement, Together
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.sharding.axes import Axes


def course_cost(source: TensorLayout, course: Sequence[CollectiveStep], element_size: int, model: CostModel) -> float:
    """What a course from `source` costs, in units of the objective of the model.

    ValueError where one of its collectives is none of even blocks, or goes to another mesh.
    """
    axes = chain(_axes(source.sharding), *(_axes(step.sharding) for step in course))
    tensor = GridTensor(Grid.of(source.mesh, axes), source.shape, element_size)
    costs = []
    for move, before in course_moves(tensor.grid, source.sharding, course):
        costs.append(model.cost(move, before, tensor))
    if model.objective is Objective.TIME:
        return sum(cost.time for cost in costs)
    if model.objective is Objective.BYTES:
        return sum(cost.total_bytes for cost in costs)
    return max((cost.memory for cost in costs), default=0)


def course_moves(
    grid: Grid, source: TensorSharding, course: Sequence[CollectiveStep]
) -> tuple[tuple[Move, Placement], ...]:
    """The moves of a course, each with the placement before it.

    ValueError where its axes are not of the grid, or it goes to another mesh.
    """
    moves: list[tuple[Move, Placement]] = []
    before = grid.placement(source)
    for step in course:
        if step.sharding.mesh_or_ref != source.mesh_or_ref:
            raise ValueError(f"the course goes from the mesh of {source} to that of {step.sharding}")
        move = _move(grid, step)
        moves.append((move, before))
        before = move.apply(before)
    return tuple(moves)


def _move(grid: Grid, step: CollectiveStep) -> Move:
    if isinstance(step, ExchangeShards):
        return CollectivePermute(grid.placement(step.sharding).dims)
    if isinstance(step, MoveAxes):
        return AllToAll(grid.axes(step.axes), step.src_dim, step.tgt_dim)
    kind = AllGather if isinstance(step, GatherAlong) else AllSlice
    steps = [kind(dim, grid.axes(axes)) for dim, axes in enumerate(step.axes_per_dim) if axes]
    return steps[0] if len(steps) == 1 else Together(tuple(steps))


def _axes(sharding: TensorSharding) -> Axes:
    found: list[AxisRef] = [axis for dim in sharding.dim_shardings for axis in dim.axes]
    return (*found, *sharding.unreduced_axes)
