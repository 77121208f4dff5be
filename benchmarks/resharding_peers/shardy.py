# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards by the C++ Shardy in jaxlib, in a separate process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import lcm
from typing import Any

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    Move,
    OneDimStep,
    ReduceScatter,
    Together,
)
from mlir_shard.sharding import ReductionOp
from resharding_peers.local_programs import Cost
from resharding_peers.pairs import MESH, Case, Pair
from resharding_peers.peer_plan import Measure, PeerPlan, Refusal, is_slice
from resharding_peers.random_reshards import Reshard

# If a sharding changes, its unreduced axes are all-reduced first.
PIPELINE = (
    "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives),"
    "canonicalize)"
)

RUN = """
import sys
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _sdy, _stablehlo
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context = ir.Context()
context.append_dialect_registry(registry)
context.load_all_available_dialects()
_sdy.register_dialect(context)
_stablehlo.register_dialect(context)
with context:
    module = ir.Module.parse(sys.stdin.read())
    passmanager.PassManager.parse(sys.argv[1]).run(module.operation)
    print(module)
"""


def plans(case: Case, pairs: Sequence[Pair]) -> list[PeerPlan | Refusal]:
    """Returns the collectives for each pair."""
    return plans_of([Reshard(case.layout(pair.source), case.layout(pair.target)) for pair in pairs])


def plans_of(reshards: Sequence[Reshard]) -> list[PeerPlan | Refusal]:
    """Returns the collectives for each reshard; all reshards are on one mesh."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, PIPELINE], input=_text(reshards), check=True, stdout=subprocess.PIPE, text=True
    )
    module = mlir_shard.parse(done.stdout, mlir_shard.create_context())
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [_peer_plan(reshard, one) for reshard, one in zip(reshards, functions, strict=True)]


def costs_of(reshards: Sequence[Reshard], model: CostModel) -> tuple[list[Cost | None], list[Cost | None]]:
    """Returns the costs of the collectives for each reshard, and those on a padded tensor if they are incorrect."""
    measure = Measure(model)
    exact: list[Cost | None] = []
    padded: list[Cost | None] = []
    for reshard, plan in zip(reshards, plans_of(reshards), strict=True):
        of_tensor = None if isinstance(plan, Refusal) else _cost(plan, reshard, measure)
        is_wrong = of_tensor is None and isinstance(plan, PeerPlan)
        exact.append(of_tensor)
        padded.append(_cost(plan, _padded(reshard, plan), measure) if is_wrong else None)
    return exact, padded


def _cost(plan: PeerPlan, reshard: Reshard, measure: Measure) -> Cost | None:
    try:
        measured = measure(plan, reshard.source, reshard.target)
    except ValueError:
        return None
    kinds = tuple(type(move).__name__ for move in plan.moves if not is_slice(move))
    return Cost(measured.bytes_received, measured.time, kinds)


def _padded(reshard: Reshard, plan: PeerPlan) -> Reshard:
    """Returns the reshard of a tensor padded so that all shards of the plan are even."""
    placement = plan.grid.placement(reshard.source.sharding)
    placements = [placement]
    for move in plan.moves:
        placement = move.apply(placement)
        placements.append(placement)
    counts = [lcm(*map(plan.grid.num_devices, axes)) for axes in zip(*(one.dims for one in placements), strict=True)]
    shape = tuple(-(-size // count) * count for size, count in zip(reshard.source.shape, counts, strict=True))
    return Reshard(replace(reshard.source, shape=shape), replace(reshard.target, shape=shape))


def _text(reshards: Sequence[Reshard]) -> str:
    """Returns a module with a function for each reshard."""
    lines = [f"sdy.mesh @{MESH} = {reshards[0].source.mesh}"]
    for number, reshard in enumerate(reshards):
        source, target = (f"{{sdy.sharding = #sdy.sharding{one.sharding}}}" for one in (reshard.source, reshard.target))
        lines += [
            f"func.func @reshard_{number}(%arg: {reshard.type} {source}) -> ({reshard.type} {target}) {{",
            f"  %0 = sdy.reshard %arg {reshard.target.sharding} : {reshard.type}",
            f"  return %0 : {reshard.type}",
            "}",
        ]
    return "\n".join(lines)


def _peer_plan(reshard: Reshard, function: Any) -> PeerPlan | Refusal:
    ops = [op.operation for op in function.regions[0].blocks[0].operations][:-1]
    if any(op.name == "sdy.reshard" for op in ops):
        return Refusal("leaves the reshard")
    shardings = [reshard.source.sharding, reshard.target.sharding]
    shardings += [sdy.value(op.attributes["out_sharding"]) for op in ops]
    used = (axis for sharding in shardings for axis in sharding.sharding_axes + sharding.unreduced_axes)
    grid = Grid.of(reshard.source.mesh, used)
    return PeerPlan(grid, tuple(_move(op, grid) for op in ops))


def _move(op: Any, grid: Grid) -> Move:
    match op.name:
        case "sdy.all_gather":
            axes_per_dim = sdy.value(op.attributes["gathering_axes"])
            return _together([AllGather(dim, grid.axes(axes)) for dim, axes in enumerate(axes_per_dim) if axes.value])
        case "sdy.all_reduce":
            axes = grid.axes(sdy.value(op.attributes["reduction_axes"]))
            return AllReduce(tuple(sorted(axes)), ReductionOp.SUM)
        case "sdy.all_slice":
            axes_per_dim = sdy.value(op.attributes["slicing_axes"])
            return _together([AllSlice(dim, grid.axes(axes)) for dim, axes in enumerate(axes_per_dim) if axes.value])
        case "sdy.all_to_all":
            params = sdy.value(op.attributes["params"])
            return _together([AllToAll(grid.axes(one.axes), one.src_dim, one.tgt_dim) for one in params])
        case "sdy.reduce_scatter":
            axes_per_dim = sdy.value(op.attributes["reduce_scatter_axes"])
            steps = [
                ReduceScatter(dim, grid.axes(axes), ReductionOp.SUM)
                for dim, axes in enumerate(axes_per_dim)
                if axes.value
            ]
            return _together(steps)
        case "sdy.collective_permute":
            return CollectivePermute(grid.placement(sdy.value(op.attributes["out_sharding"])).dims)
    raise ValueError(f"{op.name} is no collective that moves a tensor")


def _together(steps: Sequence[OneDimStep]) -> Move:
    return steps[0] if len(steps) == 1 else Together(tuple(steps))
