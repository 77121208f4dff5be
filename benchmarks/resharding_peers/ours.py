# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards by this project's planner."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.planner import Planner
from resharding_peers.pairs import ELEMENT_SIZE, Case, Pair
from resharding_peers.peer_plan import PeerPlan, Refusal


def plans(case: Case, pairs: Sequence[Pair], model: CostModel, exchange: bool) -> list[PeerPlan | Refusal]:
    """Returns the plan for each pair, with direct exchange or only with collectives."""
    planner = Planner(model, uses_direct_exchange=exchange)
    return [_peer_plan(case, pair, planner) for pair in pairs]


def _peer_plan(case: Case, pair: Pair, planner: Planner) -> PeerPlan | Refusal:
    try:
        plan = planner.plan(case.layout(pair.source), case.layout(pair.target), ELEMENT_SIZE)
    except ValueError as error:
        return Refusal(str(error))
    grids = {step.grid for step in plan.steps} or {Grid.of(case.mesh, ())}
    (grid,) = grids
    return PeerPlan(grid, tuple(step.move for step in plan.steps))
