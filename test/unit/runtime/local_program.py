# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs handwritten local modules on ranks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hang_guard import SECONDS

from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.launch.mpi import MpiEngine
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.program import Port, Program
from mlir_shard.sharding.layout import Box

try:
    importlib.metadata.distribution("mpich")
    HAS_MPICH = True
except importlib.metadata.PackageNotFoundError:
    HAS_MPICH = False

needs_mpich = pytest.mark.skipif(not HAS_MPICH, reason="the package mpich is not installed")
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="jax is not installed")


def spec(text: str) -> TensorSpec:
    """Parses a type such as `2x3xf32`; `f32` has no dimensions."""
    sizes = re.findall(r"(\d+)x", text)
    return TensorSpec(tuple(map(int, sizes)), re.sub(r"^(\d+x)*", "", text))


def port(name: str, local: TensorSpec, ranks: int) -> Port:
    """Returns a port whose global tensor stacks the local tensors of the ranks along a new first dimension."""
    whole = TensorSpec((ranks, *local.shape), local.element_type)
    padded = TensorSpec((1, *local.shape), local.element_type)
    boxes = tuple(Box((rank, *(0,) * len(local.shape)), padded.shape) for rank in range(ranks))
    return Port(name, whole, padded, boxes)


def run_local(
    grid: tuple[int, ...],
    argument: str,
    body: str,
    results: Sequence[str],
    inputs: Sequence[Array],
    functions: str = "",
) -> list[list[Array]]:
    """Runs `body`, the operations of a function on `%a`, on a grid @g, with one input for each rank.

    The operations name their results `%0`, `%1`, ..., and the function returns a list of these results for each rank.
    The operations may call `functions`, which is text.
    """
    ranks = int(np.prod(grid))
    (lowered,) = LoweringProcess()([local_module(grid, argument, body, results) + functions], "main")
    program = Program(
        lowered,
        "main",
        (port("argument 0", spec(argument), ranks),),
        tuple(port(f"result {index}", spec(type_), ranks) for index, type_ in enumerate(results)),
        ranks,
    )
    returned = MpiEngine(SECONDS).run(program, [np.stack(inputs)])
    return [[array[0] for array in of_rank] for of_rank in returned]


def local_module(grid: tuple[int, ...], argument: str, body: str, results: Sequence[str]) -> str:
    """Returns a module whose function `main` has a leading dimension of size 1 on its argument and results."""

    def with_one(type_: str) -> str:
        return f"tensor<1x{type_}>"

    def expand(value: str, type_: str) -> str:
        return reshape("expand", value, f"tensor<{type_}>", with_one(type_), len(spec(type_).shape))

    named = ", ".join(f"%out{index}" for index in range(len(results)))
    lines = [
        f"shard.grid @g(shape = {'x'.join(map(str, grid))})",
        f"func.func @main(%in: {with_one(argument)}) -> ({', '.join(map(with_one, results))}) {{",
        f"  %a = {reshape('collapse', '%in', with_one(argument), f'tensor<{argument}>', len(spec(argument).shape))}",
        body,
        *(f"  %out{index} = {expand(f'%{index}', type_)}" for index, type_ in enumerate(results)),
        f"  return {named} : {', '.join(map(with_one, results))}" if results else "  return",
        "}",
    ]
    return "\n".join(lines)


def reshape(how: str, value: str, source: str, target: str, rank: int) -> str:
    """Returns a reshape that adds a first dimension of size 1 to `rank` others, or removes it."""
    groups = [[0, 1], *([index] for index in range(2, rank + 1))] if rank else []
    sizes = re.findall(r"\d+(?=x)", target)
    shape = f" output_shape [{', '.join(sizes)}]" if how == "expand" else ""
    return f"tensor.{how}_shape {value} {groups}{shape} : {source} into {target}"
