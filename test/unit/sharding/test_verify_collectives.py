# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the invariants of collectives, unreduced axes and manual computations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axes, meshes, sharding, shardings

from mlir_shard.sharding import (
    AllToAllParam,
    AllToAllParamList,
    AxisRefList,
    ListOfAxisRefLists,
    ManualAxes,
    Mesh,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)
from mlir_shard.sharding.verify import (
    check_all_gather,
    check_all_reduce,
    check_all_slice,
    check_all_to_all,
    check_collective,
    check_collective_permute,
    check_manual_axes,
    check_manual_axes_spelled_out,
    check_manual_values,
    check_reduce_scatter,
    check_replicated_to_unreduced,
    check_sharded_to_unreduced,
    check_unreduced_transition,
)

SUM, MAX, MIN = ReductionOp.SUM, ReductionOp.MAX, ReductionOp.MIN
MESH = Mesh([("x", 8), ("y", 4), ("z", 2)])


def per_dim(*lists):
    return ListOfAxisRefLists(tuple(AxisRefList(axes(text)) for text in lists))


def one_list(text):
    return AxisRefList(axes(text))


def all_to_all(*params):
    return AllToAllParamList(tuple(AllToAllParam(axes(text), src, tgt) for text, src, tgt in params))


def test_what_all_collectives_keep():
    some, other = sharding("x", ""), Mesh([("x", 4)])
    assert check_collective(some, sharding("", ""), MESH, MESH, (8, 8)) is None
    assert "the operand must have a sharding" in check_collective(None, some, None, MESH, (8, 8))
    assert check_collective(None, some, None, MESH, (8, 8), operand_may_lack_sharding=True) is None
    assert "out_sharding: the sharding has 2 dim" in check_collective(some, some, MESH, MESH, (8,))
    assert "out_sharding: unknown mesh @mesh" in check_collective(some, some, MESH, None, (8, 8))
    assert "operand: unknown mesh @mesh" in check_collective(some, some, None, MESH, (8, 8))
    assert "but the operand is on <[" in check_collective(some, some, other, MESH, (8, 8))
    assert check_collective(some, some, other, MESH, (8, 8), meshes_may_differ=True) is None
    assert "has 2 dimensions, but the operand's sharding 1" in check_collective(sharding("x"), some, MESH, MESH, (8, 8))
    assert 'axis "x" is already manual' in check_collective(some, some, MESH, MESH, (8, 8), manual_axes={"x"})


GATHERS = [
    (sharding("x y", "z"), per_dim("x y", "z"), sharding("", "")),
    (sharding("x y", "z"), per_dim("y", ""), sharding("x", "z ?")),
    (sharding("x", "y"), per_dim("x:(2)4", "y:(2)2"), sharding("x:(1)2", "y:(1)2")),
    (sharding("x:(2)4 z", ""), per_dim("x:(4)2 z", ""), sharding("x:(2)2", "")),
    (sharding("z x:(1)4", ""), per_dim("x:(2)2", ""), sharding("z x:(1)2", "")),
    (sharding("x", ""), per_dim("", ""), sharding("x", "")),
]


@pytest.mark.parametrize(("operand", "moved", "result"), GATHERS)
def test_gathering_and_slicing_are_inverse(operand, moved, result):
    assert check_all_gather(operand, result, moved, MESH) is None
    assert check_all_slice(result, operand, moved, MESH) is None
    assert check_reduce_scatter(result, operand, moved, SUM, MESH) is None


@pytest.mark.parametrize(
    ("operand", "moved", "result", "message"),
    [
        (sharding("x", ""), per_dim("x"), sharding("", ""), "axes are given for 1 dimensions, but the tensor has 2"),
        (sharding("x", "y"), per_dim("x", "x"), sharding("", ""), 'axes of dim 1: axis "x" is already used in axes of'),
        (sharding("x", ""), per_dim("x:(1)2 x:(2)2", ""), sharding("", ""), 'merged to "x":(1)4'),
        (sharding("x", ""), per_dim("w", ""), sharding("", ""), 'unknown axis "w"'),
        (sharding("x y", ""), per_dim("x", ""), sharding("y", ""), 'dim 0: "x" is not at the end of the operand\'s'),
        (
            sharding("x", ""),
            per_dim("", "y"),
            sharding("x", ""),
            'dim 1: "y" is not at the end of the operand\'s axes {}',
        ),
        (sharding("x y", ""), per_dim("z y", ""), sharding("x", ""), '{"x", "y"}, of which {"x"} is left'),
        (sharding("x", ""), per_dim("x:(1)2", ""), sharding("", ""), '"x":(1)2 is not at the end'),
        (sharding("x", "y"), per_dim("x", ""), sharding("x", "y"), 'dim 0: out_sharding has the axes {"x"}, but'),
        (sharding("x", "y"), per_dim("x:(4)2", ""), sharding("x:(1)2", "y"), 'become {"x":(1)4}'),
    ],
)
def test_invalid_all_gathers(operand, moved, result, message):
    assert message in check_all_gather(operand, result, moved, MESH)


