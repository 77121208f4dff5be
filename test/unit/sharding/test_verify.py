# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the invariants of shardings, rules and edges: violations, the names in messages, and valid cases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axis, dim, factor_mappings, meshes, sharding, shardings

from mlir_shard.sharding import (
    AxisToPropagationDetails,
    EdgeNodeType,
    EdgeValueRef,
    Mesh,
    OpShardingRule,
    PropagationEdges,
    PropagationOneStep,
    TensorMapping,
    TensorSharding,
    TensorShardingPerValue,
)
from mlir_shard.sharding.verify import (
    NoShape,
    check_edges_on_op,
    check_op_sharding_rule,
    check_propagation_edges,
    check_tensor_sharding,
    check_tensor_sharding_per_value,
    common_mesh,
)

MESH = Mesh([("a", 8), ("b", 2), ("c", 12)])
LOOKUP = {"mesh": MESH, "one": Mesh.maximal(3), "empty": Mesh()}


def mesh_of(some):
    return LOOKUP.get(some.mesh_or_ref)


@pytest.mark.parametrize(
    "some",
    [
        sharding("", "?"),
        sharding("a", "b ?", replicated="c:(2)2"),
        sharding("a:(1)2", "a:(2)2 b", unreduced="a:(4)2"),
        sharding("a:(2)2 b a:(4)2", "", replicated="a:(1)2 c"),
        sharding("a:(4)2 a:(2)2", "?"),
        TensorSharding("mesh", (dim("a", 0), dim("?", 2))),
    ],
    ids=str,
)
def test_valid_shardings(some):
    assert check_tensor_sharding(some, MESH, (8, None)) is None


@pytest.mark.parametrize(
    ("some", "message"),
    [
        (sharding("x", ""), 'dim 0: unknown axis "x": the mesh has "a", "b", "c"'),
        (sharding("", "", replicated="x"), 'replicated axes: unknown axis "x"'),
        (sharding("", "", unreduced="a x:(1)2"), 'unreduced axes: unknown axis "x"'),
        (sharding("a b a", ""), 'dim 0: axis "a" is used twice'),
        (sharding("a", "a"), 'dim 1: axis "a" is already used in dim 0'),
        (sharding("a", "", replicated="a"), 'replicated axes: axis "a" is already used in dim 0'),
        (
            sharding("", "", replicated="a", unreduced="a"),
            'unreduced axes: axis "a" is already used in replicated axes',
        ),
        (sharding("a:(2)2", "a:(2)2"), 'axis "a":(2)2 is already used in dim 0'),
        (sharding("a", "a:(2)2"), 'dim 1: axis "a":(2)2 overlaps "a" in dim 0'),
        (sharding("a:(2)2", "", replicated="a"), 'replicated axes: axis "a" overlaps "a":(2)2 in dim 0'),
        (sharding("a:(1)4", "a:(2)4"), 'dim 1: axis "a":(2)4 overlaps "a":(1)4 in dim 0'),
        (sharding("a:(2)4 a:(1)4", ""), 'dim 0: axis "a":(1)4 overlaps "a":(2)4'),
        (sharding("c:(1)2", "c:(3)2"), '"c":(1)2 in dim 0 and "c":(3)2 are not parts of one split'),
        (sharding("a:(2)2 a:(4)2", ""), '"a":(2)2 and "a":(4)2 follow each other and have to be merged to "a":(2)4'),
        (sharding("", "", replicated="a:(1)2 a:(2)4"), 'replicated axes: "a":(1)2 and "a":(2)4 follow'),
        (sharding("a:(0)2", ""), '"a":(0)2 has pre-size 0'),
        (sharding("a:(-1)2", ""), '"a":(-1)2 has pre-size -1'),
        (sharding("a:(2)1", ""), '"a":(2)1 has size 1'),
        (sharding("a:(3)2", ""), "pre-size times size is 6, which does not divide 8"),
        (sharding("a:(4)4", ""), "pre-size times size is 16, which does not divide 8"),
        (sharding("a:(1)8", ""), '"a":(1)8 covers its entire axis and must be written as "a"'),
        (sharding("", "", replicated="b a"), 'replicated axes have to be in the order of the mesh, {"a", "b"}'),
        (sharding("", "", unreduced="a:(4)2 a:(1)2"), 'unreduced axes have to be in the order of the mesh, {"a":(1)2'),
        (TensorSharding("mesh", (dim("a", -1), dim(""))), "dim 0: priority -1 is negative"),
        (TensorSharding("mesh", (dim("a"), dim("", 1))), "dim 1: priority p1 has no effect on a closed dimension"),
        (sharding("a"), "the sharding has 1 dimensions, but the tensor has 2"),
    ],
    ids=lambda value: str(value) if isinstance(value, TensorSharding) else "",
)
def test_invalid_shardings(some, message):
    assert message in check_tensor_sharding(some, MESH, (8, 8))


