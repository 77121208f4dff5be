# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan of a planner for a reshard, as moves on a grid, and a common measure of all plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.cost.step_cost import StepCost
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.simulation import carry_out, place, without_padding
from mlir_shard.resharding.steps import AllSlice, Move, Placement, Together
from mlir_shard.resharding.tensor_layout import TensorLayout
from resharding_peers.pairs import ELEMENT_SIZE, Case, Pair


@dataclass(frozen=True, slots=True)
class PeerPlan:
    """The moves that a planner chose, along the axes of `grid`."""

    grid: Grid
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        return f"on grid {list(self.grid.sizes)} {', '.join(map(str, self.moves)) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a planner has no plan."""

    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of the moves of a plan.

    total_bytes: received by all devices together; bytes_received: by a device, if the same one received most in each
    move; collectives: the number of moves except slices; time: predicted seconds.
    """

    total_bytes: int
    bytes_received: int
    collectives: int
    time: float


class Measure:
    """A function that measures plans; equal steps are measured once."""

    def __init__(self, cost_model: CostModel) -> None:
        self._cost_model = cost_model
        self._known: dict[tuple[Grid, tuple[int, ...], Move, Placement], tuple[Placement, StepCost]] = {}

    def __call__(self, plan: PeerPlan, source: TensorLayout, target: TensorLayout) -> Measured:
        """Measures a plan; raises ValueError if a move is impossible, or the last one does not lead to the target."""
        total_bytes, bytes_received, collectives, time = 0, 0, 0, 0.0
        now = plan.grid.placement(source.sharding)
        for move in plan.moves:
            now, cost = self._step(plan.grid, source.shape, move, now)
            total_bytes += cost.total_bytes
            bytes_received += cost.bytes_received
            time += cost.time
            collectives += not is_slice(move)
        if now != plan.grid.placement(target.sharding):
            raise ValueError(f"the last step leads to {now}")
        return Measured(total_bytes, bytes_received, collectives, time)

    def _step(self, grid: Grid, shape: tuple[int, ...], move: Move, before: Placement) -> tuple[Placement, StepCost]:
        key = (grid, shape, move, before)
        if key not in self._known:
            tensor = GridTensor(grid, shape, ELEMENT_SIZE)
            self._known[key] = tensor.after(move, before), self._cost_model.cost(move, before, tensor)
        return self._known[key]


def is_slice(move: Move) -> bool:
    """Returns whether a move only slices the shards of devices."""
    steps = move.steps if isinstance(move, Together) else (move,)
    return all(isinstance(step, AllSlice) for step in steps)


def delivers(plan: PeerPlan, pair: Pair, case: Case) -> bool:
    """Returns whether the moves bring each element to its target, in a simulation with distinct elements."""
    tensor = GridTensor(plan.grid, case.shape, ELEMENT_SIZE)
    before, after = (plan.grid.placement(case.sharding(dims)) for dims in (pair.source, pair.target))
    values = np.arange(np.prod(case.shape), dtype=np.int64).reshape((1, *case.shape))
    blocks = place(values, tensor.layout(before))
    for move in plan.moves:
        blocks = carry_out(move, blocks, before, tensor)
        before = tensor.after(move, before)
    wanted: dict[int, Any] = place(values, tensor.layout(after))
    held, wanted = (without_padding(one, tensor.layout(after)) for one in (blocks, wanted))
    return all(np.array_equal(held[device], wanted[device]) for device in wanted)
