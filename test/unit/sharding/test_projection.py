# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the projection of shardings onto factors: by example, and as a round trip without loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axes, factor_mappings, meshes, sharding, shardings

from mlir_shard.sharding import Mesh, OpShardingRule, TensorMapping
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, TensorFactorShardings

RESHAPE = OpShardingRule((2, 4), (TensorMapping.of((0, 1)),), (TensorMapping.of((0,), (1,)),))
MATMUL = OpShardingRule(
    (8, 16, 32),
    (TensorMapping.of((0,), (2,)), TensorMapping.of((2,), (1,))),
    (TensorMapping.of((0,), (1,)),),
    reduction_factors=(2,),
)
MESH = Mesh([("x", 4), ("y", 2), ("z", 3)])


def project(one, mapping, sizes, mesh=MESH):
    return TensorFactorShardings.project(one, mapping, sizes, mesh)


def factor(text, overflow="", closed=True, minor=False):
    return FactorSharding(axes(text), closed, minor, axes(overflow))


def test_an_axis_is_cut_at_the_border_of_factors():
    tensor = project(sharding("x y ?"), TensorMapping.of((0, 1)), (2, 4))
    assert tensor.factors == (factor("x:(1)2", closed=False), factor("x:(2)2 y", closed=False, minor=True))
    assert tensor.sharding_size(MESH) == 8


def test_a_factor_that_the_tensor_lacks_is_none():
    assert project(sharding("x"), TensorMapping.of((1,)), (2, 4)).factors == (None, factor("x", minor=True))


def test_the_minor_most_factor_takes_what_does_not_divide_it():
    assert project(sharding("z"), TensorMapping.of((0,)), (8,)).factors == (factor("z", minor=True),)


def test_axes_that_do_not_divide_a_factor_overflow():
    mapping = TensorMapping.of((0, 1, 2))
    tensor = project(sharding("y z x ?"), mapping, (4, 6, 8))
    # z (3) does not divide the size that y leaves of the factor of 4, so z and the axes after it overflow.
    assert tensor.factors == (
        factor("y", overflow="z x", closed=False),
        factor("", closed=True),
        factor("", closed=True, minor=True),
    )
    assert tensor.to_sharding(mapping, (4, 6, 8), "mesh", MESH) == sharding("y z x ?")


def test_part_of_an_axis_overflows():
    mapping = TensorMapping.of((0, 1))
    tensor = project(sharding("x"), mapping, (6, 8))
    assert tensor.factors == (factor("x:(1)2", overflow="x:(2)2"), factor("", minor=True))
    assert tensor.to_sharding(mapping, (6, 8), "mesh", MESH) == sharding("x")


def test_axes_of_size_1_overflow_nothing():
    mesh = Mesh([("a", 1), ("x", 4), ("b", 1)])
    tensor = project(sharding("a x b"), TensorMapping.of((0, 1)), (2, 2), mesh)
    assert tensor.factors == (factor("a x:(1)2"), factor("x:(2)2 b", minor=True))


def test_replicated_and_unreduced_axes_stay():
    one = sharding("x", replicated="y", unreduced="z")
    tensor = project(one, TensorMapping.of((0,)), (8,))
    assert (tensor.replicated_axes, tensor.unreduced_axes) == (axes("y"), axes("z"))
    assert tensor.to_sharding(TensorMapping.of((0,)), (8,), "mesh", MESH) == one


def test_a_missing_sharding_is_open_or_closed():
    assert project(None, TensorMapping.of((0,)), (8,)).factors == (factor("", closed=False, minor=True),)
    closed = TensorFactorShardings.project(None, TensorMapping.of((0,)), (8,), MESH, closed_if_missing=True)
    assert closed.factors == (factor("", minor=True),)


def test_a_factor_needs_those_to_its_left_fully_sharded():
    tensor = project(sharding("?"), TensorMapping.of((0, 1)), (4, 4)).update(0, axes("y")).update(1, axes("z"))
    assert tensor.to_sharding(TensorMapping.of((0, 1)), (4, 4), "mesh", MESH) == sharding("y ?")
    assert tensor.update(0, axes("x")).to_sharding(TensorMapping.of((0, 1)), (4, 4), "mesh", MESH) == sharding("x z ?")