def test_slicing_without_an_operand_sharding():
    assert check_all_slice(None, sharding("x", ""), per_dim("x", ""), MESH) is None
    assert 'dim 0: out_sharding has the axes {"x"}' in check_all_slice(None, sharding("x", ""), per_dim("y", ""), MESH)


def test_reduce_scatter_reduces_with_the_reduction_of_the_axes():
    def check(op, result="x"):
        operand = sharding("", unreduced="x", reduction_op=MAX)
        return check_reduce_scatter(operand, sharding(result), per_dim("x"), op, MESH)

    assert check(MAX) is None
    assert check(MIN) == 'axis "x" is unreduced by max, but reduced by min'
    assert "dim 0: out_sharding has the axes {}" in check(MAX, "")


@pytest.mark.parametrize(
    ("operand", "params", "result"),
    [
        (sharding("x", ""), all_to_all(("x", 0, 1)), sharding("", "x")),
        (sharding("x y", "z"), all_to_all(("y", 0, 1)), sharding("x", "z y")),
        (sharding("x", ""), all_to_all(("x:(4)2", 0, 1)), sharding("x:(1)4", "x:(4)2")),
        (sharding("x:(4)2", "x:(1)4"), all_to_all(("x:(4)2", 0, 1)), sharding("", "x")),
        (sharding("x", "", "y", ""), all_to_all(("x", 0, 3), ("y", 2, 1)), sharding("", "y", "", "x")),
    ],
)
def test_valid_all_to_alls(operand, params, result):
    assert check_all_to_all(operand, result, params, MESH) is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (all_to_all(), "must move at least one axis"),
        (all_to_all(("x", 0, 3)), "target dim 3 is out of range for a tensor of rank 3"),
        (all_to_all(("x", -1, 0)), "source dim -1 is out of range"),
        (all_to_all(("x", 0, 0)), "dim 0 occurs more than once as a source or target"),
        (all_to_all(("x", 0, 1), ("y", 1, 2)), "dim 1 occurs more than once as a source or target"),
        (all_to_all(("y", 1, 2)), 'dim 1: "y" is not at the end of the operand\'s axes {}'),
        (all_to_all(("z", 0, 1)), 'dim 0: "z" is not at the end of the operand\'s axes {"x"}'),
        (all_to_all(("w", 0, 1)), '0->1: unknown axis "w"'),
        (all_to_all(("x", 0, 1)), 'dim 1: out_sharding has the axes {}, but the operand\'s become {"x"}'),
    ],
)
def test_invalid_all_to_alls(params, message):
    assert message in check_all_to_all(sharding("x", "", ""), sharding("", "", "x"), params, MESH)


def test_all_to_all_sources_ascend():
    operand, params = sharding("", "y", "x", ""), all_to_all(("x", 2, 3), ("y", 1, 0))
    message = check_all_to_all(operand, sharding("y", "", "", "x"), params, MESH)
    assert message == "source dims must be in ascending order, but 1 comes after 2"


def test_collective_permute():
    reordered, renamed = Mesh(MESH.axes, reversed(range(64))), Mesh([("w", 64)])

    def check(operand, result, operand_mesh=MESH, result_mesh=MESH):
        return check_collective_permute(operand, result, operand_mesh, result_mesh)

    assert check(sharding("x", "y z"), sharding("z y", "x")) is None
    assert check(sharding("x:(1)2", ""), sharding("z", "")) is None
    assert check(sharding("x"), sharding("x", mesh="other"), MESH, reordered) is None
    assert "has different axes" in check(sharding("x"), sharding("w", mesh="o"), MESH, renamed)
    assert "not only in name" in check(sharding("x"), sharding("x", mesh="other"))
    assert 'dim 1: {"y"} makes 4 shards, but the operand\'s {"z"} makes 2' in check(
        sharding("x", "z"), sharding("x", "y")
    )


