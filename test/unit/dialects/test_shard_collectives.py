# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives that are built pass upstream's verifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.sharding import ReductionOp

BUILT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "all_to_all": (
        lambda value: shard.all_to_all("g", value, [1], 0, 1, 3),
        "shard.all_to_all %arg0 on @g grid_axes = [1] split_axis = 0 concat_axis = 1 "
        ": tensor<6x8xf32> -> tensor<2x24xf32>",
    ),
    "reduce_scatter": (
        lambda value: shard.reduce_scatter("g", value, [0], 1, 2, ReductionOp.MAX),
        "shard.reduce_scatter %arg0 on @g grid_axes = [0] reduction = max scatter_dim = 1 "
        ": tensor<6x8xf32> -> tensor<6x4xf32>",
    ),
    "shift": (
        lambda value: shard.shift("g", value, 1, -1, rotate=True),
        "shard.shift %arg0 on @g grid_axes = [1] shift_axis = 1 offset = -1 rotate "
        ": tensor<6x8xf32> -> tensor<6x8xf32>",
    ),
    "broadcast": (
        lambda value: shard.broadcast("g", value, [1, 0], [2, 1]),
        "shard.broadcast %arg0 on @g grid_axes = [1, 0] root = [2, 1] : (tensor<6x8xf32>) -> tensor<6x8xf32>",
    ),
    "update_halo": (
        lambda value: shard.update_halo("g", value, [[], [0, 1]], [(2, 1)]),
        "shard.update_halo %arg0 on @g split_axes = [[], [0, 1]] halo_sizes = [2, 1] : tensor<6x8xf32>",
    ),
}


@pytest.mark.parametrize("name", BUILT)
def test_collectives(name: str) -> None:
    build, text = BUILT[name]
    module = ir.Module.parse(
        "shard.grid @g(shape = 2x3)\nfunc.func @f(%a: tensor<6x8xf32>) { return }", create_context()
    )
    block = module.body.operations[1].regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown(module.context):
        build(block.arguments[0])
    assert module.operation.verify()
    assert text in str(module)


def test_blocks_have_to_be_equal() -> None:
    module = ir.Module.parse("func.func @f(%a: tensor<6x8xf32>) { return }", create_context())
    block = module.body.operations[0].regions[0].blocks[0]
    with (
        ir.InsertionPoint.at_block_begin(block),
        ir.Location.unknown(module.context),
        pytest.raises(ValueError, match="dimension 1 of tensor<6x8xf32> is not divisible into 3 shards"),
    ):
        shard.all_to_all("g", block.arguments[0], [0], 1, 0, 3)
