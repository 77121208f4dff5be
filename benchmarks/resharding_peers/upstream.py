# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards by upstream's `shard-partition` in the host bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import AllGather, AllSlice, AllToAll, Move
from resharding_peers.pairs import Case, Pair, listed
from resharding_peers.peer_plan import PeerPlan, Refusal


def plans(case: Case, pairs: Sequence[Pair]) -> list[PeerPlan | Refusal]:
    """Returns the collectives for each pair; each has its own module, because the pass stops at the first failure."""
    context = mlir_shard.create_context()
    grid = Grid.of(case.mesh, ())
    return [_peer_plan(_reshard(case, pair), grid, context) for pair in pairs]


def _reshard(case: Case, pair: Pair) -> str:
    tensor = f"tensor<{'x'.join(map(str, case.shape))}xf32>"
    return f"""
        shard.grid @mesh(shape = {"x".join(map(str, case.sizes))})
        func.func @reshard(%arg: {tensor}) -> {tensor} {{
          %source = shard.sharding @mesh split_axes = {listed(pair.source)} : !shard.sharding
          %target = shard.sharding @mesh split_axes = {listed(pair.target)} : !shard.sharding
          %0 = shard.shard %arg to %source : {tensor}
          %1 = shard.shard %0 to %target annotate_for_users : {tensor}
          return %1 : {tensor}
        }}"""


def _peer_plan(text: str, grid: Grid, context: Any) -> PeerPlan | Refusal:
    with context, ir.Location.unknown():
        module = mlir_shard.parse(text, context)
        try:
            mlir_shard.run(module, "builtin.module(func.func(shard-partition))")
        except PassFailure:
            return Refusal("fails")
    function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    # A reshard leaves a cast between equal types.
    return PeerPlan(grid, tuple(_move(op) for op in ops if op.name not in ("tensor.cast", "func.return")))


def _move(op: Any) -> Move:
    def dim(name: str) -> int:
        return int(op.attributes[name].value)

    axes = tuple(op.attributes["grid_axes"])
    match op.name:
        case "shard.all_gather":
            return AllGather(dim("gather_axis"), axes)
        case "shard.all_slice":
            return AllSlice(dim("slice_axis"), axes)
        case "shard.all_to_all":
            return AllToAll(axes, dim("concat_axis"), dim("split_axis"))
    raise ValueError(f"{op.name} is no collective that moves a tensor")