def test_divisibility_is_checked_where_asked():
    assert check_tensor_sharding(sharding("a"), MESH, (12,)) is None
    message = check_tensor_sharding(sharding("a"), MESH, (12,), divisible=True)
    assert message == 'dim 0: size 12 cannot be divided evenly into 8 shards by {"a"}'
    assert check_tensor_sharding(sharding("a", "b"), MESH, (None, 4), divisible=True) is None


def test_mesh_and_type():
    assert check_tensor_sharding(sharding("a", mesh="m"), None, (8,)) == "unknown mesh @m"
    assert "unknown axis" in check_tensor_sharding(sharding("a"), Mesh(), (8,))
    assert "a tensor without a rank" in check_tensor_sharding(sharding(), MESH, NoShape.UNRANKED)
    assert check_tensor_sharding(sharding(), MESH, NoShape.NOT_SHAPED) is None
    assert "a value that is not a tensor has rank 0" in check_tensor_sharding(sharding(""), MESH, NoShape.NOT_SHAPED)
    assert check_tensor_sharding(sharding(replicated="a"), MESH, NoShape.NOT_SHAPED)


def test_one_device():
    one = Mesh.maximal(3)
    assert check_tensor_sharding(sharding(mesh="one"), one, (8, 8)) is None
    for some in (sharding("", ""), sharding(replicated="a"), sharding(unreduced="a")):
        assert "one device (@mesh) has rank 0 and no replicated" in check_tensor_sharding(some, one, (8, 8))


def test_axes_that_are_manual_around():
    some = sharding("b", replicated="a:(1)2")
    assert 'axis "a" is already manual' in check_tensor_sharding(some, MESH, (8,), manual_axes={"a", "c"})
    assert check_tensor_sharding(some, MESH, (8,), manual_axes={"c"}) is None


def test_shardings_per_value():
    two = TensorShardingPerValue((sharding("a"), sharding("x")))
    assert check_tensor_sharding_per_value(two, mesh_of, [(8,), (8,)]).startswith('result 1: dim 0: unknown axis "x"')
    one = TensorShardingPerValue((sharding("x"),))
    assert check_tensor_sharding_per_value(one, mesh_of, [(8,)], kind="operand").startswith("operand: dim 0")
    message = check_tensor_sharding_per_value(two, mesh_of, [(8,)])
    assert message == "2 shardings are given for 1 results, but each must have one"
    assert check_tensor_sharding_per_value(TensorShardingPerValue((sharding("a"),)), mesh_of, [(8,)]) is None
    assert check_tensor_sharding_per_value(TensorShardingPerValue(()), mesh_of, []) is None


def test_an_op_without_values_may_say_its_device():
    def check(some):
        return check_tensor_sharding_per_value(TensorShardingPerValue((some,)), mesh_of, [])

    assert check(sharding(mesh="one")) is None
    assert check(sharding()) is None
    assert "an op without results has rank 0" in check(sharding("?"))
    assert "1 shardings are given for 0 results" in check(sharding("a"))


def test_common_mesh():
    other = Mesh([("a", 4)])
    assert common_mesh([None, MESH, Mesh(), MESH]) == MESH
    assert common_mesh([Mesh(), None, MESH]) == MESH
    assert common_mesh([MESH, other]) is None
    assert common_mesh([None]) is None
    assert common_mesh([Mesh()]) == Mesh()


@given(st.data(), meshes())
def test_random_shardings_are_valid(data, mesh):
    some = data.draw(shardings(mesh, 2))
    assert check_tensor_sharding(some, mesh, (None, None)) is None


@given(st.data(), meshes())
def test_using_an_axis_again_is_found(data, mesh):
    some = data.draw(shardings(mesh, 2))
    again = replace(some, dim_shardings=(*some.dim_shardings, dim("x")))
    assert (check_tensor_sharding(again, mesh, (None,) * 3) is None) == (
        "x" not in {axis.name for axis in some.used_axes}
    )


