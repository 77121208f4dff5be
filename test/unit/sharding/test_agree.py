# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No strategy changes the shardings of tensors that agree along each factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import meshes, sharding, shardings, splits

from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.axes import AxisRef, add_axes_or_merge
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation import agree, propagate_aggressive, propagate_basic
from mlir_shard.sharding.rule import TensorMapping

STRATEGIES = (propagate_aggressive, propagate_basic)
MATMUL = OpShardingRule(
    (8, 16, 32), (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])), (TensorMapping.of([0], [1]),), (2,)
)


def are_kept(
    rule: OpShardingRule, mesh: Mesh, tensors: list[TensorSharding], directions: tuple[PropagationDirection, ...]
) -> bool:
    before = ShardingProjection.build(tensors[:-1], tensors[-1:], rule, mesh)
    return all(
        strategy(before, rule, mesh, directions, elementwise=elementwise) is before
        for strategy in STRATEGIES
        for elementwise in (False, True)
    )


@st.composite
def agreeing(draw: st.DrawFn, mesh: Mesh) -> list[TensorSharding]:
    """Draws shardings of the tensors of MATMUL in which each factor has the same axes in all tensors."""
    lists: list[list[AxisRef]] = [[] for _ in range(MATMUL.num_factors)]
    for part in draw(st.permutations(draw(splits(mesh)))):
        lists[draw(st.integers(0, MATMUL.num_factors - 1))].append(part)
    return [
        TensorSharding(
            "mesh",
            tuple(
                DimensionSharding(add_axes_or_merge((), lists[dim.factor_indices[0]], mesh), draw(st.booleans()))
                for dim in mapping.dim_mappings
            ),
        )
        for mapping in MATMUL.tensor_mappings
    ]


@given(st.data(), meshes())
def test_tensors_that_agree_are_kept(data: st.DataObject, mesh: Mesh) -> None:
    tensors = data.draw(agreeing(mesh))
    directions = tuple(data.draw(st.sampled_from(PropagationDirection)) for _ in range(MATMUL.num_factors))
    assert agree(tensors, MATMUL)
    assert are_kept(MATMUL, mesh, tensors, directions)


@given(st.data(), meshes())
def test_random_tensors_that_agree_are_kept(data: st.DataObject, mesh: Mesh) -> None:
    tensors = [data.draw(shardings(mesh, mapping.rank)) for mapping in MATMUL.tensor_mappings]
    both_ways = (PropagationDirection.BOTH,) * MATMUL.num_factors
    assert not agree(tensors, MATMUL) or are_kept(MATMUL, mesh, tensors, both_ways)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "expected"),
    [
        (("x", "y"), ("y", ""), ("x", ""), True),
        (("x", "y"), ("y", "?"), ("x ?", ""), True),
        (("x", "y"), ("y", ""), ("", ""), False),
        (("x", "y"), ("", ""), ("x", ""), False),
        (("x", "y z"), ("y", ""), ("x", ""), False),
    ],
)
def test_agree(lhs: tuple[str, str], rhs: tuple[str, str], result: tuple[str, str], expected: bool) -> None:
    assert agree((sharding(*lhs), sharding(*rhs), sharding(*result)), MATMUL) == expected


def test_a_missing_sharding_has_no_axes() -> None:
    assert agree((None, sharding("", "?"), None), MATMUL)
    assert not agree((None, sharding("x", ""), None), MATMUL)


def test_dimensions_of_several_factors_are_not_compared() -> None:
    rule = OpShardingRule((2, 8), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))
    assert not agree((sharding(""), sharding("", "")), rule)
