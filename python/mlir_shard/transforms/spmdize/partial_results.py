# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What devices have reduced of their blocks becomes the reduction, for kinds that sdy has no word for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.resharding.steps import AllGather, GridAxes
from mlir_shard.rules.reduction import Combination
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.emission import all_gather


def combined(op: Any, combination: Combination, axes: GridAxes, grid: DeviceGrid) -> list[Any]:
    """The results of an op on all devices along grid axes, from its results on each, behind it."""
    with ir.InsertionPoint.after(op), op.location:
        if not combination.combiners:
            return _reduced_again(op, axes, grid)
        return [
            shard.all_reduce(grid.name, result, sorted(axes), combiner.value)
            for result, combiner in zip(op.results, combination.combiners, strict=True)
        ]


def _reduced_again(op: Any, axes: Sequence[int], grid: DeviceGrid) -> list[Any]:
    """What every device has got, along a new dimension, reduced with the same initial values by the same region."""
    count = len(op.results)
    gathered = [
        all_gather(stablehlo.reshape(result, [1, *result.type.shape]), AllGather(0, tuple(axes)), grid)
        for result in op.results
    ]
    again = op.clone()
    for number, value in enumerate(gathered):
        again.operands[number] = value
    again.attributes["dimensions"] = stablehlo.sizes([0])
    return list(again.results)[:count]
