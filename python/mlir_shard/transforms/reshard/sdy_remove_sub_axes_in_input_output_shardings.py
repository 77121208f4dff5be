# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs and outputs of the program, which its callers see, sharded along whole axes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

from mlir_shard.passes.registry import Pass, register
from mlir_shard.sharding import DimensionSharding, TensorSharding
from mlir_shard.transforms.call_graph import main_function
from mlir_shard.transforms.shardings import Side, replace_shardings


@register
class RemoveSubAxesInInputOutputShardings(Pass):
    """Shards the open dimensions of the main function's arguments and results along their axes before the first
    sub-axis only. What is closed is the user's word, and stays."""

    name = "sdy-remove-sub-axes-in-input-output-shardings"
    anchor = "builtin.module"
    summary = "Removes sub-axes, and what comes after them, from open dimensions of inputs and outputs"

    def run(self, op: Any) -> None:
        main = main_function(op)
        for side in Side:
            replace_shardings(main, side, lambda sharding, _: _with_whole_axes(sharding))


def _with_whole_axes(sharding: TensorSharding) -> TensorSharding:
    return replace(sharding, dim_shardings=tuple(map(_whole_axes, sharding.dim_shardings)))


def _whole_axes(dim: DimensionSharding) -> DimensionSharding:
    if dim.is_closed:
        return dim
    return replace(dim, axes=tuple(takewhile(lambda axis: axis.sub_axis_info is None, dim.axes)))