RULE = OpShardingRule(
    (8, 4, 2),
    (TensorMapping.of((0,), (2,)), TensorMapping.of((2,), (1,))),
    (TensorMapping.of((0, 1)),),
    reduction_factors=(2,),
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operand_mappings": RULE.operand_mappings[:1]}, "the rule maps 1 operands, but the op has 2"),
        ({"result_mappings": RULE.result_mappings * 2}, "the rule maps 2 results, but the op has 1"),
        (
            {"operand_mappings": (TensorMapping.of((0,)), RULE.operand_mappings[1])},
            "operand 0: the mapping [i] has 1 dimensions, but the tensor has 2",
        ),
        (
            {"result_mappings": (TensorMapping.of(()),)},
            "result: dim 0: the dimension must be mapped to at least one factor",
        ),
        ({"result_mappings": (TensorMapping.of((3,)),)}, "result: dim 0: unknown factor l: the rule has 3 factors"),
        ({"result_mappings": (TensorMapping.of((-1,)),)}, "result: dim 0: unknown factor -1"),
        ({"result_mappings": (TensorMapping.of((0, 1, 0)),)}, "result: dim 0: 'iji' has a factor twice"),
        (
            {"operand_mappings": (TensorMapping.of((0,), (0,)), RULE.operand_mappings[1])},
            "operand 0: dim 1: factor i is already in dim 0",
        ),
        ({"factor_sizes": (8, 1, 2)}, "result: dim 0: factor j of size 1 cannot be one of several"),
        ({"factor_sizes": (8, -4, 2)}, "factor j has the negative size -4"),
        ({"factor_sizes": (8, 4, 2, 7)}, "factor l=7 does not occur in any operand or result"),
        ({"reduction_factors": (2, 2)}, "reduction factors: k is given more than once"),
        ({"reduction_factors": (3,)}, "reduction factors: unknown factor l"),
        ({"permutation_factors": (-1,)}, "permutation factors: unknown factor -1"),
        ({"need_replication_factors": (1, 0)}, "need_replication factors: must be in ascending order: i, j"),
        ({"blocked_propagation_factors": (1, 0)}, "blocked_propagation factors: must be in ascending order"),
        ({"permutation_factors": (2,)}, "factor k is both a reduction and a permutation factor"),
        (
            {"reduction_factors": (), "permutation_factors": (0,), "need_replication_factors": (0,)},
            "factor i is both a need_replication and a permutation factor",
        ),
        ({"reduction_factors": (1,)}, "reduction factor j must not occur in result"),
    ],
)
def test_invalid_rules(changes, message):
    assert message in check_op_sharding_rule(replace(RULE, **changes), [(8, 2), (2, 4)], [(32,)])


def test_rules_need_static_tensors_on_both_sides():
    assert check_op_sharding_rule(RULE, [(8, 2), (2, 4)], [(32,)]) is None
    blocked = replace(RULE, blocked_propagation_factors=(0, 2))
    assert check_op_sharding_rule(blocked, [(8, 2), (2, 4)], [(32,)]) is None
    assert "operand 1: a rule requires tensors with a static shape, but dim 0 is dynamic" in check_op_sharding_rule(
        RULE, [(8, 2), (None, 4)], [(32,)]
    )
    assert "but this is a tensor without a rank" in check_op_sharding_rule(RULE, [(8, 2), NoShape.UNRANKED], [(32,)])
    assert "the rule maps no result" in check_op_sharding_rule(replace(RULE, result_mappings=()), [(8, 2), (2, 4)], [])


@given(factor_mappings())
def test_random_rules_are_valid(case):
    mapping, sizes = case
    shape = (None,) * mapping.rank
    rule = OpShardingRule(sizes, (mapping,), (mapping,))
    assert "dynamic" in check_op_sharding_rule(rule, [shape], [shape])
    assert check_op_sharding_rule(rule, [(1,) * mapping.rank], [(1,) * mapping.rank]) is None


def operand(index):
    return EdgeValueRef(EdgeNodeType.OPERAND, index)


def result(index):
    return EdgeValueRef(EdgeNodeType.RESULT, index)


def edges(*steps):
    return PropagationEdges(
        tuple(
            PropagationOneStep(index, (AxisToPropagationDetails(axis(name), source, tuple(targets)),))
            for index, name, source, targets in steps
        )
    )


@pytest.mark.parametrize(
    ("some", "message"),
    [
        (edges((-3, "a", operand(0), [result(0)])), "propagation step -3 is negative"),
        (edges((1, "a", operand(0), []), (1, "b", operand(1), [])), "propagation step 1 is given twice"),
        (edges((1, "a", operand(0), [operand(0)])), 'step 1: axis "a" propagates from operand-0 to itself'),
        (
            edges((7, "a:(1)2", result(0), [operand(0), operand(1), operand(0)])),
            'step 7: axis "a":(1)2 propagates to operand-0 more than once',
        ),
    ],
)
def test_invalid_edges(some, message):
    assert message in check_propagation_edges(some)


@pytest.mark.parametrize(
    ("some", "message"),
    [
        (edges((0, "x", operand(0), [result(0)])), 'step 0: unknown axis "x"'),
        (edges((0, "a", operand(2), [result(0)])), "unknown value operand-2: the op has 2 operands"),
        (edges((0, "a", operand(0), [result(1)])), "unknown value result-1: the op has 1 results"),
        (edges((0, "a", operand(-1), [result(0)])), "unknown value operand--1"),
    ],
)
def test_edges_that_do_not_fit_the_op(some, message):
    assert message in check_edges_on_op(some, MESH, 2, 1)


def test_valid_edges():
    some = edges((0, "a", operand(0), [operand(1), result(0)]), (3, "b", result(0), [operand(1)]))
    assert check_propagation_edges(some) is None
    assert check_edges_on_op(some, MESH, 2, 1) is None
    assert check_edges_on_op(edges((0, "a", operand(9), [result(9)])), MESH, None, None) is None
    assert "have the same mesh" in check_edges_on_op(some, None, 2, 1)