@pytest.mark.parametrize(
    ("operand", "reduced", "result", "message"),
    [
        (sharding("x", unreduced="y z"), "y", sharding("x", unreduced="z"), None),
        (sharding("x"), "y", sharding("x"), None),
        (None, "y", sharding(""), None),
        (sharding("x:(1)2", unreduced="x:(2)4"), "x:(2)4", sharding("x:(1)2", replicated="x:(4)2"), None),
        (sharding("x"), "y", sharding("y"), 'but is <@mesh, [{"y"}]> after <@mesh, [{"x"}]>'),
        (sharding("x"), "x:(2)2", sharding("x"), 'reduction axis "x":(2)2 overlaps dim 0 of the operand'),
        (sharding("x", replicated="y"), "y", sharding("x"), 'reduction axis "y" overlaps replicated axes of'),
        (
            sharding("x", unreduced="y"),
            "y",
            sharding("x", unreduced="y"),
            "overlaps the unreduced axes of out",
        ),
        (sharding(""), "y x", sharding(""), 'reduction axes have to be in the order of the mesh, {"x", "y"}'),
        (sharding(""), "x x", sharding(""), 'reduction axes: axis "x" is used twice'),
        (sharding(""), "x:(1)2 x:(2)2", sharding(""), "have to be merged"),
        (sharding(""), "x", sharding("", unreduced="z"), 'axis "z" is unreduced in a result but not in an operand'),
    ],
)
def test_all_reduce(operand, reduced, result, message):
    found = check_all_reduce(operand, result, one_list(reduced), SUM, MESH)
    assert (found is None) if message is None else (message in found)


def test_all_reduce_reduces_with_the_reduction_of_the_axes():
    operand = sharding("", unreduced="y", reduction_op=MAX)
    assert check_all_reduce(operand, sharding(""), one_list("y"), MAX, MESH) is None
    assert "by max, but reduced by sum" in check_all_reduce(operand, sharding(""), one_list("y"), SUM, MESH)


@pytest.mark.parametrize(
    ("moved", "result", "message"),
    [
        (per_dim("y", ""), sharding("x", "", unreduced="y z"), None),
        (per_dim("x:(4)2 y", ""), sharding("x:(1)4", "", unreduced="x:(4)2 y z"), None),
        (per_dim("y", ""), sharding("x", "", unreduced="y"), '{"y"}, but the operand\'s become {"y", "z"}'),
        (per_dim("x", ""), sharding("y", "", unreduced="x z"), 'dim 0: "x" is not at the end'),
        (per_dim("y", ""), sharding("x", "", unreduced="y z", reduction_op=MAX), "become unreduced only by sum"),
    ],
)
def test_sharded_to_unreduced(moved, result, message):
    found = check_sharded_to_unreduced(sharding("x y", "", unreduced="z"), result, moved, MESH)
    assert (found is None) if message is None else (message in found)


@pytest.mark.parametrize(
    ("moved", "result", "message"),
    [
        ("y", sharding("x:(1)2", unreduced="y z"), None),
        ("x:(2)2 y", sharding("x:(1)2", unreduced="x:(2)2 y z"), None),
        ("y", sharding("x:(1)2", unreduced="y"), 'but the operand\'s become {"y", "z"}'),
        ("y", sharding("", unreduced="y z"), "must have the operand's dimension shardings"),
        ("", sharding("x:(1)2", unreduced="z"), "at least one axis that becomes unreduced must be given"),
        ("y x:(4)2", sharding("x:(1)2", unreduced="x:(4)2 y z"), "axes have to be in the order of the mesh"),
        ("y y", sharding("x:(1)2", unreduced="y z"), 'axes: axis "y" is used twice'),
        ("x", sharding("x:(1)2", unreduced="x z"), 'axis "x" overlaps dim 0 of the operand'),
        ("z", sharding("x:(1)2", unreduced="z"), 'axis "z" overlaps unreduced axes of the operand'),
        ("y", sharding("x:(1)2", unreduced="y z", reduction_op=MIN), "become unreduced only by sum"),
    ],
)
def test_replicated_to_unreduced(moved, result, message):
    operand = sharding("x:(1)2", replicated="y", unreduced="z")
    found = check_replicated_to_unreduced(operand, result, one_list(moved), MESH)
    assert (found is None) if message is None else (message in found)


def unreduced(text, op=SUM):
    return sharding("", unreduced=text, reduction_op=op)


@pytest.mark.parametrize(
    ("operands", "results", "introduced", "removed", "message"),
    [
        ([unreduced("x")], [unreduced("x")], None, None, None),
        ([unreduced("x", MAX)], [unreduced("x", MAX)], SUM, SUM, None),
        ([None], [unreduced("x")], SUM, None, None),
        ([unreduced("x")], [None], None, SUM, None),
        ([unreduced("x"), unreduced("y")], [unreduced("x y")], None, None, None),
        ([None], [unreduced("x")], None, SUM, 'axis "x" is unreduced in a result but not in an operand'),
        ([None], [unreduced("x", MAX)], SUM, SUM, 'axis "x" becomes unreduced by max, but this op allows only sum'),
        ([unreduced("x:(1)4")], [unreduced("x")], None, None, 'axis "x":(4)2 is unreduced in a result'),
        ([unreduced("x")], [None], SUM, None, 'axis "x" is unreduced in an operand but not in a result'),
        ([unreduced("x", MIN)], [None], SUM, SUM, 'axis "x" is unreduced by min, but reduced by sum'),
        (
            [unreduced("x y", MAX)],
            [unreduced("x")],
            SUM,
            MAX,
            'axis "x" stays unreduced, but its reduction changes from max',
        ),
        ([unreduced("x")], [unreduced("x:(1)2", MAX)], MAX, SUM, 'axis "x":(1)2 stays unreduced'),
    ],
)
def test_unreduced_axes(operands, results, introduced, removed, message):
    found = check_unreduced_transition(operands, results, MESH, introduced=introduced, removed=removed)
    assert (found is None) if message is None else (message in found)
    assert check_unreduced_transition(operands, results, None, introduced=introduced, removed=removed) is None


