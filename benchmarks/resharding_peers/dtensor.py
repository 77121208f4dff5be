# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards by the min-cost planner of PyTorch's DTensor, in a separate process with torch."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import AllGather, AllSlice, AllToAll, Move
from resharding_peers.pairs import Case, Pair
from resharding_peers.peer_plan import PeerPlan, Refusal

_PLANNER = Path(__file__).with_name("dtensor_planner.py")


def plans(case: Case, pairs: Sequence[Pair], interpreter: str) -> list[PeerPlan | Refusal] | None:
    """Returns the collectives for each pair; None if `interpreter`, a command that runs Python, has no torch."""
    request = json.dumps([case.sizes, case.shape, [(pair.source, pair.target) for pair in pairs]])
    planner = _planner(interpreter)
    assert planner.stdin is not None and planner.stdout is not None
    planner.stdin.write(request + "\n")
    planner.stdin.flush()
    answers = json.loads(planner.stdout.readline())
    if answers is None:
        return None
    grid = Grid.of(case.mesh, ())
    return [PeerPlan(grid, tuple(_move(*step) for step in steps)) for steps in answers]


@functools.cache
def _planner(interpreter: str) -> subprocess.Popen[str]:
    """Starts the process of an interpreter, which imports torch and ends with this process."""
    return subprocess.Popen([interpreter, str(_PLANNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _move(axes: list[int], source_dim: int | None, target_dim: int | None) -> Move:
    if source_dim is not None and target_dim is not None:
        return AllToAll(tuple(axes), source_dim, target_dim)
    if target_dim is not None:
        return AllSlice(target_dim, tuple(axes))
    assert source_dim is not None
    return AllGather(source_dim, tuple(axes))
