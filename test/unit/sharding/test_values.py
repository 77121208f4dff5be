# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import pytest
from sharding.strategies import axes, axis, dim, sharding

from mlir_shard.sharding import (
    AllToAllParam,
    AllToAllParamList,
    DimensionSharding,
    DimMapping,
    Mesh,
    OpShardingRule,
    ReductionOp,
    TensorMapping,
    TensorSharding,
    TensorShardingPerValue,
    factor_index,
    factor_symbol,
)
from mlir_shard.sharding.rule import FactorType

MESH = Mesh([("x", 2), ("y", 4)])


def test_dimension_shardings():
    assert dim("x y ?").sharded_size(MESH) == 8
    assert dim("").sharded_size(MESH) == 1
    assert dim("x ?", 2).closed() == DimensionSharding(axes("x"), True, 2)
    assert dim("x", 2).opened() == DimensionSharding(axes("x"), False, 2)
    assert (dim("x").priority_or_default, dim("x", 3).priority_or_default) == (0, 3)
    assert dim("x", 2).with_axes(axes("y")) == dim("y", 2)
    assert dim("x", 2).with_axes(()) == dim("")
    assert dim("x ?", 2).with_axes(()) == dim("?", 2)


def test_constructors_and_questions():
    opened, closed = TensorSharding.fully_open(2, "mesh"), TensorSharding.fully_closed(2, MESH)
    assert opened == sharding("?", "?") and opened.is_fully_open and not opened.is_fully_closed
    assert closed == sharding("", "", mesh=MESH) and closed.is_fully_closed and closed.is_fully_replicated
    some = sharding("x", "y:(1)2 ?", replicated="y:(2)2")
    assert some.rank == 2 and not some.is_fully_replicated and not some.is_fully_closed and not some.is_fully_open
    assert some.sharding_axes == axes("x y:(1)2")
    assert some.used_axes == axes("x y:(1)2 y:(2)2")
    assert TensorSharding.closed_with([axes("x"), ()], "mesh") == sharding("x", "")
    assert TensorShardingPerValue.fully_open([0, 1], "m").shardings == (sharding(mesh="m"), sharding("?", mesh="m"))
    assert TensorShardingPerValue.fully_closed([1], "m").replace(0, some).shardings == (some,)


def test_changing_dimensions():
    some = sharding("x ?", "y", replicated="z")
    assert some.replace_dims({0: dim("y"), 1: dim("x")}) == sharding("y", "x", replicated="z")
    assert some.close() == sharding("x", "y", replicated="z")
    assert some.open() == sharding("x ?", "y ?", replicated="z")
    assert sharding("", "", "").open([0, 2]) == sharding("?", "", "?")
    assert sharding("?", "?").close([1]) == sharding("?", "")


def test_manual_and_free_axes():
    some = sharding("x y ?", "", replicated="z:(1)2", unreduced="w")
    assert some.without_axes(["x", "z"]) == sharding("y ?", "", unreduced="w")
    assert some.only_axes(["x", "z"]) == sharding("x ?", "", replicated="z:(1)2")


@pytest.mark.parametrize(
    ("one", "other", "equivalent"),
    [
        (sharding("x", "?"), sharding("x ?", "", replicated="y"), True),
        (sharding("x"), sharding("y"), False),
        (sharding("x"), sharding("x", mesh="other"), False),
        (sharding(""), sharding("?", mesh="other"), True),
        (sharding("?"), None, True),
        (sharding("x"), None, False),
        (sharding("", unreduced="x"), None, False),
        (sharding("", unreduced="x"), sharding("", unreduced="x"), True),
        (sharding("", unreduced="x"), sharding("", unreduced="x", reduction_op=ReductionOp.MAX), False),
    ],
)
def test_equivalence(one, other, equivalent):
    assert one.is_equivalent(other) == equivalent


def test_equivalence_without_unreduced_axes():
    assert sharding("", unreduced="x").is_equivalent(None, ignore_unreduced_axes=True)
    assert sharding("y", unreduced="x").is_equivalent(sharding("y"), ignore_unreduced_axes=True)
    assert not sharding("y", unreduced="x").is_equivalent(sharding(""), ignore_unreduced_axes=True)


def test_local_shape():
    assert sharding("x", "", "y:(2)2").local_shape((7, 5, 8), MESH) == (4, 5, 4)
    assert sharding("x y").local_shape((None,), MESH) == (None,)
    assert sharding("y").local_shape((0,), MESH) == (0,)
    assert sharding("y").local_shape((2,), MESH) == (1,)
    with pytest.raises(ValueError, match="rank 1 does not fit a tensor of rank 2"):
        sharding("x").local_shape((1, 2), MESH)


def test_text():
    some = sharding("x y:(2)2 ?", "", "?", replicated="y:(1)2", unreduced="z", reduction_op=ReductionOp.MAX)
    assert str(some) == '<@mesh, [{"x", "y":(2)2, ?}, {}, {?}], replicated={"y":(1)2}, unreduced=max{"z"}>'
    assert str(sharding(mesh=MESH)) == '<mesh<["x"=2, "y"=4]>, []>'
    assert str(dim("x", 1)) == '{"x"}p1'


@pytest.mark.parametrize(("index", "symbol"), [(0, "i"), (1, "j"), (17, "z"), (18, "z_1"), (117, "z_100")])
def test_factor_symbols(index, symbol):
    assert factor_symbol(index) == symbol
    assert factor_index(symbol) == index


@pytest.mark.parametrize("symbol", ["", "h", "A", "ij", "z_", "z_0", "z_01", "z_-1", "z_1x", "y_1", "{"])
def test_no_factor_symbols(symbol):
    with pytest.raises(ValueError, match="is not a factor"):
        factor_index(symbol)


def test_pointwise_rule():
    rule = OpShardingRule.pointwise((4, 1), operands=2)
    assert str(rule) == "([i, j], [i, j])->([i, j]) {i=4, j=1}"
    assert rule.batching_factors == (0, 1)
    assert not rule.has_compound_dimensions
    assert str(OpShardingRule.pointwise((), operands=1, results=2)) == "([])->([], []) {}"


def test_questions_about_a_rule():
    rule = OpShardingRule(
        factor_sizes=(2, 3, 4, 5, 6),
        operand_mappings=(TensorMapping.of((0, 1), (2,)), TensorMapping.of()),
        result_mappings=(TensorMapping.of((0,), (1,), (3,), (4,)),),
        reduction_factors=(2,),
        need_replication_factors=(3,),
        permutation_factors=(4,),
        blocked_propagation_factors=(0,),
    )
    assert [rule.factor_type(factor) for factor in range(5)] == [
        FactorType.PASS_THROUGH,
        FactorType.PASS_THROUGH,
        FactorType.REDUCTION,
        FactorType.NEED_REPLICATION,
        FactorType.PERMUTATION,
    ]
    assert rule.is_blocked(0) and not rule.is_blocked(1)
    assert rule.batching_factors == (0, 1)
    assert rule.non_scalar_tensors == (0, 2)
    assert rule.has_compound_dimensions
    assert DimMapping((0, 1)).is_minor_most(1) and not DimMapping((0, 1)).is_minor_most(0)
    assert not DimMapping(()).is_minor_most(0)


def test_all_to_all_params():
    one = AllToAllParamList((AllToAllParam((axis("x"),), 2, 3),))
    other = AllToAllParamList((AllToAllParam((axis("y"),), 0, 1),))
    assert not one.overlaps(other)
    assert one.combined(other).value == other.value + one.value
    assert one.overlaps(AllToAllParamList((AllToAllParam((axis("y"),), 3, 0),)))