@given(st.data(), meshes())
def test_gathering_all_axes_replicates(data, mesh):
    some = data.draw(shardings(mesh, 2))
    every = ListOfAxisRefLists(tuple(AxisRefList(of.axes) for of in some.dim_shardings))
    nothing = TensorSharding.fully_closed(2, "mesh")
    assert check_all_gather(some, nothing, every, mesh) is None
    assert check_all_slice(nothing, some, every, mesh) is None
    if some.sharding_axes:
        assert check_all_gather(some, some, every, mesh)


LOOKUP = {"mesh": MESH, "other": Mesh([("w", 2)]), "empty": Mesh()}


def mesh_of(some):
    return LOOKUP.get(some.mesh_or_ref)


def values(*some):
    return TensorShardingPerValue(some)


@pytest.mark.parametrize(
    ("some", "manual", "whole", "local", "message"),
    [
        (sharding("x", "y"), "x", (16, 8), (2, 8), None),
        (sharding("x y", "?"), "x", (16, None), (2, None), None),
        (sharding("x:(1)2 x:(4)2 y", ""), "x", (16, 8), (4, 8), None),
        (sharding("", "y", replicated="x"), "x y", (16, 8), (16, 2), None),
        (sharding("y x", ""), "x", (32, 8), (4, 8), 'operand: dim 0: manual axis "x" comes after the free axis "y"'),
        (sharding("x", ""), "x", (12, 8), (2, 8), "operand: dim 0: size 12 cannot be divided evenly into 8 shards"),
        (sharding("y", ""), "x", (13, 8), (13, 8), None),
        (sharding("x", ""), "x", (16, 8), (16, 8), 'is the shape [16, 8], but <@mesh, [{"x"}, {}]> requires [2, 8]'),
        (sharding("x", ""), "x", (None, 8), (2, 8), "requires [?, 8]"),
        (sharding("x"), "x", (16, 8), (2, 8), "operand: the sharding has 1 dimensions, but the tensor has 2"),
    ],
)
def test_values_of_a_manual_computation(some, manual, whole, local, message):
    found = check_manual_values(
        values(some), ManualAxes(tuple(manual.split())), mesh_of, [whole], [local], kind="operand"
    )
    assert (found is None) if message is None else (message in found)


def test_number_of_values_of_a_manual_computation():
    def check(some, whole, local):
        return check_manual_values(some, ManualAxes(("x",)), mesh_of, whole, local, kind="result")

    assert check(values(), [], []) is None
    assert check(values(sharding("x")), [(8,)], [(1,), (8,)]) == "the op has 1 results, but its body has 2"
    assert "2 shardings are given for 1 results" in check(values(sharding("x"), sharding("")), [(8,)], [(1,)])


def test_manual_axes():
    def check(names, ins, outs=(), around=()):
        return check_manual_axes(ManualAxes(tuple(names)), values(*ins), values(*outs), mesh_of, manual_axes=around)

    assert check("yx", [sharding("x")], [sharding(mesh="empty")]) is None
    assert check("", [sharding("x")], [sharding("w", mesh="other")]) is None
    assert check("x", []) is None
    assert "on @mesh, @other" in check("x", [sharding("x")], [sharding("w", mesh="other")])
    assert 'unknown manual axis "w"' in check("xw", [sharding("x")])
    assert 'manual axis "x" is given twice' in check("xyx", [sharding("x")])
    assert 'axis "y" is already manual' in check("xy", [sharding("x")], around={"y"})


def test_manual_axes_spelled_out():
    def check(names, some):
        return check_manual_axes_spelled_out(ManualAxes(tuple(names)), values(sharding("x y")), values(some), MESH)

    assert check("xy", sharding("x", replicated="y")) is None
    assert check("xy", sharding("x:(1)2", replicated="x:(2)4 y")) is None
    assert check("xy", sharding("x", unreduced="y")) is None
    assert check("yx", sharding("x y")) == 'manual axes have to be in the order of the mesh, {"x", "y"}'
    assert 'result: manual axis "x":(2)4 must shard a dimension' in check("xy", sharding("x:(1)2 y"))
