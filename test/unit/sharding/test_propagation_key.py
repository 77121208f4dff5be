# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules with the same propagation key propagate in the same way, whatever their sizes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sharding.strategies import meshes, shardings

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation import order_of, propagate_aggressive, propagate_basic, propagation_key
from mlir_shard.sharding.rule import TensorMapping

SIZES = st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16))
STRATEGIES = (propagate_aggressive, propagate_basic)


@st.composite
def tensors(draw: st.DrawFn, factors: int) -> TensorMapping:
    """Draws a mapping of some of the factors, in any order, to dimensions of one or two factors."""
    order = draw(st.permutations(range(factors)))[: draw(st.integers(0, factors))]
    dims: list[list[int]] = []
    for factor in order:
        if dims and len(dims[-1]) == 1 and draw(st.integers(0, 3)) == 0:
            dims[-1].append(factor)
        else:
            dims.append([factor])
    return TensorMapping.of(*dims)


@st.composite
def rules_alike(draw: st.DrawFn) -> tuple[OpShardingRule, OpShardingRule]:
    """Draws two rules with the same key, which may differ in the sizes of factors."""
    factors = draw(st.integers(1, 3))
    mappings = draw(st.lists(tensors(factors), min_size=2, max_size=3))
    cut = {
        one for of in mappings for dim in of.dim_mappings if len(dim.factor_indices) > 1 for one in dim.factor_indices
    }
    first = draw(st.lists(SIZES, min_size=factors, max_size=factors))
    second = [size if factor in cut else draw(SIZES) for factor, size in enumerate(first)]
    one, other = (OpShardingRule(tuple(sizes), tuple(mappings[:-1]), (mappings[-1],)) for sizes in (first, second))
    assume(propagation_key(one) == propagation_key(other))
    return one, other


def propagated(
    rule: OpShardingRule, mesh: Mesh, given_: list[TensorSharding], strategy: int, elementwise: bool
) -> ShardingProjection:
    before = ShardingProjection.build(given_[:-1], given_[-1:], rule, mesh)
    directions = (PropagationDirection.BOTH,) * rule.num_factors
    return STRATEGIES[strategy](before, rule, mesh, directions, elementwise=elementwise)


@given(st.data(), meshes(), rules_alike(), st.integers(0, 1), st.booleans())
def test_rules_of_one_key_propagate_alike(
    data: st.DataObject, mesh: Mesh, rules: tuple[OpShardingRule, OpShardingRule], strategy: int, elementwise: bool
) -> None:
    one, other = rules
    before = [data.draw(shardings(mesh, mapping.rank)) for mapping in one.tensor_mappings]
    after = propagated(one, mesh, before, strategy, elementwise)
    assert after == propagated(other, mesh, before, strategy, elementwise)
    assert after.to_shardings(one, "mesh", mesh) == after.to_shardings(other, "mesh", mesh)


def matmul(rows: int, columns: int, inner: int) -> OpShardingRule:
    mappings = (TensorMapping.of([0], [2]), TensorMapping.of([2], [1]))
    return OpShardingRule((rows, columns, inner), mappings, (TensorMapping.of([0], [1]),), reduction_factors=(2,))


def test_the_order_of_tensors_by_size_is_part_of_a_key() -> None:
    assert propagation_key(matmul(8, 64, 16)) == propagation_key(matmul(16, 256, 32))
    assert propagation_key(matmul(8, 64, 16)) != propagation_key(matmul(64, 8, 16))


@pytest.mark.parametrize("sizes", [(4, 4), (2, 8)])
def test_the_sizes_of_factors_of_one_dimension_are_part_of_a_key(sizes: tuple[int, int]) -> None:
    def reshape(major: int, minor: int) -> OpShardingRule:
        return OpShardingRule((major, minor), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))

    assert (propagation_key(reshape(*sizes)) == propagation_key(reshape(4, 4))) == (sizes == (4, 4))


def test_order_of() -> None:
    assert order_of((7, 3, 7, 9)) == (1, 0, 1, 2)