def test_propagating_through_a_reshape():
    projection = ShardingProjection.build([sharding("x y ?")], [sharding("?", "?")], RESHAPE, MESH)
    for index, factor_sharding in enumerate(projection.operands[0].factors):
        projection = projection.expand(index, factor_sharding.axes)
    operands, results = projection.to_shardings(RESHAPE, "mesh", MESH)
    assert operands == (sharding("x y ?"),)
    assert results == (sharding("x:(1)2 ?", "x:(2)2 y ?"),)


def test_propagating_back_through_a_reshape_merges():
    projection = ShardingProjection.build([None], [sharding("x:(1)2", "x:(2)2 y")], RESHAPE, MESH)
    for index, factor_sharding in enumerate(projection.results[0].factors):
        projection = projection.expand(index, factor_sharding.axes)
    assert projection.to_shardings(RESHAPE, "mesh", MESH)[0] == (sharding("x y ?"),)


def test_expanding_needs_a_strict_prefix():
    tensor = project(sharding("x:(1)2", "y"), TensorMapping.of((0,), (1,)), (8, 8))
    assert tensor.expand(0, axes("x z")).factors[0].axes == axes("x z")
    assert tensor.expand(0, axes("x:(1)2")) is tensor
    assert tensor.expand(1, axes("x")) is tensor
    assert tensor.update(1, axes("y")) is tensor
    assert tensor.update(1, axes("x"), axes("z")).factors[1] == factor("x", overflow="z", minor=True)
    lacking = project(sharding("x"), TensorMapping.of((1,)), (2, 4))
    assert lacking.expand(0, axes("y")) is lacking and lacking.update(0, axes("y")) is lacking


def test_what_all_tensors_begin_with():
    lhs, rhs, result = sharding("x y", "z"), sharding("", "x"), sharding("x:(1)2", "x")
    projection = ShardingProjection.build([lhs, rhs], [result], MATMUL, MESH)
    assert projection.common_prefix_axes() == (axes("x:(1)2"), axes("x"), ())
    assert projection.expand(2, axes("z")).common_prefix_axes()[2] == axes("z")
    assert projection.update(0, axes("y")).common_prefix_axes()[0] == axes("y")
    assert projection.expand(0, axes("z")) is projection


def test_a_projection_of_given_axes():
    projection = ShardingProjection.of_factors([axes("x"), axes("y"), axes("z")], MATMUL)
    assert projection.to_shardings(MATMUL, "mesh", MESH) == (
        (sharding("x", "z"), sharding("z", "y")),
        (sharding("x", "y"),),
    )


def test_tensors_with_overflow():
    rule = OpShardingRule((4, 4), (TensorMapping.of((0, 1)),) * 2, (TensorMapping.of((0, 1)),))
    projection = ShardingProjection.build([sharding("x"), sharding("z")], [None], rule, MESH)
    assert projection.tensors_with_overflow == (1,)
    cleared = projection.replace_tensor(1, projection.operands[1].update(0, ()))
    assert cleared.tensors_with_overflow == () and cleared.results == projection.results


def test_rank_has_to_fit():
    with pytest.raises(ValueError, match="rank 2 does not fit a mapping of rank 1"):
        project(sharding("x", "y"), TensorMapping.of((0,)), (8,))


@st.composite
def projections(draw):
    mapping, sizes = draw(factor_mappings())
    mesh = draw(meshes())
    return draw(shardings(mesh, mapping.rank)), mapping, sizes, mesh


@given(projections())
def test_there_and_back(case):
    one, mapping, sizes, mesh = case
    tensor = project(one, mapping, sizes, mesh)
    assert tensor.to_sharding(mapping, sizes, "mesh", mesh) == one


@given(projections())
def test_priorities_do_not_come_back(case):
    one, mapping, sizes, mesh = case
    urgent = replace(one, dim_shardings=tuple(d._replace(priority=1) for d in one.dim_shardings))
    assert project(urgent, mapping, sizes, mesh).to_sharding(mapping, sizes, "mesh", mesh) == one


@given(projections())
def test_only_minor_most_factors_are_unevenly_sharded(case):
    one, mapping, sizes, mesh = case
    for size, found in zip(sizes, project(one, mapping, sizes, mesh).factors, strict=True):
        blocks = 1
        for ref in found.axes:
            blocks *= ref.size(mesh)
        assert found.is_minor_most or size % blocks == 0
        assert not (found.is_minor_most and found.overflow_axes)
