# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the axes along which an op computes if its tensors have different shardings."""

from __future__ import annotations

from math import prod

from sharding.texts import sharding

from mlir_shard.resharding.operator.common_axes import common_axes
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import TensorMapping

MESH = Mesh({"x": 2, "y": 2, "z": 4}.items())


def projection(rule: OpShardingRule, dims: tuple[str, ...]) -> ShardingProjection:
    shardings = list(map(sharding, dims))
    count = len(rule.operand_mappings)
    return ShardingProjection.build(shardings[:count], shardings[count:], rule, MESH, closed_if_missing=True)


def spelled(axes_per_factor: tuple[tuple[object, ...], ...]) -> list[str]:
    return [" ".join(map(str, axes)).replace('"', "") for axes in axes_per_factor]


def common(rule: OpShardingRule, *dims: str) -> list[str]:
    """Returns the axes of each factor."""
    sizes = [
        prod(rule.factor_sizes[factor] for dim in mapping.dim_mappings for factor in dim.factor_indices)
        for mapping in rule.tensor_mappings
    ]
    return spelled(common_axes(projection(rule, dims), rule, sizes, MESH))


def matmul(i: int = 8, j: int = 8, k: int = 8) -> OpShardingRule:
    return OpShardingRule(
        (i, j, k),
        (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
        (TensorMapping.of([0], [1]),),
        reduction_factors=(2,),
    )


ADD = OpShardingRule.pointwise((8, 8), 2)
NEGATE = OpShardingRule.pointwise((8, 8), 1)
RESHAPE = OpShardingRule((4, 8), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))


class TestCommonAxes:
    def test_what_agrees_is_kept(self) -> None:
        assert common(matmul(), '[{"x"}, {"y"}]', '[{"y"}, {"z"}]', '[{"x"}, {"z"}]') == ["x", "z", "y"]

    def test_most_elements_win(self) -> None:
        assert common(ADD, '[{"x"}, {}]', '[{}, {"x"}]', '[{"x"}, {}]') == ["x", ""]
        large = matmul(i=64)
        assert common(large, '[{"x"}, {}]', '[{}, {"x"}]', "[{}, {}]") == ["x", "", ""]
        assert common(matmul(j=64), '[{"x"}, {}]', '[{}, {"x"}]', "[{}, {}]") == ["", "x", ""]

    def test_of_two_tensors_one_is_resharded(self) -> None:
        assert common(NEGATE, '[{"x"}, {}]', '[{}, {"y", "z"}]') == ["", "y z"]
        assert common(NEGATE, '[{"z"}, {}]', '[{}, {"y"}]') == ["z", ""]

    def test_longer_lists_extend_what_was_chosen(self) -> None:
        assert common(ADD, '[{"x", "y"}, {}]', '[{"x"}, {}]', '[{"x", "y"}, {}]') == ["x y", ""]

    def test_what_has_to_be_whole_is_moved_to_where_all_are(self) -> None:
        softmax = OpShardingRule((8, 8), NEGATE.operand_mappings, NEGATE.result_mappings, need_replication_factors=(1,))
        assert common(softmax, '[{}, {"z"}]', '[{}, {"z"}]') == ["z", ""]
        small = OpShardingRule((2, 8), NEGATE.operand_mappings, NEGATE.result_mappings, need_replication_factors=(1,))
        assert common(small, '[{}, {"z"}]', '[{}, {"z"}]') == ["", ""]

    def test_a_minor_factor_waits_for_the_major_one(self) -> None:
        assert common(RESHAPE, '[{"x"}]', '[{}, {"y"}]') == ["x", ""]
        assert common(RESHAPE, '[{"z", "x"}]', '[{}, {"x"}]') == ["z", "x"]
