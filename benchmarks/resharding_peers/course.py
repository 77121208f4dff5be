# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a planner does with a reshard, as moves on a grid, and the one measure for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.simulation import carry_out, place, without_padding
from mlir_shard.resharding.steps import AllSlice, Move, Placement, Together
from resharding_peers.pairs import ELEMENT_SIZE, Case, Pair


@dataclass(frozen=True, slots=True)
class Course:
    """The moves that a planner chose, along the axes of `grid`."""

    grid: Grid
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        return f"on grid {list(self.grid.sizes)} {', '.join(map(str, self.moves)) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a planner has no plan."""

    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The bytes that all devices together receive, the collectives (a slice is none) and the predicted seconds."""

    total_bytes: int
    collectives: int
    time: float


class Measure:
    """Measures courses of the reshards of a case; steps that come up again are measured once."""

    def __init__(self, case: Case, cost_model: CostModel) -> None:
        self._case = case
        self._cost_model = cost_model
        self._known: dict[tuple[Grid, Move, Placement], tuple[Placement, int, float]] = {}

    def __call__(self, course: Course, pair: Pair) -> Measured:
        """What a course takes; ValueError where a move cannot be, or the last does not lead to the target."""
        total_bytes, collectives, time = 0, 0, 0.0
        now = course.grid.placement(self._case.sharding(pair.source))
        for move in course.moves:
            now, received, seconds = self._step(course.grid, move, now)
            total_bytes += received
            time += seconds
            collectives += not is_slice(move)
        if now != course.grid.placement(self._case.sharding(pair.target)):
            raise ValueError(f"the last step leads to {now}")
        return Measured(total_bytes, collectives, time)

    def _step(self, grid: Grid, move: Move, before: Placement) -> tuple[Placement, int, float]:
        key = (grid, move, before)
        if key not in self._known:
            tensor = GridTensor(grid, self._case.shape, ELEMENT_SIZE)
            received = sum(tensor.bytes_received(move, before))
            self._known[key] = (
                tensor.after(move, before),
                received,
                self._cost_model.cost(move, before, tensor).time,
            )
        return self._known[key]


def is_slice(move: Move) -> bool:
    """Whether devices only keep a part of what they have."""
    steps = move.steps if isinstance(move, Together) else (move,)
    return all(isinstance(step, AllSlice) for step in steps)


def delivers(course: Course, pair: Pair, case: Case) -> bool:
    """Whether the moves bring each element where it has to be, carried out with elements that are all different."""
    tensor = GridTensor(course.grid, case.shape, ELEMENT_SIZE)
    before, after = (course.grid.placement(case.sharding(dims)) for dims in (pair.source, pair.target))
    values = np.arange(np.prod(case.shape), dtype=np.int64).reshape((1, *case.shape))
    blocks = place(values, tensor.layout(before))
    for move in course.moves:
        blocks = carry_out(move, blocks, before, tensor)
        before = tensor.after(move, before)
    wanted: dict[int, Any] = place(values, tensor.layout(after))
    held, wanted = (without_padding(one, tensor.layout(after)) for one in (blocks, wanted))
    return all(np.array_equal(held[device], wanted[device]) for device in wanted)
