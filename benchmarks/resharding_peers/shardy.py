# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards by the C++ Shardy in jaxlib, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import AllGather, AllSlice, AllToAll, CollectivePermute, Move, OneDimStep, Together
from resharding_peers.course import Course, Refusal
from resharding_peers.pairs import Case, Pair

PIPELINE = "builtin.module(func.func(sdy-reshard-to-collectives),canonicalize)"

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


def courses(case: Case, pairs: Sequence[Pair]) -> list[Course | Refusal]:
    """The collectives for each pair."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, PIPELINE],
        input=reshards(case, pairs),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    module = mlir_shard.parse(done.stdout, mlir_shard.create_context())
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return [_course(case, pair, one) for pair, one in zip(pairs, functions, strict=True)]


def reshards(case: Case, pairs: Sequence[Pair]) -> str:
    """A module with a function for each pair."""
    tensor = f"tensor<{'x'.join(map(str, case.shape))}xf32>"
    lines = [f"sdy.mesh @mesh = {case.mesh}"]
    for number, pair in enumerate(pairs):
        source, target = case.sharding(pair.source), case.sharding(pair.target)
        lines += [
            f"func.func @reshard_{number}(%arg: {tensor} {{sdy.sharding = #sdy.sharding{source}}}) -> {tensor} {{",
            f"  %0 = sdy.reshard %arg {target} : {tensor}",
            f"  return %0 : {tensor}",
            "}",
        ]
    return "\n".join(lines)


def _course(case: Case, pair: Pair, function: Any) -> Course | Refusal:
    ops = [op.operation for op in function.regions[0].blocks[0].operations][:-1]
    if any(op.name == "sdy.reshard" for op in ops):
        return Refusal("leaves the reshard")
    shardings = [case.sharding(dims) for dims in (pair.source, pair.target)]
    shardings += [sdy.value(op.attributes["out_sharding"]) for op in ops]
    grid = Grid.of(case.mesh, (axis for sharding in shardings for axis in sharding.sharding_axes))
    return Course(grid, tuple(_move(op, grid) for op in ops))


def _move(op: Any, grid: Grid) -> Move:
    match op.name:
        case "sdy.all_gather":
            axes_per_dim = sdy.value(op.attributes["gathering_axes"])
            return _together([AllGather(dim, grid.axes(axes)) for dim, axes in enumerate(axes_per_dim) if axes.value])
        case "sdy.all_slice":
            axes_per_dim = sdy.value(op.attributes["slicing_axes"])
            return _together([AllSlice(dim, grid.axes(axes)) for dim, axes in enumerate(axes_per_dim) if axes.value])
        case "sdy.all_to_all":
            params = sdy.value(op.attributes["params"])
            return _together([AllToAll(grid.axes(one.axes), one.src_dim, one.tgt_dim) for one in params])
        case "sdy.collective_permute":
            return CollectivePermute(grid.placement(sdy.value(op.attributes["out_sharding"])).dims)
    raise ValueError(f"{op.name} is no collective that moves a tensor")


def _together(steps: Sequence[OneDimStep]) -> Move:
    return steps[0] if len(steps) == 1 else Together(tuple(steps))
