# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the axes that a factor may get."""

from __future__ import annotations

from resharding.every_layout import mesh_of

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.operator.factor_candidates import candidates_of_any_size
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.axes import AxisRef


def test_factors_with_the_same_axes_share_candidates() -> None:
    grid, rule = Grid.of(mesh_of(2, 2), (AxisRef("a"), AxisRef("b"))), OpShardingRule.pointwise((64, 64), 2)
    lists = [[(0,), ()], [(1,), ()]]
    first, second = candidates_of_any_size(lists, rule, grid, (0, 1))
    assert candidates_of_any_size(lists[::-1], rule, grid, (0, 1)) == (second, first)
    assert first.of(first.divisor(64)) is first.of(first.divisor(32))
    assert len(first.of(first.divisor(64)).axes) > len(first.of(first.divisor(1)).axes)
