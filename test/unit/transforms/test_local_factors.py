# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the axes along which each factor of an op is local, given the shardings of its tensors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlir_shard import asm
from mlir_shard.dialects.sdy import SHARDING
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import TensorMapping
from mlir_shard.transforms.partition.local_factors import axes_of_dimensions, local_factor_axes

MESH = Mesh({"x": 2, "y": 2, "z": 4}.items())


def projection(rule: OpShardingRule, dims: tuple[str, ...]) -> ShardingProjection:
    shardings = [asm.parse_value(SHARDING.partition(".")[2], f"<@mesh, {one}>") for one in dims]
    count = len(rule.operand_mappings)
    return ShardingProjection.build(shardings[:count], shardings[count:], rule, MESH, closed_if_missing=True)


def spelled(axes_per_factor: tuple[tuple[object, ...], ...]) -> list[str]:
    return [" ".join(map(str, axes)).replace('"', "") for axes in axes_per_factor]


def local(rule: OpShardingRule, *dims: str, unshardable: tuple[int, ...] = ()) -> list[str]:
    return spelled(local_factor_axes(projection(rule, dims), rule, unshardable, MESH))


def matmul(i: int = 8, j: int = 8, k: int = 8) -> OpShardingRule:
    return OpShardingRule(
        (i, j, k),
        (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
        (TensorMapping.of([0], [1]),),
        reduction_factors=(2,),
    )


ADD = OpShardingRule.pointwise((8, 8), 2)
RESHAPE = OpShardingRule((4, 8), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))


class TestLocalFactors:
    def test_what_agrees_is_local(self) -> None:
        assert local(matmul(), '[{"x"}, {"y"}]', '[{"y"}, {"z"}]', '[{"x"}, {"z"}]') == ["x", "z", "y"]

    def test_what_disagrees_is_whole(self) -> None:
        assert local(ADD, '[{"x"}, {"y"}]', '[{"x"}, {}]', '[{"x"}, {"y"}]') == ["x", ""]

    def test_what_is_unshardable_is_whole(self) -> None:
        assert local(ADD, *['[{"x"}, {"y"}]'] * 3, unshardable=(0,)) == ["", "y"]

    def test_an_axis_shards_one_factor(self) -> None:
        # The factors share no tensor, so the tensors of each agree on the same axis.
        outer = OpShardingRule(
            (8, 8), (TensorMapping.of([0]), TensorMapping.of([1])), (TensorMapping.of(),), reduction_factors=(0, 1)
        )
        assert local(outer, '[{"x"}]', '[{"x"}]', "[]") == ["x", ""]

    def test_strided_blocks_are_whole(self) -> None:
        assert local(RESHAPE, '[{"z", "x"}]', '[{"z"}, {"x"}]') == ["z", "x"]
        assert local(RESHAPE, '[{"z", "x"}]', '[{"z"}, {"x"}]', unshardable=(0,)) == ["", ""]


@st.composite
def problems(draw: st.DrawFn) -> tuple[OpShardingRule, list[Placement], list[int]]:
    """Draws a rule with one factor per dimension, placements of its tensors on mesh axes, and unshardable factors."""
    count = draw(st.integers(1, 4))
    factors = st.lists(st.integers(0, count - 1), max_size=3, unique=True)
    of_tensors = [draw(factors) for _ in range(draw(st.integers(1, 4)))]
    mappings = [TensorMapping.of(*([factor] for factor in of_tensor)) for of_tensor in of_tensors]
    # The placements of most tensors are compatible.
    common = draw(st.permutations(range(3)))
    cuts = sorted(draw(st.lists(st.integers(0, 3), min_size=count - 1, max_size=count - 1)))
    agreed = [tuple(common[start:end]) for start, end in zip([0, *cuts], [*cuts, 3], strict=True)]
    placements = []
    for of_tensor in of_tensors:
        dims = [agreed[factor] for factor in of_tensor]
        if draw(st.booleans()) and dims:
            dims[draw(st.integers(0, len(dims) - 1))] = ()
        if draw(st.integers(0, 4)) == 0:
            dims.reverse()
        placements.append(Placement(tuple(dims)))
    rule = OpShardingRule((16,) * count, tuple(mappings[:-1]), (mappings[-1],))
    return rule, placements, draw(st.lists(st.integers(0, count - 1), max_size=1))


@given(problems())
def test_axes_of_dimensions_are_those_of_the_projection(
    problem: tuple[OpShardingRule, list[Placement], list[int]],
) -> None:
    rule, placements, unshardable = problem
    grid = Grid.of(MESH, ())
    shardings = [grid.sharding(one, "mesh") for one in placements]
    count = len(rule.operand_mappings)
    by_factor = ShardingProjection.build(shardings[:count], shardings[count:], rule, MESH)
    expected = tuple(map(grid.axes, local_factor_axes(by_factor, rule, unshardable, MESH)))
    assert axes_of_dimensions(placements, rule, unshardable) == expected
